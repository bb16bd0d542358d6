"""Jobs that ask to stay within a node, an NVLink domain, a rack or a pod, and for features of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from analysim.config.cluster import ClusterConfig
from analysim.errors import IllegalDecision, TraceError
from analysim.policy import Plan
from tests.builders import FREE, cluster, job, run, scripted, trace

NODE = {"n": {"gpus": 4}}
TWO_RACKS = cluster(NODE, {"x": [("n", 2)], "y": [("n", 2)]})


def pods() -> ClusterConfig:
    """Racks x and y in pod p, z in pod q, each of two nodes of 4 GPUs."""
    racks = [{"name": name, "pod": pod, "nodes": [{"type": "n", "count": 2}]} for name, pod in ("xp", "yp", "zq")]
    return ClusterConfig.model_validate({"name": "pods", "node_types": NODE, "racks": racks})


def nodes(outcome: Any, name: str) -> list[str]:
    """Where a job ran."""
    rows = outcome.tables.segments
    return sorted(rows[rows["job_id"] == name]["node"])


def one_node_free_in_each(plan: Plan) -> None:
    """Start a and b each on the first node of a rack, all others as they fit."""
    for each in plan.pending:
        plan.start(each, where={"a": ["x-n00"], "b": ["y-n00"]}.get(each.id))


HELD = (job("a", 0, 50, 4), job("b", 0, 90, 4))


def test_a_required_rack_is_waited_for() -> None:
    rows = trace(*HELD, job("c", 1, 10, 8, topology_required="rack"), job("d", 60, 10, 8))
    outcome = run(rows, TWO_RACKS, scripted(one_node_free_in_each))
    assert outcome.times("c") == (50, 60)
    assert nodes(outcome, "c") == ["x-n00", "x-n01"]
    assert (1.0, "c", "blocked", "topology") in outcome.decisions()


def test_without_a_request_a_gang_spans_racks() -> None:
    outcome = run(trace(*HELD, job("c", 1, 10, 8)), TWO_RACKS, scripted(one_node_free_in_each))
    assert outcome.times("c") == (1, 11)
    assert nodes(outcome, "c") == ["x-n01", "y-n01"]


@pytest.mark.parametrize(("wait", "start"), [(None, 1), (0, 1), (20, 21), (70, 50)])
def test_a_preferred_rack_is_waited_for_so_long(wait: float | None, start: float) -> None:
    given: dict[str, Any] = {"topology_preferred": "rack"} | ({} if wait is None else {"topology_wait": wait})
    rows = trace(*HELD, job("c", 1, 10, 8, **given))
    assert run(rows, TWO_RACKS, scripted(one_node_free_in_each)).times("c") == (start, start + 10)


def test_what_it_prefers_is_taken_where_it_is_free() -> None:
    rows = trace(job("a", 0, 50, 4), job("c", 1, 10, 8, topology_preferred="rack"))
    outcome = run(rows, TWO_RACKS, scripted(one_node_free_in_each), placement="first")
    assert nodes(outcome, "c") == ["y-n00", "y-n01"]


def test_the_fullest_rack_that_holds_it_is_taken() -> None:
    rows = trace(job("a", 0, 50, 4), job("c", 1, 10, 4, topology_required="rack"))
    outcome = run(rows, TWO_RACKS, scripted(one_node_free_in_each), placement="spread")
    assert nodes(outcome, "c") == ["x-n01"]


def test_victims_make_room_within_a_rack() -> None:
    """Enough victims run in each rack, and all of one go."""
    rows = trace(
        *(job(name, 0, 100, 4) for name in ("a", "b", "e", "f")),
        job("c", 50, 10, 8, priority=1, topology_required="rack"),
    )
    outcome = run(rows, TWO_RACKS, "preempt", costs=FREE, options={"minimum_run": 10})
    assert outcome.times("c") == (50, 60)
    assert len({node[0] for node in nodes(outcome, "c")}) == 1


def test_a_policy_cannot_place_it_across() -> None:
    rows = trace(job("c", 0, 10, 8, topology_required="rack"))
    across = scripted(lambda plan: [plan.start(each, where=((1, 15), (2, 15))) for each in plan.pending] and None)
    with pytest.raises(IllegalDecision, match="spans more of the tree than the job allows"):
        run(rows, TWO_RACKS, across)


def test_what_no_rack_can_hold_is_rejected_and_what_none_can_prefer_starts_anywhere() -> None:
    rows = trace(job("a", 0, 10, 16, topology_required="rack"), job("b", 1, 10, 16, topology_preferred="rack"))
    outcome = run(rows, TWO_RACKS, "fifo")
    assert outcome.state("a") == "rejected"
    reason = outcome.tables.rejected["reason"].tolist()[0]
    assert reason == "asks for 16 GPUs within one rack; no rack can hold them"
    assert outcome.times("b") == (1, 11)


def test_levels_nest() -> None:
    rows = trace(
        job("a", 0, 10, 16, topology_required="pod"),
        job("b", 0, 10, 8, topology_required="rack"),
        job("c", 20, 10, 4, topology_required="node"),
    )
    outcome = run(rows, pods(), "fifo")
    assert {node[0] for node in nodes(outcome, "a")} == {"x", "y"}
    assert {node[0] for node in nodes(outcome, "b")} == {"z"}


def test_nvlink_domains_span_nodes_of_a_rack_and_leave_out_others() -> None:
    types = {"plain": {"gpus": 4}, "linked": {"gpus": 4, "nvlink": True, "nvlink_nodes": 2}}
    racks = cluster(types, {"x": [("plain", 2), ("linked", 3)]})
    rows = trace(job("a", 0, 10, 8, topology_required="nvlink"), job("b", 0, 10, 4, topology_required="nvlink"))
    outcome = run(rows, racks, "fifo")
    assert nodes(outcome, "a") == ["x-n02", "x-n03"]
    assert nodes(outcome, "b") == ["x-n04"]


def test_features_are_asked_for_together_or_alternatively() -> None:
    types = {"n": {"gpus": 4}, "ib": {"gpus": 4, "features": ["ib"]}, "both": {"gpus": 4, "features": ["ib", "nvme"]}}
    racks = cluster(types, {"x": [("n", 1), ("ib", 1), ("both", 1)]})
    rows = trace(
        job("a", 0, 10, 4, features="ib & nvme"),
        job("b", 0, 10, 4, features="nvme|ib"),
        job("c", 0, 10, 4, features="tape"),
        job("d", 0, 10, 4),
    )
    outcome = run(rows, racks, "fifo")
    assert [nodes(outcome, name) for name in "abd"] == [["x-n02"], ["x-n01"], ["x-n00"]]
    assert "features 'tape'" in outcome.tables.rejected["reason"].tolist()[0]


def test_an_unknown_level_is_named() -> None:
    with pytest.raises(TraceError, match="topology level 'shelf' is none of node, nvlink, rack, pod"):
        run(trace(job("a", 0, 10, 4, topology_required="shelf")), TWO_RACKS, "fifo")
