"""What policies that resize elastic jobs share: how many GPUs each job should have, and how to get there."""

from __future__ import annotations

from abc import abstractmethod
from itertools import islice
from typing import ClassVar

from pydantic import Field

from analysim.jobs import Job
from analysim.plan.orders import Order
from analysim.plan.plan import Plan
from analysim.policy.base import Duration, Options, Policy


class Claim:
    """A job in an allocation: its ``sizes`` in ascending order, and how many ``gpus`` it is given so far.

    ``held`` are the GPUs it holds now, ``left`` its work left, in microseconds on the GPUs it asks for, ``place``
    its place in the order in which the least sizes are given.
    """

    __slots__ = ("_plan", "_step", "gpus", "held", "job", "left", "place", "sizes")

    def __init__(self, plan: Plan, job: Job, sizes: tuple[int, ...]) -> None:
        self.job = job
        self.sizes = sizes
        self.held = plan.gpus(job)
        self.left = plan.remaining(job)
        self.gpus = 0
        self.place = 0
        self._step = -1
        self._plan = plan

    def grow(self) -> None:
        """Give it the next of its sizes."""
        self._step += 1
        self.gpus = self.sizes[self._step]

    @property
    def more(self) -> int:
        """GPUs that its next size takes beyond this one; 0: it has the most it may have."""
        return self.sizes[self._step + 1] - self.gpus if self._step + 1 < len(self.sizes) else 0

    def time(self, gpus: int) -> float:
        """Time left on so many GPUs, in microseconds."""
        return self.left / self._plan.throughput(self.job, gpus)

    def throughputs(self) -> tuple[float, float]:
        """Throughput now and with its next size."""
        throughput = self._plan.throughput
        return throughput(self.job, self.gpus), throughput(self.job, self.gpus + self.more)


class ElasticOptions(Options):
    """When an allocation is made anew, and what is worth a resize."""

    interval: Duration = Field(default="5m", validate_default=True, description="between allocations, 0: none")
    minimum_run: Duration = Field(default="10m", validate_default=True, description="until a job may be resized")
    worth: float = Field(default=1.0, ge=0, description="time that growing saves a job over what the resize costs it")
    powers: bool = Field(default=False, description="sizes are powers of two, beside the least, asked and most GPUs")


