"""What a pass offers: orders, what is passed over, what is never offered again, sub-queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from analysim.policy import Order, Plan
from tests.builders import FREE, SECOND, cluster, flat_cluster, job, run, scripted, timetable, trace


def once(plan_step: Callable[[Plan], Any], rows: Any, where: Any, skip_shapes: bool = True, **attributes: Any) -> Any:
    """Do something in the first pass only; return its answer."""
    answers: list[Any] = []

    def schedule(plan: Plan) -> None:
        if not answers:
            answers.append(plan_step(plan))

    policy = scripted(schedule, **attributes)
    run(rows, where, policy, skip_shapes=skip_shapes)
    return answers[0]


def ids(jobs: Any) -> list[Any]:
    return [each.id for each in jobs]


def try_all(plan: Plan) -> list[Any]:
    """Ids of the jobs that were offered; each is tried."""
    offered = []
    for waiting in plan.pending:
        offered.append(waiting.id)
        plan.start(waiting)
    return offered


FOUR = flat_cluster(1, 4)


def test_jobs_are_offered_by_submit_time_and_id() -> None:
    rows = trace(job("c", 0, 9), job("a", 0, 9), job("b", 0, 9))
    assert once(lambda plan: ids(plan.pending), rows, FOUR) == ["a", "b", "c"]


def test_a_shape_that_failed_is_passed_over_with_all_that_ask_more() -> None:
    rows = trace(job(1, 0, 9, 2), job(2, 0, 9, 3), job(3, 0, 9, 3), job(4, 0, 9, 4), job(5, 0, 9, 2), job(6, 0, 9, 1))
    assert once(try_all, rows, FOUR) == [1, 2, 5, 6]
    assert once(try_all, rows, FOUR, skip_shapes=False) == [1, 2, 3, 4, 5, 6]


def test_what_asks_less_of_anything_is_tried() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8, "memory_gb": 64}}
    rows = trace(
        job(1, 0, 9, 1, cpus=6),
        job(2, 0, 9, 1, cpus=3),
        job(3, 0, 9, 2, cpus=6),  # as many CPUs a GPU, more GPUs
        job(4, 0, 9, 1, cpus=3, memory_mb=1),
        job(5, 0, 9, 2, cpus=2),
    )
    assert once(try_all, rows, cluster(types, {"r": [("n", 1)]})) == [1, 2, 5]


def test_a_shape_of_another_type_partition_or_user_is_tried() -> None:
    pools = [{"name": "p", "limit": 1, "limits": {"user": {"jobs": 1}}}, {"name": "q"}]
    rows = trace(
        job(1, 0, 9, 1, partition="p", user="u"),
        job(2, 0, 9, 1, partition="p", user="u"),
        job(3, 0, 9, 1, partition="p", user="v"),
        job(4, 0, 9, 1, partition="q", user="u"),
        job(5, 0, 9, 1, partition="q", gpu_type="V100"),
    )
    assert once(try_all, rows, flat_cluster(1, 4, partitions=pools)) == [1, 2, 3, 4, 5]


MANY_SIZES = cluster(
    {"a": {"gpus": 8, "gpu_type": "A"}, "b4": {"gpus": 4, "gpu_type": "B"}, "b2": {"gpus": 2, "gpu_type": "B"}},
    {"r": [("a", 1), ("b4", 1), ("b2", 3)]},
)


def test_a_larger_gang_may_fit_where_a_smaller_one_does_not() -> None:
    """Three GPUs need one node of four; six fit three nodes of two."""
    rows = trace(job(1, 0, 9, 8, gpu_type="A"), job(2, 0, 9, 4, gpu_type="B"), job(3, 0, 9, 3), job(4, 0, 9, 6))
    assert once(lambda plan: (try_all(plan), ids(plan.running)), rows, MANY_SIZES) == ([1, 2, 3, 4], [1, 2, 4])


def test_cpus_in_the_way_of_one_job_are_not_in_the_way_of_one_that_asks_fewer() -> None:
    types = {
        "big": {"gpus": 8, "gpu_type": "B", "cpus": 100},
        "small": {"gpus": 4, "gpu_type": "B", "cpus": 8},
    }
    where = cluster(types, {"r": [("big", 2), ("small", 3)]})
    rows = trace(job(1, 0, 9, 8), job(2, 0, 9, 8), job(3, 0, 9, 12, cpus=60), job(4, 0, 9, 12, cpus=12))
    assert once(lambda plan: (try_all(plan), ids(plan.running)), rows, where) == ([1, 2, 3, 4], [1, 2, 4])


def test_a_quota_on_one_type_does_not_hide_that_another_lacks_only_cpus() -> None:
    types = {"a": {"gpus": 4, "gpu_type": "A", "cpus": 100}, "b": {"gpus": 4, "gpu_type": "B", "cpus": 8}}
    where = cluster(types, {"r": [("a", 1), ("b", 1)]}, partitions=[{"name": "p", "limit": {"A": 2}}])
    given: dict[str, Any] = {"partition": "p"}
    rows = trace(
        job(1, 0, 9, 2, gpu_type="A", **given), job(2, 0, 9, 2, cpus=20, **given), job(3, 0, 9, 2, cpus=2, **given)
    )
    assert once(lambda plan: (try_all(plan), ids(plan.running)), rows, where) == ([1, 2, 3], [1, 3])


def test_scattered_gpus_may_lack_cpus_only() -> None:
    """Placed anywhere, six GPUs need CPUs for four and two; the first job's are not there."""
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8}}
    rows = trace(job(0, 0, 9, 1, cpus=4), job(1, 0, 9, 1, cpus=4), job(2, 0, 9, 6, cpus=12), job(3, 0, 9, 6, cpus=6))

    def walk(plan: Plan) -> list[Any]:
        for number, waiting in enumerate(plan.pending):
            if number < 2:
                plan.start(waiting, where=[number])
            else:
                plan.start(waiting)
        return ids(plan.running)

    answers: list[Any] = []
    run(
        rows,
        cluster(types, {"r": [("n", 2)]}),
        scripted(lambda plan: answers.append(walk(plan)) or None),
        placement="any",
    )
    assert answers[0] == [0, 1, 3]  # 3 a node: six CPUs are there, twelve are not


