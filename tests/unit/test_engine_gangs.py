"""Where gangs go, what can never run, and the placement strategies."""

from __future__ import annotations

from typing import Any

import pytest

from analysim.policy import Plan
from tests.builders import Outcome, cluster, flat_cluster, job, run, scripted, timetable, trace

TWO = flat_cluster(2, 4)
MIXED = cluster({"a": {"gpus": 4, "gpu_type": "A"}, "b": {"gpus": 4, "gpu_type": "B"}}, {"r": [("a", 1), ("b", 1)]})


def places(outcome: Outcome, *ids: Any) -> dict[Any, dict[str, str]]:
    """Node and GPUs of each job that ran."""
    found: dict[Any, dict[str, str]] = {}
    for name, kind, _, _, node, gpus, _ in outcome.segments(*ids):
        if kind == "run":
            found.setdefault(name, {})[node] = gpus
    return found


def reason(rows: Any, where: Any, **config: Any) -> str:
    """Why the only job is rejected; empty: it completed."""
    outcome = run(rows, where, **config)
    if outcome.jobs["state"].tolist() == ["completed"]:
        return ""
    assert outcome.jobs["state"].tolist() == ["rejected"]
    assert outcome.jobs["end_time_s"].isna().all() and not len(outcome.tables.segments)
    [text] = outcome.tables.rejected["reason"]
    return str(text)


# -- the gang rule ---------------------------------------------------------------------------------------------


def test_a_gang_that_fits_a_node_takes_one_node() -> None:
    rows = trace(job("a", 0, 10, 3), job("b", 0, 10, 3), job("c", 0, 10, 2))
    outcome = run(rows, TWO)
    assert places(outcome, "a", "b") == {"a": {"r-n00": "0-2"}, "b": {"r-n01": "0-2"}}
    assert outcome.times("c") == (10, 20)  # two GPUs are free, on two nodes
    assert outcome.decisions("blocked") == [(0, "c", "blocked", "fragmented")]


def test_a_larger_gang_takes_full_nodes_and_one_remainder_node() -> None:
    outcome = run(trace(job("a", 0, 10, 6), job("b", 0, 10, 2), job("c", 0, 10, 2)), TWO)
    assert places(outcome, "a", "b") == {"a": {"r-n00": "0-3", "r-n01": "0-1"}, "b": {"r-n01": "2-3"}}
    assert outcome.times("c")[0] == 10


def test_a_larger_gang_needs_its_nodes_whole() -> None:
    outcome = run(
        trace(job("a", 0, 10, 1), job("b", 0, 10, 1), job("c", 0, 10, 5)), flat_cluster(2, 4), placement="spread"
    )
    assert places(outcome, "a", "b") == {"a": {"r-n00": "0"}, "b": {"r-n01": "0"}}
    assert outcome.times("c")[0] == 10  # six are free, but no node is


def test_gpus_per_node_means_exactly_that_many_on_distinct_nodes() -> None:
    outcome = run(trace(job("a", 0, 10, 4, gpus_per_node=2), job("b", 0, 10, 2, gpus_per_node=1)), TWO)
    assert places(outcome) == {"a": {"r-n00": "0-1", "r-n01": "0-1"}, "b": {"r-n00": "2", "r-n01": "2"}}


def test_gpu_types_are_tried_in_the_order_written() -> None:
    rows = trace(
        job("a", 0, 10, 2, gpu_type="B|A"), job("b", 0, 10, 4, gpu_type="B|A"), job("c", 0, 10, 2, gpu_type="A|B")
    )
    outcome = run(rows, MIXED)
    assert places(outcome) == {"a": {"r-n01": "0-1"}, "b": {"r-n00": "0-3"}, "c": {"r-n01": "2-3"}}


def test_a_gang_has_one_gpu_type() -> None:
    assert reason(trace(job("a", 0, 10, 8)), MIXED) == "asks for 8 GPUs; the cluster has 4 of a type it may use"
    assert reason(trace(job("a", 0, 10, 8)), TWO) == ""


def test_a_gang_has_one_size_of_nodes() -> None:
    sizes = cluster(
        {"big": {"gpus": 8, "gpu_type": "A"}, "small": {"gpus": 4, "gpu_type": "A"}}, {"r": [("big", 1), ("small", 2)]}
    )
    assert "cannot form" in reason(trace(job("a", 0, 10, 12)), sizes)  # 8 + 4 would be two types; 3 x 4 are too many
    assert places(run(trace(job("a", 0, 10, 8)), sizes)) == {"a": {"r-n00": "0-7"}}
    assert "cannot form" in reason(trace(job("a", 0, 10, 9)), sizes)


