"""Placement alone: who arrives, what is counted after each arrival, and what is written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysim.config.cluster import ClusterConfig
from analysim.errors import UserError
from analysim.policy import PLACERS
from analysim.study.placing import COLUMNS, Experiment, curves_of, fill, run_all, save, shown_loads, summarise
from tests.builders import cluster, flat_cluster, job, trace

NAMES = [name for name in sorted(PLACERS) if name != "random"]


def two_gpus() -> ClusterConfig:
    return cluster({"n": {"gpus": 2, "gpu_type": "A"}}, {"r": [("n", 1)]})


HALF_ONE_ONE_HALF = trace(job(1, 0, 9, 0.5), job(2, 1, 9, 1), job(3, 2, 9, 1), job(4, 3, 9, 0.5))


@pytest.mark.parametrize("name", NAMES)
def test_each_arrival_is_counted(name: str) -> None:
    """Typical pods are two halves and two whole GPUs.

    Residuals 500 and 1000: 500 is lost to the two whole, of four. Then 500 and 0: the same. The third finds no
    GPU. Then nothing is left.
    """
    course = Experiment(HALF_ONE_ONE_HALF, two_gpus(), load=None).run(name, 0)
    assert course.arrived.tolist() == [500, 1500, 2500, 3000]
    assert course.allocated.tolist() == [500, 1500, 1500, 2000]
    assert course.fragmented.tolist() == [250, 250, 250, 0]
    assert (course.jobs, course.failed, course.capacity) == (4, 1, 2000)
    rows = course.curve().to_dict("list")
    assert rows["arrived_load_percent"] == [25, 75, 125, 150]
    assert rows["allocated_percent"] == [25, 75, 75, 100]
    assert rows["fragmented_percent_of_capacity"] == [12.5, 12.5, 12.5, 0]
    assert rows["fragmentation_ratio"][:3] == pytest.approx([250 / 1500, 0.5, 0.5])
    assert math.isnan(rows["fragmentation_ratio"][3])


def test_values_at_a_load_are_means_over_the_jobs_that_round_to_it() -> None:
    rows = trace(*(job(n, n, 9, 0.003) for n in range(6)))
    course = Experiment(rows, flat_cluster(1, 1), load=None).run("first", 0)
    curve = course.curve()
    # Arrived 0.3, 0.6, 0.9, 1.2, 1.5 and 1.8 per cent: halves round up.
    assert curve["arrived_load_percent"].tolist() == [0, 1, 2]
    assert curve["allocated_percent"].tolist() == pytest.approx([0.3, 0.9, 1.65])


def test_a_gap_is_filled_with_what_was_before() -> None:
    curves = fill(Experiment(HALF_ONE_ONE_HALF, two_gpus(), load=None).run("first", 0).curve())
    by_load = curves.set_index("arrived_load_percent")["allocated_percent"]
    assert list(by_load.index) == list(range(151))
    assert math.isnan(by_load[24])
    assert by_load[[25, 74, 75, 149, 150]].tolist() == [25, 25, 75, 75, 100]


def workload(jobs: int = 200) -> Any:
    random = np.random.default_rng(5)
    gpus = random.choice([0, 0.25, 0.5, 1, 2, 8], jobs)
    return trace(*(job(n, n, 9, float(each), cpus=1) for n, each in enumerate(gpus)))


def test_arrivals_are_shuffled_and_cloned_up_to_the_load() -> None:
    rows = workload()
    asked = rows["gpu_milli"].to_numpy()
    nodes = int(asked.sum() / 8000) + 5
    experiment = Experiment(rows, flat_cluster(nodes, 8), load=2.5)
    arrivals = experiment.arrivals(1)
    assert sorted(arrivals[:200]) == list(range(200)) and list(arrivals[:200]) != list(range(200))
    total = asked[arrivals].sum()
    assert 2.5 * experiment.capacity - 8000 < total <= 2.5 * experiment.capacity
    assert arrivals.tolist() == experiment.arrivals(1).tolist() != experiment.arrivals(2).tolist()
    assert len(set(arrivals[200:])) > 100  # with replacement, from all of them


def test_a_workload_above_the_load_is_cut_at_random() -> None:
    rows = workload()
    asked = rows["gpu_milli"].to_numpy()
    experiment = Experiment(rows, flat_cluster(int(asked.sum() / 8000 / 2), 8), load=1.3)
    arrivals = experiment.arrivals(1)
    assert len(set(arrivals)) == len(arrivals) < 200
    assert asked[arrivals].sum() <= 1.3 * experiment.capacity
    gone = set(range(200)) - set(arrivals.tolist())
    assert min(asked[list(gone)]) == 0 and gone != set(range(200 - len(gone), 200))


def test_a_job_that_can_never_run_arrives_and_fails() -> None:
    rows = trace(job(1, 0, 1, 1), job(2, 1, 1, 1, gpu_type="B"), job(3, 2, 1, 64))
    course = Experiment(rows, two_gpus(), load=None).run("fgd", 0)
    assert (course.failed, course.arrived.tolist(), course.allocated.tolist()) == (2, [1000, 2000, 66000], [1000] * 3)


def test_a_clone_is_drawn_anew() -> None:
    rows = trace(job(7, 0, 1, 1))
    experiment = Experiment(rows, flat_cluster(50, 1), load=0.4)
    rows_in = experiment.arrivals(0)
    assert rows_in.tolist() == [0] * 20
    course = experiment.run("random", 0)
    assert course.failed == 0 and course.allocated[-1] == 20_000


@pytest.mark.parametrize("load", [0.0, -1.0, math.nan, math.inf, 101.0])
def test_absurd_loads_are_refused(load: float) -> None:
    with pytest.raises(UserError, match="load is"):
        Experiment(HALF_ONE_ONE_HALF, two_gpus(), load=load)


def test_there_must_be_gpus() -> None:
    with pytest.raises(UserError, match="No job"):
        Experiment(trace(job(1, 0, 1, 0)), two_gpus())
    with pytest.raises(UserError, match="has no GPUs"):
        Experiment(HALF_ONE_ONE_HALF, cluster({"n": {"cpus": 4}}, {"r": [("n", 2)]}))


def test_what_is_told_and_written(tmp_path: Path) -> None:
    experiment = Experiment(workload(), flat_cluster(20, 8))
    courses = run_all(experiment, ["fgd", "first"], [1, 2])
    curves = curves_of(courses)
    assert list(curves.columns) == list(COLUMNS)
    assert shown_loads(curves)[:3] == [80, 90, 100]
    results = summarise(courses)
    assert [(each["placement"], each["seeds"]) for each in results] == [("fgd", [1, 2]), ("first", [1, 2])]
    own = fill(curves)
    own = own[(own["placement"] == "first") & (own["arrived_load_percent"] == 90)]
    assert results[1]["allocated_percent"]["90"] == pytest.approx(own["allocated_percent"].mean())
    facts = {"trace": "t", "topology": "c", "load": 1.3}
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        save(run_all(experiment, ["fgd", "first"], [1, 2]), facts, folder, figures=True)
    names = {str(path.relative_to(tmp_path / "a")) for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert names == {"placing.json", "curves.csv", "figures/placement.png", "figures/placement.svg"}
    for name in names:  # nothing in it depends on the clock
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    assert json.loads((tmp_path / "a/placing.json").read_text())["results"] == results
