"""When a waiting job will start if those that run end as estimated, and who may start before without delaying it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from analysim.jobs import Job, Option, Placement, State
from analysim.plan import search
from analysim.plan.blocked import BLOCKED, Blocked
from analysim.plan.orders import Order
from analysim.units import FOREVER

if TYPE_CHECKING:
    from analysim.plan.plan import Plan


class Shadow:
    """The start promised to a waiting job: when it fits if running jobs end, one by one, in an order of their ends.

    ``time`` (microseconds) is that instant, ``FOREVER`` where nobody's end lets it start (it waits for quota).
    What is free then is kept as a whole, not as a number of extra GPUs: so a promise knows of gangs, GPU types,
    CPUs and memory; quotas are asked with what ends by then given back. Held for the pass it was made in.
    Ends are rounded up to multiples of ``resolution`` microseconds.
    """

    __slots__ = ("_capacity", "_gone", "_late", "_nodes", "_number", "_plan", "_resolution", "job", "time")

    def __init__(self, plan: Plan, job: Job, by: Order, resolution: int = 1) -> None:
        self.job = job
        self.time = FOREVER
        self._plan = plan
        self._resolution = resolution
        self._number = plan.books.number
        self._capacity = plan.books.capacity.copy()
        self._gone: list[Job] = []
        self._late: set[int] = set()
        self._nodes = 0
        self._look_ahead(by)

    def backfill(self, job: Job) -> Placement | Blocked:
        """Start a waiting job if it ends by ``time``, or else if the promise can be kept beside it.

        Falsy with the reason otherwise, "behind" where only the promise is in the way. A job that the placement
        strategy would put in the way is tried again beside the nodes that are promised.
        """
        plan, books = self._plan, self._plan.books
        if self._number != books.number:
            plan.refuse(job, "a shadow holds only for the pass in which it was made")
        if job.state is not State.PENDING:
            return plan.start(job)
        demand = job.demand
        if books.unclaimed and not (blocked := plan.fit(job)):
            return blocked  # GPUs that are being released would let it start later than now
        if plan.now + plan.needed(job) <= self.time:
            placed = plan.start(job)
            if placed and books.tree.bounded:
                self._note_gone(job)
            return placed
        if demand.index in self._late:
            return BLOCKED["behind"]
        for avoided in (0, self._nodes):
            found = search.search(books, job, plan.placer, avoided)
            if not isinstance(found, Blocked):
                if self._stands_beside(job, *found):
                    return plan.start(job, found[0])
            elif not avoided:
                return plan.start(job)  # so that it is remembered that its like does not fit
        self._late.add(demand.index)
        if books.journal is not None:
            books.journal.append(partial(self._late.discard, demand.index))
        return BLOCKED["behind"]

    def _look_ahead(self, by: Order) -> None:
        demand = self.job.demand
        books = self._plan.books
        capacity = self._capacity
        now = self._plan.now
        lacking = demand.gpus - sum(capacity.free_within(each.gpu_type, each.mask) for each in demand.options)
        with self._given_back():
            for ends, _, other in books.running_index(by).entries:
                ends = self._rounded(max(ends, now))
                if ends > self.time:
                    break  # of those that end at one instant, all are gone
                assert other.placement is not None
                capacity.give(other.placement, other.demand)
                if books.tree.bounded:
                    books.charge(other.demand, other.option, -other.demand.gpu_milli, -1)
                self._gone.append(other)
                lacking -= other.demand.gpus
                if lacking <= 0 and self.time == FOREVER and (place := self._place()) is not None:
                    self.time = ends
                    self._nodes = sum(1 << node for node, _ in place if node >= 0)

    def _rounded(self, time: int) -> int:
        return time if self._resolution <= 1 else -(-time // self._resolution) * self._resolution

    @contextmanager
    def _given_back(self) -> Iterator[None]:
        """Charge the jobs that are gone by then again when the question is answered."""
        books = self._plan.books
        try:
            yield
        finally:
            for other in self._gone if books.tree.bounded else ():
                books.charge(other.demand, other.option, other.demand.gpu_milli, 1)

    def _place(self) -> Placement | None:
        """Find where the job would start on what is free then."""
        books, demand = self._plan.books, self.job.demand
        for option in demand.options:
            if not books.admitted(demand, option):
                continue
            books.placements += 1
            if demand.pinned is not None:
                if search.resumes(self._capacity, demand, option, demand.pinned):
                    return demand.pinned
                continue
            placement = search.place(self._plan.placer, self._capacity, self.job, option, option.mask)
            if placement is not None:
                return placement
        return None

    def _stands_beside(self, job: Job, placement: Placement, option: Option) -> bool:
        """Tell whether the promise can be kept with a job at a placement; if so, that is free no longer then."""
        books = self._plan.books
        self._capacity.take(placement, job.demand)
        if books.tree.bounded:
            books.charge(job.demand, option, job.demand.gpu_milli, 1)
            for other in self._gone:
                books.charge(other.demand, other.option, -other.demand.gpu_milli, -1)
        with self._given_back():
            kept = self._place() is not None
        if books.tree.bounded:
            books.charge(job.demand, option, -job.demand.gpu_milli, -1)
        give_back = partial(self._capacity.give, placement, job.demand)
        if not kept:
            give_back()
        elif books.journal is not None:
            books.journal.append(give_back)
        return kept

    def _note_gone(self, job: Job) -> None:
        self._gone.append(job)
        if self._plan.books.journal is not None:
            self._plan.books.journal.append(partial(self._gone.remove, job))
