"""las: queues by attained GPU-time, when a job sinks and comes back, and who may stop whom."""

from __future__ import annotations

from typing import Any

import pytest

from analysim.config.cluster import Costs
from analysim.policy import Plan
from tests.builders import FREE, SECOND, Outcome, flat_cluster, job, run, shipped, trace

ONE = flat_cluster(1, 1)
FOUR = flat_cluster(1, 4)


def las(*rows: dict[str, Any], on: Any = ONE, costs: Costs = FREE, **options: Any) -> Outcome:
    """Run las, strict, without promotion and minimum run where they are not given."""
    given = {"thresholds": [10, 30], "promote": 0, "minimum_run": 0, "strict": True, **options}
    return run(trace(*rows), on, "las", options=given, costs=costs)


def runs(ran: Outcome, *ids: Any) -> list[tuple[Any, ...]]:
    """(job, start, end) of the pieces in which jobs ran."""
    return [(name, start, end) for name, kind, start, end, *_ in ran.segments(*ids) if kind == "run"]


def test_a_job_sinks_at_the_instant_and_makes_way_for_who_has_had_less() -> None:
    """One GPU: a is stopped at 10 s, when it has had 10; b likewise at 20; in the second queue who started first goes.

    There a runs on until it has had 30 (at 40 s), then b (to 60): the third queue again goes by first start.
    """
    ran = las(job("a", 0, 35), job("b", 1, 32))
    assert runs(ran) == [
        ("a", 0, 10),
        ("b", 10, 20),
        ("a", 20, 40),
        ("b", 40, 60),
        ("a", 60, 65),
        ("b", 65, 67),
    ]


def test_service_is_time_times_gpus() -> None:
    """Four GPUs sink at 2.5 s; until then the newcomer, in the same queue, may not stop them."""
    ran = las(job("wide", 0, 20, 4), job("narrow", 1, 3, 1), on=FOUR)
    assert runs(ran, "wide") == [("wide", 0, 2.5), ("wide", 5.5, 23)]
    assert ran.times("narrow") == (2.5, 5.5)


def test_a_new_job_stops_the_lowest_queue_first_and_there_who_started_last() -> None:
    """At 40 s x and y have had 40 and 35 (third queue), z 15 (second): y, which started last of the lowest, goes."""
    rows = [job("x", 0, 90), job("y", 5, 90), job("z", 25, 90)]
    ran = las(*rows, job("new", 40, 1), on=flat_cluster(1, 3))
    assert ran.decisions("preempt") == [(40, "y", "preempt", "")]
    assert ran.times("new") == (40, 41)


def test_unless_strict_nobody_is_stopped_by_his_own_level() -> None:
    """b sinks at 20 s and runs on to 40, when it sinks again; a, in the second queue until then, goes on."""
    ran = las(job("a", 0, 35), job("b", 1, 32), strict=False)
    assert runs(ran) == [("a", 0, 10), ("b", 10, 40), ("a", 40, 65), ("b", 65, 67)]


def test_who_comes_back_goes_by_its_first_start() -> None:
    """a, stopped at 10 s, counts as new at 14, after 0.4 times its run: it started before b, and c never did."""
    ran = las(job("a", 0, 12), job("b", 5, 30), job("c", 6, 2), promote=0.4)
    assert runs(ran) == [("a", 0, 10), ("b", 10, 14), ("a", 14, 16), ("b", 16, 22), ("c", 22, 24), ("b", 24, 44)]


def test_waits_add_up_until_a_job_comes_back() -> None:
    """a runs 0-10 and, when b is gone, 16-18; it has waited 6 s then, and counts as new after 2 x 12 s: at 36 s.

    It goes before e and f then, which never started, and sinks again when it has had 10 more. Then it has to wait 20.
    """
    rows = [job("a", 0, 40), job("b", 4, 6), job("c", 18, 9), job("d", 19, 9), job("e", 20, 9), job("f", 21, 9)]
    ran = las(*rows, thresholds=[10], promote=2)
    assert runs(ran) == [
        ("a", 0, 10),
        ("b", 10, 16),
        ("a", 16, 18),
        ("c", 18, 27),
        ("d", 27, 36),
        ("a", 36, 46),
        ("e", 46, 55),
        ("f", 55, 64),
        ("a", 64, 82),
    ]