class ElasticPolicy(Policy):
    """Allocate GPUs by number, then resize, stop and start the jobs whose number changes.

    A subclass says in which order jobs get their least sizes (``first``; None: as they came) and who gets what is
    left (``share_out``). Between two allocations waiting jobs start on what is free.
    """

    idle_passes = True
    knowledge = "oracle"
    Options = ElasticOptions
    first: ClassVar[Order | None] = None

    @abstractmethod
    def share_out(self, claims: list[Claim], gpus: int) -> None:
        """Give so many GPUs to jobs that have their least size (``claim.grow()``), as far as they may have more."""

    def begin(self, plan: Plan) -> None:
        self._news = False
        self._most = plan.capacity.topology.gpus
        self._next = self._settles = plan.now
        self._growing: dict[Job, int] = {}
        self._sizes: dict[tuple[int, int, int, int], tuple[int, ...]] = {}

    def schedule(self, plan: Plan) -> None:
        self._news = self._news or bool(plan.arrived or plan.completed or plan.requeued)
        if (self._news and plan.now >= self._next) or 0 <= self._settles <= plan.now:
            self._news = False
            self._next = plan.now + self.options.interval
            self._allocate(plan)
            if self._settles >= 0:
                plan.wake_at(self._settles)
        self._grow(plan)
        if not self._growing:
            self._start_waiting(plan)
        if self._news and plan.now < self._next:
            plan.wake_at(self._next)

    # -- how many ----------------------------------------------------------------------------------------

    def sizes(self, job: Job) -> tuple[int, ...]:
        """On how many GPUs of this cluster a job may run, ascending."""
        step = job.per_node or 1
        key = (job.min_gpus, job.gpus, job.max_gpus, step)
        found = self._sizes.get(key)
        if found is None:
            every = not self.options.powers
            sizes = range(job.min_gpus, min(job.max_gpus, max(self._most, job.min_gpus)) + 1, step)
            found = tuple(size for size in sizes if every or size in key[:3] or not size & (size - 1))
            self._sizes[key] = found
        return found

    def _allocate(self, plan: Plan) -> None:
        movable = self._movable(plan)
        gpus = plan.free_gpus(coming=True) + sum(plan.gpus(job) for job in movable)
        # No more waiting jobs than there are GPUs can get any.
        waiting = list(islice((job for job in plan.pending_by(self.first) if job.gpus), gpus))
        claims = [Claim(plan, job, self.sizes(job)) for job in [*movable, *waiting]]
        if self.first is None:
            claims.sort(key=lambda claim: claim.job.rank)
        else:
            key_of = self.first.key_of
            claims.sort(key=lambda claim: (key_of(claim.job, plan), claim.job.rank))
        for place, claim in enumerate(claims):
            claim.place = place
            if claim.more <= gpus:
                gpus -= claim.more
                claim.grow()
        self.share_out([claim for claim in claims if claim.gpus and claim.more], gpus)
        self._apply(plan, claims)

    def _movable(self, plan: Plan) -> list[Job]:
        """Running jobs that may be resized or stopped; the others are looked at again when the first of them may be."""
        movable, settles, matters = [], [], bool(plan.pending)
        for job in plan.running:
            if not job.gpus or not job.preemptible:
                continue
            when = max(job.hold_until, job.run_from + self.options.minimum_run)
            matters = matters or job.elastic
            if when <= plan.now:
                movable.append(job)
            else:
                settles.append(when)
        self._settles = max(min(settles), self._next) if settles and matters else -1
        return movable

    # -- getting there -----------------------------------------------------------------------------------

    def _apply(self, plan: Plan, claims: list[Claim]) -> None:
        """Stop and shrink as many jobs as others need, then start those, the largest first."""
        takers = [claim for claim in claims if claim.gpus > claim.held and self._pays(plan, claim)]
        needed = sum(claim.gpus - claim.held for claim in takers) - plan.free_gpus(coming=True)
        stopped = []
        for claim in reversed(claims):
            if needed <= 0:
                break
            if claim.gpus < claim.held:
                if not claim.gpus:
                    plan.preempt(claim.job)
                    stopped.append(claim.job)
                elif not plan.resize(claim.job, claim.gpus):
                    continue
                needed -= claim.held - claim.gpus
        takers.sort(key=lambda claim: (-claim.gpus, claim.place))
        for claim in takers:
            if not claim.held:
                self._start(plan, claim.job, claim.gpus)
        self._growing = {claim.job: claim.gpus for claim in takers if claim.held}
        for job in reversed(stopped):
            plan.start(job)  # where nobody took its GPUs, nothing has happened to it

    def _pays(self, plan: Plan, claim: Claim) -> bool:
        """Tell whether a running job gains more time on its new GPUs than the resize costs it."""
        if not claim.held:
            return True
        saved = claim.time(claim.held) - claim.time(claim.gpus)
        return bool(saved > self.options.worth * plan.move_cost(claim.job))

    def _grow(self, plan: Plan) -> None:
        """Resize running jobs to what they were given as far as GPUs are free; wait for those being released."""
        for job, gpus in list(self._growing.items()):
            held = plan.gpus(job)
            if plan.placement(job) is None or held >= gpus:
                del self._growing[job]
                continue
            larger = [size for size in self._downwards(job, gpus) if size > held]
            if plan.freeable(job) and any(plan.resize(job, size) for size in larger):
                del self._growing[job]
        if plan.free_gpus() == plan.free_gpus(coming=True):
            self._growing.clear()  # what is free now does not do, and no more is coming

    def _start_waiting(self, plan: Plan) -> None:
        for job in plan.pending_by(self.first):
            self._start(plan, job, job.gpus)

    def _start(self, plan: Plan, job: Job, gpus: int) -> bool:
        """Start a job on so many GPUs, or on fewer where those are not to be had."""
        if job.elastic and any(plan.start(job, gpus=size) for size in self._downwards(job, gpus)):
            return True
        # Last as it asks, which fails where its least size does: so its like is passed over in this pass.
        return bool(plan.start(job))

    def _downwards(self, job: Job, gpus: int) -> list[int]:
        """List the size asked for, then each time the largest of at most half as many, down to the least."""
        found = [gpus]
        sizes = self.sizes(job)
        for size in reversed(sizes):
            if size == sizes[0] or 2 * size <= found[-1]:
                found.append(size)
        return found if gpus > sizes[0] else [gpus]
