"""Work that a run may do, counted: passes, placements, readings of keys. Counts do not flake as times do."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysim.policy import Order, Plan, Policy
from tests.builders import SECOND, SHIPPED, Outcome, flat_cluster, frame, run, shipped

JOBS = 4_000
CLUSTER = flat_cluster(16, 8)


@cache
def overload(shapes: int = 5) -> pd.DataFrame:
    """Load 1.2 on 128 GPUs, durations within a factor of a few, so that the backlog grows to the end."""
    numbers = np.random.default_rng(1)
    gpus = numbers.choice([1, 2, 4, 8, 16][:shapes], JOBS)
    duration = numbers.lognormal(6, 0.5, JOBS)
    span = (gpus * duration).sum() / (128 * 1.2)
    return frame(
        submit_us=np.sort(numbers.integers(0, int(span * SECOND), JOBS)),
        duration_us=(duration * SECOND).astype(np.int64),
        gpu_milli=gpus * 1000,
        priority=numbers.integers(0, 3, JOBS),
    )


@cache
def outcome(name: str) -> tuple[Outcome, int]:
    """A run of one of our policies, and how many wake-ups it had."""
    kind = shipped(name)
    wakes: list[int] = []

    class Counted(kind):  # type: ignore[valid-type,misc]  # a class chosen at run time
        def schedule(self, plan: Plan) -> None:
            super().schedule(plan)
            wakes.extend(when for when, _ in plan.wakes)

    return run(overload(), CLUSTER, Counted(), check=False), len(set(wakes))


@pytest.mark.parametrize("name", SHIPPED)
def test_passes_are_at_most_two_a_job_and_one_a_wake(name: str) -> None:
    """Arrival and end; the end of a checkpoint is an instant of its own at which something changes.

    An arrival behind a waiting job with the same request brings no pass (``Policy.attention``).
    """
    ran, wakes = outcome(name)
    stops = int(ran.tables.jobs[["preemptions", "migrations"]].to_numpy().sum())
    assert JOBS / 2 <= ran.simulation.facts["passes"] <= 2 * JOBS + wakes + stops


@pytest.mark.parametrize("name", SHIPPED)
def test_placement_calls_are_at_most_shapes_times_passes(name: str) -> None:
    ran, _ = outcome(name)
    shapes = len(ran.simulation.workload.demands)
    assert shapes == 5
    assert ran.simulation.facts["placements"] <= shapes * ran.simulation.facts["passes"]


@pytest.mark.parametrize("name", ["fifo", "sjf"])
def test_a_pass_tries_one_job_that_does_not_fit(name: str) -> None:
    ran, _ = outcome(name)
    assert ran.simulation.facts["placements"] <= JOBS + ran.simulation.facts["passes"]


def test_the_backlog_is_never_sorted() -> None:
    reads = [0]
    longest = [0]

    def key(job: Any) -> int:
        reads[0] += 1
        return -int(job.priority)

    class Important(Policy):
        name = "important"
        order = Order(key)

        def schedule(self, plan: Plan) -> None:
            longest[0] = max(longest[0], len(plan.pending))
            for job in plan.pending_by(self.order):
                plan.start(job)

    run(overload(), CLUSTER, Important(), check=False)
    assert longest[0] > 300
    assert reads[0] <= 2 * JOBS  # once in the pass of its arrival, once when it begins to wait


def test_twice_the_backlog_costs_no_more_events() -> None:
    rows = overload()
    whole = outcome("fifo")[0].simulation.facts
    half = run(rows.iloc[: JOBS // 2].reset_index(drop=True), CLUSTER, "fifo", check=False).simulation.facts
    assert whole["events"] == 2 * JOBS and half["events"] == JOBS
    assert whole["placements"] / JOBS < 1.5 * half["placements"] / (JOBS / 2)
