"""Exact logs of elastic jobs: started on other numbers of GPUs and resized. A checkpoint costs 30 s, a restart 60 s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from analysim.errors import IllegalDecision, TraceError
from analysim.metrics import by_tenant, make_timeline, summarise
from analysim.policy import Job, Plan
from tests.builders import FREE, Outcome, cluster, flat_cluster, job, run, same_tables, timetable, trace
from tests.unit.engine_steps import NODE, figures, named, start, start_all, stop


def elastic(name: str = "a", gpus: int = 2, least: int = 1, most: int = 4, **given: Any) -> dict[str, Any]:
    """A job of 100 s on ``gpus`` GPUs, submitted at 0, linear unless said otherwise."""
    return job(name, 0, 100, gpus, min_gpus=least, max_gpus=most, **given)


ONE = trace(elastic())


def start_on(gpus: int, name: str = "a", where: Any = None) -> Callable[[Plan], Any]:
    return lambda plan: plan.start(named(plan, name), where, gpus=gpus)


def resize(gpus: int, name: str = "a", where: Any = None) -> Callable[[Plan], Any]:
    return lambda plan: plan.resize(named(plan, name), gpus, where)


def restart(mode: str = "checkpoint", gpus: int | None = None) -> Callable[[Plan], Any]:
    """Stop job a and start it in the same pass."""

    def stop_and_start(plan: Plan) -> None:
        stopped = named(plan, "a")
        plan.preempt(stopped, mode)
        assert plan.start(stopped, gpus=gpus)

    return stop_and_start


def both(*steps: Callable[[Plan], Any]) -> Callable[[Plan], Any]:
    return lambda plan: [step(plan) for step in steps]


# -- starting on another number of GPUs ------------------------------------------------------------------------


@pytest.mark.parametrize(("gpus", "end"), [(None, 100), (1, 200), (2, 100), (4, 50)])
def test_a_linear_job_takes_as_many_times_as_long_as_it_has_fewer_gpus(gpus: int | None, end: float) -> None:
    first = start_all if gpus is None else start_on(gpus)
    outcome = run(ONE, NODE, timetable({0: first}))
    assert outcome.segments() == [("a", "run", 0, end, "r-n00", "0" if gpus == 1 else f"0-{(gpus or 2) - 1}", 100)]
    assert figures(outcome, "a") == [end, 0, end, 0, 0]
    assert outcome.jobs.loc["a", "num_gpus"] == 2


def test_on_three_gpus_the_speed_is_a_whole_number_of_millionths() -> None:
    outcome = run(trace(elastic(gpus=3)), NODE, timetable({0: start_on(1)}))
    assert outcome.tables.segments["speed"].tolist() == [0.333333]
    assert outcome.times("a")[1] == 300.000301  # 100 s / 0.333333 = 300.0003000003 s, rounded up
    assert outcome.tables.segments["progress_s"].tolist() == [100]


@pytest.mark.parametrize(
    ("curve", "gpus", "end"),
    [
        ("amdahl:0.9", 4, 32.5),  # 1 / (0.1 + 0.9 / 4) = 3.0769..., a 32.5th of 100
        ("amdahl:1", 4, 25),
        ("amdahl:0", 4, 100),
        ("1=1 2=1.6 4=2.5", 2, 62.5),
        ("1=1 2=1.6 4=2.5", 4, 40),
        ("1=2, 2=3.2, 4=5", 4, 40),  # only ratios count
        ("1=1 4=2.5", 2, 100 / 1.5),  # on the straight line between 1 and 2.5
        ("1=1 3=2 4=1.6", 4, 62.5),  # slower on more GPUs than on fewer
        ("linear", 4, 25),
    ],
)
def test_the_speed_follows_the_curve(curve: str, gpus: int, end: float) -> None:
    outcome = run(trace(elastic(gpus=1, throughput=curve)), NODE, timetable({0: start_on(gpus)}))
    assert outcome.times("a")[1] == pytest.approx(end, rel=1e-6)


def test_a_start_on_more_gpus_than_are_free_is_blocked_and_on_fewer_it_is_not() -> None:
    answers = []
    rows = trace(job("b", 0, 100, 2), elastic())

    def attempt(plan: Plan) -> None:
        waiting = named(plan, "a")
        answers.extend([plan.fit(waiting, gpus=4), plan.start(waiting, gpus=4), plan.gpus(waiting)])
        answers.extend([plan.fit(waiting, gpus=1), plan.start(waiting, gpus=1), plan.gpus(waiting), waiting.gpus])

    outcome = run(rows, NODE, timetable({0: both(start("b"), attempt)}))
    assert [getattr(each, "reason", each) for each in answers] == [
        *("no free GPUs", "no free GPUs", 0),
        *(((0, 0b100),), ((0, 0b100),), 1, 2),
    ]
    assert outcome.times("a") == (0, 200)


def test_a_start_on_gpus_that_are_being_released_is_deferred() -> None:
    rows = trace(job("b", 0, 100, 4), elastic(submit_us=40_000_000))
    outcome = run(rows, NODE, timetable({0: start("b"), 40: both(stop("b"), start_on(4))}))
    assert outcome.segments("a") == [("a", "run", 70, 120, "r-n00", "0-3", 100)]


# -- resizing --------------------------------------------------------------------------------------------------


def test_growing_holds_old_gpus_once_and_costs_as_a_move() -> None:
    outcome = run(ONE, NODE, timetable({0: start_all, 40: resize(4)}))
    assert outcome.segments() == [
        ("a", "run", 0, 40, "r-n00", "0-1", 40),
        ("a", "checkpoint", 40, 70, "r-n00", "0-1", 0),
        ("a", "hold", 40, 70, "r-n00", "2-3", 0),
        ("a", "restart", 70, 130, "r-n00", "0-3", 0),
        ("a", "run", 130, 160, "r-n00", "0-3", 60),
    ]
    assert figures(outcome, "a") == [160, 0, 160, 0, 0]
    assert outcome.jobs.loc["a", "resizes"] == 1
    assert outcome.decisions() == [(0, "a", "start", ""), (40, "a", "resize", "")]


def test_shrinking_frees_gpus_when_the_state_is_saved() -> None:
    rows = trace(elastic(), job("b", 0, 10, 3))
    outcome = run(rows, NODE, timetable({0: start_on(4), 10: resize(1), 39: start("b")}))
    assert outcome.segments("a") == [
        ("a", "run", 0, 10, "r-n00", "0-3", 20),
        ("a", "checkpoint", 10, 40, "r-n00", "1-3", 0),
        ("a", "checkpoint", 10, 40, "r-n00", "0", 0),
        ("a", "restart", 40, 100, "r-n00", "0", 0),
        ("a", "run", 100, 260, "r-n00", "0", 80),
    ]
    assert outcome.times("b") == (40, 50)  # reserved at 39


def test_at_no_cost_half_the_time_on_twice_the_gpus() -> None:
    outcome = run(ONE, NODE, timetable({0: start_all, 40: resize(4), 50: resize(1)}), costs=FREE)
    assert [row[2:4] + row[6:] for row in outcome.segments()] == [(0, 40, 40), (40, 50, 20), (50, 130, 40)]
    assert outcome.times("a") == (0, 130)


def test_a_job_resized_while_it_loads_has_nothing_to_save() -> None:
    outcome = run(ONE, NODE, timetable({0: start_all, 40: resize(4), 100: resize(1)}))
    assert outcome.segments()[3:] == [
        ("a", "restart", 70, 100, "r-n00", "0-3", 0),
        ("a", "restart", 100, 160, "r-n00", "0", 0),
        ("a", "run", 160, 280, "r-n00", "0", 60),
    ]


def test_a_job_that_waits_again_asks_for_what_it_asked() -> None:
    asked = []

    def look(plan: Plan) -> None:
        waiting = named(plan, "a")
        asked.append((waiting.demand.gpus, plan.gpus(waiting), plan.attained(waiting)))
        assert plan.start(waiting)

    outcome = run(ONE, NODE, timetable({0: start_on(4), 10: stop("a"), 40: look}))
    assert asked == [(2, 0, 40_000_000)]  # 20 s of work, for which it asks for 2 GPUs
    assert outcome.segments()[-1] == ("a", "run", 100, 180, "r-n00", "0-1", 80)


def test_restarted_it_may_have_any_size() -> None:
    outcome = run(ONE, NODE, timetable({0: start_on(4), 10: stop("a"), 40: start_on(1)}))
    assert outcome.segments()[-1] == ("a", "run", 100, 260, "r-n00", "0", 80)
    assert outcome.jobs.loc["a", ["preemptions", "resizes"]].tolist() == [1, 0]


def test_a_suspended_job_resumes_on_the_gpus_it_had() -> None:
    outcome = run(ONE, NODE, timetable({0: start_on(4), 10: stop("a", "suspend"), 20: start_all}))
    assert outcome.segments()[-1] == ("a", "run", 20, 60, "r-n00", "0-3", 80)
    with pytest.raises(IllegalDecision, match="it is suspended and resumes only on the 4 GPUs it had, not on 2"):
        run(ONE, NODE, timetable({0: start_on(4), 10: stop("a", "suspend"), 20: start_on(2)}))
    outcome = run(ONE, NODE, timetable({0: start_on(4), 10: stop("a", "suspend"), 20: start_all, 30: resize(2)}))
    assert outcome.tables.segments["gpus"].tolist()[-1] == 2


# -- where a resized job goes on -------------------------------------------------------------------------------


def places(outcome: Outcome) -> list[tuple[str, str]]:
    """Where job a runs in the end."""
    end = outcome.times("a")[1]
    return [row[4:6] for row in outcome.segments("a") if row[3] == end]


WIDE = trace(elastic(gpus=4, least=1, most=12))


@pytest.mark.parametrize(
    ("gpus", "where", "expected"),
    [
        (6, None, [("r-n00", "0-3"), ("r-n01", "0-1")]),  # its own node in full and a remainder
        (12, None, [("r-n00", "0-3"), ("r-n01", "0-3"), ("r-n02", "0-3")]),
        (1, None, [("r-n00", "0")]),
        (1, [2], [("r-n02", "0")]),
        (8, [1, 2], [("r-n01", "0-3"), ("r-n02", "0-3")]),
        (3, ((0, 0b1110),), [("r-n00", "1-3")]),
    ],
)
def test_a_resized_job_stays_where_it_is_as_far_as_it_can(gpus: int, where: Any, expected: Any) -> None:
    outcome = run(WIDE, flat_cluster(3, 4), timetable({0: start_all, 10: resize(gpus, where=where)}))
    assert places(outcome) == expected


def test_of_two_nodes_it_keeps_the_one_that_is_its_own() -> None:
    """The first node would be taken by every strategy, were the job not on the second."""
    steps = {0: start("a", [1]), 10: resize(8)}
    outcome = run(WIDE, flat_cluster(3, 4), timetable(steps))
    assert places(outcome) == [("r-n00", "0-3"), ("r-n01", "0-3")]
    gone = [row for row in outcome.segments("a") if row[1] == "checkpoint"]
    assert [row[4:6] for row in gone] == [("r-n01", "0-3")]


def test_gpus_of_the_same_node_are_kept() -> None:
    rows = trace(elastic(least=2), job("b", 0, 5, 2))
    steps = {0: both(start("b", ((0, 0b11),)), start("a", ((0, 0b1100),))), 10: resize(3)}
    outcome = run(rows, NODE, timetable(steps))
    assert places(outcome) == [("r-n00", "0,2-3")]


def test_with_so_many_gpus_on_each_node_whole_nodes_come_and_go() -> None:
    rows = trace(elastic(gpus=4, least=2, most=6, gpus_per_node=2))
    outcome = run(rows, flat_cluster(3, 4), timetable({0: start_all, 10: resize(6)}))
    assert places(outcome) == [("r-n00", "0-1"), ("r-n01", "0-1"), ("r-n02", "0-1")]
    outcome = run(rows, flat_cluster(3, 4), timetable({0: start_all, 10: resize(2)}))
    assert places(outcome) == [("r-n00", "0-1")]


def test_placed_anywhere_it_keeps_what_it_has() -> None:
    rows = trace(elastic(gpus=3, least=2, most=6), job("b", 0, 500, 2))
    steps = {0: both(start("b", ((0, 0b11),)), start("a")), 10: resize(5), 120: resize(2)}
    outcome = run(rows, flat_cluster(2, 4), timetable(steps), placement="any")
    assert [row[4:6] for row in outcome.segments("a") if row[1] == "restart"] == [
        *(("r-n00", "2-3"), ("r-n01", "0-2")),
        ("r-n00", "2-3"),
    ]


# -- what refuses ----------------------------------------------------------------------------------------------


def test_growing_needs_gpus_that_are_free_now_and_failing_changes_nothing() -> None:
    answers = []
    rows = trace(elastic(), job("b", 0, 20, 1))

    def grow(plan: Plan) -> None:
        answers.append(getattr(plan.resize(named(plan, "a"), 4), "reason", "done"))

    outcome = run(rows, NODE, timetable({0: start_all, 10: grow, 20: grow}))
    assert answers == ["fragmented", "done"]
    assert outcome.segments("a")[0][1:4] == ("run", 0, 20)


def test_growing_asks_quota_for_the_difference_and_shrinking_does_not() -> None:
    usage = []
    rows = trace(elastic(partition="p"), job("b", 0, 500, 1, partition="p"))
    pool = flat_cluster(2, 4, partitions=[{"name": "p", "limit": 4, "changes": [{"time": 150, "limit": 1}]}])

    def grow(plan: Plan) -> None:
        answers = [getattr(plan.resize(named(plan, "a"), gpus), "reason", "done") for gpus in (4, 3)]
        usage.append((answers, plan.partition("p").usage))

    def shrink(plan: Plan) -> None:
        usage.append((bool(plan.resize(named(plan, "a"), 1)), plan.partition("p").usage))

    run(rows, pool, timetable({0: start_all, 10: grow, 151: shrink}))
    assert usage == [(["quota", "done"], 4), (True, 2)]


def test_limits_per_user_count_the_gpus_it_has() -> None:
    answers = []
    rows = trace(elastic(partition="p", user="u"), job("b", 0, 500, 1, partition="p", user="u"))
    pool = flat_cluster(1, 8, partitions=[{"name": "p", "limits": {"user": {"gpus": 4, "jobs": 2}}}])

    def grow(plan: Plan) -> None:
        answers.extend(bool(plan.resize(named(plan, "a"), gpus)) for gpus in (4, 3, 4))

    run(rows, pool, timetable({0: start_all, 10: grow}))
    assert answers == [False, True, False]


def test_a_partition_bounds_the_gpus_of_an_elastic_job() -> None:
    seen: list[Any] = []
    pool = flat_cluster(1, 8, partitions=[{"name": "p", "max_gpus_per_job": 3}])
    run(trace(elastic(partition="p")), pool, timetable({0: lambda plan: seen.extend(plan.pending)}))
    assert [(each.min_gpus, each.gpus, each.max_gpus, each.elastic) for each in seen] == [(1, 2, 3, True)]


def test_cpus_go_with_the_gpus() -> None:
    types = {"n": {"gpus": 4, "gpu_type": "V100", "cpus": 9}}
    answers = []

    def grow(plan: Plan) -> None:
        answers.extend(bool(plan.resize(named(plan, "a"), gpus)) for gpus in (4, 3))

    outcome = run(
        trace(elastic(cpus=6)), cluster(types, {"r": [("n", 1)]}), timetable({0: start_all, 10: grow}), check=True
    )
    assert answers == [False, True]
    assert outcome.tables.segments["cpus"].tolist()[-1] == 9


def moving(plan: Plan) -> Job:
    chosen = named(plan, "a")
    plan.resize(chosen, 4)
    return chosen


ILLEGAL: dict[str, tuple[Callable[[Plan], object], str]] = {
    "too many": (resize(5), "it runs on 1 to 4 GPUs, not on 5"),
    "none": (resize(0), "it runs on 1 to 4 GPUs, not on 0"),
    "a float": (lambda plan: plan.resize(named(plan, "a"), 2.0), "a number of GPUs is an integer, not 2.0"),  # type: ignore[arg-type]  # on purpose
    "rigid": (resize(3, "r"), "it is not elastic and cannot be resized to 3 GPUs"),
    "not preemptible": (resize(3, "n"), "it is not preemptible and cannot be resized"),
    "a rigid start": (start_on(1, "w"), "it is not elastic: it asks for 2 GPUs and cannot have 1"),
    "a start too small": (start_on(3, "e"), "it runs on 4 to 8 GPUs in steps of 4, not on 3"),
    "a waiting one": (resize(8, "e"), "only a running job can be resized; it is pending"),
    "a throughput": (lambda plan: plan.throughput(named(plan, "a"), 9), "it runs on 1 to 4 GPUs, not on 9"),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_decisions_against_the_rules_are_illegal(name: str) -> None:
    decide, text = ILLEGAL[name]
    rows = trace(
        elastic(),
        job("r", 0, 100, 2),
        elastic("n", preemptible=False),
        job("w", 0, 1, 2),
        elastic("e", gpus=8, least=4, most=8, gpus_per_node=4),
    )
    with pytest.raises(IllegalDecision, match=text):
        run(rows, flat_cluster(2, 8), timetable({0: both(start("a"), start("r"), start("n")), 10: decide}))


def test_a_job_that_is_being_resized_cannot_be_resized_before_it_has_saved() -> None:
    with pytest.raises(IllegalDecision, match="it is checkpointing and cannot be resized now"):
        run(ONE, NODE, timetable({0: start_all, 40: resize(4), 50: resize(1)}))


# -- the net effect of a pass ----------------------------------------------------------------------------------

UNDONE: dict[str, Callable[[Plan], Any]] = {
    "there and back": both(resize(4), resize(2)),
    "there, elsewhere and back": both(resize(4), resize(1), resize(2)),
    "stopped and started as it was": restart(gpus=2),
    "stopped and started": restart("kill"),
    "suspended and started": restart("suspend", 2),
}


@pytest.mark.parametrize("name", UNDONE)
def test_what_leads_back_is_nothing(name: str) -> None:
    left = run(ONE, NODE, timetable({0: start_all, 40: UNDONE[name]}))
    right = run(ONE, NODE, timetable({0: start_all, 40: lambda plan: None}))
    assert same_tables(left.tables, right.tables) == []


def test_stopped_and_started_with_other_gpus_is_a_resize() -> None:
    left = run(ONE, NODE, timetable({0: start_all, 40: restart(gpus=4)}))
    right = run(ONE, NODE, timetable({0: start_all, 40: resize(4)}))
    assert same_tables(left.tables, right.tables) == []


def test_stopped_and_started_it_goes_on_with_the_gpus_it_had() -> None:
    left = run(ONE, NODE, timetable({0: start_on(4), 40: restart()}))
    right = run(ONE, NODE, timetable({0: start_on(4), 40: lambda plan: None}))
    assert same_tables(left.tables, right.tables) == []


def test_resized_in_the_pass_that_started_it_it_starts_with_those() -> None:
    left = run(ONE, NODE, timetable({0: both(start_all, resize(4))}))
    right = run(ONE, NODE, timetable({0: start_on(4)}))
    assert same_tables(left.tables, right.tables) == []


@pytest.mark.parametrize("first", [start_all, start_on(4), start_on(1)])
def test_an_undone_trial_changes_nothing(first: Callable[[Plan], Any]) -> None:
    def stir(plan: Plan) -> None:
        for gpus in (1, 3, 4):
            with plan.trial():
                plan.resize(named(plan, "a"), gpus)
                with plan.trial() as inner:
                    plan.preempt(named(plan, "a"), "kill")
                    inner.keep()

    def stir_waiting(plan: Plan) -> None:
        with plan.trial():
            plan.start(named(plan, "a"), gpus=3)
        assert named(plan, "a").demand.gpus == 2

    left = run(ONE, NODE, timetable({0: both(stir_waiting, first), 40: stir}))
    right = run(ONE, NODE, timetable({0: first, 40: lambda plan: None}))
    assert same_tables(left.tables, right.tables) == []


# -- figures ---------------------------------------------------------------------------------------------------


def test_work_is_the_same_on_whatever_gpus_it_is_done() -> None:
    """200 GPU-seconds of work: 80 on 2 GPUs, then 120 at twice the speed on 4, 30 s of which are held for 60."""
    tables = run(ONE, NODE, timetable({0: start_all, 40: resize(4)})).tables
    hours = {name: value * 3_600 for name, value in summarise(tables)["gpu_hours_lost_by"].items()}
    assert hours == pytest.approx({"checkpoint": 60, "restart": 240, "hold": 60, "redone": 0, "speed": 0})
    assert summarise(tables)["gpu_hours_productive"] * 3_600 == pytest.approx(200)
    assert summarise(tables)["resizes"] == 1


def test_a_sublinear_job_is_more_efficient_on_fewer_gpus_than_it_asks_for() -> None:
    """Half as fast on a quarter of the GPUs: 400 GPU-seconds of work in 200 s of one GPU."""
    rows = trace(elastic(gpus=4, throughput="1=1 4=2"))
    tables = run(rows, NODE, timetable({0: start_on(1)})).tables
    summary = summarise(tables)
    assert [summary[f"gpu_hours_{name}"] * 3_600 for name in ("held", "productive", "lost")] == [200, 400, -200]
    assert summary["gpu_hours_lost_by"]["speed"] * 3_600 == -200
    assert by_tenant(tables)["gpu_hours_productive"].tolist() == [400 / 3_600]
    timeline = make_timeline(tables, 4)
    assert timeline["gpus_held"].tolist() == [1] * 4
    assert timeline["gpus_productive"].tolist() == [2] * 4


def test_a_gang_on_two_nodes_counts_once() -> None:
    rows = trace(elastic(gpus=4, most=8))
    summary = summarise(run(rows, flat_cluster(2, 4), timetable({0: start_on(8)})).tables)
    assert [summary[f"gpu_hours_{name}"] * 3_600 for name in ("held", "productive")] == [400, 400]


# -- the columns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"min_gpus": 3}, "job a: min_gpus 3 is more than num_gpus, 2."),
        ({"max_gpus": 1}, "job a: max_gpus 1 is less than num_gpus, 2."),
        ({"gpus_per_node": 2, "max_gpus": 3}, "job a: max_gpus 3 is no multiple of gpus_per_node, 2."),
        ({"gpu_milli": 500, "max_gpus": 3}, "job a: max_gpus 3 is given to a job without whole GPUs."),
        ({"gpu_milli": 0, "max_gpus": 3}, "job a: max_gpus 3 is given to a job without whole GPUs."),
        ({"throughput": "cubic"}, "job a: throughput 'cubic' is no curve of throughput."),
        ({"throughput": "amdahl:1.5"}, "job a: throughput 'amdahl:1.5' has no parallel fraction from 0 to 1."),
        ({"throughput": "amdahl:nan"}, "job a: throughput 'amdahl:nan' has no parallel fraction from 0 to 1."),
        ({"throughput": "1=1 2=x"}, "job a: throughput '1=1 2=x' has '2=x', which is not GPUs=throughput."),
        ({"throughput": "1=1 2=inf"}, "job a: throughput '1=1 2=inf' has '2=inf', which is not GPUs=throughput."),
        ({"throughput": "2=1 1=2"}, "throughput '2=1 1=2' has '1=2' out of order: numbers of GPUs increase from 1."),
        ({"throughput": "0=1 1=2"}, "throughput '0=1 1=2' has '0=1' out of order: numbers of GPUs increase from 1."),
        ({"throughput": "1=0 2=1"}, "job a: throughput '1=0 2=1' has '1=0': a throughput is more than 0."),
        (
            {"throughput": "1=1 2=2", "max_gpus": 4},
            "job a: throughput '1=1 2=2' tells of 1 to 2 GPUs; the job runs on 2 to 4.",
        ),
    ],
)
def test_columns_that_make_no_sense_are_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(TraceError) as caught:
        run(trace({**job("a", 0, 100, 2), **given}, job("b", 0, 1, 1)), NODE)
    assert caught.value.message.endswith(text)
    assert caught.value.remedy


def test_a_policy_that_knows_nothing_of_it_runs_elastic_jobs_as_they_ask() -> None:
    rows = [job(name, 3 * name, 10 + name, 1 + name % 3) for name in range(8)]
    elastic_rows = [{**row, "min_gpus": 1, "max_gpus": 4, "throughput": "amdahl:0.9"} for row in rows]
    plain, other = run(trace(*rows), NODE), run(trace(*elastic_rows), NODE)
    assert plain.tables.segments.equals(other.tables.segments)


def test_what_a_policy_reads_of_an_elastic_job() -> None:
    seen: list[Any] = []

    def look(plan: Plan) -> None:
        a, r = named(plan, "a"), named(plan, "r")
        seen.append([plan.throughput(a, gpus) for gpus in (0, 1, 2, 4)])
        seen.append([plan.throughput(r, 2), r.elastic, r.min_gpus, r.max_gpus])
        seen.append([plan.gpus(a), a.min_gpus, a.gpus, a.max_gpus, plan.free_gpus()])

    rows = trace(elastic(throughput="1=1 2=1.5 4=2.4"), job("r", 0, 1, 2))
    run(rows, flat_cluster(1, 8), timetable({0: both(start_on(4), start("r"), look)}))
    assert seen == [[0.0, 1 / 1.5, 1.0, 2.4 / 1.5], [1.0, False, 2, 2], [4, 1, 2, 4, 2]]


# -- requests for a level of the tree --------------------------------------------------------------------------


def test_a_resized_job_stays_within_the_level_it_requires() -> None:
    """Four GPUs of a rack of its own are free beside it; six are not, though the other rack has them."""
    rows = trace(elastic(gpus=4, least=2, most=12, topology_required="rack"), job("b", 0, 500, 3))
    racks = cluster({"n": {"gpus": 4, "gpu_type": "V100"}}, {"r": [("n", 2)], "s": [("n", 2)]})
    answers = []

    def grow(plan: Plan) -> None:
        answers.extend(bool(plan.fit(named(plan, "a"), gpus=gpus)) for gpus in (5, 8, 12))
        answers.append(bool(plan.resize(named(plan, "a"), 5)))

    steps = {0: both(start("a", ((0, 0b1111),)), start("b", ((1, 0b111),))), 10: grow}
    outcome = run(rows, racks, timetable(steps))
    assert answers == [True, True, False, True]  # eight in the other rack
    assert places(outcome) == [("r-n00", "0-3"), ("r-n01", "3")]


@pytest.mark.parametrize("mode", ["checkpoint", "suspend"])
def test_a_preferred_level_is_given_up_whatever_size_it_has_by_then(mode: str) -> None:
    rows = trace(elastic(topology_preferred="node", topology_wait=50), job("b", 0, 10, 1))
    for steps in ({0: start_on(4)}, {0: start_on(1), 10: stop("a", mode), 60: start_all}):
        outcome = run(rows, flat_cluster(2, 4), timetable({**steps, 200: start_all}))
        assert outcome.state("a") == "completed"
