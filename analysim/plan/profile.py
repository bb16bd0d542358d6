"""What will be free on each site over time, and when a gang fits in it for as long as it runs.

A profile is a table with a row for each interval in which nothing changes and a column for each site: a node, or a
pool of nodes. Numbers of free GPUs are enough: on a site GPUs are alike, and who starts there takes those free then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from analysim.cluster.capacity import Capacity, lowest_bits
from analysim.jobs import Demand
from analysim.plan.sites import Pairs, Sites, Way

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_PLENTY = 1 << 50
"""Free CPUs and memory of a node where they are not modelled."""

_FIRST_ROWS = 64
_MOST_NARROW = 32_000


class Profile:
    """Free GPUs (and CPUs, memory) by interval and site, from now on; the last interval has no end.

    ``times`` are the starts of the intervals in microseconds, ``free`` the rows; both are views for reading.
    """

    def __init__(self, capacity: Capacity, sites: Sites, now: int) -> None:
        self.topology = capacity.topology
        self._sizes = [len(levels) for levels in capacity.levels]
        self._first = 0
        self._last = 1
        size = len(sites.masks)
        self._times = np.empty(_FIRST_ROWS, np.int64)
        self._tables: list[npt.NDArray[Any]] = [np.empty((_FIRST_ROWS, size), np.int32 if sites.pooled else np.int16)]
        self._tables[0][0] = sites.counts(capacity)
        if capacity.models_resources and not sites.pooled:
            for amounts in (capacity.cpu_milli, capacity.memory_mb):
                table = np.empty((_FIRST_ROWS, size), np.int64)
                table[0] = [amount if amount >= 0 else _PLENTY for amount in amounts]
                self._tables.append(table)
        self._times[0] = now

    @property
    def times(self) -> Integers:
        """Starts of the intervals."""
        return self._times[self._first : self._last]

    @property
    def tables(self) -> list[npt.NDArray[Any]]:
        """Free GPUs by interval and site; where they are modelled, also thousandths of CPUs, and megabytes."""
        return [table[self._first : self._last] for table in self._tables]

    def __len__(self) -> int:
        return self._last - self._first

    def row_at(self, time: int) -> int:
        """Return the row of the interval that holds at a time (the first one, for what is past)."""
        return max(0, int(self.times.searchsorted(time, "right")) - 1)

    def advance(self, now: int) -> None:
        """Forget what is past."""
        self._first += self.row_at(now)
        self._times[self._first] = max(now, int(self._times[self._first]))

    def add(self, begin: int, end: int, pairs: Pairs, demand: Demand, sign: int) -> None:
        """Count what a job holds from ``begin`` to ``end`` as free (sign 1) or as taken (sign -1)."""
        if begin >= end or pairs[0][0] < 0:
            return
        first, beyond = self._cut(begin), self._cut(end)
        rows = slice(self._first + first, self._first + beyond)
        shares = [(self._tables[0], 1, 0)]
        if len(self._tables) > 1 and demand.resources:
            of_none = 0 if demand.gpus else 1
            shares += [(self._tables[1], demand.cpu_milli, of_none), (self._tables[2], demand.memory_mb, of_none)]
        if len(pairs) == 1:
            ((site, count),) = pairs
            for table, share, of_none in shares:
                table[rows, site] += sign * share * (of_none or count)
            return
        sites = np.array([site for site, _ in pairs])
        counts = np.array([count for _, count in pairs])
        for table, share, _ in shares:
            table[rows, sites] += (sign * share * counts).astype(table.dtype)

    def give(self, pairs: Pairs, demand: Demand) -> None:
        """Count what a job holds as free from now on."""
        for site, count in pairs:
            if site >= 0:
                self.tables[0][:, site] += count
                for table, share in zip(self.tables[1:], (demand.cpu_milli, demand.memory_mb), strict=False):
                    table[:, site] += share * (count if demand.gpus else 1)

    def _cut(self, time: int) -> int:
        """Make an interval begin at a time; return its row."""
        row = int(self.times.searchsorted(time))
        if row < len(self) and self.times[row] == time:
            return row
        if row == 0:
            return 0  # what began before now holds from now on
        if self._last == len(self._times):
            self._make_room()
        at, last = self._first + row, self._last
        self._times[at + 1 : last + 1] = self._times[at:last].copy()
        self._times[at] = time
        for table in self._tables:
            table[at + 1 : last + 1] = table[at:last].copy()
            table[at] = table[at - 1]
        self._last += 1
        return row

    def _make_room(self) -> None:
        """Move all to tables with room for twice as many intervals."""
        count = len(self)
        rows = max(_FIRST_ROWS, 2 * count)
        times, tables = self.times, self.tables
        self._times = np.empty(rows, np.int64)
        self._times[:count] = times
        self._tables = [np.empty((rows, table.shape[1]), table.dtype) for table in tables]
        for table, old in zip(self._tables, tables, strict=True):
            table[:count] = old
        self._first, self._last = 0, count

    def join(self) -> None:
        """Make one interval of neighbours that do not differ."""
        differs = np.ones(len(self), np.bool_)
        differs[1:] = False
        for table in self.tables:
            differs[1:] |= (table[1:] != table[:-1]).any(axis=1)
        kept = int(differs.sum())
        self._times[:kept] = self.times[differs]
        for store, table in zip(self._tables, self.tables, strict=True):
            store[:kept] = table[differs]
        self._first, self._last = 0, kept

    # -- when a gang fits ------------------------------------------------------------------------------

    def starts(self, way: Way, demand: Demand, duration: int, first: int, beyond: int) -> Iterator[int]:
        """Yield the rows in [first, beyond) at which a gang may start, its sites having room for all of ``duration``.

        A row is yielded where enough sites have enough free from there on; whether the placement strategy makes
        something of it is for the caller to see.
        """
        size = 1
        while first < beyond:
            last = min(first + size, beyond)
            ends = self.times.searchsorted(self.times[first:last] + duration)
            if size == 1:
                fits = self._fits_at(way, demand, first, int(ends[0]))
            else:
                fits = self._fits(way, demand, first, ends)
            for offset in np.flatnonzero(fits):
                yield first + int(offset)
            first = last
            size *= 8

    def _enough(self, way: Way, demand: Demand, gpus: int, rows: slice) -> Flags:
        """Tell for each interval and site whether it has enough for so many GPUs of a demand."""
        tables = self.tables
        share = gpus if demand.gpus else 1
        enough: Flags = tables[0][rows][:, way.columns] >= gpus
        if len(tables) > 1 and demand.resources:
            enough &= tables[1][rows][:, way.columns] >= share * demand.cpu_milli
            enough &= tables[2][rows][:, way.columns] >= share * demand.memory_mb
        if way.allowed is not None:
            enough &= way.allowed[rows, None]
        return enough

    def _fits_at(self, way: Way, demand: Demand, first: int, end: int) -> Flags:
        total = 0
        for gpus, count in way.asks:
            sites = int(self._enough(way, demand, gpus, slice(first, end)).all(axis=0).sum())
            total += sites
            if sites < count:
                return np.zeros(1, np.bool_)
        return np.array([total >= way.total])

    def _fits(self, way: Way, demand: Demand, first: int, ends: Integers) -> Flags:
        rows = slice(first, int(ends[-1]))
        narrow = np.int16 if rows.stop - first < _MOST_NARROW else np.int32
        numbers = np.arange(rows.stop - first, dtype=narrow)
        total = np.zeros(len(ends), np.int64)
        fits = np.ones(len(ends), np.bool_)
        for gpus, count in way.asks:
            short = np.where(self._enough(way, demand, gpus, rows), narrow(-1), numbers[:, None])
            for row in range(1, len(short)):  # the last interval so far in which a site lacks it
                np.maximum(short[row - 1], short[row], out=short[row])  # accumulate() goes by columns: slower
            sites = (short[ends - first - 1] < numbers[: len(ends), None]).sum(axis=1)
            total += sites
            fits &= sites >= count
        return fits & (total >= way.total)

    def least(self, row: int, duration: int) -> list[npt.NDArray[Any]]:
        """Return the least that each site has of each for a duration from a row on."""
        end = int(self.times.searchsorted(self.times[row] + duration))
        return [table[row:end].min(axis=0) for table in self.tables]

    def window(self, row: int, duration: int, now: Capacity | None) -> Window:
        """What is free on each node for a duration from a row on; of ``now`` are the GPUs that are free now."""
        return Window(self.topology, self.least(row, duration), self._sizes, now)


class Window(Capacity):
    """What stays free on each node over a time, for a placement strategy to choose from; nothing can be taken of it."""

    def __init__(self, topology: Any, least: list[npt.NDArray[Any]], sizes: list[int], now: Capacity | None) -> None:
        self.topology = topology
        self.models_resources = len(least) > 1
        self._now = now
        self._counts = counts = least[0].tolist()
        self.free = _Masks(self)  # type: ignore[assignment]  # made when it is asked for
        self.partial = [{}] * topology.size  # nothing is shared where reservations are made
        self.partial_nodes = 0
        self.levels = []
        sets = dict.fromkeys(set(counts), 0)
        for count in sets:
            flags = np.packbits(least[0] == count, bitorder="little")
            sets[count] = int.from_bytes(flags.tobytes(), "little")
        for mask, size in zip(topology.type_masks, sizes, strict=True):
            self.levels.append([sets.get(count, 0) & mask for count in range(size)])
        if self.models_resources:
            self.cpu_milli, self.memory_mb = least[1].tolist(), least[2].tolist()

    def pick(self, node: int, count: int) -> int:
        """Choose ``count`` GPUs of a node: of those that are free now, or any."""
        return (1 << count) - 1 if self._now is None else self._now.pick(node, count)


class _Masks:
    """Masks of the GPUs of each node that stay free, made when they are asked for."""

    __slots__ = ("_window",)

    def __init__(self, window: Window) -> None:
        self._window = window

    def __getitem__(self, node: int) -> int:
        window = self._window
        count: int = window._counts[node]
        return (1 << count) - 1 if window._now is None else lowest_bits(window._now.free[node], count)
