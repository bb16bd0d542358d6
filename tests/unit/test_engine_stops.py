"""Exact logs of jobs that are stopped in every way, moved and reserved. A checkpoint costs 30 s, a restart 60 s."""

from __future__ import annotations

import pytest

from analysim.config.cluster import Costs
from analysim.errors import IllegalDecision
from analysim.policy import Job, Plan
from tests.builders import FREE, SECOND, cluster, flat_cluster, job, run, same_tables, timetable, trace
from tests.unit.engine_steps import NODE, ONE, figures, named, start, start_all, stop

# -- preemption ------------------------------------------------------------------------------------------------


def test_checkpoint_keeps_progress_and_holds_the_gpus_meanwhile() -> None:
    outcome = run(ONE, NODE, timetable({0: start_all, 40: stop("a"), 100: start_all}))
    assert outcome.segments() == [
        ("a", "run", 0, 40, "r-n00", "0-1", 40),
        ("a", "checkpoint", 40, 70, "r-n00", "0-1", 0),
        ("a", "restart", 100, 160, "r-n00", "0-1", 0),
        ("a", "run", 160, 220, "r-n00", "0-1", 60),
    ]
    assert figures(outcome, "a") == [220, 30, 190, 1, 0]
    assert outcome.decisions() == [(0, "a", "start", ""), (40, "a", "preempt", ""), (100, "a", "start", "")]


def test_a_checkpointing_job_waits_again_when_its_gpus_are_free() -> None:
    seen = {}

    def look(plan: Plan) -> None:
        seen[plan.now / SECOND] = ([each.id for each in plan.requeued], plan.attained(plan.jobs_on(0)[0]) / SECOND)

    rows = trace(job("a", 0, 100, 2), job("b", 0, 100, 2))
    run(rows, NODE, timetable({0: start_all, 40: stop("a"), 60: look, 70: look, 80: look}))
    assert seen == {60: ([], 120), 70: (["a"], 140), 80: ([], 160)}  # attained by b: 2 GPUs


def test_kill_frees_at_once_and_loses_everything() -> None:
    outcome = run(ONE, NODE, timetable({0: start_all, 40: stop("a", "kill"), 50: start_all}))
    assert outcome.segments() == [
        ("a", "run", 0, 40, "r-n00", "0-1", 0),
        ("a", "restart", 50, 110, "r-n00", "0-1", 0),
        ("a", "run", 110, 210, "r-n00", "0-1", 100),
    ]
    assert figures(outcome, "a") == [210, 10, 200, 1, 0]


def test_kill_falls_back_to_the_last_periodic_checkpoint() -> None:
    steps = {0: start_all, 40: stop("a", "kill"), 50: start_all, 129: stop("a", "kill"), 130: start_all}
    outcome = run(ONE, NODE, timetable(steps), costs=Costs(checkpoint_interval_s=15))
    # 40 s are two checkpoints, 30 s; then 110 to 129 is one, 15 s; 55 s are left.
    assert [row[-1] for row in outcome.segments() if row[1] == "run"] == [30, 15, 55]
    assert figures(outcome, "a") == [130 + 60 + 55, 10 + 1, 234, 2, 0]


def test_suspend_costs_nothing_and_resumes_only_on_the_same_gpus() -> None:
    rows = trace(job("a", 0, 100, 2), job("b", 40, 20, 2))
    steps = {
        0: start("a"),
        40: lambda plan: (stop("a", "suspend")(plan), start("b")(plan)),
        50: start("a"),
        60: start("a"),
    }
    outcome = run(rows, NODE, timetable(steps))
    assert outcome.segments() == [
        ("a", "run", 0, 40, "r-n00", "0-1", 40),
        ("a", "suspend", 40, 60, "r-n00", "0-1", 0),
        ("b", "run", 40, 60, "r-n00", "0-1", 20),
        ("a", "run", 60, 120, "r-n00", "0-1", 60),
    ]
    assert figures(outcome, "a") == [120, 20, 100, 1, 0]
    assert outcome.tables.segments["gpus"].tolist() == [2, 0, 2, 2]  # nothing is held while suspended


def test_a_suspended_job_needs_its_cpus_too() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8}}
    rows = trace(job("a", 0, 100, 1, cpus=6), job("b", 40, 20, 2, cpus=6))

    def swap(plan: Plan) -> None:
        stop("a", "suspend")(plan)
        assert plan.start(named(plan, "b"), where=((0, 0b110),))

    steps = {0: start("a"), 40: swap, 50: start("a"), 60: start("a")}
    outcome = run(rows, cluster(types, {"r": [("n", 1)]}), timetable(steps))
    assert outcome.decisions("blocked") == [(50, "a", "blocked", "resources")]
    assert outcome.times("a") == (0, 120)


