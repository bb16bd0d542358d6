"""EASY: who is promised what, who may go before, and that no promise is broken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.errors import IllegalDecision, PolicyFailure
from analysim.policy import Order, Plan, Policy
from tests.builders import SECOND, cluster, flat_cluster, job, run, scripted, shipped, trace

ENDING = Order(lambda each, plan: plan.ends(each))
ONE_BY_ONE = flat_cluster(10, 1)


def starts(*rows: dict[str, Any], policy: Policy | str = "easy", on: Any = ONE_BY_ONE, **config: Any) -> dict[str, float]:
    """First starts in seconds."""
    config.setdefault("placement", "any")
    outcome = run(trace(*rows), on, policy, **config)
    return {str(name): float(start) for name, start in outcome.jobs["first_start_time_s"].items()}


def test_a_short_job_and_one_beside_the_head_pass_it_and_a_long_wide_one_does_not() -> None:
    found = starts(
        job("running", 0, 100, 6, estimate=100),
        job("head", 1, 50, 8, estimate=50),  # fits at 100 s, with two GPUs left then
        job("long_wide", 2, 200, 3, estimate=200),  # would hold 3 at 100 s: one too many
        job("short", 3, 90, 2, estimate=97),  # ends by 100 s
        job("long_narrow", 4, 200, 2, estimate=200),  # holds 2 at 100 s: they are left
    )
    assert found == {"running": 0, "head": 100, "short": 3, "long_narrow": 4, "long_wide": 150}


def test_a_job_that_ends_as_the_head_starts_may_pass_and_one_a_second_longer_may_not() -> None:
    rows = [job("running", 0, 100, 6, estimate=100), job("head", 1, 50, 10, estimate=50)]
    assert starts(*rows, job("c", 2, 98, 4, estimate=98))["c"] == 2
    assert starts(*rows, job("c", 2, 98, 4, estimate=99))["c"] == 150


def test_extra_gpus_are_used_up() -> None:
    found = starts(
        job("running", 0, 100, 6, estimate=100),
        job("head", 1, 50, 8, estimate=50),
        *(job(f"long{number}", 2 + number, 200, 1, estimate=200) for number in range(3)),
    )
    assert [found[f"long{number}"] for number in range(3)] == [2, 3, 150]
    assert found["head"] == 100


def test_what_counts_is_the_estimate_and_a_job_that_ends_early_brings_the_head_forward() -> None:
    found = starts(
        job("running", 0, 40, 6, estimate=100),
        job("head", 1, 50, 8, estimate=50),
        job("filler", 2, 60, 4, estimate=98),
    )
    assert found == {"running": 0, "filler": 2, "head": 62}  # at 40 s the filler is still in its way


def test_a_job_that_outlives_its_estimate_is_expected_to_end_any_moment() -> None:
    found = starts(
        job("running", 0, 200, 6, estimate=10),
        job("head", 1, 50, 8, estimate=50),
        job("filler", 20, 5, 4, estimate=5),  # nothing ends later than now
        job("beside", 21, 500, 2, estimate=500),
    )
    assert found == {"running": 0, "head": 200, "beside": 21, "filler": 250}


def test_each_partition_has_a_head_of_its_own() -> None:
    parts = [{"name": name, "nodes": name} for name in ("x", "y")]
    there = cluster({"n": {"gpus": 4}}, {"x": [("n", 1)], "y": [("n", 1)]}, partitions=parts)
    found = starts(
        job("x0", 0, 100, 3, estimate=100, partition="x"),
        job("x1", 1, 10, 4, estimate=10, partition="x"),
        job("x2", 2, 500, 1, estimate=500, partition="x"),
        job("y0", 3, 500, 4, estimate=500, partition="y"),
        on=there,
    )
    assert found == {"x0": 0, "x1": 100, "x2": 110, "y0": 3}


def test_a_promise_is_of_nodes_not_of_numbers() -> None:
    """Eight GPUs come free in all when the head is to start, but it needs them on one node."""
    found = starts(
        job("a", 0, 100, 4, estimate=100),
        job("b", 0, 300, 4, estimate=300),
        job("head", 1, 50, 8, estimate=50),
        job("filler", 2, 400, 4, estimate=400),  # would go beside a, and then no node is whole before 300 s
        on=flat_cluster(2, 8),
        placement="spread",
    )
    assert found["a"] == found["b"] == 0
    assert found["head"] == 100
    assert found["filler"] == 2  # the strategy's own choice is in the way, the other node is not


def test_quota_is_asked_for_the_promise() -> None:
    parts = [{"name": "p", "limit": 4}]
    found = starts(
        job("a", 0, 100, 3, estimate=100, partition="p"),
        job("head", 1, 50, 4, estimate=50, partition="p"),
        job("long", 2, 200, 1, estimate=200, partition="p"),
        job("short", 3, 50, 1, estimate=50, partition="p"),
        on=flat_cluster(10, 1, partitions=parts),
    )
    assert found == {"a": 0, "head": 100, "long": 150, "short": 3}


def test_a_head_that_waits_for_quota_to_come_holds_nobody_back() -> None:
    parts = [{"name": "p", "limit": 2, "changes": [{"time": 1000, "limit": 8}]}]
    found = starts(
        job("head", 0, 50, 4, estimate=50, partition="p"),
        job("other", 1, 100, 2, estimate=100, partition="p"),
        on=flat_cluster(10, 1, partitions=parts),
    )
    assert found == {"head": 1000, "other": 1}


def test_what_a_trial_backfilled_is_taken_back() -> None:
    seen = []

    def schedule(plan: Plan) -> None:
        head = None
        for each in plan.pending:
            if head is None:
                if not plan.start(each):
                    head = plan.shadow(each, by=ENDING)
                continue
            with plan.trial():
                seen.append((each.id, bool(plan.backfill(each, head)), head.time // SECOND))
            seen.append((each.id, bool(plan.backfill(each, head)), head.time // SECOND))

    found = starts(
        job("running", 0, 100, 6, estimate=100),
        job("head", 1, 50, 8, estimate=50),
        job("long", 2, 200, 2, estimate=200),
        policy=scripted(schedule, knowledge="estimate", ending=ENDING),
    )
    assert seen[:2] == [("long", True, 100), ("long", True, 100)]
    assert found["head"] == 100


def test_what_was_refused_behind_a_trial_is_not_refused_after_it() -> None:
    seen = []

    def schedule(plan: Plan) -> None:
        waiting = list(plan.pending)
        if len(waiting) < 3:
            for each in waiting:
                plan.start(each)
            return
        first, one, other = waiting
        head = plan.shadow(first, by=ENDING)
        with plan.trial():
            seen.extend((bool(plan.backfill(one, head)), bool(plan.backfill(other, head))))
        seen.append(bool(plan.backfill(other, head)))

    starts(
        job("running", 0, 100, 6, estimate=100),
        job("head", 1, 50, 8, estimate=50),
        job("one", 2, 200, 2, estimate=200),
        job("other", 2, 200, 2, estimate=200),
        policy=scripted(schedule, knowledge="estimate", ending=ENDING),
    )
    assert seen[:3] == [True, False, True]


def test_a_promise_holds_for_one_pass_and_needs_estimates() -> None:
    kept: list[Any] = []

    def schedule(plan: Plan) -> None:
        for each in plan.pending:
            if kept:
                plan.backfill(each, kept[0])
            elif not plan.start(each):
                kept.append(plan.shadow(each, by=ENDING))

    rows = trace(job("a", 0, 10, 10, estimate=10), job("b", 1, 10, 10, estimate=10))
    with pytest.raises(IllegalDecision, match="only for the pass in which it was made"):
        run(rows, ONE_BY_ONE, scripted(schedule, knowledge="estimate", ending=ENDING))
    kept.clear()
    with pytest.raises(PolicyFailure, match="needs knowledge = 'estimate'"):
        run(rows, ONE_BY_ONE, scripted(schedule, ending=Order(lambda each: each.rank)))


class Watched(shipped("easy")):  # type: ignore[misc]
    """EASY that writes down what it first promised to each head."""

    name = "watched"
    ending = Order(lambda each, plan: plan.ends(each))

    def begin(self, plan: Plan) -> None:
        self.first: dict[str, int] = {}
        make = plan.shadow

        def shadow(each: Any, by: Order, **given: Any) -> Any:
            made = make(each, by, **given)
            self.first.setdefault(str(each.id), made.time)
            return made

        plan.shadow = shadow  # type: ignore[method-assign]


JOBS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(1, 10)), min_size=1, max_size=25
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    jobs=JOBS,
    shape=st.sampled_from([(10, 1), (5, 2), (3, 4), (2, 8)]),
    placement=st.sampled_from(["any", "pack", "first", "spread", "random", "rack"]),
    limit=st.sampled_from([None, 6, 8]),
)
def test_with_exact_estimates_no_head_starts_after_its_first_promise(
    jobs: list[tuple[int, int, int]], shape: tuple[int, int], placement: str, limit: int | None
) -> None:
    rows = [job(number, *each, estimate=each[1], partition="p") for number, each in enumerate(jobs)]
    policy = Watched()
    there = flat_cluster(*shape, partitions=[{"name": "p", **({} if limit is None else {"limit": limit})}])
    outcome = run(trace(*rows), there, policy, placement=placement)
    for name, promised in policy.first.items():
        assert outcome.times(int(name))[0] * SECOND <= promised


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(jobs=JOBS)
def test_on_counts_it_is_the_textbook_algorithm(jobs: list[tuple[int, int, int]]) -> None:
    rows = [job(number, *each, estimate=each[1]) for number, each in enumerate(jobs)]
    assert starts(*rows) == textbook(jobs, 10)


def textbook(jobs: list[tuple[int, int, int]], gpus: int) -> dict[str, float]:
    """EASY on counts, written down anew: shadow time and extra GPUs, as in Mu'alem and Feitelson."""
    order = sorted(range(len(jobs)), key=lambda number: (jobs[number][0], number))
    running: dict[int, int] = {}
    found: dict[str, float] = {}
    waiting: list[int] = []
    now = -1
    while order or waiting or running:
        now = min([*running.values(), *(jobs[number][0] for number in order[:1])])
        running = {number: end for number, end in running.items() if end > now}
        while order and jobs[order[0]][0] == now:
            waiting.append(order.pop(0))

        def free() -> int:
            return gpus - sum(jobs[number][2] for number in running)  # noqa: B023

        def start(number: int) -> None:
            waiting.remove(number)
            running[number] = now + jobs[number][1]  # noqa: B023
            found[str(number)] = now  # noqa: B023

        while waiting and jobs[waiting[0]][2] <= free():
            start(waiting[0])
        if not waiting:
            continue
        head, left = jobs[waiting[0]][2], free()
        for shadow in sorted(set(running.values())):
            left = free() + sum(jobs[number][2] for number, end in running.items() if end <= shadow)
            if left >= head:
                break
        extra = left - head
        for number in waiting[1:]:
            _, duration, size = jobs[number]
            if size <= free() and (now + duration <= shadow or size <= extra):
                extra -= size if now + duration > shadow else 0
                start(number)
    return found
