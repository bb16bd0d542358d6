"""Partitions: limits, guarantees, borrowing, lending, reclaim, changes in time, limits per user and tenant."""

from __future__ import annotations

from typing import Any

import pytest

from analysim.config.cluster import ClusterConfig
from analysim.policy import Order, Plan
from tests.builders import FREE, SECOND, Outcome, cluster, flat_cluster, job, run, scripted, timetable, trace


def eight(*partitions: dict[str, Any]) -> ClusterConfig:
    """Two nodes of four GPUs."""
    return flat_cluster(2, 4, partitions=list(partitions))


def starts(outcome: Outcome) -> list[float]:
    """First starts in the order of the trace."""
    return [float(value) for value in outcome.jobs["first_start_time_s"]]


def jobs(partition: str, count: int, gpus: int = 2, **given: Any) -> list[dict[str, Any]]:
    """Jobs of ten seconds submitted at once, named p0, p1, ..."""
    return [job(f"{partition}{number}", 0, 10, gpus, partition=partition, **given) for number in range(count)]


SKIP = {"skip": True}


def test_a_limit_bounds_what_runs_at_a_time() -> None:
    outcome = run(trace(*jobs("p", 3)), eight({"name": "p", "limit": 4}))
    assert starts(outcome) == [0, 0, 10]
    assert outcome.decisions("blocked") == [(0, "p2", "blocked", "quota")]


def test_a_guarantee_may_be_passed_as_far_as_borrow_says() -> None:
    assert starts(run(trace(*jobs("p", 4)), eight({"name": "p", "guarantee": 2}))) == [0, 0, 0, 0]
    assert starts(run(trace(*jobs("p", 4)), eight({"name": "p", "guarantee": 2, "borrow": 2}))) == [0, 0, 10, 10]
    assert starts(run(trace(*jobs("p", 4)), eight({"name": "p", "guarantee": 2, "borrow": 0}))) == [0, 10, 20, 30]
    both = {"name": "p", "guarantee": 4, "borrow": 4, "limit": 6}
    assert starts(run(trace(*jobs("p", 4)), eight(both))) == [0, 0, 0, 10]


@pytest.mark.parametrize(
    ("lend", "expected"), [(None, [0, 0, 0, 0]), (4, [0, 0, 0, 0]), (2, [0, 0, 0, 10]), (0, [0, 0, 10, 10])]
)
def test_an_unused_guarantee_is_lent_as_far_as_lend_says(lend: int | None, expected: list[float]) -> None:
    owner = {"name": "p", "guarantee": 4, **({} if lend is None else {"lend": lend})}
    assert starts(run(trace(*jobs("q", 4)), eight(owner, {"name": "q"}))) == expected


def test_what_a_partition_uses_of_its_guarantee_is_not_kept_twice() -> None:
    rows = trace(*jobs("p", 2), *jobs("q", 2))
    assert starts(run(rows, eight({"name": "p", "guarantee": 4, "lend": 0}, {"name": "q"}), options=SKIP)) == [0] * 4


def test_an_owner_finds_what_it_does_not_lend() -> None:
    rows = trace(*jobs("q", 4), job("late", 5, 10, 4, partition="p"))
    cluster_ = eight({"name": "p", "guarantee": 4, "lend": 0}, {"name": "q"})
    assert run(rows, cluster_, options=SKIP).times("late") == (5, 15)


def test_every_ancestor_bounds_its_children() -> None:
    top = {"name": "top", "limit": 4, "children": [{"name": "q"}, {"name": "r"}]}
    outcome = run(trace(*jobs("q", 2), *jobs("r", 1), *jobs("p", 1)), eight(top, {"name": "p"}), options=SKIP)
    assert outcome.jobs["first_start_time_s"].to_dict() == {"q0": 0, "q1": 0, "r0": 10, "p0": 0}