def test_cancel_ends_a_job_as_killed() -> None:
    outcome = run(ONE, NODE, timetable({0: start_all, 40: stop("a", "cancel")}))
    assert outcome.state("a") == "killed"
    assert figures(outcome, "a") == [40, 0, 40, 0, 0]
    assert outcome.jobs.loc["a", "jct_s"] == 40


def test_a_job_stopped_while_restarting_has_nothing_to_save_and_pays_again_in_full() -> None:
    steps = {0: start_all, 40: stop("a"), 100: start_all, 120: stop("a"), 200: start_all}
    outcome = run(ONE, NODE, timetable(steps))
    assert outcome.segments()[2:] == [
        ("a", "restart", 100, 120, "r-n00", "0-1", 0),
        ("a", "restart", 200, 260, "r-n00", "0-1", 0),
        ("a", "run", 260, 320, "r-n00", "0-1", 60),
    ]
    assert figures(outcome, "a") == [320, 30 + 80, 210, 2, 0]


@pytest.mark.parametrize("mode", ["checkpoint", "kill", "suspend", "cancel"])
def test_neither_a_checkpointing_nor_a_nonpreemptible_job_can_be_stopped(mode: str) -> None:
    rows = trace(job("a", 0, 100, 2, preemptible=False))
    with pytest.raises(IllegalDecision, match=r"at 40\.000000 s, job a: it is not preemptible"):
        run(rows, NODE, timetable({0: start_all, 40: stop("a", mode)}))
    held: list[Job] = []
    steps = {
        0: start_all,
        40: lambda plan: (held.append(named(plan, "a")), stop("a")(plan)),
        50: lambda plan: plan.preempt(held[0], mode),
    }
    with pytest.raises(IllegalDecision, match="only a running job can be preempted; it is checkpointing"):
        run(ONE, NODE, timetable(steps))


def test_a_job_that_is_moving_cannot_be_stopped_before_it_has_saved() -> None:
    steps = {0: start("a", [0]), 40: lambda plan: plan.migrate(named(plan, "a"), [1]), 50: stop("a")}
    with pytest.raises(IllegalDecision, match="it is checkpointing and cannot be preempted now"):
        run(ONE, flat_cluster(2, 4), timetable(steps))


def test_a_preempted_job_keeps_its_place_in_the_order() -> None:
    orders = {}
    rows = trace(job("a", 0, 100, 4), job("b", 1, 10, 4), job("c", 2, 10, 4))
    look = {
        when: lambda plan: orders.update({plan.now / SECOND: [each.id for each in plan.pending]}) for when in (30, 75)
    }
    run(rows, NODE, timetable({0: start_all, 40: stop("a"), **look}))
    assert orders == {30: ["b", "c"], 75: ["a", "b", "c"]}


def test_a_job_pays_its_own_costs_where_the_trace_gives_them() -> None:
    rows = trace(job("a", 0, 100, 2, checkpoint=5, restart=7))
    outcome = run(rows, NODE, timetable({0: start_all, 40: stop("a"), 50: start_all}))
    assert outcome.times("a") == (0, 50 + 7 + 60)
    assert ("a", "checkpoint", 40, 45, "r-n00", "0-1", 0) in outcome.segments()


def test_costs_follow_from_size_and_bandwidth() -> None:
    costs = Costs(size_gb=24, bandwidth_gb_per_s=2)
    outcome = run(ONE, NODE, timetable({0: start_all, 40: stop("a"), 52: start_all}), costs=costs)
    assert outcome.times("a") == (0, 52 + 12 + 60)


def test_a_first_start_costs_start_s() -> None:
    outcome = run(ONE, NODE, timetable({0: start_all, 40: stop("a"), 70: start_all}), costs=Costs(start_s=10))
    assert outcome.segments()[0] == ("a", "restart", 0, 10, "r-n00", "0-1", 0)
    assert outcome.segments()[1] == ("a", "run", 10, 40, "r-n00", "0-1", 30)
    assert outcome.times("a") == (0, 70 + 60 + 70)


# -- the net effect of a pass ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["checkpoint", "kill", "suspend"])
def test_stopped_and_started_in_place_is_nothing(mode: str) -> None:
    def stop_and_start(plan: Plan) -> None:
        stopped = named(plan, "a")
        plan.preempt(stopped, mode)
        assert plan.start(stopped)

    left = run(ONE, NODE, timetable({0: start_all, 40: stop_and_start}))
    right = run(ONE, NODE, timetable({0: start_all, 40: lambda plan: None}))
    assert same_tables(left.tables, right.tables) == []


