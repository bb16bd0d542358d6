"""Columns of a file turned into arrays, whole columns at a time, and the cells that break the schema."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import UserError
from analysim.traces.moments import localise
from analysim.traces.problems import Finding
from analysim.traces.schema import Column, Kind
from analysim.units import parse_duration

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LARGEST = 1 << 53
"""Largest integer (in microseconds: 285 years) that a float of seconds holds exactly."""

_ABSENT_WORDS = ("nan", "na", "n/a", "none", "null", "<na>", "nat")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_CLOCK_WORDS = ("now", "today")  # pandas takes these for dates
_ZONE = r"(?:Z|[+-][0-9][0-9]:?[0-9][0-9]|[T ][^-+]*[+-][0-9][0-9]) *$"
_EXPECTED: dict[Kind, tuple[str, str]] = {
    "time": ("a time", "Write seconds (12.5) or ISO 8601 (2024-05-01T12:00:00+02:00)."),
    "duration": ("a duration", "Write seconds (90), or units as in 1h30m."),
    "gpus": ("a number of GPUs", "Write a whole number, 0 or more, or a share of one GPU such as 0.5."),
    "count": ("a whole number", "Write a whole number, 0 or more."),
    "amount": ("a number", "Write a number, 0 or more, without a unit."),
    "integer": ("a whole number", "Write a whole number, such as 0, 1 or -1."),
    "flag": ("true or false", "Write true, false, yes, no, 1 or 0."),
}
_CORRECT = "Correct the cell, or leave the job out."
_NEGATIVE: dict[Kind, str] = {
    "time": "Times are 0 or more: add the same number to all of them, or correct the cell.",
    "duration": _CORRECT,
    "gpus": _CORRECT,
    "count": _CORRECT,
    "amount": _CORRECT,
    "integer": _CORRECT,
}
_MILLISECONDS = "Times are seconds: divide milliseconds by 1,000, or correct the cell."
_TOO_LARGE: dict[Kind, str] = {**_NEGATIVE, "time": _MILLISECONDS, "duration": _MILLISECONDS}


def largest_of(column: Column) -> int:
    """The largest integer in the frame that a column of our schema may hold."""
    return LARGEST // column.scale * column.scale


@dataclass
class Reading:
    """A column as integers in the unit of the frame, 0 where a cell is absent or bad.

    ``unread`` cells are not what the column holds. ``dates``: times are microseconds since 1970, not on a
    clock of the trace's own; ``zones`` counts those of ``submit_time`` with a time zone.
    """

    integers: Integers
    absent: Mask
    unread: Mask
    too_large: Mask
    dates: bool = False
    zones: int = 0

    @property
    def present(self) -> Mask:
        """Which cells hold a value that could be read."""
        return ~(self.absent | self.unread | self.too_large)


def read_integers(
    column: Column, series: pd.Series, name: str, timezone: tzinfo | None = None
) -> tuple[Reading, list[Finding]]:
    """Turn a column (called ``name`` in the file) of numbers, times or text into integers.

    Times are rounded to the microsecond, amounts to thousandths; dates without a zone are of ``timezone``.
    The findings are the cells that are no such value, negative, or too large.
    """
    reading = _read(column, series, timezone)
    unread = reading.unread | reading.absent if column.required else reading.unread
    negative = reading.integers < 0
    if column.kind == "integer":
        negative[:] = False
    reading.integers[negative] = 0
    expected, remedy = _EXPECTED[column.kind]
    early, late = ("is before 1970", "is after 2255") if reading.dates else ("is negative", "is too large")
    findings = [
        find_cells(f"not {expected}", name, unread, f"is not {expected}", remedy),
        find_cells(f"negative {column.name}", name, negative, early, _NEGATIVE[column.kind]),
        find_cells(f"too large {column.name}", name, reading.too_large, late, _TOO_LARGE[column.kind]),
    ]
    return reading, [finding for finding in findings if finding.rows.size]


def read_flags(column: Column, series: pd.Series, name: str) -> tuple[Mask, list[Finding]]:
    """Turn a column of true/false/yes/no/1/0 into booleans; absent cells hold the default."""
    if series.dtype == bool:
        return series.to_numpy(), []
    codes, words = pd.factorize(series)
    known = [_FLAGS.get(str(word).strip().lower()) for word in words]
    absent = [word.strip().lower() in _ABSENT_WORDS for word in words]
    # Code -1 is an empty cell: it finds the last item of both lists.
    values = np.array(
        [*(bool(column.default) if flag is None else flag for flag in known), column.default], bool
    )
    bad = np.array([*(flag is None and not none for flag, none in zip(known, absent, strict=True)), False])
    expected, remedy = _EXPECTED["flag"]
    finding = find_cells(f"not {expected}", name, bad[codes], f"is not {expected}", remedy)
    return values[codes], [finding] if finding.rows.size else []


def find_cells(kind: str, name: str, bad: Mask, what: str, remedy: str) -> Finding:
    """Make a finding of the cells of column ``name`` that a mask marks."""
    return Finding(kind, name, np.flatnonzero(bad), what, remedy)


def _read(column: Column, series: pd.Series, timezone: tzinfo | None) -> Reading:
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        reading = _read_dates(series)
        if timezone is not None and not isinstance(series.dtype, pd.DatetimeTZDtype):
            _localise(reading, reading.present, timezone)
        return reading
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        spans = series.to_numpy("timedelta64[us]")
        absent = np.isnat(spans)
        return _blank(np.where(absent, 0, spans.astype(np.int64)), absent)
    if pd.api.types.is_numeric_dtype(series.dtype):
        return _read_numbers(series.to_numpy(), column)
    return _read_text(series, column, timezone)


def _blank(integers: Integers, absent: Mask) -> Reading:
    return Reading(integers, absent, np.zeros_like(absent), np.zeros_like(absent))


def _read_numbers(raw: npt.NDArray[Any], column: Column) -> Reading:
    """Scale numbers to the unit of the frame, without overflow; fractions of whole things are unread."""
    limit = LARGEST // column.scale
    if raw.dtype == np.int64:
        too_large = (raw > limit) | (raw < -limit)
        integers = np.where(too_large, 0, raw) * column.scale
        return Reading(integers, np.zeros_like(too_large), np.zeros_like(too_large), too_large)
    values = raw.astype(np.float64)
    absent, unread = np.isnan(values), np.isinf(values)
    too_large = ~unread & (np.abs(values) > limit)
    values = np.where(absent | unread | too_large, 0.0, values)
    if column.kind in ("gpus", "count", "integer"):
        fractions = values != np.rint(values)
        if column.kind == "gpus":
            fractions &= (values <= 0) | (values >= 1) | (np.rint(values * column.scale) < 1)
        unread |= fractions
        values[fractions] = 0.0
    return Reading(np.rint(values * column.scale).astype(np.int64), absent, unread, too_large)


def _read_text(series: pd.Series, column: Column, timezone: tzinfo | None) -> Reading:
    """Read a column that is not numbers throughout: dates, durations such as 1h30m, or stray text."""
    if column.kind == "time":
        dates = _read_mostly_dates(series, column, timezone)
        if dates is not None:
            return dates
    absent = series.isna().to_numpy() | series.str.lower().isin(_ABSENT_WORDS).to_numpy(bool)
    reading = _read_numbers(pd.to_numeric(series, errors="coerce").to_numpy(np.float64), column)
    rest = reading.absent & ~absent
    reading.absent = absent
    if column.kind in ("time", "duration"):
        rest = _fill_durations(reading, series, rest)
    reading.unread |= rest
    return reading


def _read_mostly_dates(series: pd.Series, column: Column, timezone: tzinfo | None) -> Reading | None:
    """Read text that is ISO 8601 dates for the most part; None where it is something else.

    Years and dates without hyphens are digits only: what the first cell is decides how they are read.
    """
    stamps = pd.to_datetime(series, format="ISO8601", errors="coerce", utc=True)
    found = (stamps.notna() & ~series.isin(_CLOCK_WORDS)).to_numpy()
    if 2 * found.sum() <= series.notna().sum() or series.iloc[int(found.argmax())].strip().isdigit():
        return None
    reading = _read_dates(stamps)
    other = series[~found].dropna()
    unread = other.index[~other.str.lower().isin(_ABSENT_WORDS)]
    reading.integers[~found] = 0
    reading.absent = ~found
    reading.absent[unread] = False
    reading.unread[unread] = True
    reading.too_large = reading.integers > LARGEST
    if column.name == "submit_time" or timezone is not None:
        zoned = series.str.contains(_ZONE, na=False).to_numpy(bool)
        reading.zones = int(zoned.sum())
        if timezone is not None:
            _localise(reading, reading.present & ~zoned, timezone)
    return reading


def _localise(reading: Reading, naive: Mask, timezone: tzinfo) -> None:
    reading.integers[naive] = localise(reading.integers[naive], timezone)


def _read_dates(series: pd.Series) -> Reading:
    """Turn dates into microseconds since 1970 (UTC where they have a zone)."""
    zoned = isinstance(series.dtype, pd.DatetimeTZDtype)
    naive = series.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else series
    stamps = naive.to_numpy("datetime64[us]")
    absent = np.isnat(stamps)
    reading = _blank(np.where(absent, 0, stamps.astype(np.int64)), absent)
    reading.dates = True
    reading.zones = int((~absent).sum()) if zoned else 0
    return reading


def _fill_durations(reading: Reading, series: pd.Series, wanted: Mask) -> Mask:
    """Read durations such as ``1h30m`` into ``reading``; return which cells are none."""
    codes, words = pd.factorize(series.where(wanted))
    spans = np.array([_duration(word) for word in words] + [0], np.float64)[codes]
    readable = wanted & ~np.isnan(spans)
    reading.too_large |= readable & (spans > LARGEST)
    fits = readable & (spans <= LARGEST)
    reading.integers[fits] = spans[fits].astype(np.int64)
    return wanted & ~readable


def _duration(text: str) -> float:
    try:
        return float(min(parse_duration(text), 2 * LARGEST))
    except UserError:
        return np.nan
