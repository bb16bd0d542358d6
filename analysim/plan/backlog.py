"""Waiting jobs in the order of arrival, by shape; the next one that needs no longer than some time is found at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from analysim.jobs import Demand, Job, State
from analysim.units import FOREVER

if TYPE_CHECKING:
    from analysim.plan.plan import Plan

_BLOCK = 128


class _Block:
    """Some jobs of one shape in order: ranks, times needed, jobs, and the least of the times."""

    __slots__ = ("jobs", "least", "needs", "ranks")

    def __init__(self) -> None:
        self.ranks: list[int] = []
        self.needs: list[int] = []
        self.jobs: list[Job] = []
        self.least = FOREVER

    def put(self, rank: int, needed: int, job: Job) -> None:
        place = bisect_left(self.ranks, rank)
        self.ranks.insert(place, rank)
        self.needs.insert(place, needed)
        self.jobs.insert(place, job)
        self.least = min(self.least, needed)

    def drop(self, rank: int) -> None:
        place = bisect_left(self.ranks, rank)
        del self.ranks[place], self.jobs[place]
        if self.needs.pop(place) == self.least:
            self.least = min(self.needs, default=FOREVER)

    def split(self) -> _Block:
        """Move the second half to a block of its own."""
        other = _Block()
        half = len(self.ranks) // 2
        for mine, theirs in ((self.ranks, other.ranks), (self.needs, other.needs), (self.jobs, other.jobs)):
            theirs.extend(mine[half:])  # type: ignore[arg-type]  # a list with one of its own kind
            del mine[half:]
        self.least, other.least = min(self.needs), min(other.needs)
        return other


class ShapeQueue:
    """Waiting jobs of one shape by rank, in blocks; a block knows the least time that one of its jobs needs."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def _place(self, rank: int) -> int:
        """Number of the block that has a rank, or would have it."""
        blocks = self._blocks
        return max(0, bisect_right(blocks, rank, key=lambda block: block.ranks[0]) - 1)

    def put(self, rank: int, needed: int, job: Job) -> None:
        """Enter a job."""
        if not self._blocks:
            self._blocks.append(_Block())
            self._blocks[0].put(rank, needed, job)
            return
        place = self._place(rank)
        block = self._blocks[place]
        block.put(rank, needed, job)
        if len(block.ranks) > 2 * _BLOCK:
            self._blocks.insert(place + 1, block.split())

    def drop(self, rank: int) -> None:
        """Take a job out."""
        place = self._place(rank)
        self._blocks[place].drop(rank)
        if not self._blocks[place].ranks:
            del self._blocks[place]

    def after(self, rank: int, limit: int) -> tuple[int, Job] | None:
        """Find the first job behind a rank that needs at most ``limit`` microseconds; None: there is none."""
        if not self._blocks:
            return None
        first = self._place(rank) if rank >= 0 else 0
        for number in range(first, len(self._blocks)):
            block = self._blocks[number]
            if block.least > limit:
                continue
            start = bisect_right(block.ranks, rank) if number == first else 0
            for place in range(start, len(block.ranks)):
                if block.needs[place] <= limit:
                    return block.ranks[place], block.jobs[place]
        return None


