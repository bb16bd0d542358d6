"""What happens inside an instant, and when a run ends. Expected times follow from the rules by hand."""

from __future__ import annotations

import math

import pytest

from analysim.errors import IllegalDecision, PolicyFailure
from analysim.policy import Plan
from tests.builders import FREE, SECOND, flat_cluster, job, run, scripted, timetable, trace
from tests.unit.engine_steps import start_all


def test_a_completion_frees_its_gpus_for_an_arrival_of_the_same_instant() -> None:
    outcome = run(trace(job("a", 0, 10), job("b", 10, 5)), flat_cluster(1, 1))
    assert outcome.times("b") == (10, 15)
    assert outcome.simulation.facts["passes"] == 2  # one an instant, none where nothing waits


def test_one_pass_sees_completions_withdrawals_arrivals_and_wakes_of_an_instant() -> None:
    seen = {}

    def look(plan: Plan) -> None:
        seen[plan.now / SECOND] = (
            [each.id for each in plan.completed],
            [each.id for each in plan.arrived],
            [each.id for each in plan.pending],
        )
        if plan.now == 0:
            plan.wake_at(10 * SECOND)
        start_all(plan)

    rows = trace(job("a", 0, 10), job("gone", 5, 5, cancel=10), job("d", 10, 5))
    outcome = run(rows, flat_cluster(1, 1), scripted(look, knowledge="history"))
    assert seen[10] == (["a"], ["d"], ["d"])
    assert list(seen) == [0, 5, 10]
    assert outcome.state("gone") == "cancelled"
    assert outcome.times("d") == (10, 15)


def test_a_quota_change_comes_before_the_pass_of_its_instant() -> None:
    cluster = flat_cluster(1, 4, partitions=[{"name": "p", "limit": 0, "changes": [{"time": 10, "limit": 2}]}])
    outcome = run(trace(job("a", 0, 5, 2, partition="p"), job("b", 10, 5, 2, partition="p")), cluster)
    assert outcome.times("a") == (10, 15)
    assert outcome.times("b") == (15, 20)
    assert outcome.decisions("quota") == [(10, "", "quota", "")]


def test_a_job_without_duration_gets_a_round_of_its_own_at_the_same_instant() -> None:
    outcome = run(trace(job("a", 3, 0), job("b", 3, 0), job("c", 3, 4)), flat_cluster(1, 1))
    assert outcome.times("a") == outcome.times("b") == (3, 3)
    assert outcome.times("c") == (3, 7)
    assert outcome.simulation.facts["passes"] == 3


@pytest.mark.slow
def test_a_thousand_rounds_at_one_instant_are_too_many() -> None:
    rows = [job(number, 0, 0) for number in range(1001)]
    assert run(trace(*rows[:1000]), flat_cluster(1, 1)).simulation.facts["passes"] == 1000
    with pytest.raises(PolicyFailure, match=r"policy 'fifo' at 0\.000000 s: 1000 passes at one instant"):
        run(trace(*rows), flat_cluster(1, 1))


def test_ties_go_by_id_as_numbers_or_as_text() -> None:
    def order(*ids: object) -> list[object]:
        outcome = run(trace(*(job(name, 0, 1) for name in ids)), flat_cluster(1, 1))
        return [name for _, name, _, _ in outcome.decisions("start")]

    assert order(10, 9) == [9, 10]
    assert order("10", "9") == ["10", "9"]


def test_passes_happen_only_at_multiples_of_schedule_every() -> None:
    rows = trace(job("a", 5, 10), job("b", 35, 10), job("c", 60, 1))
    outcome = run(rows, flat_cluster(1, 4), schedule_every=30)
    assert [outcome.times(name) for name in "abc"] == [(30, 40), (60, 70), (60, 61)]
    assert outcome.simulation.facts["passes"] == 2


# -- wake-ups --------------------------------------------------------------------------------------------------


def instants_of(wakes: dict[float, list[float]], *rows: dict[str, object]) -> list[float]:
    """Instants of the passes of a policy that asks for these wake-ups and starts everything."""
    seen: list[float] = []

    def schedule(plan: Plan) -> None:
        seen.append(plan.now / SECOND)
        for when in wakes.get(plan.now / SECOND, []):
            plan.wake_at(round(when * SECOND))
        start_all(plan)

    run(trace(*rows), flat_cluster(1, 1), scripted(schedule, idle_passes=True))
    return seen


def test_wakes_make_passes_and_duplicates_are_merged() -> None:
    assert instants_of({0: [3, 7, 3], 3: [7, 8]}, job("a", 0, 10)) == [0, 3, 7, 8, 10]


def test_a_wake_does_not_keep_a_run_alive() -> None:
    assert instants_of({0: [100]}, job("a", 0, 10)) == [0, 10]