def test_children_keep_their_guarantees_inside_their_parent() -> None:
    children = [{"name": "q", "guarantee": 2, "lend": 0}, {"name": "r"}]
    top = {"name": "top", "guarantee": 4, "borrow": 0, "children": children}
    outcome = run(trace(*jobs("r", 2), *jobs("q", 1)), eight(top), options=SKIP)
    assert outcome.jobs["first_start_time_s"].to_dict() == {"r0": 0, "r1": 10, "q0": 0}


def test_quotas_may_differ_by_gpu_type() -> None:
    types = {"a": {"gpus": 4, "gpu_type": "A"}, "b": {"gpus": 4, "gpu_type": "B"}}
    pool = cluster(types, {"r": [("a", 1), ("b", 1)]}, partitions=[{"name": "p", "limit": {"A": 2}}])
    outcome = run(
        trace(*jobs("p", 2, gpu_type="A"), job("x", 1, 10, 2, partition="p", gpu_type="A|B")), pool, options=SKIP
    )
    assert starts(outcome) == [0, 10, 1]
    assert outcome.segments("x")[0][4] == "r-n01"


def test_usage_is_counted_from_decision_to_release() -> None:
    seen = {}

    def look(plan: Plan) -> None:
        view = plan.partition("p")
        seen[plan.now / SECOND] = (view.usage, view.borrowed, view.share, view.quota)

    def begin(plan: Plan) -> None:
        for waiting in plan.pending:
            plan.start(waiting)
        look(plan)

    def stop(plan: Plan) -> None:
        plan.preempt(next(iter(plan.running)))

    steps = {0: begin, 5: look, 6: stop, 20: look, 40: look}
    run(trace(job("a", 0, 10, 3, partition="p")), eight({"name": "p", "guarantee": 2, "borrow": 2}), timetable(steps))
    assert seen == {0: (3, 1, 1.5, 4), 5: (3, 1, 1.5, 4), 20: (3, 1, 1.5, 4), 40: (0, 0, 0, 4)}


def test_share_is_of_capacity_where_nothing_is_guaranteed() -> None:
    seen = []

    def schedule(plan: Plan) -> None:
        for waiting in plan.pending:
            plan.start(waiting)
            views = [plan.partition(waiting), plan.partition("root")]
            seen.append([(view.name, view.usage, view.share) for view in views])

    run(trace(job("a", 0, 10, 2, partition="p")), eight({"name": "p", "nodes": "r-n01"}), scripted(schedule))
    assert seen == [[("p", 2, 0.5), ("root", 2, 0.25)]]
    seen.clear()
    run(trace(job("a", 0, 10, 2)), flat_cluster(2, 4), scripted(schedule))
    assert seen == [[("root", 2, 0.25)] * 2]


# -- jobs that cannot be stopped -------------------------------------------------------------------------------


@pytest.mark.parametrize(("allowed", "expected"), [(False, [0, 10, 0]), (True, [0, 0, 0])])
def test_nonpreemptible_jobs_may_not_borrow(allowed: bool, expected: list[float]) -> None:
    rows = trace(*jobs("p", 2, preemptible=False), job("soft", 0, 10, 2, partition="p"))
    owner = {"name": "p", "guarantee": 2, "borrow_nonpreemptible": allowed}
    outcome = run(rows, eight(owner), options=SKIP)
    assert [outcome.times(name)[0] for name in ("p0", "p1")] == expected[:2]


def test_a_partition_without_guarantee_bounds_no_nonpreemptible_job() -> None:
    assert starts(run(trace(*jobs("p", 2, preemptible=False)), eight({"name": "p", "limit": 4}))) == [0, 0]


# -- reclaim ---------------------------------------------------------------------------------------------------


