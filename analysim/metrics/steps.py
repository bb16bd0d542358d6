"""Step functions over the instants of a run, and their exact averages over bins of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysim.metrics.integers import NEVER, Floats, Integers, Record

UNCOVERED = int(np.iinfo(np.int64).max)
"""What ``lowest_cover`` says where nothing covers."""


@dataclass(frozen=True)
class Grid:
    """All instants at which anything changes; step i lasts from ``times_us[i]`` to ``times_us[i + 1]``.

    ``edges`` are the indexes of the bins' edges: bin b lasts from edge b to edge b + 1. ``row_first`` and
    ``row_last`` are the indexes at which each row of ``segments`` begins and ends.
    """

    times_us: Integers
    edges: Integers
    row_first: Integers
    row_last: Integers

    @classmethod
    def of(cls, record: Record, edges_us: Integers) -> Grid:
        """Lay the grid through every change of a run and through the edges of the bins (increasing)."""
        jobs, rows, capacity = record.jobs, record.rows, record.capacity
        ends = jobs.end_us[jobs.end_us != NEVER]
        last = np.array([record.last_end_us], np.int64)
        instants = (jobs.submit_us, ends, rows.start_us, rows.end_us, capacity.time_us, edges_us, last)
        times = distinct(np.concatenate(instants))
        return cls(times, *(np.searchsorted(times, each) for each in (edges_us, rows.start_us, rows.end_us)))

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.times_us) - 1

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def find(self, times_us: Integers) -> Integers:
        """Return the indexes of times that lie on the grid."""
        return np.searchsorted(self.times_us, times_us)

    def accumulate(self, index: Integers, change: Integers) -> Integers:
        """Return a step function from its changes at grid indexes."""
        total = np.zeros(len(self.times_us), np.int64)
        np.add.at(total, index, change)
        return np.cumsum(total)[:-1]

    def count(self, first: Integers, last: Integers, weight: Integers) -> Integers:
        """Return, for each step, the weight of the spans [first, last) that cover it."""
        total = np.zeros(len(self.times_us), np.int64)
        np.add.at(total, first, weight)
        np.subtract.at(total, last, weight)
        return np.cumsum(total)[:-1]

    def average(self, values: Integers | Floats) -> Floats:
        """Average a step function over each bin; the integral of an integer one is exact."""
        return np.asarray(self._integrate(values * self._widths) / np.diff(self.times_us[self.edges]))

    def average_share(self, part: Integers, whole: Integers) -> Floats:
        """Average part / whole over each bin's time in which ``whole`` is positive; NaN where it never is."""
        positive = whole > 0
        shares = np.divide(part, whole, out=np.zeros(len(part)), where=positive)
        area = self._integrate(shares * self._widths)
        time = self._integrate(np.where(positive, self._widths, 0))
        return np.asarray(np.divide(area, time, out=np.full(self.bins, np.nan), where=time > 0))

    @property
    def _widths(self) -> Integers:
        return np.diff(self.times_us)

    def _integrate(self, areas: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.add.reduceat(areas[: self.edges[-1]], self.edges[:-1]) if self.bins else areas[:0]


def distinct(values: Integers) -> Integers:
    """Return the distinct values in order; for millions of them sorting is faster than ``np.unique``."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def lowest_cover(first: Integers, last: Integers, value: Integers, size: int) -> Integers:
    """Return, for each of ``size`` steps, the lowest value among the spans [first, last) that cover it.

    ``UNCOVERED`` where none does. A span is the union of two overlapping spans whose length is one
    power of two; those are pushed down to half their length until they are single steps, so the cost
    is one pass over the steps for each power of two, however many spans overlap.
    """
    lowest = np.full(size, UNCOVERED, np.int64)
    power = np.frexp((last - first).astype(np.float64))[1] - 1
    for level in range(int(power.max(initial=0)), -1, -1):
        chosen = np.flatnonzero((power == level) & (last > first))
        np.minimum.at(lowest, first[chosen], value[chosen])
        np.minimum.at(lowest, last[chosen] - (1 << level), value[chosen])
        half = 1 << level >> 1
        if half:
            pushed = lowest.copy()
            np.minimum(pushed[half:], lowest[:-half], out=pushed[half:])
            lowest = pushed
    return lowest
