"""What-ifs, and who must go to make room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from analysim.errors import IllegalDecision
from analysim.policy import Blocked, Order, Plan
from tests.builders import FREE, SECOND, cluster, flat_cluster, job, run, same_tables, scripted, timetable, trace
from tests.property.audit import audit
from tests.unit.engine_steps import named, start_all

FOUR = flat_cluster(1, 4)


def picture(plan: Plan) -> Any:
    """All that a policy can see."""
    return (
        [each.id for each in plan.pending],
        [(each.id, plan.placement(each), plan.progress(each), plan.attained(each)) for each in plan.running],
        list(plan.capacity.free),
        [plan.partition(name).usage for name in ("p", "q")],
        [bool(plan.fit(each)) for each in plan.pending],
    )


HALVES = flat_cluster(2, 4, partitions=[{"name": "p", "limit": 4}, {"name": "q"}])
ROWS = trace(
    job(1, 0, 50, 2, partition="p"),
    job(2, 0, 50, 4, partition="q"),
    job(3, 1, 9, 4, partition="p"),
    job(4, 1, 9, 2, partition="q"),
    job(5, 1, 9, 1, partition="q"),
)

CHANGES: dict[str, Callable[[Plan], object]] = {
    "starts": start_all,
    "checkpoint": lambda plan: plan.preempt(named(plan, 1)),
    "kill": lambda plan: plan.preempt(named(plan, 1), "kill"),
    "suspend": lambda plan: plan.preempt(named(plan, 2), "suspend"),
    "cancel": lambda plan: plan.preempt(named(plan, 2), "cancel"),
    "a move": lambda plan: plan.migrate(named(plan, 1), ((0, 0b1100),)),
    "a stop and a start": lambda plan: (plan.preempt(named(plan, 2), "kill"), start_all(plan)),
    "a deferred start": lambda plan: (plan.preempt(named(plan, 1)), plan.preempt(named(plan, 2)), start_all(plan)),
    "marks": lambda plan: (plan.close("p"), plan.skip(named(plan, 5)), plan.start(named(plan, 4))),
    "writings": lambda plan: (plan.wake_at(plan.now + 1), plan.note("x", 1)),
    "a new order": lambda plan: plan.rekey(named(plan, 1)),
}


@pytest.mark.parametrize("cost", ["free", "usual"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_trial_that_is_left_changes_nothing(name: str, cost: str) -> None:
    def step(plan: Plan) -> None:
        before = picture(plan)
        with plan.trial():
            CHANGES[name](plan)
            audit(plan)
        audit(plan)
        assert picture(plan) == before

    given: dict[str, Any] = {"costs": FREE} if cost == "free" else {}
    steps = {0: start_all, 5: step, 20: start_all, 90: start_all, 200: start_all}
    left = run(ROWS, HALVES, timetable(steps), **given)
    right = run(ROWS, HALVES, timetable({**steps, 5: lambda plan: None}), **given)
    assert same_tables(left.tables, right.tables) == []


@pytest.mark.parametrize("name", CHANGES)
def test_a_trial_that_is_kept_is_as_if_there_had_been_none(name: str) -> None:
    def kept(plan: Plan) -> None:
        with plan.trial() as trial:
            CHANGES[name](plan)
            trial.keep()

    def directly(plan: Plan) -> None:
        CHANGES[name](plan)

    tables = []
    for step in (kept, directly):
        steps = {0: start_all, 5: step, 20: start_all, 90: start_all, 200: start_all}
        tables.append(run(ROWS, HALVES, timetable(steps)).tables)
    assert same_tables(*tables) == []


def test_trials_nest_and_an_exception_undoes() -> None:
    seen: list[Any] = []

    def step(plan: Plan) -> None:
        with plan.trial() as outer:
            plan.start(named(plan, 4))
            with plan.trial() as inner:
                plan.start(named(plan, 5))
                inner.keep()
            with plan.trial():
                plan.preempt(named(plan, 1), "kill")
            outer.keep()
        seen.append([each.id for each in plan.running])
        try:
            with plan.trial() as trial:
                plan.preempt(named(plan, 4), "kill")
                trial.keep()
                raise ValueError("a policy's own")
        except ValueError:
            seen.append([each.id for each in plan.running])

    run(
        ROWS,
        flat_cluster(2, 8, partitions=[{"name": "p", "limit": 4}, {"name": "q"}]),
        timetable({0: lambda plan: [plan.start(named(plan, name)) for name in (1, 2)], 5: step}),
    )
    assert seen == [[1, 2, 4, 5], [1, 2, 4, 5]]


def test_a_kept_trial_inside_one_that_is_left_is_undone_with_it() -> None:
    seen = []

    def step(plan: Plan) -> None:
        with plan.trial():
            with plan.trial() as inner:
                plan.preempt(named(plan, 1))
                inner.keep()
            seen.append([each.id for each in plan.running])
        seen.append([each.id for each in plan.running])

    run(ROWS, HALVES, timetable({0: start_all, 0.5: step}))
    assert seen == [[2], [1, 2]]


def test_a_mode_tried_in_a_trial_is_not_what_is_recorded() -> None:
    def step(plan: Plan) -> None:
        stopped = named(plan, 1)
        plan.preempt(stopped, "checkpoint")
        with plan.trial():
            plan.start(stopped)
            plan.preempt(stopped, "kill")

    outcome = run(ROWS, HALVES, timetable({0: start_all, 0.5: step, 100: start_all}))
    assert outcome.decisions("preempt", "kill") == [(0.5, 1, "preempt", "")]


# -- answers ---------------------------------------------------------------------------------------------------


def test_fit_says_where_or_why_not() -> None:
    types = {"a": {"gpus": 4, "gpu_type": "A", "cpus": 8}, "b": {"gpus": 4, "gpu_type": "B", "cpus": 8}}
    pools = [{"name": "p", "limit": 1}, {"name": "q", "nodes": "r-n01"}]
    where = cluster(types, {"r": [("a", 1), ("b", 1)]}, partitions=pools)
    rows = trace(
        job("fill", 0, 9, 3, gpu_type="A", cpus=6),
        job("one", 0, 9, 1),
        job("type", 0, 9, 2, gpu_type="A"),
        job("full", 1, 9, 4, partition="q"),
        job("p", 0, 9, 1, partition="p"),
        job("quota", 0, 9, 1, partition="p"),
        job("cpus", 0, 9, 1, gpu_type="A", cpus=3),
    )
    answers: dict[Any, Any] = {}

    def schedule(plan: Plan) -> None:
        if answers:
            return
        for name in ("fill", "p"):
            plan.start(named(plan, name), where=["r-n00"] if name == "fill" else ["r-n01"])
        for name in ("one", "type", "quota", "cpus"):
            found = plan.fit(named(plan, name))
            answers[name] = found.reason if isinstance(found, Blocked) else found
        answers["avoid"] = plan.fit(named(plan, "one"), avoid=["r-n00"])
        blocked = plan.start(named(plan, "cpus"))
        assert isinstance(blocked, Blocked) and not blocked and "resources" in repr(blocked)

    run(rows, where, scripted(schedule))
    assert answers == {
        "one": ((0, 0b1000),),
        "type": "type",
        "quota": "quota",
        "cpus": "resources",
        "avoid": ((1, 0b10),),
    }


def test_a_reason_is_recorded_once_until_it_changes() -> None:
    rows = trace(job("a", 0, 10, 3), job("b", 1, 10, 2), job("c", 2, 30, 2), job("d", 3, 5, 2), job("e", 30, 1, 3))
    outcome = run(rows, FOUR)
    # b, c and d are one shape; at 10 s b starts, c too; e's shape is another.
    assert outcome.decisions("blocked") == [(1, "b", "blocked", "no free GPUs"), (30, "e", "blocked", "no free GPUs")]


def test_what_a_policy_reads_of_running_jobs() -> None:
    seen: list[Any] = []

    def look(plan: Plan) -> None:
        running = named(plan, 1)
        seen.append(plan.placement(running))
        seen.append([each.id for each in plan.jobs_on("r-n00")])
        seen.append([each.id for each in plan.jobs_on(1)])
        seen.append(plan.placement(named(plan, 4)))
        plan.preempt(running, "kill")
        seen.append([each.id for each in plan.jobs_on("r-n00")])

    run(ROWS, HALVES, timetable({0: start_all, 1: look}))
    assert seen == [((0, 0b11),), [1], [2], None, []]


def test_arrived_are_the_jobs_since_the_last_pass() -> None:
    seen = {}

    def schedule(plan: Plan) -> None:
        seen[plan.now / SECOND] = [each.id for each in plan.arrived]
        if plan.now >= 3 * SECOND:
            start_all(plan)

    run(trace(job("a", 0, 1), job("b", 2, 1), job("c", 3, 1)), FOUR, scripted(schedule))
    assert seen == {0: ["a"], 2: ["b"], 3: ["c"]}


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_notes_are_finite(value: float) -> None:
    with pytest.raises(IllegalDecision, match="a series holds finite numbers only"):
        run(trace(job("a", 0, 10)), flat_cluster(1, 4), timetable({0: lambda plan: plan.note("depth", value)}))


def test_notes_are_a_series_of_the_policys_own() -> None:
    def schedule(plan: Plan) -> None:
        plan.note("waiting", len(plan.pending))
        start_all(plan)

    notes = run(trace(job("a", 0, 5), job("b", 2, 1)), FOUR, scripted(schedule)).tables.notes
    assert notes.to_dict("list") == {"time_s": [0, 2], "name": ["waiting", "waiting"], "value": [1, 1]}


# -- room ------------------------------------------------------------------------------------------------------


def room(rows: Any, where: Any, above: Any = -1, settled: int = 0, **given: Any) -> list[Any] | None:
    """Who must go for the job ``new`` at 10 s, the last in the order of submission first."""
    answers: list[Any] = []

    def step(plan: Plan) -> None:
        victims = plan.room(named(plan, "new"), by=policy.newest, above=above, settled=settled)
        answers.append(None if victims is None else [victim.id for victim in victims])
        if victims:
            assert plan.replace(victims, named(plan, "new"), "kill")

    policy: Any = timetable(
        {0: start_all, 1: start_all, 2: start_all, 3: start_all, 10: step}, newest=Order(lambda each: each.submit)
    )
    run(rows, where, policy, **given)
    return answers[0]  # type: ignore[no-any-return]  # as typed above


def test_the_last_in_the_order_go_first_and_no_more_than_needed() -> None:
    rows = [job("a", 0, 50, 2), job("b", 1, 50, 1), job("c", 2, 50, 1)]
    assert room(trace(*rows, job("new", 10, 9, 1)), FOUR) == ["c"]
    assert room(trace(*rows, job("new", 10, 9, 2)), FOUR) == ["c", "b"]
    assert room(trace(*rows, job("new", 10, 9, 4)), FOUR) == ["c", "b", "a"]


def test_victims_that_turn_out_not_to_be_needed_are_spared() -> None:
    rows = [job("a", 0, 50, 3), job("b", 1, 50, 1)]
    assert room(trace(*rows, job("new", 10, 9, 3)), FOUR) == ["a"]  # b would go first, but a alone is enough


def test_a_gangs_other_nodes_count_when_victims_are_spared() -> None:
    """v has two GPUs of node 0 and all of node 1, w the others of node 0: node 0 costs both, node 1 only v."""
    rows = [job("f", 0, 2, 2), job("v", 1, 50, 6), job("w", 3, 50, 2)]
    assert room(trace(*rows, job("new", 10, 9, 4)), flat_cluster(2, 4)) == ["v"]


def test_the_pieces_of_a_gang_may_change_places_when_victims_are_spared() -> None:
    """Whole nodes come first: node 0 for all of it and node 1 for the rest would cost a and b; b alone is enough."""
    rows = [job("a", 0, 50, 2), job("b", 0, 50, 4)]
    assert room(trace(*rows, job("new", 10, 9, 6)), flat_cluster(2, 4)) == ["b"]


def test_victims_with_cpus_are_spared_too() -> None:
    node = cluster({"n": {"gpus": 4, "cpus": 16, "memory_gb": 64}}, {"r": [("n", 1)]})
    rows = [job("a", 0, 50, 3, cpus=9), job("b", 1, 50, 1, cpus=2)]
    assert room(trace(*rows, job("new", 10, 9, 3, cpus=3)), node) == ["a"]
    assert room(trace(*rows, job("new", 10, 9, 3, cpus=15)), node) == ["b", "a"]


def test_many_victims_inside_a_quota_are_no_more_than_needed() -> None:
    """All of p's 16 GPUs go, last first, before 12 are free; five of the nine small jobs are enough."""
    rows = [job("large", 0, 50, 7, partition="p"), *(job(f"{name}", 1, 50, 1, partition="p") for name in range(9))]
    new = job("new", 10, 9, 12, partition="p")
    where = flat_cluster(1, 16, partitions=[{"name": "p", "limit": 16}, {"name": "q"}])
    assert room(trace(*rows, new), where) == [*"87654", "large"]


