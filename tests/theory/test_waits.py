"""M/M/c first come first served: mean waits against Erlang C, and that the check can fail."""

from __future__ import annotations

import heapq
import math

import pytest

from tests.theory.formulas import mean_wait, variance_of_a_mean_wait
from tests.theory.replications import Queue, Verdict, jobs_needed, judge

pytestmark = pytest.mark.slow

FULL = [
    (1, 0.5, 0.02),
    (1, 0.7, 0.02),
    (1, 0.9, 0.02),
    (4, 0.5, 0.02),
    (4, 0.7, 0.02),
    (4, 0.9, 0.02),
    (64, 0.7, 0.10),
    (64, 0.9, 0.03),
]
"""Servers, load, half-width at most. 3 % are asked for (10 % for 64 servers at 0.7). In the first run at 3 %, M/M/4 at
0.5 came out at -2.61 ± 2.41 %, which chance does once in 2,500 times: one and four servers are held to 2 % since then,
on longer runs of the same seeds, where chance is gone and a bias would stay."""

REDUCED = [(1, 0.5, 0.06), (4, 0.7, 0.08)]
"""Of every day: servers, load, half-width at most."""

FULL_REPLICATIONS, REDUCED_REPLICATIONS = 256, 32


def waits(queue: Queue, tolerance: float, replications: int) -> Verdict:
    """Simulate a queue and hold the mean wait against what theory says of it when nothing is wrong with it."""
    jobs = jobs_needed(queue.servers, queue.load, tolerance, replications)
    samples = []
    for seed in range(1, replications + 1):
        outcome = queue.simulate(queue.draw(seed, jobs))
        samples.append(float(queue.measured(outcome.tables.jobs)["wait_s"].mean()))
    verdict = judge(samples, mean_wait(queue.servers, queue.load))
    print(f"M/M/{queue.servers} at {queue.load}: {replications} x {jobs} jobs, {verdict}")
    return verdict


def test_every_wait_is_kiefer_and_wolfowitzs() -> None:
    """Job by job, the recursion of the work before each server (Kiefer and Wolfowitz, 1955), in integers."""
    queue = Queue(4, 0.7)
    rows = queue.draw(1, 20_000)
    busy_until = [0] * 4
    starts = []
    for submit, service in zip(rows["submit_us"].tolist(), rows["duration_us"].tolist(), strict=True):
        start = max(submit, heapq.heappop(busy_until))
        heapq.heappush(busy_until, start + service)
        starts.append(start)
    simulated = queue.simulate(rows).tables.jobs["first_start_time_s"]
    assert (simulated * 1e6).round().astype("int64").tolist() == starts


def test_the_variance_of_one_server_is_dalys() -> None:
    for load in (0.3, 0.5, 0.7, 0.9):
        daley = load * (2 + 5 * load - 4 * load**2 + load**3) / (1 - load) ** 4
        assert variance_of_a_mean_wait(1, load) == pytest.approx(daley, rel=1e-5)


@pytest.mark.parametrize(("servers", "load", "tolerance"), REDUCED)
def test_mean_waits_are_erlangs(servers: int, load: float, tolerance: float) -> None:
    assert waits(Queue(servers, load), tolerance, REDUCED_REPLICATIONS).faults(tolerance) == []


def test_service_that_takes_five_per_cent_longer_is_found() -> None:
    faults = waits(Queue(1, 0.5, slower=1.05), 0.06, REDUCED_REPLICATIONS).faults(0.12)
    assert len(faults) == 1 and faults[0].startswith("theory is outside the interval")


def test_a_server_that_is_missing_is_found() -> None:
    faults = waits(Queue(4, 0.5, missing=1), 0.2, REDUCED_REPLICATIONS).faults(1e9)
    assert len(faults) == 1 and faults[0].startswith("theory is outside the interval")


def test_too_few_jobs_are_found() -> None:
    faults = waits(Queue(1, 0.5), 0.5, 16).faults(0.03)
    assert any(fault.startswith("the interval is wider than 3%") for fault in faults)


@pytest.mark.theory
@pytest.mark.parametrize(("servers", "load", "tolerance"), FULL)
def test_mean_waits_are_erlangs_as_narrowly_as_asked(servers: int, load: float, tolerance: float) -> None:
    assert waits(Queue(servers, load), tolerance, FULL_REPLICATIONS).faults(tolerance) == []


def tolerance_to_see(queue: Queue) -> float:
    """Half-width, as a share of theory, a third of what theory says that a fault changes; 30 % at most."""
    servers = queue.servers - queue.missing
    load = queue.load * queue.slower * queue.servers / servers
    changed = queue.slower * mean_wait(servers, load) if load < 1 else math.inf
    return min(0.3, (changed / mean_wait(queue.servers, queue.load) - 1) / 3)


@pytest.mark.theory
@pytest.mark.parametrize(("servers", "load"), [case[:2] for case in FULL])
def test_every_case_would_find_longer_service(servers: int, load: float) -> None:
    queue = Queue(servers, load, slower=1.05)
    assert len(waits(queue, tolerance_to_see(queue), REDUCED_REPLICATIONS).faults(1e9)) == 1


@pytest.mark.theory
@pytest.mark.parametrize("load", [0.5, 0.7])
def test_every_case_would_find_a_missing_server(load: float) -> None:
    queue = Queue(4, load, missing=1)
    assert len(waits(queue, tolerance_to_see(queue), REDUCED_REPLICATIONS).faults(1e9)) == 1
