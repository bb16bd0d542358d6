"""Whatever a policy does, the books hold: GPUs are conserved, work done is work asked, times add up."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.config.cluster import ClusterConfig, Costs
from analysim.metrics import make_timeline, summarise
from analysim.tables import RunTables
from tests.builders import Outcome, flat_cluster, run
from tests.property.cases import PLACEMENTS, clusters, elastic_trace, traces
from tests.property.chaos import Chaos
from tests.property.independent_course import course
from tests.property.independent_metrics import (
    check_curves,
    check_jobs,
    check_no_gpu_held_twice,
    check_sizes,
    check_state_sum,
    check_work_done,
    recompute,
)
from tests.property.test_independent_metrics import differences

pytestmark = pytest.mark.slow

EXAMPLES = settings(max_examples=max(settings.default.max_examples, 100))
SEEDS = st.integers(0, 2**32)
COSTS = st.sampled_from(
    [
        Costs(checkpoint_s=0, restart_s=0),
        Costs(checkpoint_s=1, restart_s=2),
        Costs(checkpoint_s=1.5, restart_s=0, start_s=1, checkpoint_interval_s=3),
        Costs(checkpoint_s=0, restart_s=1, checkpoint_interval_s=2),
    ]
)


def stir(rows: pd.DataFrame, cluster: ClusterConfig, seed: int, **given: object) -> Outcome:
    if not cluster.partitions:
        rows = rows.assign(partition="")
    options = {"seed": seed, **given.pop("options", {})}  # type: ignore[dict-item]  # a mapping of options
    return run(rows, cluster, Chaos(options), **given)  # type: ignore[arg-type]  # fields of the configuration


@EXAMPLES
@given(traces(requests=True, elastic=True), clusters(), SEEDS, PLACEMENTS, COSTS)
def test_the_books_hold_whatever_a_policy_does(
    rows: pd.DataFrame, cluster: ClusterConfig, seed: int, placement: str, costs: Costs
) -> None:
    outcome = stir(rows, cluster, seed, placement=placement, costs=costs)
    tables = outcome.tables
    assert faults_of(tables) == []
    if not cluster.speeds:
        assert check_curves(tables) == []
    if not len(unseen(tables)):
        assert differences(summarise(tables), recompute(tables)) == []


@given(SEEDS, clusters(), SEEDS, PLACEMENTS, COSTS)
def test_the_books_hold_however_elastic_jobs_are_resized(
    trace_seed: int, cluster: ClusterConfig, seed: int, placement: str, costs: Costs
) -> None:
    outcome = stir(elastic_trace(trace_seed), cluster, seed, placement=placement, costs=costs)
    tables = outcome.tables
    assert faults_of(tables) == []
    if not cluster.speeds:
        assert check_curves(tables) == []
    assert differences(summarise(tables), recompute(tables)) == []


@pytest.mark.parametrize("seed", range(3))
def test_the_timeline_of_resized_jobs_agrees_with_the_second_path(seed: int) -> None:
    costs = Costs(checkpoint_s=1, restart_s=2)
    tables = stir(elastic_trace(seed, 8), flat_cluster(2, 4), seed, costs=costs).tables
    timeline = make_timeline(tables, 5)
    edges = [*timeline["start_s"], *timeline["end_s"].tail(1)]
    expected = course(tables, [round(edge * 1e6) for edge in edges])
    for row, figures in zip(timeline.to_dict("records"), expected, strict=True):
        found = {name: None if row[name] != row[name] else row[name] for name in figures}
        assert differences(found, figures, absolute=len(tables.segments) * 2**-40) == []


def test_elastic_jobs_are_resized_in_these_runs() -> None:
    pool = flat_cluster(3, 8)
    runs = [stir(elastic_trace(seed), pool, seed, costs=Costs(checkpoint_s=1, restart_s=2)) for seed in range(5)]
    assert all(ran.tables.jobs["resizes"].sum() > 5 for ran in runs)


def unseen(tables: RunTables) -> pd.Series:
    """Jobs of no duration that were stopped or moved: their last stint takes no time and leaves no segment."""
    jobs = tables.jobs
    return jobs.loc[(jobs["duration_s"] == 0) & (jobs[["preemptions", "migrations", "resizes"]].sum(axis=1) > 0), "job_id"]


def faults_of(tables: RunTables) -> list[str]:
    """What the checks find."""
    faults = [*check_jobs(tables), *check_state_sum(tables), *check_no_gpu_held_twice(tables), *check_work_done(tables)]
    faults += check_sizes(tables)
    return [fault for fault in faults if not any(fault.startswith(f"job {job_id}:") for job_id in unseen(tables))]