def test_nobody_at_or_below_the_limit_goes() -> None:
    rows = [job("a", 0, 50, 2), job("b", 1, 50, 2)]
    assert room(trace(*rows, job("new", 10, 9, 2)), FOUR, above=0) == ["b"]
    assert room(trace(*rows, job("new", 10, 9, 2)), FOUR, above=SECOND) is None
    assert room(trace(*rows, job("new", 10, 9, 4)), FOUR, above=0) is None


def test_jobs_that_cannot_be_stopped_or_have_just_started_stay() -> None:
    rows = [job("a", 0, 50, 2), job("b", 1, 50, 2, preemptible=False)]
    assert room(trace(*rows, job("new", 10, 9, 2)), FOUR) == ["a"]
    rows = [job("a", 0, 50, 2), job("b", 1, 50, 2)]
    assert room(trace(*rows, job("new", 10, 9, 2)), FOUR, settled=10 * SECOND) == ["a"]
    assert room(trace(*rows, job("new", 10, 9, 2)), FOUR, settled=11 * SECOND) is None


def test_room_is_made_where_the_latest_must_go() -> None:
    rows = [job("a", 0, 50, 4), job("b", 1, 50, 2), job("c", 2, 50, 2)]
    assert room(trace(*rows, job("new", 10, 9, 4)), flat_cluster(2, 4)) == ["c", "b"]


