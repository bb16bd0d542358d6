"""Replay: every job when it really started, and what is said where that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from analysim.errors import PolicyFailure, TraceError
from analysim.policy import Plan
from tests.builders import SECOND, Outcome, flat_cluster, job, run, scripted, trace

NODES = flat_cluster(2, 4)


def recorded(job_id: Any, submit: float, start: float | None, duration: float, gpus: int, node: str = "") -> dict[str, Any]:
    """A job with a recorded start and node."""
    begun = -1 if start is None else round(start * SECOND)
    return job(job_id, submit, duration, gpus, recorded_start_us=begun, recorded_node=node)


def replay(*rows: dict[str, Any], on: Any = NODES, **config: Any) -> Outcome:
    return run(trace(*rows), on, "replay", **config)


def notes(outcome: Outcome) -> list[tuple[float, str, float]]:
    """(time, name, place of the job) of each note."""
    return list(outcome.tables.notes.itertuples(index=False, name=None))


def test_jobs_start_when_they_did_in_whatever_order() -> None:
    outcome = replay(recorded("a", 0, 50, 10, 4), recorded("b", 1, 1, 10, 4), recorded("c", 2, 12, 1, 8))
    assert [outcome.times(name) for name in "abc"] == [(50, 60), (1, 11), (12, 13)]
    assert notes(outcome) == []


def test_gpus_given_back_at_the_instant_are_free_for_who_starts_then() -> None:
    outcome = replay(recorded("a", 0, 0, 10, 8), recorded("b", 3, 10, 10, 8))
    assert outcome.times("b") == (10, 20)
    assert notes(outcome) == []


def test_a_job_that_cannot_start_starts_as_soon_as_it_fits_and_says_why() -> None:
    outcome = replay(
        recorded("a", 0, 0, 100, 3),
        recorded("b", 0, 0, 100, 3),
        recorded("c", 1, 20, 10, 2),  # two GPUs are free, one on each node
        recorded("d", 2, 15, 10, 4),
        recorded("e", 3, 30, 10, 1),
        on=flat_cluster(2, 4),
        placement="spread",
    )
    assert outcome.times("c") == (100, 110)
    assert outcome.times("d") == (100, 110)
    assert outcome.times("e") == (30, 40)
    assert notes(outcome) == [(15, "late: no free GPUs", 3), (20, "late: fragmented", 2)]


def test_quota_is_a_reason_too() -> None:
    there = flat_cluster(2, 4, partitions=[{"name": "p", "limit": 4}])
    rows = [recorded(name, 0, 5, 10, 3) | {"partition": "p"} for name in "ab"]
    outcome = replay(*rows, on=there)
    assert outcome.times("b") == (15, 25)
    assert notes(outcome) == [(5, "late: quota", 1)]


def test_recorded_nodes_are_used_where_the_cluster_has_them() -> None:
    outcome = replay(
        recorded("a", 0, 0, 10, 2, "r-n01"),
        recorded("b", 0, 0, 10, 4, "r-n00,r-n01"),  # split as no rule of ours would
        recorded("c", 0, 20, 10, 1, "elsewhere-7"),
        recorded("d", 0, 30, 10, 6, "r-n[00-01]"),
    )
    nodes = [(row[0], row[4], row[5]) for row in outcome.segments()]
    assert nodes == [
        ("a", "r-n01", "0-1"),
        ("b", "r-n00", "0-3"),
        ("c", "r-n00", "0"),
        ("d", "r-n00", "0-3"),
        ("d", "r-n01", "0-1"),
    ]
    assert notes(outcome) == []


def test_a_job_whose_nodes_are_taken_runs_on_others_and_says_so() -> None:
    outcome = replay(recorded("a", 0, 0, 10, 4, "r-n00"), recorded("b", 0, 5, 10, 2, "r-n00"))
    assert outcome.times("b") == (5, 15)
    assert notes(outcome) == [(5, "elsewhere", 1)]


def test_jobs_of_one_request_are_each_tried_on_their_own_nodes() -> None:
    """The first fails on its node and everywhere by the gang rule; the second must not be passed over for that."""
    outcome = replay(
        recorded("x", 0, 0, 100, 3, "r-n00"),
        recorded("y", 0, 0, 100, 1, "r-n01"),
        recorded("z", 0, 0, 100, 1, "r-n02"),
        recorded("first", 0, 10, 10, 6, "r-n00"),
        recorded("second", 0, 10, 10, 6, "r-n[01-02]"),
        on=flat_cluster(3, 4),
    )
    assert outcome.times("second") == (10, 20)
    assert notes(outcome)[0] == (10, "late: fragmented", 0)


def test_jobs_without_a_recorded_start_come_last() -> None:
    outcome = replay(recorded("a", 0, None, 10, 4), recorded("b", 0, 0, 10, 8), recorded("c", 1, 10, 10, 8))
    assert [outcome.times(name)[0] for name in "abc"] == [20, 0, 10]
    assert notes(outcome) == []


@pytest.mark.slow
def test_only_who_says_so_sees_what_really_happened() -> None:
    for knowledge in ("none", "history", "estimate", "oracle"):
        for ask in (lambda plan, each: plan.recorded_start(each), lambda plan, each: plan.recorded_nodes(each)):

            def schedule(plan: Plan, ask: Any = ask) -> None:
                for each in plan.pending:
                    ask(plan, each)

            rows = trace(recorded("a", 0, 5, 10, 1) | {"estimate_us": 10 * SECOND})
            with pytest.raises(PolicyFailure, match="needs knowledge = 'record'"):
                run(rows, NODES, scripted(schedule, knowledge=knowledge))


def test_a_trace_without_any_recorded_start_is_refused() -> None:
    with pytest.raises(TraceError, match="'replay' needs recorded starts and no job has one"):
        replay(recorded("a", 0, None, 10, 4), recorded("b", 1, None, 10, 4))