def reclaimed(rows: Any, where: ClusterConfig, **given: Any) -> tuple[list[Any] | None, Outcome]:
    """What ``reclaim`` answers for the job ``owner`` at 5 s, the newest to go first."""
    answers: list[list[Any] | None] = []

    def schedule(plan: Plan) -> None:
        for waiting in plan.pending:
            if plan.start(waiting) or waiting.id != "owner":
                continue
            victims = plan.reclaim(waiting, by=policy.newest)
            answers.append(None if victims is None else sorted(victim.id for victim in victims))
            for victim in victims or ():
                plan.preempt(victim)
            plan.start(waiting)

    policy: Any = scripted(schedule, newest=Order(lambda each: each.rank))
    outcome = run(rows, where, policy, costs=FREE, **given)
    return (answers[0] if answers else None), outcome


def test_an_owner_takes_back_what_others_borrow_and_no_more() -> None:
    rows = trace(*jobs("q", 4), job("owner", 5, 10, 2, partition="p"))
    victims, outcome = reclaimed(
        rows, eight({"name": "p", "guarantee": 4, "reclaim": True}, {"name": "q", "guarantee": 4})
    )
    assert victims == ["q3"]
    assert outcome.times("owner") == (5, 15)


def test_victims_are_taken_only_while_their_partition_borrows() -> None:
    rows = trace(*jobs("q", 3), *jobs("r", 1), job("owner", 5, 10, 4, partition="p"))
    where = eight({"name": "p", "guarantee": 4, "reclaim": True}, {"name": "q", "guarantee": 4}, {"name": "r"})
    victims, outcome = reclaimed(rows, where, placement="any")
    assert victims == ["q2", "r0"]  # q3 of four is within q's guarantee; r has none
    assert outcome.times("owner") == (5, 15)


def test_nothing_is_reclaimed_for_a_job_that_would_itself_borrow() -> None:
    rows = trace(*jobs("q", 4), job("owner", 5, 10, 4, partition="p"))
    victims, outcome = reclaimed(rows, eight({"name": "p", "guarantee": 2, "reclaim": True}, {"name": "q"}))
    assert victims is None
    assert outcome.times("owner")[0] == 10


def test_only_a_partition_that_says_so_reclaims() -> None:
    rows = trace(*jobs("q", 4), job("owner", 5, 10, 2, partition="p"))
    assert reclaimed(rows, eight({"name": "p", "guarantee": 4}, {"name": "q"}))[0] is None


def test_victims_come_from_below_the_lowest_common_ancestor() -> None:
    top = {
        "name": "top",
        "guarantee": 4,
        "children": [{"name": "p", "guarantee": 2, "reclaim": True}, {"name": "q"}],
    }
    rows = trace(*jobs("q", 2), *jobs("r", 2), job("owner", 5, 10, 2, partition="p"))
    victims, _ = reclaimed(rows, eight(top, {"name": "r", "guarantee": 4}), placement="any")
    assert victims == ["q1"]  # r is within its guarantee; q's parent is not above its own, but that is an ancestor


def test_nonpreemptible_jobs_are_no_victims() -> None:
    rows = trace(*jobs("q", 4, preemptible=False), job("owner", 5, 10, 2, partition="p"))
    where = eight({"name": "p", "guarantee": 4, "reclaim": True}, {"name": "q", "borrow_nonpreemptible": True})
    victims, outcome = reclaimed(rows, where)
    assert victims is None
    assert outcome.times("owner")[0] == 10


# -- changes in time -------------------------------------------------------------------------------------------


def test_running_jobs_stay_above_a_lowered_limit_and_nothing_starts_until_it_fits() -> None:
    change = {"name": "p", "limit": 8, "changes": [{"time": 5, "limit": 4}]}
    rows = [job("a", 0, 20, 2, partition="p"), job("b", 0, 30, 2, partition="p"), job("c", 0, 40, 4, partition="p")]
    outcome = run(trace(*rows, job("d", 6, 5, 2, partition="p")), eight(change))
    assert [outcome.times(name) for name in "abc"] == [(0, 20), (0, 30), (0, 40)]
    assert outcome.times("d") == (40, 45)  # 8 at 6 s, 6 at 20 s, 4 at 30 s: with d always more than 4 until 40 s