@pytest.mark.parametrize("mode", ["checkpoint", "kill", "suspend"])
def test_stopped_and_started_elsewhere_is_a_migration(mode: str) -> None:
    def move(plan: Plan) -> None:
        moved = named(plan, "a")
        plan.preempt(moved, mode)
        assert plan.start(moved, where=[1])

    steps = {0: start("a", [0]), 40: move}
    outcome = run(ONE, flat_cluster(2, 4), timetable(steps))
    assert outcome.segments() == MIGRATION
    assert outcome.decisions() == [(0, "a", "start", ""), (40, "a", "migrate", "")]


MIGRATION = [
    ("a", "run", 0, 40, "r-n00", "0-1", 40),
    ("a", "checkpoint", 40, 70, "r-n00", "0-1", 0),
    ("a", "hold", 40, 70, "r-n01", "0-1", 0),
    ("a", "restart", 70, 130, "r-n01", "0-1", 0),
    ("a", "run", 130, 190, "r-n01", "0-1", 60),
]


def test_started_and_stopped_is_nothing() -> None:
    def both(plan: Plan) -> None:
        waiting = named(plan, "a")
        plan.start(waiting)
        plan.preempt(waiting, "kill")

    outcome = run(ONE, NODE, timetable({0: both, 10: start_all}))
    assert outcome.decisions() == [(10, "a", "start", "")]
    assert outcome.segments() == [("a", "run", 10, 110, "r-n00", "0-1", 100)]
    assert figures(outcome, "a") == [110, 10, 100, 0, 0]


def test_an_undone_trial_after_a_stop_and_start_in_place_changes_nothing() -> None:
    def stir(plan: Plan) -> None:
        stopped = named(plan, "a")
        plan.preempt(stopped)
        assert plan.start(stopped)
        with plan.trial():
            plan.preempt(stopped)

    left = run(ONE, NODE, timetable({0: start_all, 40: stir}))
    right = run(ONE, NODE, timetable({0: start_all, 40: lambda plan: None}))
    assert same_tables(left.tables, right.tables) == []


# -- migration -------------------------------------------------------------------------------------------------


def test_a_migration_holds_old_and_new_gpus_and_then_restarts() -> None:
    def move(plan: Plan) -> None:
        assert plan.migrate(named(plan, "a"), [1])

    outcome = run(ONE, flat_cluster(2, 4), timetable({0: start("a", [0]), 40: move}))
    assert outcome.segments() == MIGRATION
    assert figures(outcome, "a") == [190, 0, 190, 0, 1]
    assert outcome.jobs.loc["a", "jct_s"] == 190


def test_gpus_that_a_move_keeps_are_held_once() -> None:
    outcome = run(ONE, NODE, timetable({0: start_all, 40: lambda plan: plan.migrate(named(plan, "a"), ((0, 0b110),))}))
    moving = [row[1:2] + row[5:6] for row in outcome.segments() if row[2:4] == (40, 70)]
    assert sorted(moving) == [("checkpoint", "0"), ("checkpoint", "1"), ("hold", "2")]
    assert outcome.segments()[-1] == ("a", "run", 130, 190, "r-n00", "1-2", 60)


def test_new_gpus_must_be_free_now() -> None:
    answers = []
    rows = trace(job("a", 0, 100, 2), job("b", 0, 100, 3))

    def move(plan: Plan) -> None:
        answers.append(plan.migrate(named(plan, "a"), [1]))
        answers.append(plan.migrate(named(plan, "a"), ((1, 0b11),)))

    steps = {0: lambda plan: (start("a", [0])(plan), start("b", [1])(plan)), 40: move}
    outcome = run(rows, flat_cluster(2, 4), timetable(steps))
    assert [bool(answer) for answer in answers] == [False, False]
    assert outcome.segments("a") == [("a", "run", 0, 100, "r-n00", "0-1", 100)]


def test_a_job_moved_while_restarting_has_nothing_to_save() -> None:
    steps = {
        0: start("a", [0]),
        40: stop("a"),
        70: start("a", [0]),
        90: lambda plan: plan.migrate(named(plan, "a"), [1]),
    }
    outcome = run(ONE, flat_cluster(2, 4), timetable(steps))
    assert outcome.segments()[2:] == [
        ("a", "restart", 70, 90, "r-n00", "0-1", 0),
        ("a", "restart", 90, 150, "r-n01", "0-1", 0),
        ("a", "run", 150, 210, "r-n01", "0-1", 60),
    ]


