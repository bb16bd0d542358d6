"""Orders declared by policies, and the indexes of waiting and running jobs kept in them.

An index groups waiting jobs by how much they ask (family and GPUs), inside a group by demand, so that a
pass walks past a whole group, or a whole demand, at once when it cannot start.
"""

from __future__ import annotations

import inspect
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from analysim.jobs import Demand, Job
from analysim.plan.queue import Entry, Queue

if TYPE_CHECKING:
    from analysim.cluster.partitions import Leaf
    from analysim.plan.books import Books


class Order:
    """A total order of jobs, declared once on the policy's class: ``Order(lambda job: job.priority)``.

    The key takes the job, or the job and the plan; ties go by (submit, id). It is read when a job starts to
    wait (of a running job: at start, migration, change of speed and wake-up), and again at ``plan.rekey``.
    """

    __slots__ = ("_takes_plan", "key", "name")

    def __init__(self, key: Callable[..., Any]) -> None:
        self.key = key
        self.name = ""
        self._takes_plan = len(inspect.signature(key).parameters) > 1

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def key_of(self, job: Job, plan: Any) -> Any:
        """Read the key of a job now."""
        return self.key(job, plan) if self._takes_plan else self.key(job)


class Group:
    """Waiting jobs that ask for the same GPUs in the same family; ``heads`` is the first of each demand."""

    __slots__ = ("family", "gpu_milli", "heads", "leaf", "queues")

    def __init__(self, demand: Demand) -> None:
        self.family = demand.family
        self.gpu_milli = demand.gpu_milli
        self.leaf = demand.leaf
        self.heads: list[tuple[Any, int, Demand]] = []
        self.queues: dict[Demand, Queue] = {}


class WaitingIndex:
    """Waiting jobs in one order; entries are (key, rank, job), ties broken by rank."""

    def __init__(self, order: Order | None, books: Books) -> None:
        self.order = order
        self._books = books
        self._groups: dict[tuple[int, int], Group] = {}
        self._queues: dict[Demand, tuple[Queue, Group]] = {}
        self._entries: dict[int, tuple[Entry, Demand]] = {}
        self.tops: list[tuple[Any, int, Group]] = []

    def key_of(self, job: Job) -> Any:
        """Read the key of a job in this order: its rank where no order was declared."""
        return job.rank if self.order is None else self.order.key_of(job, self._books.face)

    def add(self, job: Job) -> None:
        """Enter a job that starts to wait."""
        demand = job.demand
        entry = (self.key_of(job), job.rank, job)
        self._entries[job.rank] = (entry, demand)
        found = self._queues.get(demand)
        if found is not None and found[0].head < entry:
            found[0].add(entry)
        else:
            self._enter(demand, [entry])

    def add_all(self, jobs: Iterable[Job]) -> None:
        """Enter many jobs that start to wait."""
        entries: dict[Demand, list[Entry]] = {}
        for job in jobs:
            entry = (self.key_of(job), job.rank, job)
            self._entries[job.rank] = (entry, job.demand)
            entries.setdefault(job.demand, []).append(entry)
        for demand, added in entries.items():
            self._enter(demand, added)

    def _enter(self, demand: Demand, added: list[Entry]) -> None:
        found = self._queues.get(demand)
        if found is None:
            place = (id(demand.family), demand.gpu_milli)
            group = self._groups.get(place)
            if group is None:
                group = self._groups[place] = Group(demand)
            queue = group.queues[demand] = Queue()
            self._queues[demand] = (queue, group)
        else:
            queue, group = found
        head = queue.head if queue else None
        queue.add_all(added)
        if queue.head is not head:
            self._replace_head(group, demand, head, queue.head)

    def remove(self, job: Job) -> None:
        """Take out a job that waits no longer."""
        entry, demand = self._entries.pop(job.rank)
        queue, group = self._queues[demand]
        if not queue.remove(entry):
            return
        if queue:
            self._replace_head(group, demand, entry, queue.head)
            return
        self._replace_head(group, demand, entry, None)
        del self._queues[demand]
        del group.queues[demand]
        if not group.queues:
            del self._groups[id(demand.family), demand.gpu_milli]

    def rekey(self, job: Job) -> None:
        """Read the key of a waiting job again; its queue stays, as a walk may be in it."""
        entry, demand = self._entries[job.rank]
        queue, group = self._queues[demand]
        head = queue.head
        new = (self.key_of(job), job.rank, job)
        self._entries[job.rank] = (new, demand)
        queue.remove(entry)
        queue.add(new)
        if queue.head is not head:
            self._replace_head(group, demand, head, queue.head)

    def _replace_head(self, group: Group, demand: Demand, old: Entry | None, new: Entry | None) -> None:
        heads = group.heads
        top = heads[0] if heads else None
        if old is not None:
            del heads[bisect_left(heads, old[:2])]
        if new is not None:
            insort(heads, (new[0], new[1], demand))
        now = heads[0] if heads else None
        if now is top:
            return
        tops = self.tops
        if top is not None:
            del tops[bisect_left(tops, top[:2])]
        if now is not None:
            insort(tops, (now[0], now[1], group))

    def stands_behind(self, job: Job, closer: Job | None) -> bool:
        """Tell whether a job that just arrived comes after a waiting one with its request, or after this one."""
        found = self._queues.get(job.demand)
        if found is None and closer is None:
            return False
        place = (self.key_of(job), job.rank)
        if found is not None and found[0].head < place:
            return True
        return closer is not None and self._entries[closer.rank][0] < place

    def __len__(self) -> int:
        return len(self._entries)


Ahead = tuple[Any, int, int, Any, Job | None]
"""What is lined up: key, rank, serial number, where it comes from, and the job.

A job comes from (group, demand), or from None when it just arrived; a head of a group that is still to be looked
into has (group, place among the heads) and no job.
"""


