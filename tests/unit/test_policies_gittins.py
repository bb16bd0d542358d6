"""The Gittins index on distributions whose order is known, and when it is learnt and used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.builders import FREE, Outcome, flat_cluster, job, run, shipped, trace

MODULE: Any = sys.modules[shipped("gittins").__module__]
SCALE = 1_000_000


def indexes(quantile: Callable[[Any], Any], levels: int = 8, count: int = 20_000) -> tuple[list[int], list[float]]:
    """Cuts and indexes of the sample that stands at the quantiles of a distribution: no chance is in it."""
    services = np.sort(np.rint(quantile((np.arange(count) + 0.5) / count) * SCALE).astype(np.int64))
    cuts = MODULE.quantile_cuts(services, levels)
    return cuts, MODULE.gittins_indexes(services, cuts)


def pareto(shape: float) -> Callable[[Any], Any]:
    """Pareto above 0 (Lomax): hazard shape / (1 + x), falling."""
    return lambda u: (1 - u) ** (-1 / shape) - 1


FALLING = {"pareto": pareto(1.5), "weibull 1/2": lambda u: (-np.log1p(-u)) ** 2}
RISING = {
    "uniform": lambda u: u,
    "uniform from 1 to 2": lambda u: 1 + u,
    "weibull 3": lambda u: (-np.log1p(-u)) ** (1 / 3),
}


@pytest.mark.parametrize("name", FALLING)
def test_with_a_falling_hazard_who_has_had_least_goes_first(name: str) -> None:
    """Then the index is the hazard itself, and the order that of least attained service (Gittins, 1989)."""
    _, found = indexes(FALLING[name])
    assert len(found) == 8
    assert all(left > right for left, right in pairwise(found))


@pytest.mark.parametrize("name", RISING)
def test_with_a_rising_hazard_who_has_had_most_goes_first(name: str) -> None:
    """Then the best is to run on to the end, so the index is 1 over the mean left: nobody who started is passed."""
    _, found = indexes(RISING[name])
    assert all(left < right for left, right in pairwise(found))


def test_with_a_rising_hazard_the_index_is_one_over_the_mean_left() -> None:
    """Uniform on (0, 1): (1 - a) / 2 is left on average at a."""
    cuts, found = indexes(RISING["uniform"])
    expected = [2 / (1 - cut / SCALE) for cut in [0, *cuts]]
    assert [index * SCALE for index in found] == pytest.approx(expected, rel=2e-3)


def test_with_a_constant_hazard_all_are_alike() -> None:
    """Exponential of mean 1: the chance of ending does not depend on the service had; the index is 1 everywhere."""
    _, found = indexes(lambda u: -np.log1p(-u))
    assert [index * SCALE for index in found] == pytest.approx([1.0] * 8, rel=3e-3)


def test_the_index_of_two_kinds_by_hand() -> None:
    """Half end at 1, half at 9. New: 0.5 / 1 by the first cut, 1 / 5 at the end. After 1: all end within 8 more."""
    services = np.array([1, 1, 9, 9])
    assert MODULE.gittins_indexes(services, [1]) == [0.5, 1 / 8]
    assert MODULE.gittins_indexes(services, []) == [1 / 5]


def test_two_kinds_near_each_other_are_run_to_the_end() -> None:
    """Half end at 4, half at 5: new 0.5 / 4 or 1 / 4.5; after 4, 1 / 1: who has come so far goes first."""
    assert MODULE.gittins_indexes(np.array([4, 4, 5, 5]), [4]) == [1 / 4.5, 1.0]


@pytest.mark.parametrize(
    ("services", "levels", "cuts"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], 4, [2, 4, 6]),
        ([1, 2, 3, 4], 8, [1, 2, 3]),
        ([5, 5, 5, 5, 5, 9], 3, [5]),
        ([7, 7, 7], 4, []),
        ([0, 0, 0, 1], 4, []),
    ],
)
def test_cuts_are_quantiles_without_repetition(services: list[int], levels: int, cuts: list[int]) -> None:
    assert MODULE.quantile_cuts(np.array(services), levels) == cuts


def runs(ran: Outcome, *ids: Any) -> list[tuple[Any, ...]]:
    """(job, start, end) of the pieces in which jobs ran."""
    return [(name, start, end) for name, kind, start, end, *_ in ran.segments(*ids) if kind == "run"]


ONE = flat_cluster(1, 1)


def gittins(*rows: dict[str, Any], **options: Any) -> Outcome:
    given = {"thresholds": [10], "promote": 0, "minimum_run": 0, "levels": 2, "completions": 4, "factor": 1, **options}
    return run(trace(*rows), ONE, "gittins", options=given, costs=FREE)


def lessons(*durations: float) -> list[dict[str, Any]]:
    """Jobs that end one after another, so that something is known at their end."""
    starts = np.cumsum([0, *durations])
    return [job(f"lesson{place}", starts[place], each) for place, each in enumerate(durations)]


def test_it_is_las_until_it_has_learnt() -> None:
    """Five jobs never complete before the end: who has had 10 s makes way."""
    ran = gittins(job("a", 0, 35), job("b", 1, 32), completions=100)
    same = run(
        trace(job("a", 0, 35), job("b", 1, 32)), ONE, "las", costs=FREE, options={"thresholds": [10], "promote": 0, "minimum_run": 0}
    )
    assert runs(ran) == runs(same)
    assert runs(ran)[0] == ("a", 0, 10)


def test_it_learns_that_who_has_passed_the_short_ones_is_long() -> None:
    """Of 1, 1, 9 and 9 s new jobs have the index 1/2, those beyond 1 s 1/8: a makes way for b when it has had 1 s."""
    ran = gittins(*lessons(1, 1, 9, 9), job("a", 30, 9), job("b", 30.5, 1))
    assert runs(ran, "a", "b") == [("a", 30, 31), ("b", 31, 32), ("a", 32, 40)]


def test_it_learns_that_who_has_come_far_is_near_the_end() -> None:
    """Of 4, 4, 5 and 5 s new jobs have 1/4.5, those beyond 4 s 1: nobody is stopped; las would have, at any level."""
    ran = gittins(*lessons(4, 4, 5, 5), job("a", 30, 5), job("b", 30.5, 4))
    assert runs(ran, "a", "b") == [("a", 30, 35), ("b", 35, 39)]


def test_what_a_sample_cannot_tell_apart_stops_nobody() -> None:
    """1/2 is four times 1/8: with a factor of 5 b waits."""
    ran = gittins(*lessons(1, 1, 9, 9), job("a", 30, 9), job("b", 30.5, 1), factor=5)
    assert runs(ran, "a", "b") == [("a", 30, 39), ("b", 39, 40)]


def test_those_that_run_are_put_into_the_new_levels() -> None:
    """a runs on a GPU of its own while the lessons end; its 20 s are beyond the cut at 1 s as soon as that is known."""
    rows = [job("a", 0, 60), *lessons(1, 1, 9, 9), job("c", 20, 50), job("b", 20.5, 1)]
    ran = run(
        trace(*rows),
        flat_cluster(1, 2),
        "gittins",
        options={"thresholds": [100], "promote": 0, "minimum_run": 0, "levels": 2, "completions": 4, "factor": 1},
        costs=FREE,
    )
    assert ran.times("b") == (20.5, 21.5)
    assert ran.decisions("preempt")[0] == (20.5, "a", "preempt", "")


def test_the_window_forgets() -> None:
    """Of the latest four, 4, 4, 5 and 5 s, it learns at eight completed jobs what it had not known at four."""
    ran = gittins(*lessons(1, 1, 9, 9, 4, 4, 5, 5), job("a", 50, 5), job("b", 50.5, 4), window=4)
    assert runs(ran, "a", "b") == [("a", 50, 55), ("b", 55, 59)]