def test_room_under_a_quota_is_made_inside_it() -> None:
    pools = [{"name": "p", "limit": 4}, {"name": "q"}]
    rows = [job("a", 0, 50, 4, partition="p"), job("b", 1, 50, 4, partition="q")]
    assert room(trace(*rows, job("new", 10, 9, 4, partition="p")), flat_cluster(2, 4, partitions=pools)) == ["a"]


def test_room_anywhere_counts_gpus_only() -> None:
    rows = [job("a", 0, 50, 3), job("b", 1, 50, 3), job("c", 2, 50, 1)]
    assert room(trace(*rows, job("new", 10, 9, 5)), flat_cluster(2, 4), placement="any") == ["c", "b"]


def test_room_for_a_suspended_job_is_on_the_gpus_it_had() -> None:
    answers: list[Any] = []
    rows = trace(job("a", 0, 50, 2), job("b", 1, 50, 2), job("c", 6, 50, 2))

    def suspend(plan: Plan) -> None:
        plan.preempt(named(plan, "a"), "suspend")

    def ask(plan: Plan) -> None:
        victims = plan.room(named(plan, "a"), by=policy.newest, above=-(10**9))
        answers.append([victim.id for victim in victims or ()])
        answers.append(bool(plan.replace(victims or (), named(plan, "a"), "kill")))

    policy: Any = timetable(
        {0: start_all, 1: start_all, 5: suspend, 6: start_c, 7: ask}, newest=Order(lambda each: -each.submit)
    )
    run(rows, FOUR, policy)
    assert answers == [["c"], True]


def start_c(plan: Plan) -> None:
    plan.start(named(plan, "c"))


def test_nothing_is_stopped_when_the_job_cannot_start_then() -> None:
    def step(plan: Plan) -> None:
        assert not plan.replace([named(plan, "a")], named(plan, "new"))

    rows = trace(job("a", 0, 50, 2), job("b", 0, 50, 2), job("new", 10, 9, 4))
    outcome = run(rows, FOUR, timetable({0: start_all, 10: step, 50: start_all}))
    assert outcome.segments("a") == [("a", "run", 0, 50, "r-n00", "0-1", 50)]
