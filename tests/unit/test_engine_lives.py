"""Withdrawals, limits, speeds, and jobs without GPUs: exact logs. A checkpoint costs 30 s, a restart 60 s."""

from __future__ import annotations

import math

import pytest

from analysim.policy import Plan
from tests.builders import FREE, SECOND, cluster, flat_cluster, job, run, same_tables, timetable, trace
from tests.unit.engine_steps import NODE, ONE, named, start, start_all, stop

# -- withdrawals, limits, speeds -------------------------------------------------------------------------------


def test_a_pending_job_is_withdrawn_at_its_cancel_time_and_a_running_one_is_not() -> None:
    rows = trace(job("a", 0, 100, 4, cancel=50), job("b", 1, 10, 4, cancel=50), job("c", 20, 10, 4, cancel=20))
    outcome = run(rows, NODE)
    assert [outcome.state(name) for name in "abc"] == ["completed", "cancelled", "cancelled"]
    assert outcome.jobs.loc["b", ["end_time_s", "total_wait_s", "held_s"]].tolist() == [50, 49, 0]
    assert outcome.jobs.loc["c", ["end_time_s", "total_wait_s", "held_s"]].tolist() == [20, 0, 0]
    assert math.isnan(outcome.jobs.loc["b", "wait_s"]) and math.isnan(outcome.jobs.loc["b", "jct_s"])


def test_a_job_that_waits_again_is_withdrawn_too() -> None:
    rows = trace(job("a", 0, 100, 4, cancel=90))
    outcome = run(rows, NODE, timetable({0: start_all, 40: stop("a")}))
    assert outcome.state("a") == "cancelled"
    assert outcome.jobs.loc["a", ["end_time_s", "total_wait_s", "held_s"]].tolist() == [90, 20, 70]


def test_a_checkpointing_job_is_not_pending_and_not_withdrawn() -> None:
    rows = trace(job("a", 0, 100, 4, cancel=60))
    outcome = run(rows, NODE, timetable({0: start_all, 40: stop("a"), 80: start_all}))
    assert outcome.state("a") == "completed"


@pytest.mark.parametrize(
    ("duration", "end", "state"), [(100, 50, "killed"), (50, 50, "completed"), (49, 49, "completed")]
)
def test_a_time_limit_kills(duration: float, end: float, state: str) -> None:
    limited = flat_cluster(1, 4, partitions=[{"name": "p", "time_limit": 50}])
    outcome = run(trace(job("a", 0, duration, partition="p")), limited)
    assert (outcome.times("a")[1], outcome.state("a")) == (end, state)


@pytest.mark.parametrize(("overrun", "end", "state"), [("kill", 30, "killed"), ("extend", 100, "completed")])
def test_a_job_that_outlives_its_estimate(overrun: str, end: float, state: str) -> None:
    rows = trace(job("a", 0, 100, estimate=30), job("b", 0, 20, estimate=30), job("c", 0, 20))
    outcome = run(rows, NODE, overrun=overrun)
    assert (outcome.times("a")[1], outcome.state("a")) == (end, state)
    assert [outcome.state(name) for name in "bc"] == ["completed", "completed"]


def test_a_recorded_failure_does_not_change_the_simulation() -> None:
    outcome = run(trace(job("a", 0, 100, status="failed")), NODE)
    assert outcome.state("a") == "completed" and outcome.jobs.loc["a", "status"] == "failed"


TWO_TYPES = {"a": {"gpus": 4, "gpu_type": "A"}, "b": {"gpus": 4, "gpu_type": "B"}}


def test_a_slower_gpu_type_takes_longer_and_the_end_is_rounded_up() -> None:
    slow = cluster(TWO_TYPES, {"r": [("a", 1), ("b", 1)]}, speeds={"A": 1.0, "B": 0.7})
    outcome = run(trace(job("x", 0, 10, 4, gpu_type="A"), job("y", 0, 10, 4, gpu_type="A|B")), slow)
    assert outcome.times("x") == (0, 10)
    assert outcome.times("y") == (0, 14.285715)  # 10 s / 0.7 = 14.2857142..., up to a whole microsecond
    assert [row[-1] for row in outcome.segments()] == [10, 10]
    assert outcome.tables.segments["speed"].tolist() == [1.0, 0.7]


def test_duration_is_the_time_on_the_type_it_was_recorded_on() -> None:
    fast = cluster(TWO_TYPES, {"r": [("a", 1), ("b", 1)]}, speeds={"A": 1.0, "B": 2.0})
    rows = trace(job("x", 0, 10, 4, gpu_type="B|A"), job("y", 0, 10, 4, gpu_type="B|A"))
    outcome = run(rows, fast)
    assert outcome.times("x") == (0, 10)  # on B, where it was recorded
    assert outcome.times("y") == (0, 20)  # on A, half as fast


def test_work_done_before_a_stop_is_rounded_down() -> None:
    slow = flat_cluster(1, 4, speeds={"V100": 0.7})
    outcome = run(
        trace(job("a", 0, 1, 1)), slow, timetable({0: start_all, 0.000_003: stop("a"), 1: start_all}), costs=FREE
    )
    assert [row[-1] for row in outcome.segments()] == [0.000_002, 0.999_998]
    assert outcome.times("a")[1] == 1 + 1.428_569  # 999,998 / 0.7 = 1,428,568.57