def test_a_wake_for_a_job_is_dropped_when_it_stops() -> None:
    woken: dict[float, list[object]] = {}

    def note(plan: Plan) -> None:
        woken[plan.now / SECOND] = [each.id for each in plan.woken]

    def at_0(plan: Plan) -> None:
        start_all(plan)
        for each in plan.running:
            plan.wake_at(5 * SECOND, each)
            plan.wake_at(3 * SECOND, each)

    def at_4(plan: Plan) -> None:
        note(plan)
        [first] = [each for each in plan.running if each.id == "a"]
        plan.preempt(first)

    steps = {0: at_0, 3: note, 4: at_4, 5: note, 6: start_all}
    outcome = run(trace(job("a", 0, 10), job("b", 0, 10)), flat_cluster(1, 2), timetable(steps), costs=FREE)
    assert woken == {3: ["a", "b"], 4: [], 5: ["b"]}
    assert outcome.times("a") == (0, 12)


@pytest.mark.parametrize("when", [10 * SECOND, 9 * SECOND, 1.5, True])
def test_a_wake_must_be_an_integer_in_the_future(when: object) -> None:
    def schedule(plan: Plan) -> None:
        plan.wake_at(when)  # type: ignore[arg-type]  # on purpose

    with pytest.raises(IllegalDecision, match="wake_at"):
        run(trace(job("a", 10, 1)), flat_cluster(1, 1), scripted(schedule))


# -- the end ---------------------------------------------------------------------------------------------------


def test_jobs_that_wait_for_ever_are_unfinished_and_named_once_a_shape() -> None:
    rows = trace(job("a", 0, 5), job("b", 1, 5), job("c", 2, 5, 2), job("d", 0, 5, 4))

    def schedule(plan: Plan) -> None:
        for waiting in plan.pending:
            if waiting.gpus == 4:
                plan.start(waiting)

    outcome = run(rows, flat_cluster(1, 4), scripted(schedule))
    assert [outcome.state(name) for name in "abcd"] == ["unfinished"] * 3 + ["completed"]
    assert len(outcome.simulation.starved) == 2
    assert "2 jobs of 1 GPUs" in outcome.simulation.starved[0]
    assert "1 jobs of 2 GPUs" in outcome.simulation.starved[1]
    assert math.isnan(outcome.jobs.loc["a", "end_time_s"])
    assert outcome.jobs.loc["a", "total_wait_s"] == 5  # until d ended, the last thing that happened


def test_a_hundred_wakes_without_a_decision_are_enough() -> None:
    passes = []

    def schedule(plan: Plan) -> None:
        passes.append(plan.now)
        plan.wake_at(plan.now + SECOND)

    outcome = run(trace(job("a", 0, 5)), flat_cluster(1, 1), scripted(schedule))
    assert outcome.state("a") == "unfinished"
    assert passes == [second * SECOND for second in range(101)]


def test_wakes_do_not_starve_a_job_whose_quota_is_to_come() -> None:
    """Starved means also that no quota change is to come."""

    def schedule(plan: Plan) -> None:
        plan.wake_at(plan.now + SECOND)
        start_all(plan)

    cluster = flat_cluster(1, 4, partitions=[{"name": "p", "limit": 0, "changes": [{"time": "1h", "limit": 4}]}])
    outcome = run(trace(job("a", 0, 5, partition="p")), cluster, scripted(schedule))
    assert outcome.times("a") == (3600, 3605)


def test_until_ends_a_run_and_what_is_open_is_unfinished() -> None:
    rows = trace(job("done", 0, 10), job("runs", 0, 20), job("waits", 2, 5), job("later", 30, 5))
    outcome = run(rows, flat_cluster(1, 2), until=10)
    assert {name: outcome.state(name) for name in outcome.jobs.index} == {
        "done": "completed",
        "runs": "unfinished",
        "waits": "unfinished",
        "later": "unfinished",
    }
    assert ("runs", "run", 0, 10, "r-n00", "1", 10) in outcome.segments()
    assert outcome.jobs.loc["runs", "held_s"] == 10
    assert outcome.jobs.loc["later", ["total_wait_s", "held_s"]].tolist() == [0, 0]
    assert outcome.simulation.starved == []


def test_a_run_without_jobs_ends_at_once() -> None:
    outcome = run(trace(job("a", 0, 5)).iloc[:0], flat_cluster(1, 1))
    assert len(outcome.tables.jobs) == len(outcome.tables.segments) == 0


def test_a_trace_may_start_at_any_time() -> None:
    outcome = run(trace(job("a", -100, 10), job("b", -95, 10)), flat_cluster(1, 1))
    assert outcome.times("a") == (-100, -90)
    assert outcome.times("b") == (-90, -80)
