"""Amounts of a log in the units of a trace, and the figures by which it can be checked against itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analysim.traces.log import UNKNOWN
from analysim.units import GPU_MILLI, MICROSECONDS

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEVER = int(np.iinfo(np.int64).max)
"""Later than every moment: what stands for UNKNOWN where the first one is looked for."""

_YEAR = 366 * 86_400 * MICROSECONDS
_LARGEST = float(1 << 61)  # differences of two such still fit


def scale(values: Floats, unit: int) -> Integers:
    """Turn numbers into integers of 1/``unit``, rounded; UNKNOWN where they are NaN."""
    unknown = np.isnan(values)
    limited = np.clip(np.where(unknown, 0.0, values) * unit, -_LARGEST, _LARGEST)
    return np.where(unknown, UNKNOWN, np.rint(limited).astype(np.int64))


def spread_over_nodes(gpu_milli: Integers, nodes: Floats) -> Integers:
    """Return the GPUs on each of a job's nodes, 0 where the nodes are not told.

    A job whose GPUs do not divide by its nodes gets one more than all of them, which settling repairs.
    """
    gpus = np.where(gpu_milli > 0, gpu_milli // GPU_MILLI, 0)
    told = (nodes >= 1) & (gpus > 0)
    count = np.where(told, np.clip(np.nan_to_num(nodes), 1, _LARGEST), 1).astype(np.int64)
    each = np.where(gpus % count == 0, gpus // count, gpus + 1)
    return np.where(told, each, 0)


def difference(later: Integers, earlier: Integers) -> Integers:
    """Return ``later`` - ``earlier``, UNKNOWN where either is."""
    known = (later != UNKNOWN) & (earlier != UNKNOWN)
    return np.where(known, np.where(known, later, 0) - np.where(known, earlier, 0), UNKNOWN)


def last_moment(begins: Sequence[Integers], ends: Sequence[Integers]) -> tuple[int, list[str]]:
    """Find the moment at which a log ends (UNKNOWN: it tells none), up to which its running jobs run.

    Ends over a year after everything began are mistakes, which a note says.
    """
    begun = max(int(each.max(initial=UNKNOWN)) for each in begins)
    limit = NEVER if begun == UNKNOWN else begun + _YEAR
    last = max([begun, *(int(each[each <= limit].max(initial=UNKNOWN)) for each in ends)])
    late = sum(int((each > limit).sum()) for each in ends)
    if not late:
        return last, []
    return last, [f"{late:,} jobs end over a year after all submissions and starts: running jobs end before that."]


def count_differing(told: Integers, computed: Integers) -> tuple[int, int]:
    """Count the jobs whose told and computed spans (microseconds) differ by over a second, and all with both."""
    gap = difference(told, computed)
    both = gap != UNKNOWN
    return int((both & (np.abs(np.where(both, gap, 0)) > MICROSECONDS)).sum()), int(both.sum())


def witness(name: str, told: Integers, computed: Integers, what: str, then: str = ": the times count") -> list[str]:
    """Say in how many jobs a told span (microseconds) is not ``what`` it is computed as; nothing where it is in all.

    ``then`` says what counts.
    """
    differing, both = count_differing(told, computed)
    if not differing:
        return []
    return [f"{name} is not {what} in {differing:,} of {both:,} rows{then}."]
