"""Little's law: jobs in the system against arrivals times time in it, from the ledger's rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.builders import shipped
from tests.theory.formulas import mean_wait
from tests.theory.replications import Queue, jobs_needed, judge

pytestmark = pytest.mark.slow


def area_held(segments: pd.DataFrame) -> int:
    """Job-microseconds on GPUs, counted over the steps of how many hold one, not job by job."""
    start, end = (np.rint(segments[name].to_numpy() * 1e6).astype(np.int64) for name in ("start_s", "end_s"))
    times = np.concatenate([start, end])
    steps = np.repeat([1, -1], len(start))
    order = np.argsort(times, kind="stable")
    return int((np.cumsum(steps[order])[:-1] * np.diff(times[order])).sum())


def area_in_system(jobs: pd.DataFrame) -> int:
    """Job-microseconds from submission to end, over the steps of how many are in the system."""
    return area_held(jobs.rename(columns={"submit_time_s": "start_s", "end_time_s": "end_s"}))


def total(seconds: pd.Series) -> int:
    """Sum of times in microseconds."""
    return int(np.rint(seconds.to_numpy() * 1e6).astype(np.int64).sum())


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_area_under_the_queue_is_the_sum_of_waits(policy: str) -> None:
    """From an empty system to an empty one, Little's law holds for every path, to the microsecond."""
    queue = Queue(4, 0.9)
    options = {"minimum_run": 0, "factor": 1.0} if policy == "srtf" else {}
    tables = queue.simulate(queue.draw(1, 4_000), shipped(policy)(options)).tables
    waiting = area_in_system(tables.jobs) - area_held(tables.segments)
    assert waiting == total(tables.jobs["total_wait_s"]) > 0
    assert area_in_system(tables.jobs) == total(tables.jobs["jct_s"])
    assert area_held(tables.segments) == total(tables.jobs["duration_s"])


def test_a_segment_that_is_missing_would_be_found() -> None:
    tables = Queue(4, 0.9).simulate(Queue(4, 0.9).draw(1, 1_000)).tables
    waiting = area_in_system(tables.jobs) - area_held(tables.segments.drop(tables.segments.index[500]))
    assert waiting != total(tables.jobs["total_wait_s"])


@pytest.mark.theory
def test_mean_numbers_are_rate_times_theory() -> None:
    """Busy servers: load times servers. Waiting jobs: rate times Erlang's mean wait."""
    queue = Queue(4, 0.7)
    length = jobs_needed(4, 0.7, 0.03, replications=128)
    busy, waiting = [], []
    for seed in range(1, 129):
        tables = queue.simulate(queue.draw(seed, length)).tables
        counted = queue.measured(tables.jobs)
        span = 1e6 * float(counted["submit_time_s"].max() - counted["submit_time_s"].min())
        segments = tables.segments[tables.segments["job_id"].isin(counted["job_id"])]
        busy.append(area_held(segments) / span)
        waiting.append((area_in_system(counted) - area_held(segments)) / span)
    for samples, theory in ((busy, 4 * 0.7), (waiting, 4 * 0.7 * mean_wait(4, 0.7))):
        verdict = judge(samples, theory)
        print(f"mean number: {verdict}")
        assert verdict.faults(0.04) == []  # the arrivals' own noise comes on top