def test_without_promotion_it_waits_for_all_that_are_new() -> None:
    rows = [job("a", 0, 40), *(job(f"n{number}", 1 + number, 9) for number in range(6))]
    ran = las(*rows, thresholds=[10])
    assert runs(ran, "a") == [("a", 0, 10), ("a", 64, 94)]


def test_minimum_run_holds_and_is_looked_at_again() -> None:
    """a sinks at 10 s and may be stopped from 25 s on: the newcomer looks then, and b ends before it has run as long."""
    ran = las(job("a", 0, 60), job("b", 12, 5), minimum_run=25)
    assert runs(ran) == [("a", 0, 25), ("b", 25, 30), ("a", 30, 65)]


def test_saving_and_loading_are_no_service() -> None:
    """Save 2 s, load 3 s. b sinks at 22 s, as a, which started first, waits in the same queue; c stops a at 30 s.

    a had 3 s from 27 on, so 13; it goes on at 47 (c sank at 42) and sinks at 64, when it has had 30.
    """
    ran = las(job("a", 0, 60), job("b", 1, 12), job("c", 30, 60), costs=Costs(checkpoint_s=2, restart_s=3))
    found = [(name, kind, start, end) for name, kind, start, end, *_ in ran.segments() if kind in ("run", "checkpoint")]
    assert found[:12] == [
        ("a", "run", 0, 10),
        ("a", "checkpoint", 10, 12),
        ("b", "run", 12, 22),
        ("b", "checkpoint", 22, 24),
        ("a", "run", 27, 30),
        ("a", "checkpoint", 30, 32),
        ("c", "run", 32, 42),
        ("c", "checkpoint", 42, 44),
        ("a", "run", 47, 64),
        ("a", "checkpoint", 64, 66),
        ("b", "run", 69, 71),
        ("c", "run", 74, 94),
    ]


def test_a_speed_changes_when_a_job_sinks() -> None:
    """At twice the speed 10 GPU-seconds of service are had in 5 s."""
    on = flat_cluster(1, 1, speeds={"V100": 2.0})
    ran = las(job("a", 0, 40), job("b", 1, 8), on=on)
    assert runs(ran)[:2] == [("a", 0, 5), ("b", 5, 9)]


@pytest.mark.parametrize("minimum_run", [0, 10])
def test_stops_are_bounded_by_the_time_run(minimum_run: int) -> None:
    """Overload: nobody is stopped more often than others came in while it was not in the first queue."""
    rows = [job(number, number, 25 + number % 30) for number in range(80)]
    ran = las(*rows, on=FOUR, thresholds=[10, 20, 40], minimum_run=minimum_run)
    assert 0 < ran.jobs["preemptions"].max() <= 3
    stopped = [(when, name) for when, name, *_ in ran.decisions("preempt")]
    lengths = {(end, name): end - start for name, start, end in runs(ran)}
    assert min(lengths[each] for each in stopped) >= minimum_run


def test_passes_come_only_for_who_sinks_while_another_waits() -> None:
    wakes: list[int] = []

    class Watched(shipped("las")):  # type: ignore[misc]  # a class found at run time
        def schedule(self, plan: Plan) -> None:
            super().schedule(plan)
            wakes.extend(when for when, _ in plan.wakes)

    options = {"thresholds": [10, 30], "minimum_run": 0}
    run(trace(job("a", 0, 100), job("b", 0, 100)), flat_cluster(1, 2), Watched(options), costs=FREE)
    assert wakes == []
    run(trace(job("a", 0, 100), job("b", 2, 5)), ONE, Watched(options), costs=FREE)
    assert wakes[0] == 10 * SECOND