# -- never twice, never back -----------------------------------------------------------------------------------


def test_started_closed_and_skipped_jobs_are_not_offered_again() -> None:
    pools = [{"name": "p"}, {"name": "top", "children": [{"name": "q"}, {"name": "r"}]}]
    names = "ppqrpq"
    rows = trace(*[job(number, 0, 9, 1, partition=name) for number, name in enumerate(names)])

    def walk(plan: Plan) -> list[list[Any]]:
        offered = []
        for waiting in plan.pending:
            offered.append(waiting.id)
            if waiting.id == 0:
                plan.start(waiting)
            elif waiting.id == 1:
                plan.skip(waiting)
            elif waiting.id == 2:
                plan.close("top")  # q and r with it
        return [offered, ids(plan.pending)]

    assert once(walk, rows, flat_cluster(1, 8, partitions=pools)) == [[0, 1, 2, 4], [4]]


def test_a_job_stopped_in_this_pass_is_not_offered_in_it() -> None:
    seen = {}

    def swap(plan: Plan) -> None:
        plan.preempt(next(iter(plan.running)))
        seen["same pass"] = ids(plan.pending)
        for waiting in plan.pending:
            plan.start(waiting)

    def look(plan: Plan) -> None:
        seen["next pass"] = ids(plan.pending)
        seen["requeued"] = ids(plan.requeued)

    rows = trace(job(1, 0, 9, 4), job(2, 1, 9, 4))
    steps = {0: lambda plan: plan.start(next(iter(plan.pending))), 5: swap, 6: look}
    run(rows, FOUR, timetable(steps), costs=FREE)
    assert seen == {"same pass": [2], "next pass": [1], "requeued": [1]}


def test_a_walk_goes_on_behind_its_place_when_gpus_are_freed_in_the_pass() -> None:
    """Shapes that failed before are offered again from there on, not from the start."""
    offered = []

    def walk(plan: Plan) -> None:
        for waiting in plan.pending:
            offered.append(waiting.id)
            if not plan.start(waiting) and waiting.id == 3:
                plan.preempt(next(iter(plan.running)), "kill")

    rows = trace(job(1, 0, 9, 4), job(2, 1, 9, 2), job(3, 1, 9, 1), job(4, 1, 9, 2), job(5, 1, 9, 1))
    steps = {0: lambda plan: plan.start(next(iter(plan.pending))), 1: walk}
    run(rows, FOUR, timetable(steps))
    # 2 fails; 3 asks less and fails: one job is killed; 4 and 5 are looked at again, 2 and 3 are behind.
    assert offered == [2, 3, 4, 5]