def test_moving_at_no_cost_frees_the_old_gpus_at_once() -> None:
    rows = trace(job("a", 0, 100, 2), job("b", 0, 10, 4))
    answers = []

    def move(plan: Plan) -> None:
        plan.migrate(named(plan, "a"), [1])
        answers.append(plan.start(named(plan, "b"), [0]))

    outcome = run(rows, flat_cluster(2, 4), timetable({0: start("a", [0]), 40: move}), costs=FREE)
    assert answers == [((0, 0b1111),)]
    assert outcome.times("a") == (0, 100)


# -- deferred starts -------------------------------------------------------------------------------------------


def test_a_start_on_gpus_that_are_being_released_is_deferred() -> None:
    rows = trace(job("a", 0, 100, 2), job("b", 40, 10, 4), job("c", 50, 10, 1))
    blocked = {}

    def take_over(plan: Plan) -> None:
        stop("a")(plan)
        assert plan.start(named(plan, "b"))

    def try_c(plan: Plan) -> None:
        blocked[plan.now / SECOND] = bool(plan.start(named(plan, "c")))

    steps = {0: start_all, 40: take_over, 50: try_c, 80: try_c, 90: start("a")}
    outcome = run(rows, NODE, timetable(steps))
    assert outcome.segments() == [
        ("a", "run", 0, 40, "r-n00", "0-1", 40),
        ("a", "checkpoint", 40, 70, "r-n00", "0-1", 0),
        ("b", "hold", 40, 70, "r-n00", "2-3", 0),
        ("b", "run", 70, 80, "r-n00", "0-3", 10),
        ("c", "run", 80, 90, "r-n00", "0", 10),
        ("a", "restart", 90, 150, "r-n00", "0-1", 0),
        ("a", "run", 150, 210, "r-n00", "0-1", 60),
    ]
    assert blocked == {50: False, 80: True}  # the reserved GPUs are nobody else's, until b has ended
    assert figures(outcome, "b") == [80, 30, 10, 0, 0]
    assert outcome.decisions("reserve", "start")[1:3] == [(40, "b", "reserve", ""), (80, "c", "start", "")]


def test_a_reserved_job_counts_in_its_partition_from_the_decision() -> None:
    usage = {}
    rows = trace(job("a", 0, 100, 2, partition="p"), job("b", 40, 10, 4, partition="q"))

    def look(plan: Plan) -> None:
        usage[plan.now / SECOND] = [plan.partition(name).usage for name in ("p", "q")]

    def take_over(plan: Plan) -> None:
        stop("a")(plan)
        look(plan)
        assert plan.start(named(plan, "b"))
        look(plan)
        usage["after"] = usage.pop(40)

    steps = {0: start_all, 39: look, 40: take_over, 60: look, 75: look, 85: look}
    run(rows, flat_cluster(1, 4, partitions=[{"name": "p", "limit": 4}, {"name": "q", "limit": 4}]), timetable(steps))
    assert usage == {39: [2, 0], "after": [0, 4], 60: [0, 4], 75: [0, 4], 85: [0, 0]}


def test_at_no_cost_the_gpus_are_free_at_the_call() -> None:
    rows = trace(job("a", 0, 100, 4), job("b", 40, 10, 4))
    steps = {0: start_all, 40: lambda plan: (stop("a")(plan), start("b")(plan)), 50: start_all}
    outcome = run(rows, NODE, timetable(steps), costs=FREE)
    assert outcome.times("b") == (40, 50)
    assert outcome.times("a") == (0, 110)
    assert outcome.decisions("reserve") == []


def test_a_deferred_start_counts_the_cpus_that_are_being_released() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8, "memory_gb": 64}}
    rows = trace(job("a", 0, 100, 1, cpus=5), job("b", 40, 10, 4, cpus=8))
    steps = {0: start_all, 40: lambda plan: (stop("a")(plan), start("b")(plan))}
    outcome = run(rows, cluster(types, {"r": [("n", 1)]}), timetable(steps))
    assert outcome.times("b") == (70, 80)


def test_claimed_gpus_may_bring_cpus_that_only_later_ones_need() -> None:
    """c asks 3 CPUs for each of two GPUs: a brings none and b five; one is free."""
    types = {"n": {"gpus": 2, "gpu_type": "V100", "cpus": 6}}
    rows = trace(job("a", 0, 100, 1), job("b", 0, 100, 1, cpus=5), job("c", 40, 10, 2, cpus=6))

    def take_over(plan: Plan) -> None:
        for victim in plan.running:
            plan.preempt(victim)
        with plan.trial():
            assert start("c")(plan)
        assert start("c")(plan)

    outcome = run(rows, cluster(types, {"r": [("n", 1)]}), timetable({0: start_all, 40: take_over}))
    assert outcome.times("c") == (70, 80)
