"""Time slicing with a small quantum is processor sharing: mean 1 / (1 - load) whatever the service, x / (1 - load) given x.

Kleinrock, *Queueing Systems, volume 2*, 4.4. A turn of a quantum q is not sharing: a newcomer waits for a round,
and a job ends at the end of a turn, not of a share of it; both are of the order of q. What is left at the quanta used
is measured against exact sharing of the same jobs (``shared``), and shrinks with q.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.builders import shipped
from tests.theory.formulas import mean_wait_of_one, shared_response
from tests.theory.replications import Drawn, Numbers, Queue, Verdict, jobs_needed, judge
from tests.theory.services import LARGE, SECOND_MOMENT, SMALL, exponential, two_points

pytestmark = pytest.mark.slow

LOAD = 0.6
QUANTUM = 0.1
"""In units of the mean service time."""


def shared(submits: Numbers, services: Numbers) -> Numbers:
    """Times in system under exact processor sharing: each of n jobs runs at 1/n, in virtual time of one share."""
    ends: dict[int, float] = {}  # job: virtual time at which it has had its service
    found = np.zeros(len(submits))
    now = virtual = 0.0
    arrivals = [*zip(submits, services, strict=True), (np.inf, 0.0)]
    for number, (submit, service) in enumerate(arrivals):
        while ends:
            first = min(ends, key=lambda job: (ends[job], job))
            when = now + (ends[first] - virtual) * len(ends)
            if when > submit:
                break
            now, virtual = when, ends.pop(first)
            found[first] = now - submits[first]
        if number < len(submits):
            virtual += (submit - now) / len(ends) if ends else 0.0
            now = submit
            ends[number] = virtual + service
    return found


def sliced(queue: Queue, rows: pd.DataFrame, quantum: float = QUANTUM) -> pd.DataFrame:
    """Jobs of a run in which they take turns."""
    return queue.simulate(rows, shipped("gandiva")({"quantum": quantum})).tables.jobs


@pytest.mark.parametrize("service", [exponential, two_points])
def test_job_by_job_the_difference_to_exact_sharing_shrinks_with_the_quantum(service: Drawn) -> None:
    queue = Queue(1, LOAD)
    rows = queue.draw(1, 600, service=service)
    exact = shared(rows["submit_us"].to_numpy() / 1e6, rows["duration_us"].to_numpy() / 1e6)
    off = []
    for quantum in (0.4, 0.2, 0.1):
        times = sliced(queue, rows, quantum)["jct_s"].to_numpy()
        off.append(float(np.abs(times - exact).mean() / exact.mean()))
    print(f"{service.__name__}: off by {', '.join(f'{each:.2%}' for each in off)} at quanta of 0.4, 0.2, 0.1")
    assert off[0] > off[1] > off[2] and off[2] < off[0] / 2  # of the order of q it would be a quarter
    assert off[2] < QUANTUM


def test_exact_sharing_by_hand() -> None:
    """Two jobs of 2 from 0 and 1: alone to 1, half speed each to 3, when the first ends; the second alone to 4."""
    assert shared(np.array([0.0, 1.0]), np.array([2.0, 2.0])).tolist() == [3.0, 3.0]


def responses(
    service: Drawn, tolerance: float, replications: int, quantum: float = QUANTUM, slower: float = 1.0, policy: str = ""
) -> tuple[Verdict, Verdict, Verdict]:
    """Hold mean times in system against theory: of all jobs, and of those below and above the mean service, per size."""
    queue = Queue(1, LOAD, slower=slower)
    jobs = jobs_needed(1, LOAD, tolerance, replications)
    samples: tuple[list[float], list[float], list[float]] = ([], [], [])
    for seed in range(1, replications + 1):
        rows = queue.draw(seed, jobs, cut_end=True, service=service)
        table = queue.simulate(rows, policy).tables.jobs if policy else sliced(queue, rows, quantum)
        table = queue.measured(table, cut_end=True)
        small = table["duration_s"] < slower
        samples[0].append(float(table["jct_s"].mean()))
        for found, part in zip(samples[1:], (table[small], table[~small]), strict=True):
            found.append(float(part["jct_s"].sum() / part["duration_s"].sum()))
    verdicts = tuple(judge(each, shared_response(LOAD)) for each in samples)
    name = policy or f"turns of {quantum}"
    print(f"M/G/1 by {name} ({service.__name__}) at {LOAD}: {replications} x {jobs} jobs, " + "; ".join(map(str, verdicts)))
    return verdicts


def test_the_mean_response_of_exponential_service_is_that_of_sharing() -> None:
    assert responses(exponential, 0.25, 24)[0].faults(0.25) == []


def test_two_sizes_have_the_same_mean_and_given_its_size_a_job_takes_as_many_times_longer_as_any_other() -> None:
    for verdict in responses(two_points, 0.25, 24):
        assert verdict.faults(0.25) == []


def test_first_come_first_served_is_found_and_is_what_theory_says() -> None:
    """Pollaczek and Khinchine: it does depend on the service. With exponential service the means are the same."""
    every, small, large = responses(two_points, 0.15, 24, policy="fifo")
    assert len(every.faults(1e9)) == len(small.faults(1e9)) == len(large.faults(1e9)) == 1
    wait = mean_wait_of_one(LOAD, SECOND_MOMENT[two_points])
    assert judge_again(every, 1 + wait).faults(0.25) == []
    assert judge_again(small, (SMALL + wait) / SMALL).faults(0.25) == []
    assert judge_again(large, (LARGE + wait) / LARGE).faults(0.25) == []


def judge_again(verdict: Verdict, theory: float) -> Verdict:
    """The same replications against another theory."""
    return Verdict(verdict.mean, verdict.half_width, theory)


def test_longer_service_is_found() -> None:
    assert len(responses(two_points, 0.25, 24, slower=1.2)[0].faults(1e9)) == 1


@pytest.mark.theory
@pytest.mark.parametrize("service", [exponential, two_points])
def test_the_mean_response_is_that_of_sharing_to_eight_per_cent(service: Drawn) -> None:
    for verdict in responses(service, 0.08, 64)[: 1 if service is exponential else 3]:
        assert verdict.faults(0.1) == []
