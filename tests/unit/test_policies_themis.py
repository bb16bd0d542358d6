"""Auctions by hand: rho is (now - submit + left) / (estimate x jobs x GPUs asked / GPUs), at least the estimate below."""

from __future__ import annotations

from typing import Any

from tests.builders import FREE, Outcome, flat_cluster, job, run, trace


def leased(*rows: dict[str, Any], gpus: int = 1, lease: int = 100, costs: Any = FREE, **options: Any) -> Outcome:
    """A run whose estimates are the durations."""
    told = [{"estimate_us": row["duration_us"], **row} for row in rows]
    on = flat_cluster(1, gpus)
    return run(trace(*told), on, "themis", options={"lease": lease, **options}, costs=costs)


def test_the_largest_rho_goes_first_when_leases_end() -> None:
    """At 60 s: a (60 + 240) / (3 x 300) = 1/3, b (50 + 100) / (3 x 100) = 1/2, c (40 + 30) / (3 x 30) = 7/9.

    c ends at 90 s and b is next, by 1/2; at 120 s it is ahead of a still, and at 180 s: 0.9 and 0.7.
    """
    ran = leased(job("a", 0, 300), job("b", 10, 100), job("c", 20, 30), lease=60, fairness=1)
    assert {name: ran.times(name) for name in "abc"} == {"a": (0, 430), "b": (90, 190), "c": (60, 90)}
    assert ran.jobs["preemptions"].tolist() == [1, 0, 0]


def test_the_knob_goes_from_fairness_to_efficiency() -> None:
    """At 100 s: x has waited 99 s for 60 s of work, rho 159 / 180; y 10 s for 10 s, rho 20 / 30.

    Without the next lease y's rho grows by 120 / 20 and x's by 259 / 159.
    """
    rows = [job("r", 0, 1000), job("x", 1, 60), job("y", 90, 10)]
    fair, efficient = (leased(*rows, fairness=each) for each in (1, 0))
    assert fair.times("x") == (100, 160) and fair.times("y") == (160, 170)
    assert efficient.times("y") == (100, 110) and efficient.times("x") == (110, 170)


def test_a_small_gain_on_many_gpus_is_less_than_the_same_on_one() -> None:
    rows = [job("r", 0, 1000, 4), job("wide", 50, 100, 4), *(job(f"n{number}", 50, 100) for number in range(4))]
    ran = leased(*rows, gpus=4, fairness=0)
    assert [ran.times(f"n{number}") for number in range(4)] == [(100, 200)] * 4
    assert ran.times("wide") == (200, 300)


def test_equals_share() -> None:
    """Two of 200 s with leases of 50 s: at 50 s b is worse off, at 100 s both are the same and the first goes first.

    Both end by twice the time alone: rho is at most 1.
    """
    ran = leased(job("a", 0, 200), job("b", 0, 200), lease=50, fairness=1)
    runs = [(name, start, end) for name, kind, start, end, *_ in ran.segments() if kind == "run"]
    turns = sorted(runs, key=lambda each: each[1])
    assert turns == [("ab"[place % 2], 50 * place, 50 * place + 50) for place in range(8)]


def test_who_arrives_between_auctions_gets_what_is_free_and_stops_nobody() -> None:
    ran = leased(job("a", 0, 150), job("b", 10, 20), job("c", 20, 40), gpus=2)
    assert ran.times("b") == (10, 30) and ran.times("c") == (30, 70)
    assert ran.jobs["preemptions"].sum() == 0


def test_nobody_is_woken_while_nobody_waits() -> None:
    assert leased(job("a", 0, 100_000)).simulation.facts["passes"] == 1


def test_a_gang_is_served_once_it_is_worst_off() -> None:
    """With f = 1 nobody starves: leases end together, so the gang outbids all of the small ones at once."""
    small = [job(number, 30 * number, 100) for number in range(60)]
    ran = leased(*small, job(99, 1, 100, 4), gpus=4, fairness=1)
    assert ran.times(99)[0] <= 1000 < float(ran.jobs["end_time_s"].max())


def test_few_are_asked_in_turn() -> None:
    """One waiting job is asked in each auction; nobody is lost."""
    rows = [job("r", 0, 1000), *(job(f"w{number}", 1 + number, 10) for number in range(5))]
    ran = leased(*rows, asked=1)
    assert (ran.jobs["state"] == "completed").all() and ran.times("r")[1] == 1050