def test_a_gang_that_spans_nodes_or_racks_is_slower() -> None:
    penalty = {"rack": 0.8, "cluster": 0.5}
    spread = cluster({"n": {"gpus": 4, "gpu_type": "V100"}}, {"x": [("n", 2)], "y": [("n", 2)]}, span_penalty=penalty)
    rows = trace(job("node", 0, 8, 4), job("rack", 20, 8, 8), job("racks", 40, 8, 12))
    outcome = run(rows, spread)
    assert [outcome.times(name)[1] for name in ("node", "rack", "racks")] == [8, 30, 56]


def test_a_move_changes_the_speed() -> None:
    slow = cluster(TWO_TYPES, {"r": [("a", 1), ("b", 1)]}, speeds={"A": 1.0, "B": 0.5})
    steps = {0: start("x", ["r-n00"]), 4: lambda plan: plan.migrate(named(plan, "x"), ["r-n01"])}
    outcome = run(trace(job("x", 0, 10, 4, gpu_type="A|B")), slow, timetable(steps), costs=FREE)
    assert outcome.times("x") == (0, 4 + 6 / 0.5)


def test_attained_service_is_productive_gpu_time() -> None:
    seen = {}

    def look(plan: Plan) -> None:
        seen[plan.now / SECOND] = (plan.attained(named(plan, "a")) / SECOND, plan.progress(named(plan, "a")) / SECOND)

    steps = {0: start_all, 30: look, 40: stop("a"), 80: look, 100: start_all, 150: look, 170: look}
    run(ONE, NODE, timetable(steps))
    assert seen == {30: (60, 30), 80: (80, 40), 150: (80, 40), 170: (100, 50)}


# -- jobs without GPUs -----------------------------------------------------------------------------------------


def test_a_job_without_gpus_takes_cpus_where_they_are_modelled() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8, "memory_gb": 64}}
    rows = trace(job("a", 0, 10, 0, cpus=6, memory_mb=1024), job("b", 0, 10, 0, cpus=6), job("c", 0, 10, 4))
    outcome = run(rows, cluster(types, {"r": [("n", 1)]}), options={"skip": True})
    assert [outcome.times(name)[0] for name in "abc"] == [0, 10, 0]
    assert outcome.segments("a") == [("a", "run", 0, 10, "r-n00", "", 10)]
    held = outcome.tables.segments.set_index("job_id").loc["a"]
    assert (held["gpus"], held["cpus"], held["memory_gb"]) == (0, 6, 1)


def test_a_job_without_gpus_needs_nothing_where_cpus_are_not_modelled() -> None:
    outcome = run(trace(job("a", 0, 10, 0, cpus=600), job("b", 0, 10, 4)), NODE)
    assert outcome.segments("a") == [("a", "run", 0, 10, "", "", 10)]
    assert outcome.times("b") == (0, 10)


@pytest.mark.parametrize("cpus", [0, 6])
def test_a_job_without_gpus_can_be_stopped_and_resumed(cpus: int) -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", **({"cpus": 8} if cpus else {})}}
    steps = {0: start_all, 4: stop("a"), 34: start_all}
    outcome = run(trace(job("a", 0, 10, 0, cpus=cpus)), cluster(types, {"r": [("n", 1)]}), timetable(steps))
    assert outcome.times("a") == (0, 34 + 60 + 6)


def test_a_job_without_gpus_takes_its_cpus_along_when_it_moves() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8}}
    free = {}

    def look(plan: Plan) -> None:
        free[plan.now / SECOND] = list(plan.capacity.cpu_milli)

    steps = {
        0: start("a", [0]),
        4: lambda plan: plan.migrate(named(plan, "a"), ((1, 0),)),
        20: look,
        50: look,
        111: look,
    }
    rows = trace(job("a", 0, 10, 0, cpus=6), job("long", 0, 200))
    run(rows, cluster(types, {"r": [("n", 2)]}), timetable({**steps, 1: start("long")}))
    assert free == {20: [2000, 2000], 50: [8000, 2000], 111: [8000, 8000]}


@pytest.mark.parametrize("mode", ["checkpoint", "kill", "suspend"])
def test_a_job_without_gpus_stopped_and_started_in_place_is_nothing(mode: str) -> None:
    def stop_and_start(plan: Plan) -> None:
        stopped = named(plan, "a")
        plan.preempt(stopped, mode)
        assert plan.start(stopped)

    rows, where = (
        trace(job("a", 0, 10, 0, cpus=6)),
        cluster({"n": {"gpus": 4, "gpu_type": "V100", "cpus": 8}}, {"r": [("n", 1)]}),
    )
    left = run(rows, where, timetable({0: start_all, 4: stop_and_start}))
    right = run(rows, where, timetable({0: start_all, 4: lambda plan: None}))
    assert same_tables(left.tables, right.tables) == []


@pytest.mark.parametrize("cpus", [0, 6])
def test_a_job_without_gpus_starts_where_it_was_found_to_fit(cpus: int) -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", **({"cpus": 8} if cpus else {})}}

    def begin(plan: Plan) -> None:
        waiting = named(plan, "a")
        assert plan.start(waiting, where=plan.fit(waiting))

    outcome = run(trace(job("a", 0, 10, 0, cpus=cpus)), cluster(types, {"r": [("n", 1)]}), timetable({0: begin}))
    assert outcome.times("a") == (0, 10)
