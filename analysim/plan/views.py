"""What a policy iterates over and reads: waiting jobs, running jobs, partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analysim.cluster.partitions import UNBOUNDED, Leaf
from analysim.jobs import Job, State
from analysim.plan.orders import Order, RunningIndex, WaitingIndex, Walk, walk_fresh
from analysim.units import GPU_MILLI

if TYPE_CHECKING:
    from analysim.plan.plan import Plan


class PendingView:
    """Waiting jobs in one order. Iterating skips what cannot start now and never goes back."""

    __slots__ = ("_books", "_index", "_order", "_plan")

    def __init__(self, order: Order | None, plan: Plan) -> None:
        self._order = order
        self._plan = plan
        self._books = plan.books
        self._index: WaitingIndex | None = None

    def __iter__(self) -> Iterator[Job]:
        books = self._books
        index = self._index
        if index is None:
            index = self._index = books.waiting_index(self._order)
        if index.tops:
            return iter(Walk(index, books))
        fresh = books.fresh
        if len(fresh) == 1:
            return iter(fresh if books.offers(fresh[0]) else ())
        return walk_fresh(index, books)

    def __len__(self) -> int:
        return self._books.pending_count

    def __bool__(self) -> bool:
        return self._books.pending_count > 0

    def fitting(self) -> Iterator[Job]:
        """Yield only the jobs that fit now, for policies that backfill."""
        plan = self._plan
        for job in self:
            if plan.fit(job):
                yield job


class RunningView:
    """Running jobs in one order; ``reversed`` goes from last to first. Safe while jobs are stopped."""

    __slots__ = ("_index",)

    def __init__(self, index: RunningIndex) -> None:
        self._index = index

    def __iter__(self) -> Iterator[Job]:
        for entry in list(self._index.entries):
            job: Job = entry[2]
            if job.state is State.RUNNING:
                yield job

    def __reversed__(self) -> Iterator[Job]:
        for entry in reversed(list(self._index.entries)):
            job: Job = entry[2]
            if job.state is State.RUNNING:
                yield job

    def __len__(self) -> int:
        return len(self._index)


class PartitionView:
    """Quota and usage of one partition, in GPUs."""

    __slots__ = ("_leaf", "_plan")

    def __init__(self, leaf: Leaf, plan: Plan) -> None:
        self._leaf = leaf
        self._plan = plan

    @property
    def name(self) -> str:
        """Name as in the topology file."""
        return self._leaf.name

    @property
    def parent(self) -> PartitionView | None:
        """The partition above; None for the root."""
        return PartitionView(self._leaf.parent, self._plan) if self._leaf.parent else None

    @property
    def guarantee(self) -> float:
        """GPUs guaranteed to it."""
        return self._leaf.total.guarantee / GPU_MILLI

    @property
    def quota(self) -> float:
        """GPUs it may use at most: min(limit, guarantee + borrow); infinite where nothing bounds it."""
        cap = self._leaf.total.cap
        return float("inf") if cap >= UNBOUNDED else cap / GPU_MILLI

    @property
    def usage(self) -> float:
        """GPUs in use now, from decision to release."""
        return self._plan.books.usage(self._leaf) / GPU_MILLI

    @property
    def borrowed(self) -> float:
        """GPUs in use above the guarantee."""
        return max(0.0, self.usage - self.guarantee)

    @property
    def capacity(self) -> int:
        """GPUs on the nodes of its node set."""
        return self._plan.books.topology.gpus_in(self._leaf.nodes)

    @property
    def share(self) -> float:
        """Usage over guarantee; over capacity where nothing is guaranteed."""
        base = self.guarantee or self.capacity
        return self.usage / base if base else 0.0

    @property
    def priority_tier(self) -> int:
        """Tier as in the topology file; larger goes first."""
        return self._leaf.priority_tier

    @property
    def reclaim(self) -> bool:
        """Whether it may take back what others borrowed."""
        return self._leaf.reclaim


class SubQueues:
    """Waiting jobs of one order, by shape, tenant or partition: a mapping from each to its jobs in order."""

    def __init__(self, plan: Plan, order: Order | None, within: str) -> None:
        self._plan = plan
        self._order = order
        self._within = within

    def _label(self, job: Job) -> object:
        if self._within == "shape":
            return job.demand.index
        return job.partition if self._within == "partition" else job.tenant

    def __iter__(self) -> Iterator[object]:
        return iter(self.groups())

    def groups(self) -> dict[object, list[Job]]:
        """Collect the waiting jobs that a walk offers now; labels in the order of their first job."""
        found: dict[object, list[Job]] = {}
        for job in self._plan.pending_by(self._order):
            found.setdefault(self._label(job), []).append(job)
        return found

    def items(self) -> Iterator[tuple[object, list[Job]]]:
        """Yield (label, jobs) for each sub-queue."""
        return iter(self.groups().items())

    def __getitem__(self, label: object) -> list[Job]:
        return self.groups().get(label, [])