def test_fitting_yields_only_what_fits_now() -> None:
    rows = trace(job(1, 0, 9, 3), job(2, 0, 9, 2), job(3, 0, 9, 1), job(4, 0, 9, 1))

    def backfill(plan: Plan) -> list[Any]:
        started = []
        for waiting in plan.pending.fitting():
            assert plan.start(waiting)
            started.append(waiting.id)
        return started

    assert once(backfill, rows, FOUR) == [1, 3]


# -- orders ----------------------------------------------------------------------------------------------------


def test_an_order_sorts_by_its_key_and_ties_by_submit_and_id() -> None:
    rows = trace(job(1, 0, 9, priority=1), job(2, 0, 9, priority=2), job(3, 0, 9, priority=1), job(4, 0, 9, priority=3))
    important = Order(lambda each: -each.priority)
    assert once(lambda plan: ids(plan.pending_by(important)), rows, FOUR, important=important) == [4, 2, 1, 3]


def test_an_order_may_ask_the_plan() -> None:
    shortest = Order(lambda each, plan: plan.remaining(each))
    rows = trace(job(1, 0, 30), job(2, 0, 10), job(3, 0, 20))
    found = once(lambda plan: ids(plan.pending_by(shortest)), rows, FOUR, knowledge="oracle", shortest=shortest)
    assert found == [2, 3, 1]


def test_a_key_is_read_when_a_job_starts_to_wait_and_again_at_rekey() -> None:
    scores: dict[int, int] = {1: 1, 2: 2, 3: 3}
    best = Order(lambda each: scores[each.id])
    seen = {}

    def change(plan: Plan) -> None:
        scores[3] = 0
        seen[2] = ids(plan.pending_by(best))
        plan.rekey(next(each for each in plan.pending if each.id == 3))
        seen[2.5] = ids(plan.pending_by(best))

    def look(plan: Plan) -> None:
        seen[plan.now / SECOND] = ids(plan.pending_by(best))

    rows = trace(job(1, 0, 9), job(2, 0, 9), job(3, 0, 9))
    run(rows, FOUR, timetable({0: look, 1: look, 2: change}, best=best))
    assert seen == {0: [1, 2, 3], 1: [1, 2, 3], 2: [1, 2, 3], 2.5: [3, 1, 2]}


def test_running_jobs_have_orders_too() -> None:
    latest = Order(lambda each, plan: plan.ends(each))
    rows = trace(job(1, 0, 30), job(2, 0, 10), job(3, 0, 20))

    def look(plan: Plan) -> list[list[Any]]:
        for waiting in plan.pending:
            plan.start(waiting)
        return [
            ids(plan.running),
            ids(plan.running_by(latest)),
            ids(reversed(plan.running_by(latest))),
            [len(plan.running)],
        ]

    found = once(look, rows, FOUR, knowledge="oracle", latest=latest)
    assert found == [[1, 2, 3], [2, 3, 1], [1, 3, 2], [3]]


@pytest.mark.parametrize(
    ("within", "expected"),
    [("tenant", {"t": [1, 3], "s": [2, 4]}), ("partition", {"p": [1, 2], "q": [3, 4]})],
)
def test_waiting_jobs_in_sub_queues(within: str, expected: dict[str, list[int]]) -> None:
    rows = trace(
        *[
            job(number, 0, 9, 1, tenant=tenant, partition=name)
            for number, tenant, name in ((1, "t", "p"), (2, "s", "p"), (3, "t", "q"), (4, "s", "q"))
        ]
    )
    where = flat_cluster(1, 4, partitions=[{"name": "p"}, {"name": "q"}])

    def look(plan: Plan) -> dict[Any, list[Any]]:
        return {label: ids(jobs) for label, jobs in plan.pending_by(None, within=within).items()}

    assert once(look, rows, where) == expected


def test_a_pending_view_tells_how_many_wait() -> None:
    counts = []

    def look(plan: Plan) -> None:
        counts.append((len(plan.pending), bool(plan.pending)))
        for waiting in plan.pending:
            plan.start(waiting)
            counts.append((len(plan.pending), bool(plan.pending)))

    once(look, trace(job(1, 0, 9), job(2, 0, 9)), FOUR)
    assert counts == [(2, True), (1, True), (0, False)]
