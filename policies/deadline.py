"""Earliest deadline first with admission: deadlines that are promised are kept, by the estimates."""

from bisect import insort
from heapq import heapify, heappop, heappush

from pydantic import Field

from analysim.policy import Duration, Job, Options, Order, Plan, Policy

Promise = tuple[int, int, int, int, Job]
"""An admitted job that waits: deadline, rank, GPUs, estimate, and the job."""


class DeadlineOptions(Options):
    """How deadlines are kept."""

    preemptive: bool = Field(default=True, description="whether admitted jobs may stop best-effort jobs")
    margin: Duration = Field(
        default="0s", validate_default=True, description="by which an admitted job has to end before its deadline"
    )


class Deadline(Policy):
    """Admit a job if, by the estimates, all admitted jobs still meet their deadlines; admitted ones go first.

    Admitted jobs start in the order of their deadlines and are never stopped; the first that does not fit lets
    nobody of its partition pass. All others are best effort, first come, first served. A job is tested once, at its
    arrival; one that has a deadline and is not admitted gets a row ``not admitted`` in ``notes``.
    """

    name = "deadline"
    knowledge = "estimate"
    source = (
        "Gao et al., 'Chronus: a novel deadline-aware scheduler for deep learning training jobs', SoCC 2021 (jobs with "
        "deadlines beside best-effort jobs); Gu et al., 'ElasticFlow', ASPLOS 2023 (admission); Liu and Layland, "
        "'Scheduling algorithms for multiprogramming in a hard-real-time environment', J. ACM 20(1), 1973 (EDF)"
    )
    Options = DeadlineOptions

    order = Order(lambda job, plan: plan.policy.rank(job))

    def begin(self, plan: Plan) -> None:
        self._admitted: dict[int, int] = {}
        self._waiting: dict[str, list[Promise]] = {}
        self._reserved: dict[int, Job] = {}
        self._saved_by = plan.now

    def rank(self, job: Job) -> tuple[int, int]:
        """Admitted jobs by deadline, then the others."""
        deadline = self._admitted.get(job.rank)
        return (1, 0) if deadline is None else (0, deadline)

    def schedule(self, plan: Plan) -> None:
        for job in plan.arrived:
            if job.deadline is not None and job.gpus:
                self._consider(plan, job, job.deadline)
        for job in plan.pending_by(self.order):
            admitted = job.rank in self._admitted
            if not plan.start(job) and not (admitted and self._make_room(plan, job)):
                plan.close(job.partition)
            elif admitted:
                self._reserved[job.rank] = job

    def _make_room(self, plan: Plan, job: Job) -> bool:
        """Stop best-effort jobs, the latest to come first."""
        victims = plan.room(job, by=self.order, above=(1, -1)) if self.options.preemptive else None
        if not victims or not plan.replace(victims, job):
            return False
        self._saved_by = max(self._saved_by, plan.now + max(map(plan.move_cost, victims)))
        return True

    def _consider(self, plan: Plan, job: Job, deadline: int) -> None:
        """Admit a job unless it, or one that would be in time without it, would be late."""
        kept = self._waiting.get(job.partition, [])
        waiting = [promise for promise in kept if promise[-1].state.value == "pending"]
        asked = (deadline, job.rank, job.gpus, plan.remaining(job), job)
        late = {job.rank}
        if plan.now + plan.remaining(job) <= deadline:
            late = self._late(plan, job.partition, sorted([*waiting, asked]))
        if late and (job.rank in late or late - self._late(plan, job.partition, waiting)):
            plan.note("not admitted", job.rank)
        else:
            self._admitted[job.rank] = deadline
            insort(waiting, asked)
        self._waiting[job.partition] = waiting

    def _late(self, plan: Plan, partition: str, promises: list[Promise]) -> set[int]:
        """Find who is late, by rank, if they start one by one, by deadline, each as soon as it finds its GPUs."""
        idle, stoppable, cost, ends = self._held(plan, partition)
        late: set[int] = set()
        now, margin, saved_by = plan.now, self.options.margin, self._saved_by
        for place, (deadline, rank, gpus, work, _) in enumerate(promises):
            while idle + stoppable < gpus and ends:
                now, freed = heappop(ends)
                idle += freed
            if idle + stoppable < gpus:
                return late | {other[1] for other in promises[place:]}
            end = max(now if gpus <= idle else now + cost, saved_by) + work
            if end > deadline - margin:
                late.add(rank)
            taken = min(idle, gpus)
            idle, stoppable = idle - taken, stoppable - (gpus - taken)
            heappush(ends, (end, gpus))
        return late

    def _held(self, plan: Plan, partition: str) -> tuple[int, int, int, list[tuple[int, int]]]:
        """Count GPUs that are free, and that best-effort jobs would give up; how long that takes; ends of others."""
        view = plan.partition(partition)
        idle = int(min(view.capacity, view.quota))
        stoppable = cost = 0
        ends = []
        for job in plan.running:
            if job.partition != partition or not job.gpus:
                continue
            idle -= job.gpus
            if self.options.preemptive and job.preemptible and job.rank not in self._admitted:
                stoppable += job.gpus
                cost = max(cost, plan.move_cost(job))
            else:
                ends.append((plan.ends(job), job.gpus))
        self._reserved = {rank: job for rank, job in self._reserved.items() if job.state.value == "reserved"}
        for job in self._reserved.values():
            if job.partition == partition:
                idle -= job.gpus
                ends.append((max(plan.now, self._saved_by) + plan.remaining(job), job.gpus))
        heapify(ends)
        return idle, stoppable, cost, ends
