"""Schedules that other simulators produced for the same input, matched for every job.

The files and what they equal: ``../shared/reference/schedules/README.md``. Times there are integer seconds.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analysim.config.cluster import ClusterConfig
from analysim.policy import Job, Plan, Policy
from tests.builders import FREE, ROOT, SECOND, flat_cluster, frame, run

SCHEDULES = ROOT.parent / "shared" / "reference" / "schedules"
pytestmark = pytest.mark.skipif(not SCHEDULES.is_dir(), reason=f"the reference schedules are not in {SCHEDULES}")

ONE_POOL = flat_cluster(1, 320)
NODES = flat_cluster(40, 8)


def read(name: str) -> pd.DataFrame:
    """A trace of the reference folder."""
    table = pd.read_csv(SCHEDULES / f"{name}.csv")
    return frame(
        job_id=table["job_id"],
        submit_us=table["submit_time"] * SECOND,
        duration_us=table["duration"] * SECOND,
        gpu_milli=table["num_gpus"] * 1000,
    )


def differing(trace: str, schedule: str, cluster: ClusterConfig, policy: Any, **config: Any) -> list[Any]:
    """Ids of the jobs whose first start (where the reference has it) or end is not the reference's."""
    expected = pd.read_csv(SCHEDULES / f"{trace}__{schedule}.csv").set_index("job_id")
    jobs = run(read(trace), cluster, policy, check=False, costs=FREE, **config).jobs.loc[expected.index]
    starts = expected["first_start"]
    same = (starts.isna() | (jobs["first_start_time_s"] == starts)) & (jobs["end_time_s"] == expected["finish"])
    return list(expected.index[~same])


@pytest.mark.parametrize(
    ("trace", "schedule", "cluster", "policy", "skip", "placement"),
    [
        ("philly_w2500", "fifo_skip_count320", ONE_POOL, "fifo", True, "pack"),
        ("philly_w2500", "fifo_block_count320", ONE_POOL, "fifo", False, "pack"),
        ("philly_w2500", "sjf_skip_count320", ONE_POOL, "sjf", True, "pack"),
        ("philly_w2500", "fifo_block_firstfit40x8", NODES, "fifo", False, "first"),
        ("philly_w2500", "fifo_block_consolidate40x8", NODES, "fifo", False, "pack"),
        ("philly_w2500", "sjf_block_consolidate40x8", NODES, "sjf", False, "pack"),
        ("venus_w2500", "fifo_block_consolidate40x8", NODES, "fifo", False, "pack"),
    ],
)
def test_every_job_starts_and_ends_as_there(
    trace: str, schedule: str, cluster: ClusterConfig, policy: str, skip: bool, placement: str
) -> None:
    assert differing(trace, schedule, cluster, policy, options={"skip": skip}, placement=placement) == []


@pytest.mark.parametrize(("trace", "schedule"), [("philly_w2500", "fifo_block_consolidate40x8")])
def test_another_rule_would_be_found(trace: str, schedule: str) -> None:
    assert len(differing(trace, schedule, NODES, "fifo", placement="spread")) > 10
    assert len(differing(trace, schedule, NODES, "fifo", options={"skip": True})) > 10


class Choosing(Policy):
    """Choose afresh at every event who runs, up to the number of GPUs, in some order; stop who is not chosen."""

    idle_passes = True

    def begin(self, plan: Plan) -> None:
        self.line: list[Job] = []

    def choose(self, plan: Plan, line: list[Job]) -> None:
        """Give the GPUs to the first that fit."""
        free = plan.partition("root").capacity
        chosen = []
        for job in line:
            if job.gpus <= free:
                free -= job.gpus
                chosen.append(job)
        wanted = set(chosen)
        for job in plan.running:
            if job not in wanted:
                plan.preempt(job)
        for job in chosen:
            if plan.placement(job) is None:
                assert plan.start(job)


class ShortestRemaining(Choosing):
    """Tiresias ``shortest``: remaining time, stable over the previous order."""

    name = "shortest-remaining"
    knowledge = "oracle"

    def schedule(self, plan: Plan) -> None:
        alive = [job for job in self.line if plan.remaining(job) > 0]
        self.line = sorted([*alive, *plan.arrived], key=plan.remaining)
        self.choose(plan, self.line)


class Levels(Choosing):
    """Tiresias ``dlas-gpu``: three queues by attained GPU-seconds, with its own rules for moving down."""

    name = "levels"
    knowledge = "oracle"  # to see who has ended
    LIMITS = (3250, 7200)

    def begin(self, plan: Plan) -> None:
        self.queues: tuple[list[Job], ...] = ([], [], [])

    def schedule(self, plan: Plan) -> None:
        for queue in self.queues:
            queue[:] = [job for job in queue if plan.remaining(job) > 0]
        self.queues[0].extend(plan.arrived)
        self._demote(plan)
        self.choose(plan, [job for queue in self.queues for job in queue])
        for queue in self.queues:  # those that wait stand behind those that run
            queue.sort(key=lambda job: plan.placement(job) is None)
        self._wake(plan)

    def _demote(self, plan: Plan) -> None:
        for job in plan.running:
            for level, limit in enumerate(self.LIMITS):
                if job in self.queues[level] and plan.attained(job) >= limit * SECOND:
                    self.queues[level].remove(job)
                    self.queues[level + 1].append(job)
                    break

    def _wake(self, plan: Plan) -> None:
        """The original takes executed seconds from a limit in GPU-seconds."""
        waits = [
            (limit * SECOND - plan.progress(job)) // (SECOND * job.gpus)
            for queue, limit in zip(self.queues, self.LIMITS, strict=False)
            for job in queue
            if plan.placement(job) is not None
        ]
        soonest = min((wait for wait in waits if wait > 0), default=0)
        if soonest:
            plan.wake_at(plan.now + soonest * SECOND)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "policy"), [("srtf_free_count320", ShortestRemaining), ("dlasgpu_count320", Levels)]
)
def test_preemptive_schedules_are_as_there(schedule: str, policy: type[Policy]) -> None:
    """With policies of the tests that have the originals' quirks."""
    assert differing("philly_w2500", schedule, ONE_POOL, policy()) == []