def test_cpus_and_memory_are_split_by_gpus_and_rounded_up() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 10, "memory_gb": 100}}
    rows = trace(job("a", 0, 10, 3, cpus=10), job("b", 0, 10, 1, cpus=0.001), job("c", 0, 10, 1))
    outcome = run(rows, cluster(types, {"r": [("n", 2)]}), placement="first")
    # 10 CPUs over 3 GPUs are 3.334 each: 10.002 in all, more than a node has.
    assert outcome.state("a") == "rejected"
    assert "3.334 CPUs" in outcome.tables.rejected["reason"][0]
    assert outcome.jobs.loc["b", "cpus"] == 0.001


def test_cpus_decide_where_a_gang_goes() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8, "memory_gb": 64}}
    rows = trace(
        job("a", 0, 10, 2, cpus=7),
        job("b", 0, 10, 2, cpus=2),
        job("c", 0, 10, 1, memory_mb=64 * 1024),
        job("d", 0, 10, 1, memory_mb=1),
    )
    outcome = run(rows, cluster(types, {"r": [("n", 2)]}), placement="first")
    assert places(outcome, "a", "b", "c") == {"a": {"r-n00": "0-1"}, "b": {"r-n01": "0-1"}, "c": {"r-n00": "2"}}
    assert places(outcome, "d") == {"d": {"r-n01": "2"}}  # no memory is left on the first


def test_only_cpus_in_the_way_are_named() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8}}
    rows = trace(job("a", 0, 10, 1, cpus=8), job("b", 0, 10, 1, cpus=1))
    assert run(rows, cluster(types, {"r": [("n", 1)]})).decisions("blocked") == [(0, "b", "blocked", "resources")]


def test_of_what_is_not_modelled_there_is_enough() -> None:
    rows = trace(job("a", 0, 10, 4, cpus=1000, memory_mb=10**9))
    assert reason(rows, TWO) == ""
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8}}
    assert reason(trace(job("a", 0, 10, 4, memory_mb=10**9)), cluster(types, {"r": [("n", 1)]})) == ""


# -- what can never run ----------------------------------------------------------------------------------------

POOL = [{"name": "p", "limit": 2}, {"name": "top", "children": [{"name": "q"}]}, {"name": "m", "max_gpus_per_job": 1}]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"gpus": 9}, "asks for 9 GPUs; partition 'root' may use 8 at most"),
        ({"gpus": 5, "gpus_per_node": 5}, "asks for 5 GPUs on a node; the largest in the cluster has 4"),
        ({"gpus": 3, "gpus_per_node": 2}, "asks for 3 GPUs, which 2 per node does not divide"),
        ({"gpus": 6, "gpus_per_node": 2}, "asks for a gang of 6 GPUs that the nodes of the cluster cannot form"),
        ({"gpus": 1.5}, "asks for 1.5 GPUs; only a share of one GPU can be taken"),
        ({"gpus": 1, "gpu_type": "T4"}, "GPU type 'T4' is not in the topology"),
        ({"gpus": 1, "partition": "none"}, "partition 'none' is not in the topology"),
        ({"gpus": 1, "partition": "top"}, "partition 'top' has children; a job names one of its leaves"),
        ({"gpus": 3, "partition": "p"}, "asks for 3 GPUs; partition 'p' may use 2 at most"),
        ({"gpus": 2, "partition": "m"}, "asks for 2 GPUs; partition 'm' allows 1 a job"),
    ],
)
def test_a_job_that_can_never_run_is_rejected_with_the_reason(given: dict[str, Any], text: str) -> None:
    rows = trace(job("a", 0, 10, given.pop("gpus"), **given))
    assert reason(rows, flat_cluster(2, 4, partitions=POOL)) == text


def test_rejected_jobs_do_not_block_others() -> None:
    outcome = run(trace(job("big", 0, 10, 9), job("a", 0, 10, 8)), TWO)
    assert [outcome.state(name) for name in ("big", "a")] == ["rejected", "completed"]
    assert outcome.times("a") == (0, 10)


def test_a_fraction_of_a_gpu_does_not_take_whole_gpus_along() -> None:
    rows = trace(job("half", 0, 10, 0.5), job("whole", 0, 10, 1), job("more", 0, 10, 1.5), job("two", 0, 10, 2))
    outcome = run(rows, TWO)
    states = [outcome.state(name) for name in ("half", "whole", "more", "two")]
    assert states == ["completed", "completed", "rejected", "completed"]
    assert outcome.jobs["num_gpus"].tolist() == [0.5, 1.5, 2, 1]  # in the order of ids


def test_unknown_partitions_may_go_to_the_root() -> None:
    rows = trace(job("a", 0, 10, 3, partition="none"))
    outcome = run(rows, flat_cluster(2, 4, partitions=POOL), unknown_partition="root")
    assert outcome.state("a") == "completed"


def test_a_limit_that_is_nought_for_ever_rejects_and_one_that_is_raised_later_waits() -> None:
    rows = trace(job("a", 0, 10, 2, partition="p"))
    assert "may use 0 at most" in reason(rows, flat_cluster(2, 4, partitions=[{"name": "p", "limit": 0}]))
    later = [{"name": "p", "limit": 0, "changes": [{"time": 60, "limit": 2}]}]
    assert run(rows, flat_cluster(2, 4, partitions=later)).times("a") == (60, 70)


