"""Reservations of waiting jobs: who is promised which nodes from when on, so that others fill in beside all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sortedcontainers import SortedList

from analysim.errors import TraceError
from analysim.jobs import Demand, Job, Option, Placement, State
from analysim.plan.blocked import BLOCKED, Blocked
from analysim.plan.compression import Freed
from analysim.plan.profile import Flags, Profile
from analysim.plan.search import place
from analysim.plan.sites import Pairs, Sites, Way
from analysim.units import FOREVER

if TYPE_CHECKING:
    from analysim.plan.plan import Plan

_JOIN_FROM = 256
"""Intervals beyond twice those of the bookings, from which on equal neighbours are joined."""

_MOST_BOUNDS = 32


class Booking:
    """Sites that a job holds, or will hold, from ``begin`` to ``end`` (microseconds) by its estimate."""

    __slots__ = ("begin", "end", "job", "option", "pairs", "stint")

    def __init__(self, job: Job, begin: int, end: int, pairs: Pairs, option: Option) -> None:
        self.job = job
        self.begin = begin
        self.end = end
        self.pairs = pairs
        self.option = option
        self.stint = job.stint


class Calendar:
    """Running jobs until they end by their estimates, and the reservations of waiting ones, on actual nodes.

    A reservation is kept until its job starts: it may move forward, and moves back only where a running job has
    outlived its estimate (or the cluster changed). Times are rounded up to multiples of ``resolution``, a start later
    than ``window`` from now is not reserved; both in microseconds. ``Plan.calendar`` brings it up to date.
    """

    def __init__(self, plan: Plan, resolution: int, window: int) -> None:
        self._plan = plan
        self._known_sites: Sites | None = None
        self._resolution = resolution
        self._window = window
        self._profile: Profile | None = None
        self._held: dict[int, Booking] = {}
        self._ends: SortedList = SortedList()
        self._reserved: dict[int, Booking] = {}
        self._begins: SortedList = SortedList()
        self._changes: SortedList = SortedList()
        self._count: dict[str, int] = {}
        self._overrun = -1
        self._refreshed = -1
        self._bounds: dict[Demand, list[tuple[int, int]]] = {}
        self._ways: dict[tuple[Demand, int, int], list[Way]] = {}
        self._allowed: dict[tuple[Demand, int], Flags] = {}

    # -- reading -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._reserved)

    def promised(self, job: Job) -> int | None:
        """Return when a waiting job is to start; None: it has no reservation."""
        booking = self._reserved.get(job.rank)
        return None if booking is None else booking.begin

    def reserved_in(self, partition: str) -> int:
        """Count the reservations of a partition's jobs."""
        return self._count.get(partition, 0)

    def limit(self, demand: Demand, depth: int | None) -> int:
        """How long a job may need of which it is not known that it can neither start nor be promised; -1: none may.

        A partition that has ``depth`` reservations gets no more; for ``Plan.candidates``.
        """
        plan = self._plan
        horizon = plan.now
        if depth is None or self.reserved_in(demand.leaf.name) < depth:
            horizon = min(FOREVER, horizon + self._window)
        elif demand.blocked_epoch == plan.books.epoch:
            return -1
        known = self._bounds.get(demand)
        if known is None:
            return FOREVER
        return min((least - 1 for least, start in known if start > horizon), default=FOREVER)

    # -- deciding ------------------------------------------------------------------------------------------

    def start(self, job: Job) -> Placement | Blocked:
        """Start a waiting job if it fits now beside all reservations, for as long as its estimate says.

        Falsy with the reason, "behind" where only reservations are in the way.
        """
        plan, demand = self._plan, job.demand
        if not self._reserved or not plan.fit(job):
            return self._start_alone(job)
        if demand.pinned is not None:
            return BLOCKED["behind"]  # where it was is not looked up in the calendar: it waits till nobody is promised
        found = self._find(job, plan.now + 1)
        return BLOCKED["behind"] if found is None else self._begin(job, found[1])

    def reserve(self, job: Job) -> Placement | Blocked:
        """Start a waiting job if that is possible now, else promise it the earliest start beside all promised before.

        Falsy ("behind") where it does not start now; ``promised`` tells whether it has a reservation.
        """
        plan = self._plan
        if job.rank in self._reserved:
            return BLOCKED["behind"]
        if not self._reserved and (placed := self._start_alone(job)):
            return placed
        if job.demand.pinned is not None:
            return BLOCKED["behind"]
        found = self._find(job, min(FOREVER, plan.now + self._window + 1))
        if found is None:
            return BLOCKED["behind"]
        begin, pairs, option = found
        if begin <= plan.now:
            return self._begin(job, pairs)
        self._book(Booking(job, begin, self._end(job, begin), pairs, option))
        return BLOCKED["behind"]

    def _start_alone(self, job: Job) -> Placement | Blocked:
        placed = self._plan.start(job)
        if placed and self._profile is not None:
            self._hold(job)
        return placed

    def _begin(self, job: Job, pairs: Pairs) -> Placement | Blocked:
        """Start a job on its sites; they have too little after all where somebody outlives an estimate."""
        places = self._sites.actual(pairs, self._plan.books.capacity)
        if places is None:
            return BLOCKED["behind"]
        placed = self._plan.start(job, where=places)
        if placed and self._profile is not None:
            self._hold(job)
        return placed

    # -- the books of the calendar ---------------------------------------------------------------------------

    def _end(self, job: Job, begin: int) -> int:
        return self._rounded(begin + max(1, self._plan.needed(job)))

    def _rounded(self, time: int) -> int:
        resolution = self._resolution
        return time if resolution <= 1 else -(-time // resolution) * resolution

    def _hold(self, job: Job) -> None:
        """Enter a job that has started in this pass."""
        assert job.placement is not None and job.option is not None
        plan = self._plan
        if job.state is not State.RUNNING:
            self._profile = None  # it waits for GPUs that are being released: look anew in the next pass
            return
        ends = plan.ends(job)
        end = self._rounded(max(ends, plan.now + 1))
        if ends <= plan.now:
            self._overrun = end
        self._enter(Booking(job, plan.now, end, self._sites.pairs(job.placement), job.option))

    def _enter(self, booking: Booking) -> None:
        self._held[booking.job.rank] = booking
        self._ends.add((booking.end, booking.job.rank))
        self._count_in(booking, -1, running=True)

    def _book(self, booking: Booking) -> None:
        job = booking.job
        self._reserved[job.rank] = booking
        self._begins.add((booking.begin, job.rank))
        self._count[job.partition] = self._count.get(job.partition, 0) + 1
        self._plan.backlog.hide(job)
        self._count_in(booking, -1)
        if self._begins[0][1] == job.rank:
            self._arm()

    def _unbook(self, booking: Booking) -> None:
        job = booking.job
        del self._reserved[job.rank]
        self._begins.remove((booking.begin, job.rank))
        self._count[job.partition] -= 1
        self._count_in(booking, 1)

    def _count_in(self, booking: Booking, sign: int, running: bool = False) -> None:
        """Take what a booking holds from the profile, or give it back."""
        assert self._profile is not None
        job = booking.job
        self._profile.add(booking.begin, booking.end, booking.pairs, job.demand, sign)
        if self._plan.books.tree.bounded:
            self._allowed.clear()
            at = [(booking.end, job.rank, -1, booking)] + ([] if running else [(booking.begin, job.rank, 1, booking)])
            for change in at:
                if sign < 0:
                    self._changes.add(change)
                else:
                    self._changes.discard(change)

    # -- finding a place -------------------------------------------------------------------------------------

    def _find(self, job: Job, before: int, among: set[int] | None = None) -> tuple[int, Pairs, Option] | None:
        """Find the earliest start before a time, and where (``among`` some sites); None: there is none."""
        plan, demand = self._plan, job.demand
        if self._known_sites is None:
            self._known_sites = self._sites_for(job.source.demands)
        profile = self._up_to_date()
        needed = max(1, plan.needed(job))
        earliest = self._bound(demand, needed)
        if earliest >= before:
            return None
        found: tuple[int, Pairs, Option] | None = None
        limit = before
        for option in demand.options:
            first = profile.row_at(max(earliest, plan.now))
            beyond = int(profile.times.searchsorted(limit))
            for way in self._ways_of(demand, option):
                if among is not None:
                    way = way.among(among)
                    if not len(way.sites):
                        continue
                way.allowed = self._admitted(demand, option)
                for row in profile.starts(way, demand, needed, first, beyond):
                    pairs = self._place(job, option, way, row, needed)
                    if pairs is not None:
                        limit, beyond = int(profile.times[row]), row
                        found = (limit, pairs, option)
                        break
        if found is not None:
            self._remember(demand, needed, found[0])
        else:
            row = int(profile.times.searchsorted(before))
            self._remember(demand, needed, int(profile.times[row]) if row < len(profile) else before)
        return found

    def _sites_for(self, demands: list[Demand]) -> Sites:
        """Work out what to count in. Raises ``TraceError`` where any demand is for a share of a GPU."""
        plan = self._plan
        shared = sum(demand.sharing for demand in demands)
        if shared:
            raise TraceError(
                f"{shared} kinds of jobs ask for a share of a GPU; a calendar promises whole GPUs only.",
                "Use policy easy, or leave these jobs out.",
            )
        counts_only = getattr(plan.placer, "counts_only", False)
        return Sites(plan.books.topology, demands, counts_only, plan.books.tree.changes)

    def _place(self, job: Job, option: Option, way: Way, row: int, needed: int) -> Pairs | None:
        """Choose sites for a gang from a row on; None: the placement strategy finds none."""
        plan, profile = self._plan, self._up_to_date()
        plan.books.placements += 1
        missing = job.demand.gpus
        if not self._sites.pooled or not missing:
            now = plan.books.capacity if row == 0 else None
            mask = option.mask & way.mask if way.mask else option.mask
            placed = place(plan.placer, profile.window(row, needed, now), job, option, mask)
            return None if placed is None else self._sites.pairs(placed)
        pairs = []
        least = profile.least(row, needed)[0]
        for site in way.sites.tolist():
            count = min(missing, int(least[site]))
            if count:
                pairs.append((site, count))
                missing -= count
        return tuple(pairs)

    def _ways_of(self, demand: Demand, option: Option) -> list[Way]:
        key = (demand, option.gpu_type, option.mask)
        ways = self._ways.get(key)
        if ways is None:
            ways = self._ways[key] = self._sites.ways(demand, option)
        return ways

    def _bound(self, demand: Demand, needed: int) -> int:
        """Return a time before which no job of a demand that needs at least so long can start."""
        return max((start for least, start in self._bounds.get(demand, ()) if least <= needed), default=0)

    def _remember(self, demand: Demand, needed: int, start: int) -> None:
        """Nothing is freed before the next early end: what was found impossible stays so."""
        known = self._bounds.get(demand, [])
        kept = [(least, time) for least, time in known if least < needed or time > start]
        kept.append((needed, start))
        self._bounds[demand] = kept[-_MOST_BOUNDS:]

    def _admitted(self, demand: Demand, option: Option) -> Flags | None:
        """Tell for each interval whether quotas would admit a start, jobs ended and begun by then counted."""
        books, profile = self._plan.books, self._profile
        if not option.bounded or profile is None:
            return None
        key = (demand, option.gpu_type)
        flags = self._allowed.get(key)
        if flags is not None and len(flags) == len(profile):
            return flags
        flags = np.empty(len(profile), np.bool_)
        done: list[tuple[Booking, int]] = []
        changes = iter(self._changes)
        change = next(changes, None)
        try:
            for row, time in enumerate(profile.times.tolist()):
                while change is not None and change[0] <= time:
                    done.append((change[3], change[2]))
                    self._charge(*done[-1])
                    change = next(changes, None)
                flags[row] = books.admitted(demand, option)
        finally:
            for booking, sign in done:
                self._charge(booking, -sign)
        self._allowed[key] = flags
        return flags

    def _charge(self, booking: Booking, sign: int) -> None:
        demand = booking.job.demand
        self._plan.books.charge(demand, booking.option, sign * demand.gpu_milli, sign)

    # -- keeping up with the clock -----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Bring the calendar to this pass, once: what ended early, who outlived an estimate, who is to start now."""
        if self._refreshed == self._plan.books.number:
            return
        self._refreshed = self._plan.books.number
        self._update()
        self._arm()

    def _arm(self) -> None:
        """Ask for a pass when the next promise is due, but not while it waits for who has outlived an estimate."""
        if self._begins and self._begins[0][0] > max(self._plan.now, self._overrun):
            self._plan.wake_at(self._begins[0][0])

    def _update(self) -> None:
        plan = self._plan
        if self._profile is None or not self._keep_up():
            self._make_anew()
            return
        books = plan.books
        freed = Freed(books.tree.bounded)
        self._allowed.clear()
        for job in plan.completed:
            self._end_early(job, freed)
        if self._reserved and next(iter(self._reserved.values())).job.source.has_cancels:
            for booking in [each for each in self._reserved.values() if each.job.state is not State.PENDING]:
                self._unbook(booking)
                freed.add(booking.pairs, booking.end)
        if not self._extend() or not self._agrees():
            self._make_anew()
            return
        if freed:
            self._bounds.clear()
            self._compress(freed)
        if not self._start_due():
            self._make_anew()

    def _keep_up(self) -> bool:
        """Move on to now; False: reservations cannot be kept as they are."""
        assert self._profile is not None
        plan = self._plan
        self._profile.advance(plan.now)
        if len(self._profile) > 2 * (len(self._held) + 2 * len(self._reserved)) + _JOIN_FROM:
            self._profile.join()
        return not plan.books.tree.changes and not (self._begins and self._begins[0][0] < plan.now)

    def _end_early(self, job: Job, freed: Freed) -> None:
        booking = self._held.pop(job.rank, None)
        if booking is None:
            return
        self._ends.remove((booking.end, job.rank))
        if booking.end > self._plan.now:
            booking.begin = self._plan.now
            self._count_in(booking, 1, running=True)
            freed.add(booking.pairs, booking.end)
        elif self._plan.books.tree.bounded:
            self._changes.discard((booking.end, job.rank, -1, booking))

    def _extend(self) -> bool:
        """Let jobs that outlived their estimates end any moment; False: somebody is promised what they hold."""
        assert self._profile is not None
        now = self._plan.now
        extended = False
        while self._ends and self._ends[0][0] <= now:
            end, rank = self._ends.pop(0)
            booking = self._held.pop(rank)
            if self._plan.books.tree.bounded:
                self._changes.discard((end, rank, -1, booking))
            if booking.job.state is not State.RUNNING or booking.job.stint != booking.stint:
                continue
            booking.begin, booking.end = now, self._rounded(now + 1)
            self._overrun = booking.end
            self._enter(booking)
            extended = True
        return not extended or int(self._profile.tables[0].min()) >= 0

    def _agrees(self) -> bool:
        """Tell whether as many GPUs are free as the calendar says."""
        assert self._profile is not None
        capacity = self._plan.books.capacity
        free = sum(
            count * nodes.bit_count() for levels in capacity.levels for count, nodes in enumerate(levels) if nodes
        )
        for begin, rank in self._begins:
            if begin > self._plan.now:
                break
            free -= self._reserved[rank].job.demand.gpus
        return int(self._profile.tables[0][0].sum()) == free

    def _start_due(self) -> bool:
        """Start the jobs that were promised now; False: one does not fit."""
        plan = self._plan
        while self._begins and self._begins[0][0] <= plan.now:
            booking = self._reserved[self._begins[0][1]]
            if not self._redeem(booking):
                return False
        return True

    def _redeem(self, booking: Booking) -> bool:
        """Start a job that is promised now, where it was promised; False: it does not fit there."""
        plan, job = self._plan, booking.job
        places = self._sites.actual(booking.pairs, plan.books.capacity)
        if places is None or not plan.start(job, where=places):
            return False
        self._unbook(booking)
        plan.backlog.show(job)
        self._hold(job)
        return True

    @property
    def _sites(self) -> Sites:
        assert self._known_sites is not None
        return self._known_sites

    def _up_to_date(self) -> Profile:
        if self._profile is None:
            self._build()
        assert self._profile is not None
        return self._profile

    def _build(self) -> None:
        """Look up who runs; reservations are not in it yet."""
        plan = self._plan
        self._profile = Profile(plan.books.capacity, self._sites, plan.now)
        self._held.clear()
        self._ends.clear()
        self._changes.clear()
        self._allowed.clear()
        self._bounds.clear()
        for job in plan.books.running.values():
            assert job.placement is not None
            self._profile.give(self._sites.pairs(job.placement), job.demand)
        for job in plan.books.running.values():
            self._hold(job)

    def _make_anew(self) -> None:
        """Promise anew, in the order of arrival, to all that had a reservation."""
        jobs = [self._reserved[rank].job for rank in sorted(self._reserved)]
        self._reserved.clear()
        self._begins.clear()
        self._count.clear()
        self._profile = None
        for job in jobs:
            self._plan.backlog.show(job)
        for job in jobs:
            if job.state is State.PENDING:
                self.reserve(job)

    def _compress(self, freed: Freed) -> None:
        """Move reservations forward into what was freed, in the order of arrival; none moves back."""
        plan = self._plan
        profile = self._up_to_date()
        for rank in sorted(self._reserved):
            booking = self._reserved[rank]
            job = booking.job
            if not freed.may_help(profile, booking, max(1, plan.needed(job)), self._sites.least(job.demand)):
                continue
            self._unbook(booking)
            self._bounds.clear()  # others of its shape may have found only this reservation in their way
            among = None if self._sites.counts_only else freed.sites_for(booking)
            found = self._find(job, booking.begin, among)
            if found is None:
                self._book(booking)
                continue
            begin, pairs, option = found
            self._bounds.clear()
            freed.add(booking.pairs, booking.end)
            if begin <= plan.now and self._begin(job, pairs):
                plan.backlog.show(job)
            else:
                self._book(Booking(job, begin, self._end(job, begin), pairs, option))