def test_a_raised_limit_starts_what_waits() -> None:
    change = {"name": "p", "limit": 2, "changes": [{"time": 5, "limit": 4}, {"time": 7, "limit": 6}]}
    assert starts(run(trace(*jobs("p", 4)), eight(change))) == [0, 5, 7, 10]


def test_a_change_replaces_all_four_bounds() -> None:
    change = {"name": "p", "guarantee": 2, "borrow": 0, "changes": [{"time": 5, "limit": 6}]}
    assert starts(run(trace(*jobs("p", 4)), eight(change))) == [0, 5, 5, 10]


def test_a_partition_may_get_other_nodes() -> None:
    change = {"name": "p", "nodes": "r-n00", "changes": [{"time": 5, "limit": 8, "nodes": "r-n01"}]}
    rows = trace(job("a", 0, 20, 4, partition="p"), job("b", 1, 10, 4, partition="p"))
    outcome = run(rows, eight(change))
    assert outcome.segments() == [
        ("b", "run", 5, 15, "r-n01", "0-3", 10),
        ("a", "run", 0, 20, "r-n00", "0-3", 20),
    ]


# -- users, tenants, node sets ---------------------------------------------------------------------------------


def test_limits_bind_each_user_and_each_tenant() -> None:
    limits = {"user": {"gpus": 2}, "tenant": {"jobs": 2}}
    rows = trace(
        job("a", 0, 10, 2, partition="p", user="u", tenant="t"),
        job("b", 0, 10, 1, partition="p", user="u", tenant="t"),
        job("c", 0, 10, 1, partition="p", user="v", tenant="t"),
        job("d", 0, 10, 1, partition="p", user="w", tenant="t"),
        job("e", 0, 10, 1, partition="p", user="w", tenant="s"),
        job("f", 0, 10, 1, user="u", tenant="t"),
    )
    outcome = run(rows, eight({"name": "p", "limits": limits}), options=SKIP)
    assert starts(outcome) == [0, 10, 0, 10, 0, 0]  # u has its 2 GPUs, t its 2 jobs; f is not in p


def test_a_job_above_its_users_limit_is_rejected() -> None:
    rows = trace(job("a", 0, 10, 3, partition="p", user="u"))
    outcome = run(rows, eight({"name": "p", "limits": {"user": {"gpus": 2}}}))
    assert outcome.tables.rejected["reason"].tolist() == ["asks for 3 GPUs; a user may use 2 in partition 'p'"]


def test_node_sets_may_overlap() -> None:
    pools = ({"name": "p", "nodes": "r-n00"}, {"name": "q", "nodes": ["r-n00", "r-n01"]})
    rows = trace(
        job("a", 0, 10, 4, partition="p"), job("b", 0, 10, 4, partition="q"), job("c", 0, 10, 4, partition="p")
    )
    outcome = run(rows, eight(*pools))
    assert {name: outcome.segments(name)[0][4] for name in "abc"} == {"a": "r-n00", "b": "r-n01", "c": "r-n00"}
    assert starts(outcome) == [0, 0, 10]


def test_a_closed_partition_does_not_close_others() -> None:
    pools = ({"name": "p", "limit": 2}, {"name": "q"})
    rows = trace(*jobs("p", 2), job("x", 1, 10, 1, partition="q"), job("y", 1, 10, 2, partition="p"))
    outcome = run(rows, eight(*pools))
    assert outcome.jobs["first_start_time_s"].to_dict() == {"p0": 0, "p1": 10, "x": 1, "y": 20}


def test_a_tenant_without_partition_goes_to_the_partition_of_its_name() -> None:
    rows = trace(
        *[job(name, 0, 10, 2, tenant=tenant) for name, tenant in (("a", "p"), ("b", "p"), ("c", "x"), ("d", ""))]
    )
    outcome = run(rows, eight({"name": "p", "limit": 2}), options=SKIP)
    assert starts(outcome) == [0, 10, 0, 0]