class Backlog:
    """An index of waiting jobs that the books keep like those of orders; see ``orders.WaitingIndex``.

    Hidden jobs wait as any other but are not met by a walk.
    """

    def __init__(self, plan: Plan, jobs: Iterable[Job]) -> None:
        self._plan = plan
        self._queues: dict[Demand, ShapeQueue] = {}
        self._demand_of: dict[int, Demand | None] = {}
        self._hidden: set[int] = set()
        self.add_all(jobs)

    def add(self, job: Job) -> None:
        """Enter a job that starts to wait."""
        self._demand_of[job.rank] = None
        if job.rank not in self._hidden:
            self._put(job)

    def _put(self, job: Job) -> None:
        demand = self._demand_of[job.rank] = job.demand
        queue = self._queues.get(demand)
        if queue is None:
            queue = self._queues[demand] = ShapeQueue()
        queue.put(job.rank, self._plan.needed(job), job)

    def add_all(self, jobs: Iterable[Job]) -> None:
        """Enter jobs that start to wait."""
        for job in jobs:
            self.add(job)

    def remove(self, job: Job) -> None:
        """Take out a job that waits no longer."""
        self._hidden.discard(job.rank)
        self._drop(job)
        self._demand_of.pop(job.rank, None)

    def _drop(self, job: Job) -> None:
        demand = self._demand_of.get(job.rank)
        if demand is not None:
            queue = self._queues[demand]
            queue.drop(job.rank)
            if not queue:
                del self._queues[demand]
            self._demand_of[job.rank] = None

    def rekey(self, job: Job) -> None:
        """Ask again how long a job needs."""
        if self._demand_of.get(job.rank) is not None:
            self._drop(job)
            self._put(job)

    def hide(self, job: Job) -> None:
        """Pass over a waiting job from now on."""
        self._drop(job)
        self._hidden.add(job.rank)

    def show(self, job: Job) -> None:
        """Meet a job again."""
        if job.rank in self._hidden:
            self._hidden.remove(job.rank)
            if job.rank in self._demand_of:
                self._put(job)

    def stands_behind(self, job: Job, closer: Job | None) -> bool:
        """An arrival may be short enough to go before those that came earlier: there is a pass for each."""
        return False

    def __len__(self) -> int:
        return len(self._demand_of)

    def queues(self) -> Iterable[tuple[Demand, ShapeQueue]]:
        """Shapes of which a job waits, and their queues."""
        return self._queues.items()

    def hides(self, job: Job) -> bool:
        """Tell whether a job is passed over."""
        return job.rank in self._hidden


class Candidates:
    """One walk over waiting jobs in the order of arrival, whose next of a shape may be asked to need less time.

    ``limit`` tells of a demand how long a job may need (microseconds) to be met at all; -1: none is. Without it, jobs
    of a shape of which one failed to start are passed over, as in every walk.
    """

    def __init__(self, plan: Plan, backlog: Backlog, limit: Callable[[Demand], int] | None) -> None:
        self._plan = plan
        self._backlog = backlog
        self._limit = limit
        self._limits: dict[Demand, int] = {}

    def within(self, job: Job, limit: int) -> None:
        """Meet from now on only those jobs of this one's shape that need at most ``limit`` microseconds."""
        self._limits[job.demand] = min(limit, self._limits.get(job.demand, FOREVER))

    def __iter__(self) -> Iterator[Job]:
        books, plan, most = self._plan.books, self._plan, self._most
        ahead: list[tuple[int, int, Job, Any]] = []
        for demand, queue in self._backlog.queues():
            limit = most(demand)
            if limit >= 0 and (found := queue.after(-1, limit)) is not None:
                ahead.append((found[0], 0, found[1], queue))
        ahead.extend((job.rank, 1, job, None) for job in books.fresh if not self._backlog.hides(job))
        heapify(ahead)
        while ahead:
            rank, _, job, queue = heappop(ahead)
            demand = job.demand
            limit = most(demand)
            if limit < 0:
                continue
            if job.state is State.PENDING and job.barred != books.number:
                needed = plan.needed(job) if limit < FOREVER else 0
                if needed <= limit:
                    yield job
                    limit = most(demand)
            if queue is not None and limit >= 0 and (found := queue.after(rank, limit)) is not None:
                heappush(ahead, (found[0], 0, found[1], queue))

    def _most(self, demand: Demand) -> int:
        """How long a job of this demand may need now; -1: none is met."""
        books = self._plan.books
        if demand.leaf.closed == books.number:
            return -1
        limit = self._limits.get(demand, FOREVER)
        if self._limit is not None:
            return min(limit, self._limit(demand))
        return -1 if books.passes(demand) else limit
