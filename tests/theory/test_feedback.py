"""M/G/1 with feedback queues (las, strict): mean time in system against Schrage and Kleinrock."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.builders import shipped
from tests.theory.formulas import feedback_mean_response
from tests.theory.replications import Drawn, Queue, Verdict, jobs_needed, judge
from tests.theory.test_srpt import exponential, two_kinds

pytestmark = pytest.mark.slow

LOAD = 0.7
THRESHOLDS = (0.5, 1.0, 3.0)


def survival_of_two_kinds(size: float) -> float:
    """P(S > size) of ``two_kinds``."""
    return 0.9 * math.exp(-size / 0.5) + 0.1 * math.exp(-size / 5.5)


SERVICES: dict[str, tuple[Drawn, Callable[[float], float], float]] = {
    "exponential": (exponential, lambda size: math.exp(-size), 30.0),
    "two kinds": (two_kinds, survival_of_two_kinds, 90.0),
}


def responses(name: str, tolerance: float, replications: int, slower: float = 1.0, policy: str = "las") -> Verdict:
    """Hold the mean time in system against theory; as many jobs as first come first served would need."""
    service, survival, largest = SERVICES[name]
    queue = Queue(1, LOAD, slower=slower)
    jobs = jobs_needed(1, LOAD, tolerance, replications)
    options = {"thresholds": list(THRESHOLDS), "promote": 0, "minimum_run": 0, "strict": True}
    samples = []
    for seed in range(1, replications + 1):
        rows = queue.draw(seed, jobs, cut_end=True, service=service)
        outcome = queue.simulate(rows, shipped(policy)(options if policy == "las" else {}))
        samples.append(float(queue.measured(outcome.tables.jobs, cut_end=True)["jct_s"].mean()))
    verdict = judge(samples, feedback_mean_response(LOAD, survival, THRESHOLDS, largest))
    print(f"M/G/1 under {policy} ({name}) at {LOAD}: {replications} x {jobs} jobs, {verdict}")
    return verdict


@pytest.mark.parametrize("thresholds", [(), (1.0,), THRESHOLDS])
def test_without_memory_the_queues_make_no_difference(thresholds: tuple[float, ...]) -> None:
    """Exponential service: whatever order does not look ahead, the mean is that of M/M/1, 1 / (1 - load)."""
    found = feedback_mean_response(LOAD, lambda size: math.exp(-size), thresholds, 30.0)
    assert found == pytest.approx(1 / (1 - LOAD), rel=1e-4)


def test_one_queue_is_pollaczek_and_khinchine() -> None:
    """First come, first served: 1 + load * E S^2 / (2 (1 - load)), with 6.5 for the second moment."""
    found = feedback_mean_response(LOAD, survival_of_two_kinds, (), 90.0)
    assert found == pytest.approx(1 + LOAD * 6.5 / (2 * (1 - LOAD)), rel=1e-3)


def test_ever_more_queues_are_foreground_background() -> None:
    """Size by size: (x + rate E min(S, x)^2 / (2 (1 - load(x)))) / (1 - load(x)), load(x) = rate * E min(S, x)."""
    width, largest = 0.01, 60.0
    reached = square = expected = 0.0
    for step in range(round(largest / width)):
        size = (step + 0.5) * width
        tail = survival_of_two_kinds(size)
        reached += tail * width
        square += size * tail * width
        share = 1 - LOAD * reached
        mass = survival_of_two_kinds(size - width / 2) - survival_of_two_kinds(size + width / 2)
        expected += mass * (size + LOAD * square / share) / share
    cuts = tuple(0.05 * place for place in range(1, 200)) + tuple(10.0 + place for place in range(50))
    found = feedback_mean_response(LOAD, survival_of_two_kinds, (*cuts[::4], 60.0), 90.0)
    assert found == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("name", SERVICES)
def test_the_mean_response_is_schrages(name: str) -> None:
    assert responses(name, 0.15, 24).faults(0.15) == []


def test_one_queue_instead_is_found() -> None:
    assert len(responses("two kinds", 0.15, 24, policy="fifo").faults(1e9)) == 1


@pytest.mark.theory
@pytest.mark.parametrize("name", SERVICES)
def test_the_mean_response_is_schrages_to_three_per_cent(name: str) -> None:
    assert responses(name, 0.03, 128).faults(0.03) == []


@pytest.mark.theory
@pytest.mark.parametrize("name", SERVICES)
def test_longer_service_is_found(name: str) -> None:
    assert len(responses(name, 0.05, 64, slower=1.05).faults(1e9)) == 1