def test_nodes_that_a_partition_gets_later_count_for_those_below_it_too() -> None:
    below = {"name": "q", "children": [{"name": "s"}]}
    pool = [{"name": "p", "nodes": "r-n00", "changes": [{"time": 60, "nodes": "r"}], "children": [below]}]
    rows = trace(
        job("a", 0, 100, 4, partition="s"), job("b", 1, 10, 4, partition="s"), job("c", 2, 10, 8, partition="s")
    )
    outcome = run(rows, flat_cluster(3, 4, partitions=pool), options={"skip": True})
    assert outcome.times("b") == (60, 70)
    assert outcome.times("c") == (70, 80)


# -- strategies ------------------------------------------------------------------------------------------------


def at(free: list[int], gpus: int, placement: str, seed: int = 0) -> dict[str, str]:
    """Where a job goes at once among nodes of 4 GPUs in racks of two, with so many free on each; else nowhere."""
    racks = cluster({"n": {"gpus": 4, "gpu_type": "V100"}}, {"x": [("n", 2)], "y": [("n", 2)]})
    fill = [job(f"fill{node}", 0, 100, 4 - count) for node, count in enumerate(free) if count < 4]

    def schedule(plan: Plan) -> None:
        for waiting in plan.pending:
            if str(waiting.id).startswith("fill"):
                plan.start(waiting, where=[int(str(waiting.id)[4:])])
            else:
                plan.start(waiting)

    rows = trace(*fill, job("job", 1, 10, gpus))
    outcome = run(rows, racks, scripted(schedule), placement=placement, seed=seed)
    return places(outcome)["job"] if outcome.times("job")[0] == 1 else {}


@pytest.mark.parametrize(
    ("placement", "free", "gpus", "nodes"),
    [
        ("pack", [4, 3, 2, 2], 2, ["y-n00"]),
        ("pack", [4, 3, 1, 1], 2, ["x-n01"]),
        ("first", [1, 3, 2, 4], 2, ["x-n01"]),
        ("spread", [1, 3, 4, 4], 2, ["y-n00"]),
        ("spread", [3, 3, 2, 1], 1, ["x-n00"]),
        ("rack", [1, 4, 4, 4], 8, ["y-n00", "y-n01"]),
        ("pack", [1, 4, 4, 4], 8, ["x-n01", "y-n00"]),
        ("rack", [4, 4, 4, 1], 4, ["x-n00"]),
        ("rack", [4, 4, 4, 2], 12, ["x-n00", "x-n01", "y-n00"]),
        ("any", [1, 2, 0, 4], 4, ["x-n00", "x-n01", "y-n01"]),
    ],
)
def test_a_strategy_chooses_the_nodes(placement: str, free: list[int], gpus: int, nodes: list[str]) -> None:
    assert list(at(free, gpus, placement)) == nodes


def test_any_takes_gpus_that_no_gang_could_have() -> None:
    assert at([1, 1, 1, 1], 4, "pack") == {}
    assert at([1, 1, 1, 1], 4, "any") == {"x-n00": "3", "x-n01": "3", "y-n00": "3", "y-n01": "3"}


@pytest.mark.slow
def test_random_is_a_hash_of_seed_and_job() -> None:
    drawn = [tuple(at([2, 2, 2, 2], 2, "random", seed=seed)) for seed in range(20)]
    assert drawn == [tuple(at([2, 2, 2, 2], 2, "random", seed=seed)) for seed in range(20)]
    assert set(drawn) == {("x-n00",), ("x-n01",), ("y-n00",), ("y-n01",)}


@pytest.mark.parametrize("placement", ["pack", "first", "spread", "random", "rack", "any"])
def test_every_strategy_places_every_kind_of_job(placement: str) -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8}, "c": {"cpus": 8}}
    rows = trace(
        job("one", 0, 10, 1),
        job("node", 1, 10, 4),
        job("gang", 2, 10, 10),
        job("even", 3, 10, 4, gpus_per_node=2),
        job("cpu", 4, 10, 0, cpus=8),
    )
    outcome = run(rows, cluster(types, {"x": [("n", 2), ("c", 1)], "y": [("n", 2)]}), placement=placement)
    assert set(outcome.jobs["state"]) == {"completed"}


def test_lowest_gpus_of_a_node_are_taken_first() -> None:
    steps = {
        0: lambda plan: [plan.start(each) for each in plan.pending],
        5: lambda plan: [plan.start(each) for each in plan.pending],
    }
    rows = trace(job("a", 0, 3, 1), job("b", 0, 10, 2), job("c", 4, 10, 2))
    assert places(run(rows, flat_cluster(1, 4), timetable(steps))) == {
        "a": {"r-n00": "0"},
        "b": {"r-n00": "1-2"},
        "c": {"r-n00": "0,3"},
    }
