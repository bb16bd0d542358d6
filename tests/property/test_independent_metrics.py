"""The metrics against the second code path, on random runs; and that the checks can fail."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim import simulate
from analysim.config.cluster import ClusterConfig, NodeGroup, NodeType, Partition, Rack
from analysim.metrics import make_timeline, summarise
from tests.builders import run
from tests.property.cases import PLACEMENTS, clusters, traces
from tests.property.independent_course import course
from tests.property.independent_metrics import (
    check_jobs,
    check_no_gpu_held_twice,
    check_state_sum,
    check_work_done,
    recompute,
)
from tests.property.random_tables import random_tables

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 2**32)


def differences(found: Any, expected: Any, where: str = "", absolute: float = 1e-15) -> list[str]:
    """Compare two nested summaries: integers exactly, floats to 1e-12 of themselves."""
    if isinstance(expected, dict):
        faults = [f"{where}.{name}: only on one side" for name in found.keys() ^ expected.keys()]
        for name in found.keys() & expected.keys():
            faults += differences(found[name], expected[name], f"{where}.{name}", absolute)
        return faults
    if found is None or expected is None or isinstance(expected, int):
        same = found == expected and (found is None) == (expected is None)
    else:
        same = math.isclose(found, expected, rel_tol=1e-12, abs_tol=absolute)
    return [] if same else [f"{where}: {found!r}, expected {expected!r}"]


@settings(max_examples=80, deadline=None)
@given(SEEDS)
def test_random_tables_are_consistent(seed: int) -> None:
    tables = random_tables(seed)
    faults = [
        *check_jobs(tables),
        *check_state_sum(tables),
        *check_no_gpu_held_twice(tables),
        *check_work_done(tables),
    ]
    assert faults == []


@pytest.mark.filterwarnings("error")
@settings(max_examples=80, deadline=None)
@given(SEEDS)
def test_summary_agrees_with_the_second_path(seed: int) -> None:
    tables = random_tables(seed)
    summary = summarise(tables)
    assert differences(summary, recompute(tables)) == []
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


@pytest.mark.filterwarnings("error")
@settings(max_examples=80, deadline=None)
@given(SEEDS, st.floats(-0.2, 1.2), st.floats(0, 1.2))
def test_measured_summary_agrees_with_the_second_path(seed: int, at: float, length: float) -> None:
    tables = random_tables(seed)
    first = float(tables.jobs["submit_time_s"].min()) if len(tables.jobs) else 0.0
    span = float(tables.segments["end_s"].max()) - first if len(tables.segments) else 1.0
    measure = (first + at * span, first + (at + length) * span)
    assert differences(summarise(tables, measure), recompute(tables, measure)) == []


@pytest.mark.filterwarnings("error")
@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 12))
def test_timeline_agrees_with_the_second_path(seed: int, intervals: int) -> None:
    tables = random_tables(seed, jobs=8)
    timeline = make_timeline(tables, intervals)
    edges = [*timeline["start_s"], *timeline["end_s"].tail(1)]
    expected = course(tables, [round(edge * 1e6) for edge in edges])
    assert len(timeline) == len(expected)
    for row, figures in zip(timeline.to_dict("records"), expected, strict=True):
        found = {name: None if np.isnan(row[name]) else row[name] for name in figures}
        # Rates of progress are counted in 2**-40 of a GPU.
        assert differences(found, figures, absolute=len(tables.segments) * 2**-40) == []


@pytest.mark.filterwarnings("error")
@settings(max_examples=40, deadline=None)
@given(traces(requests=True), clusters(), st.sampled_from(("fifo", "preempt", "srtf")), PLACEMENTS)
def test_runs_with_shares_of_gpus_agree_with_the_second_path(
    rows: pd.DataFrame, cluster: ClusterConfig, policy: str, placement: str
) -> None:
    tables = run(rows, cluster, policy, placement=placement).tables
    assert differences(summarise(tables), recompute(tables)) == []
    assert [*check_jobs(tables), *check_state_sum(tables), *check_no_gpu_held_twice(tables)] == []
    timeline = make_timeline(tables, 3)
    edges = [*timeline["start_s"], *timeline["end_s"].tail(1)]
    for row, figures in zip(
        timeline.to_dict("records"), course(tables, [round(edge * 1e6) for edge in edges]), strict=True
    ):
        found = {name: None if np.isnan(row[name]) else row[name] for name in figures}
        assert differences(found, figures, absolute=len(tables.segments) * 2**-40) == []


@pytest.mark.parametrize("seed", range(5))
def test_tables_read_back_from_csv_give_the_same_figures(seed: int) -> None:
    tables = random_tables(seed, jobs=12)
    names = ("jobs", "segments", "capacity")
    texts = {name: getattr(tables, name).to_csv(index=False) for name in names}
    read = {name: pd.read_csv(io.StringIO(text)) for name, text in texts.items()}
    again = dataclasses.replace(tables, **read)
    assert summarise(again) == summarise(tables)
    assert differences(recompute(again), recompute(tables)) == []


def test_checks_see_a_gpu_held_twice() -> None:
    tables = random_tables(3, jobs=20)
    assert check_no_gpu_held_twice(tables) == []
    rows = tables.segments
    row = rows[(rows["gpus"] > 0) & (rows["end_s"] > rows["start_s"])].iloc[0]
    rows.loc[len(rows)] = row
    assert len(check_no_gpu_held_twice(tables)) == row["gpus"]


def test_checks_see_work_that_was_not_done() -> None:
    tables = random_tables(3, jobs=20)
    assert check_work_done(tables) == []
    completed = tables.jobs.index[(tables.jobs["state"] == "completed") & (tables.jobs["duration_s"] > 0)]
    tables.jobs.loc[completed[0], "duration_s"] += 1e-6
    assert len(check_work_done(tables)) == 1


def test_checks_see_a_row_that_ends_before_it_starts() -> None:
    tables = random_tables(3, jobs=20)
    assert check_jobs(tables) == []
    first = tables.segments.index[0]
    tables.segments.loc[first, "end_s"] = tables.segments.loc[first, "start_s"] - 1
    assert any("has a row from" in fault for fault in check_jobs(tables))


def test_a_job_killed_at_its_time_limit_on_faster_gpus_agrees_to_the_last_digit(tmp_path: Path) -> None:
    node = NodeType(gpu_type="A100", gpus=8)
    cluster = ClusterConfig(
        name="c",
        node_types={"a": node},
        racks=[Rack(name="r", nodes=[NodeGroup(type="a", count=1)])],
        speeds={"A100": 2.2},
        partitions=[Partition.model_validate({"name": "p", "time_limit": 1.000_004})],
    )
    frame = pd.DataFrame({"job_id": [1], "submit_time": [0], "duration": [10], "num_gpus": [8], "partition": ["p"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    tables = simulate(tmp_path / "t.csv", "fifo", cluster).tables
    assert list(tables.jobs["state"]) == ["killed"]
    summary = summarise(tables)
    assert summary["gpu_hours_lost_by"]["redone"] == 0
    assert summary["gpu_hours_lost_by"] == recompute(tables)["gpu_hours_lost_by"]


def test_checks_see_a_wrong_state_and_a_wrong_wait() -> None:
    tables = random_tables(3, jobs=20)
    started = tables.jobs.index[tables.jobs["wait_s"].notna()]
    tables.jobs.loc[started[0], "wait_s"] += 1e-6
    tables.jobs.loc[started[0], "state"] = "running"
    assert check_jobs(tables) != []
    assert len(check_state_sum(tables)) == 2