class Walk:
    """One walk over the waiting jobs of an index, first to last, never back.

    Jobs that arrived or were requeued at this instant are merged in from ``fresh``; they enter the index
    only if they are still waiting when the pass ends. What cannot start now (its demand failed, something
    smaller of its family failed, its partition is closed) is passed over without being looked at. When the
    pass frees capacity, what was passed over is taken up again behind the present position.
    """

    __slots__ = ("_ahead", "_books", "_index", "_passed", "_serial")

    def __init__(self, index: WaitingIndex, books: Books) -> None:
        self._index = index
        self._books = books
        self._serial = 0
        self._passed: list[tuple[Group, Demand | None]] = []
        self._ahead: list[Ahead] = []
        if books.fresh:
            self._ahead = [(index.key_of(job), job.rank, 0, None, job) for job in books.fresh]
            self._ahead.sort()

    def __iter__(self) -> Iterator[Job]:
        """Yield from the heads of the groups and from what is lined up ahead, whichever comes first."""
        books = self._books
        ahead = self._ahead
        root = books.tree.root
        token = books.token
        tops = self._index.tops[:]
        tops.reverse()
        entry: Entry | None = None
        where: Any = None
        while True:
            if entry is None:
                if tops and (not ahead or tops[-1] < ahead[0]):
                    key, rank, group = tops.pop()
                    where, job = (group, 0), None
                elif ahead:
                    key, rank, _, where, job = heappop(ahead)
                else:
                    return
                if job is None:
                    if not books.opens(where[0]):
                        self._passed.append((where[0], None))
                        continue
                    where = self._look_into(*where)
                    job = where[0].queues[where[1]].head[2]
            else:
                key, rank, job = entry
                entry = None
            if books.offers(job):
                yield job
                if root.closed == books.number:
                    return
                if books.token != token:
                    token = books.token
                    self._take_up(key, rank)
            if where is not None:
                if books.passes(where[1]):
                    self._passed.append(where)
                    continue
                entry = where[0].queues[where[1]].after(key, rank)
                if entry is not None and ((tops and tops[-1] < entry) or (ahead and ahead[0] < entry)):
                    self._push(entry[0], entry[1], where, entry[2])
                    entry = None

    def _look_into(self, group: Group, place: int) -> tuple[Group, Demand]:
        """Reach one head of a group; its next head is lined up, to be reached in its turn."""
        heads = group.heads
        last = len(heads) - 1
        if place > last:
            place = last
        if place < last:
            key, rank, _ = heads[place + 1]
            self._push(key, rank, (group, place + 1), None)
        return group, heads[place][2]

    def _push(self, key: Any, rank: int, where: Any, job: Job | None) -> None:
        self._serial += 1
        heappush(self._ahead, (key, rank, self._serial, where, job))

    def _take_up(self, key: Any, rank: int) -> None:
        """Capacity was freed in this pass: line up again, behind this position, what was passed over."""
        passed, self._passed = self._passed, []
        for group, demand in passed:
            for each in [demand] if demand is not None else list(group.queues):
                entry = group.queues[each].after(key, rank)
                if entry is not None:
                    self._push(entry[0], entry[1], (group, each), entry[2])


def walk_fresh(index: WaitingIndex, books: Books) -> Iterator[Job]:
    """Walk the jobs of this instant where no other job waits: the short way for a cluster without a queue."""
    fresh = books.fresh
    if len(fresh) > 1:
        key_of = index.key_of
        fresh = [entry[2] for entry in sorted((key_of(job), job.rank, job) for job in fresh)]
    for job in fresh:
        if books.offers(job):
            yield job


_NOBODY = SortedList()


class RunningIndex:
    """Running jobs in one order; what came and went since the last look costs next to nothing."""

    def __init__(self, order: Order | None, books: Books) -> None:
        self.order = order
        self._books = books
        self._sorted: SortedList = SortedList()
        self.entry_of: dict[int, Entry] = {}
        self._unsorted: dict[int, Entry] = {}
        self._of_leaf: dict[Leaf, SortedList] = {}

    @property
    def entries(self) -> SortedList:
        """All entries, first to last."""
        if self._unsorted:
            self._sorted.update(self._unsorted.values())
            for entry in self._unsorted.values() if self._of_leaf else ():
                self._of_leaf.setdefault(entry[2].demand.leaf, SortedList()).add(entry)
            self._unsorted.clear()
        return self._sorted

    def of_leaf(self, leaf: Leaf) -> SortedList:
        """Entries of the jobs of one partition, first to last; kept up from the first use."""
        entries = self.entries
        if not self._of_leaf:
            for entry in entries:
                self._of_leaf.setdefault(entry[2].demand.leaf, SortedList()).add(entry)
        return self._of_leaf.get(leaf, _NOBODY)

    def add(self, job: Job) -> None:
        """Enter a job that started, was moved or changed speed."""
        key = job.rank if self.order is None else self.order.key_of(job, self._books.face)
        self.put_back((key, job.rank, job))

    def put_back(self, entry: Entry) -> None:
        """Enter a job under the key it had."""
        self.entry_of[entry[1]] = self._unsorted[entry[1]] = entry

    def remove(self, job: Job) -> Entry:
        """Take out a job that stopped; the entry can be put back."""
        entry = self.entry_of.pop(job.rank)
        if self._unsorted.pop(job.rank, None) is None:
            self._sorted.remove(entry)
            if self._of_leaf:
                self._of_leaf[job.demand.leaf].remove(entry)
        return entry

    def key(self, job: Job) -> Any:
        """Return the key under which a running job stands."""
        return self.entry_of[job.rank][0]

    def __len__(self) -> int:
        return len(self.entry_of)
