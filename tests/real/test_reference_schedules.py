"""Schedules that other simulators produced for the same input, matched for every job.

The files and what they equal: ``../shared/reference/schedules/README.md``. Times there are integer seconds.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analysim.config.cluster import ClusterConfig
from analysim.policy import Job, Order, Plan, Policy
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
    """Ids of the jobs whose first start or end is not the reference's."""
    expected = pd.read_csv(SCHEDULES / f"{trace}__{schedule}.csv").set_index("job_id")
    jobs = run(read(trace), cluster, policy, check=False, costs=FREE, **config).jobs.loc[expected.index]
    same = (jobs["first_start_time_s"] == expected["first_start"]) & (jobs["end_time_s"] == expected["finish"])
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
    """Choose afresh at every event who runs, up to the number of GPUs; stop who is not chosen."""

    idle_passes = True
    anyone = Order(lambda job: job.submit)

    def begin(self, plan: Plan) -> None:
        self.line: list[Job] = []

    def ranked(self, plan: Plan) -> list[Job]:
        raise NotImplementedError

    def schedule(self, plan: Plan) -> None:
        self.line = self.ranked(plan)
        free = plan.partition("root").capacity
        chosen = []
        for job in self.line:
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

    def ranked(self, plan: Plan) -> list[Job]:
        alive = [job for job in self.line if plan.remaining(job) > 0]
        return sorted([*alive, *plan.arrived], key=plan.remaining)


def test_shortest_remaining_time_is_as_there() -> None:
    assert differing("philly_w2500", "srtf_free_count320", ONE_POOL, ShortestRemaining()) == []
