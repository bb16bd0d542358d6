"""How far two schedules of the same jobs agree: distributions of waits, and busy GPUs over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysim.metrics.integers import Floats, Integers, exact_sum
from analysim.metrics.job_figures import quantile_s
from analysim.metrics.steps import distinct
from analysim.units import MICROSECONDS

PERCENTS = (10, 25, 50, 75, 90, 99)
"""Quantiles by which a distribution of waits is told."""


def quantiles_s(values_us: Integers) -> dict[str, float | None]:
    """Quantiles of microseconds, in seconds, linearly interpolated; None where there are no values."""
    ordered = np.sort(values_us)
    return {f"p{percent}": quantile_s(ordered, percent) for percent in PERCENTS}


def kolmogorov_smirnov(one: Integers, other: Integers) -> float | None:
    """Largest difference between the distribution functions of two samples; None where one is empty."""
    if not len(one) or not len(other):
        return None
    values = distinct(np.concatenate([one, other]))
    return float(np.abs(_distribution(one, values) - _distribution(other, values)).max())


def wasserstein_s(one: Integers, other: Integers) -> float | None:
    """Area between the distribution functions of two samples of microseconds, in seconds; None where one is empty.

    It is the least mean distance by which the values of one sample have to be shifted to become the other
    (the first Wasserstein, or earth mover's, distance).
    """
    if not len(one) or not len(other):
        return None
    values = distinct(np.concatenate([one, other]))
    apart = np.abs(_distribution(one, values) - _distribution(other, values))[:-1]
    return float((apart * np.diff(values)).sum()) / MICROSECONDS


def _distribution(sample: Integers, values: Integers) -> Floats:
    return np.searchsorted(np.sort(sample), values, side="right") / len(sample)


@dataclass(frozen=True)
class Spans:
    """GPUs in use: so many from ``start_us`` to ``end_us``, an entry a job or a part of one."""

    start_us: Integers
    end_us: Integers
    gpus: Integers

    def chosen(self, which: Integers) -> Spans:
        """Take some entries."""
        return Spans(self.start_us[which], self.end_us[which], self.gpus[which])

    def busy(self, times_us: Integers) -> Integers:
        """Count the GPUs in use from each of these increasing times on, which hold every change between them."""
        change = np.zeros(len(times_us) + 1, np.int64)
        np.add.at(change, np.searchsorted(times_us, self.start_us), self.gpus)
        np.subtract.at(change, np.searchsorted(times_us, self.end_us), self.gpus)
        return np.cumsum(change)[:-1]


@dataclass(frozen=True)
class Busy:
    """Two courses of busy GPUs over one stretch of time, in steps from ``times_us`` on; the last has no length."""

    times_us: Integers
    recorded: Integers
    simulated: Integers

    @classmethod
    def of(cls, recorded: Spans, simulated: Spans, from_us: int, to_us: int) -> Busy:
        """Lay both courses over one another, clipped to [from_us, to_us]."""
        edges = np.array([from_us, to_us], np.int64)
        parts = (recorded.start_us, recorded.end_us, simulated.start_us, simulated.end_us)
        times = distinct(np.concatenate([edges, *parts]))
        inside = (times >= from_us) & (times <= to_us)
        return cls(times[inside], recorded.busy(times)[inside], simulated.busy(times)[inside])

    @property
    def mean_absolute_difference(self) -> float | None:
        """GPUs by which the courses differ at a random moment; None for a stretch without length."""
        return self._average(np.abs(self.recorded - self.simulated))

    @property
    def means(self) -> tuple[float | None, float | None]:
        """Busy GPUs at a random moment: recorded, simulated."""
        return self._average(self.recorded), self._average(self.simulated)

    def _average(self, values: Integers) -> float | None:
        widths = np.diff(self.times_us)
        span = int(widths.sum())
        return exact_sum(values[:-1] * widths) / span if span else None

    def averages(self, intervals: int) -> tuple[Floats, Floats, Floats]:
        """Average both courses over equal intervals: edges in seconds, recorded, simulated; for a figure."""
        edges = np.linspace(self.times_us[0], self.times_us[-1], intervals + 1)
        widths = np.diff(self.times_us)

        def over(values: Integers) -> Floats:
            area = np.append(0.0, np.cumsum(values[:-1] * widths, dtype=np.float64))
            return np.asarray(np.diff(np.interp(edges, self.times_us, area)) / np.diff(edges))

        return edges / MICROSECONDS, over(self.recorded), over(self.simulated)
