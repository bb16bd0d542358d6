"""Elastic jobs: on how many GPUs one may run, and how its speed follows them.

Sources: the curve ``amdahl`` is Amdahl, "Validity of the single processor approach to achieving large scale
computing capabilities", AFIPS 1967; tables hold what somebody measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from analysim.errors import TraceError, UserError
from analysim.units import GPU_MILLI

if TYPE_CHECKING:
    import pandas as pd

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

COLUMNS = ("min_gpus", "max_gpus", "throughput")
"""The columns of a trace that make its jobs elastic."""

LEAST, MOST = 1e-12, 1e15
"""Throughputs beyond these are slips of the pen, and their ratios would be infinite or 0."""

_EXPECTED = "Write linear, amdahl:F with F from 0 to 1, or a table such as 1=1 2=1.9 4=3.4."


class Curve:
    """Throughput by number of GPUs, in any unit: only ratios are used.

    ``parallel`` is the fraction of the work that runs on all GPUs at once (1: linear), ``points`` a table of
    (GPUs, throughput) that stands in its place.
    """

    __slots__ = ("parallel", "points")

    def __init__(self, parallel: float = 1.0, points: tuple[tuple[int, float], ...] = ()) -> None:
        self.parallel = parallel
        self.points = points

    def at(self, gpus: int) -> float:
        """Throughput on so many GPUs (1 or more): 1 / ((1 - F) + F / GPUs), or the table's, linear between points."""
        if not self.points:
            return float(gpus) if self.parallel == 1 else 1 / ((1 - self.parallel) + self.parallel / gpus)
        before = self.points[0]
        for point in self.points:
            if point[0] >= gpus:
                if point[0] == gpus:
                    return point[1]
                return before[1] + (point[1] - before[1]) * (gpus - before[0]) / (point[0] - before[0])
            before = point
        return before[1]

    def covers(self, least: int, most: int) -> bool:
        """Tell whether these numbers of GPUs lie within the table."""
        return not self.points or (self.points[0][0] <= least and most <= self.points[-1][0])


def parse_curve(text: str) -> Curve:
    """Read the cell ``throughput``. Raises ``UserError`` whose message completes "throughput 'text' ..."."""
    stripped = text.strip()
    if stripped in ("", "linear"):
        return Curve()
    name, colon, number = stripped.partition(":")
    if colon and name.strip() == "amdahl":
        parallel = _number(number)
        if parallel is None or not 0 <= parallel <= 1:
            raise UserError("has no parallel fraction from 0 to 1", _EXPECTED)
        return Curve(parallel)
    if "=" not in stripped:
        raise UserError("is no curve of throughput", _EXPECTED)
    return Curve(points=tuple(_points(stripped)))


def _points(text: str) -> Iterator[tuple[int, float]]:
    last = 0
    for part in text.replace(",", " ").split():
        count, equals, number = part.partition("=")
        throughput = _number(number)
        if not equals or not count.isascii() or not count.isdecimal() or throughput is None:
            raise UserError(f"has {part!r}, which is not GPUs=throughput", _EXPECTED)
        if int(count) <= last:
            raise UserError(f"has {part!r} out of order: numbers of GPUs increase from 1", _EXPECTED)
        if throughput <= 0:
            raise UserError(f"has {part!r}: a throughput is more than 0", _EXPECTED)
        if not LEAST <= throughput <= MOST:
            raise UserError(f"has {part!r}: a throughput is from {LEAST:g} to {MOST:g}; choose another unit", _EXPECTED)
        last = int(count)
        yield last, throughput


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and "_" not in text else None


class Elasticity:
    """On how many GPUs a job runs: ``least`` to ``most`` in steps of ``step``; ``asked`` is its ``num_gpus``."""

    __slots__ = ("_curve", "_ratios", "asked", "least", "most", "step")

    def __init__(self, asked: int, least: int, most: int, step: int, curve: Curve) -> None:
        self.asked = asked
        self.least = least
        self.most = most
        self.step = step
        self._curve = curve
        self._ratios: dict[int, float] = {}

    def takes(self, gpus: int) -> bool:
        """Tell whether the job may run on so many GPUs."""
        return self.least <= gpus <= self.most and gpus % self.step == 0

    def ratio(self, gpus: int) -> float:
        """Throughput on so many GPUs over that on ``asked``, which is 1 exactly there."""
        found = self._ratios.get(gpus)
        if found is None:
            found = 1.0 if gpus == self.asked else self._curve.at(gpus) / self._curve.at(self.asked)
            self._ratios[gpus] = found
        return found


