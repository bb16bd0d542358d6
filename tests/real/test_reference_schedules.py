"""Schedules that other simulators produced for the same input, matched for every job or in the mean.

The files and what they equal: ``../shared/reference/schedules/README.md``. Times there are integer seconds.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analysim.config.cluster import ClusterConfig, Costs
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


# -- Lucid's preemptive policies -------------------------------------------------------------------------------------

LUCID_COSTS = Costs(checkpoint_s=0, restart_s=40)
"""What a stop costs is added to what is left of a job: our restart, of 60 s for more than 8 GPUs (``as_in_lucid``)."""


def as_in_lucid(name: str) -> pd.DataFrame:
    """A trace whose jobs take a second longer, as a job there is seen to have ended one tick after its last."""
    rows = read(name)
    rows["duration_us"] += SECOND
    rows["restart_us"] = [(40 if gpus <= 8 else 60) * SECOND for gpus in rows["gpu_milli"] // 1000]
    return rows


class Lucid(Choosing):
    """Decide at every tick who runs, by a count of GPUs; then place, and who finds no place goes on waiting."""

    tick = SECOND
    knowledge = "oracle"

    def begin(self, plan: Plan) -> None:
        self.waiting: list[Job] = []
        self.chosen: list[Job] = []

    def order(self, plan: Plan) -> list[Job]:
        """Who goes first, stable over the order of the lists."""
        raise NotImplementedError

    def stop(self, plan: Plan, job: Job) -> None:
        """Stop a job; it joins the end of those that wait."""
        plan.preempt(job)
        self.chosen.remove(job)
        self.waiting.append(job)

    def start(self, plan: Plan, job: Job) -> bool:
        """Place a job among the chosen, if it fits."""
        if not plan.start(job):
            return False
        self.waiting.remove(job)
        self.chosen.append(job)
        return True

    def schedule(self, plan: Plan) -> None:
        self.chosen = [job for job in self.chosen if plan.remaining(job) > 0]
        self.waiting.extend(plan.arrived)
        free = plan.partition("root").capacity
        starting: list[Job] = []
        stopping: list[Job] = []
        for job in self.order(plan):
            runs = plan.placement(job) is not None
            if job.gpus <= free:
                free -= job.gpus
                starting += [] if runs else [job]
            elif runs:
                stopping.append(job)
        for job in stopping:
            self.stop(plan, job)
        placed = [self.start(plan, job) for job in starting]
        if self.waiting and (self.tick > SECOND or stopping or not all(placed)):
            plan.wake_at(plan.now + self.tick)  # the next tick decides anew; without a change it decides the same


class LucidShortest(Lucid):
    """``srtf``: what is left, the price of the last stop counted, of those that wait and those that run."""

    name = "lucid-srtf"

    def left(self, plan: Plan, job: Job) -> int:
        """Work left and loading left."""
        if plan.placement(job) is not None:
            return plan.remaining(job) + max(0, job.run_from - plan.now)
        return plan.remaining(job) + (job.source.amount("restart_us", job.rank) if job.stint else 0)

    def order(self, plan: Plan) -> list[Job]:
        return sorted(self.waiting + self.chosen, key=lambda job: self.left(plan, job))


class LucidShortestAddingUp(LucidShortest):
    """The same, and a job stopped while it loads owes what is left of that load beside the new one, as there.

    Here a load is charged once more in full, so the price of a stop is written into the trace as it is found.
    """

    def begin(self, plan: Plan) -> None:
        super().begin(plan)
        self.once: dict[int, int] = {}

    def stop(self, plan: Plan, job: Job) -> None:
        price = self.once.setdefault(job.rank, job.source.amount("restart_us", job.rank))
        job.source._columns["restart_us"][job.rank] = price + max(0, job.run_from - plan.now)
        super().stop(plan, job)


class LucidTiresias(Lucid):
    """``tiresias``: up to and above 18,000 GPU-seconds held, loading counted; by submission inside."""

    name = "lucid-tiresias"
    tick = 60 * SECOND

    def begin(self, plan: Plan) -> None:
        super().begin(plan)
        self.held: dict[int, int] = {}
        self.since: dict[int, int] = {}

    def service(self, plan: Plan, job: Job) -> int:
        """GPU-microseconds held."""
        stint = plan.now - self.since[job.rank] if plan.placement(job) is not None else 0
        return self.held.get(job.rank, 0) + stint * job.gpus

    def stop(self, plan: Plan, job: Job) -> None:
        self.held[job.rank] = self.service(plan, job)
        super().stop(plan, job)

    def start(self, plan: Plan, job: Job) -> bool:
        self.since[job.rank] = plan.now
        return super().start(plan, job)

    def order(self, plan: Plan) -> list[Job]:
        line = self.chosen + self.waiting
        return sorted(line, key=lambda job: (self.service(plan, job) > 18_000 * SECOND, job.submit))


def against_lucid(schedule: str, policy: Any, **config: Any) -> tuple[float, float, int]:
    """Mean JCT over theirs less 1, the share of jobs that end when theirs do, and the number of stops."""
    expected = pd.read_csv(SCHEDULES / f"philly_w2500__{schedule}.csv").set_index("job_id")
    rows = as_in_lucid("philly_w2500")
    jobs = run(rows, NODES, policy, check=False, costs=LUCID_COSTS, **config).jobs.loc[expected.index]
    off = float(jobs["jct_s"].mean() / expected["jct"].mean() - 1)
    equal = float((jobs["end_time_s"] == expected["finish"]).mean())
    print(f"{schedule}: {jobs['jct_s'].mean():.4f} s against {expected['jct'].mean():.4f} s, {off:+.3%}; {equal:.2%} equal")
    return off, equal, int(jobs["preemptions"].sum())


SHIPPED_OPTIONS = {
    "srtf": {"factor": 1.0, "minimum_run": 0},
    "preempt": {"thresholds": [18_000], "minimum_run": 0, "promote": 1e9, "patience": "10000d"},
}
"""Their rules have no hysteresis, one threshold, and nobody rises."""


@pytest.mark.parametrize(
    ("schedule", "policy", "ticks"), [("lucid_srtf_40x8", "srtf", "1s"), ("lucid_tiresias_40x8", "preempt", "1m")]
)
def test_shipped_policies_are_within_two_per_cent_of_lucid(schedule: str, policy: str, ticks: str) -> None:
    off, equal, _ = against_lucid(schedule, policy, options=SHIPPED_OPTIONS[policy], schedule_every=ticks)
    assert abs(off) < 0.02 and equal > 0.95


def test_lucid_tiresias_is_as_there_for_every_job() -> None:
    assert against_lucid("lucid_tiresias_40x8", LucidTiresias(), schedule_every="1m") == (0.0, 1.0, 125)


@pytest.mark.slow
def test_lucid_srtf_is_near_and_as_there_for_every_job_once_loads_add_up() -> None:
    off, equal, _ = against_lucid("lucid_srtf_40x8", LucidShortest())
    assert abs(off) < 0.02 and 0.95 < equal < 1
    assert against_lucid("lucid_srtf_40x8", LucidShortestAddingUp()) == (0.0, 1.0, 974)
