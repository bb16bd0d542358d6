"""M/G/1 under shortest remaining processing time: mean time in system against Schrage and Miller."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.builders import shipped
from tests.theory.formulas import srpt_mean_response
from tests.theory.replications import Drawn, Numbers, Queue, Verdict, jobs_needed, judge

pytestmark = pytest.mark.slow

LOAD = 0.7
NO_HYSTERESIS = {"factor": 1.0, "minimum_run": 0}


def exponential(numbers: np.random.Generator, count: int) -> Numbers:
    """Service of mean 1 and second moment 2."""
    return numbers.exponential(1.0, count)


def two_kinds(numbers: np.random.Generator, count: int) -> Numbers:
    """Nine in ten with mean 1/2, one in ten with mean 5.5: mean 1, second moment 6.5."""
    return numbers.exponential(np.where(numbers.random(count) < 0.9, 0.5, 5.5), count)


def density_of_two_kinds(size: float) -> float:
    """Density of ``two_kinds``."""
    return 0.9 / 0.5 * math.exp(-size / 0.5) + 0.1 / 5.5 * math.exp(-size / 5.5)


SERVICES = {
    "exponential": (exponential, srpt_mean_response(LOAD, lambda size: math.exp(-size), 30.0, 2.0)),
    "two kinds": (two_kinds, srpt_mean_response(LOAD, density_of_two_kinds, 120.0, 6.5)),
}


def responses(
    service: Drawn, theory: float, tolerance: float, replications: int, slower: float = 1.0, policy: str = "srtf"
) -> Verdict:
    """Hold the mean time in system against theory; as many jobs as first come first served would need."""
    queue = Queue(1, LOAD, slower=slower)
    jobs = jobs_needed(1, LOAD, tolerance, replications)
    samples = []
    for seed in range(1, replications + 1):
        rows = queue.draw(seed, jobs, cut_end=True, service=service)
        options = NO_HYSTERESIS if policy in ("srtf", "srsf") else {}
        outcome = queue.simulate(rows, shipped(policy)(options))
        samples.append(float(queue.measured(outcome.tables.jobs, cut_end=True)["jct_s"].mean()))
    verdict = judge(samples, theory)
    print(f"M/G/1 under {policy} ({service.__name__}) at {LOAD}: {replications} x {jobs} jobs, {verdict}")
    return verdict


def test_the_formula_gives_published_values() -> None:
    """For exponential service: the ratio to first come first served at load 0.7 and 0.9.

    Mean response 1.8746 and 3.5521 (Lin, Wierman and Zwart, *Heavy-traffic analysis of mean response time under
    Shortest Remaining Processing Time*, 2011, table of the exact values).
    """
    for load, value in ((0.7, 1.8746), (0.9, 3.5521)):
        assert srpt_mean_response(load, lambda size: math.exp(-size), 40.0, 2.0) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("policy", ["srtf", "srsf"])
def test_the_mean_response_is_schrages(policy: str) -> None:
    """On one GPU the remaining service is the remaining time."""
    service, theory = SERVICES["exponential"]
    assert responses(service, theory, 0.15, 24, policy=policy).faults(0.15) == []


def test_shortest_job_first_without_stopping_is_found() -> None:
    service, theory = SERVICES["exponential"]
    assert len(responses(service, theory, 0.15, 24, policy="sjf").faults(1e9)) == 1


@pytest.mark.theory
@pytest.mark.parametrize("name", SERVICES)
def test_the_mean_response_is_schrages_to_three_per_cent(name: str) -> None:
    assert responses(*SERVICES[name], 0.03, 128).faults(0.03) == []


@pytest.mark.theory
@pytest.mark.parametrize("name", SERVICES)
def test_longer_service_is_found(name: str) -> None:
    assert len(responses(*SERVICES[name], 0.05, 64, slower=1.05).faults(1e9)) == 1