@dataclass(frozen=True)
class Fault:
    """Rows of a trace that break a rule of elastic jobs; ``what`` completes "min_gpus is 8, which ..." for a row."""

    kind: str
    column: str
    rows: npt.NDArray[np.intp]
    what: Callable[[int], str]
    remedy: str


def bounds(frame: pd.DataFrame) -> tuple[Integers, Integers, Mask]:
    """Least and most GPUs of each job of a trace, 0 being its ``num_gpus``, and which jobs are elastic."""
    asked = frame["gpu_milli"].to_numpy(np.int64) // GPU_MILLI
    least, most = (frame[name].to_numpy(np.int64) for name in ("min_gpus", "max_gpus"))
    least, most = np.where(least > 0, least, asked), np.where(most > 0, most, asked)
    return least, most, (least != asked) | (most != asked)


def find_faults(frame: pd.DataFrame) -> list[Fault]:
    """What is wrong with the columns ``min_gpus``, ``max_gpus`` and ``throughput`` of a trace; mostly nothing."""
    texts = frame["throughput"]
    given = {name: frame[name].to_numpy(np.int64) for name in ("min_gpus", "max_gpus")}
    codes, words = _distinct(texts)
    if not any(values.any() for values in given.values()) and not any(words):
        return []
    milli = frame["gpu_milli"].to_numpy(np.int64)
    asked, each = milli // GPU_MILLI, frame["gpus_per_node"].to_numpy(np.int64)
    whole = (milli > 0) & (milli % GPU_MILLI == 0)
    least, most, elastic = bounds(frame)
    found = []

    def check(name: str, what: str, bad: Mask, than: Integers | None, remedy: str) -> None:
        def tell(row: int) -> str:
            return what if than is None else f"{what}, {than[row]}"

        if bad.any():
            found.append(Fault(f"{name} {what}", name, np.flatnonzero(bad), tell, remedy))

    for name, values in given.items():
        check(name, "is given to a job without whole GPUs", (values > 0) & ~whole & elastic, None, _WHOLE)
        uneven = (values > 0) & whole & (each > 0) & (values % np.maximum(each, 1) != 0)
        check(name, "is no multiple of gpus_per_node", uneven, each, _EVEN)
    check("min_gpus", "is more than num_gpus", whole & (least > asked), asked, _BETWEEN)
    check("max_gpus", "is less than num_gpus", whole & (most < asked), asked, _BETWEEN)
    return found + _curve_faults(codes, words, least, most, whole)


_WHOLE = "Leave min_gpus and max_gpus empty: only jobs that ask for whole GPUs are elastic."
_EVEN = "Write a multiple: an elastic job keeps to so many GPUs on each of its nodes."
_BETWEEN = "Write min_gpus <= num_gpus <= max_gpus."


def _distinct(texts: pd.Series) -> tuple[Integers, list[str]]:
    import pandas as pd

    codes, words = pd.factorize(texts)
    return np.asarray(codes, np.int64), [str(word) for word in words]


def _curve_faults(codes: Integers, words: list[str], least: Integers, most: Integers, whole: Mask) -> list[Fault]:
    found = []
    for code, word in enumerate(words):
        mine = codes == code
        try:
            curve = parse_curve(word)
        except UserError as error:
            found.append(_unread(np.flatnonzero(mine), error))
            continue
        if curve.points:
            first, last = curve.points[0][0], curve.points[-1][0]
            short = mine & whole & ((least < first) | (most > last))
            if short.any():
                found.append(_short(np.flatnonzero(short), first, last, least, most))
    return found


def _unread(rows: npt.NDArray[np.intp], error: UserError) -> Fault:
    return Fault("throughput", "throughput", rows, lambda row: error.message, error.remedy)


def _short(rows: npt.NDArray[np.intp], first: int, last: int, least: Integers, most: Integers) -> Fault:
    def what(row: int) -> str:
        return f"tells of {first} to {last} GPUs; the job runs on {least[row]} to {most[row]}"

    return Fault("throughput too short", "throughput", rows, what, "Add points for its least and its most GPUs.")


def check_elastic(frame: pd.DataFrame) -> None:
    """Raise ``TraceError`` about the first job whose columns are not as ``docs/reference/elastic-jobs.md`` says."""
    faults = find_faults(frame)
    if faults:
        fault = min(faults, key=lambda each: int(each.rows[0]))
        row = int(fault.rows[0])
        job, value = frame["job_id"].iloc[row], frame[fault.column].iloc[row]
        shown = repr(value) if isinstance(value, str) else value
        others = f" ({len(fault.rows) - 1} more jobs)" if len(fault.rows) > 1 else ""
        raise TraceError(f"job {job}: {fault.column} {shown} {fault.what(row)}{others}.", fault.remedy)
