"""Dates of a log as microseconds since 1970, with the zone of naive ones made explicit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.traces.log import UNKNOWN

Integers = npt.NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOWEST, _HIGHEST = "0000-00-00T00:00:00", "9999-99-99T99:99:99"

NO_VALUE = ("", "none", "null", "nan", "nat", "n/a", "unknown")
"""Cells, in lower case, that tell no date (and no number)."""


def read_moments(texts: pd.Series | Sequence[str | None], timezone: tzinfo | None) -> tuple[Integers, int]:
    """Turn ISO 8601 dates into microseconds since 1970 in UTC, and count those without a zone.

    Cells that tell no date are ``UNKNOWN``, and so are cells that are none. Naive ones are of ``timezone``
    (None: UTC); an hour that comes twice in it is the first one, an hour that is skipped is the one after.
    """
    plain = _read_plain(texts, timezone)
    if plain is not None:
        return plain
    series = pd.Series(texts, dtype=object)
    codes, words = pd.factorize(series)
    unique = pd.Series(np.asarray(words, object), dtype=object).astype(str)
    # A zone is Z or an offset after the time of day: the hyphens of the date come earlier.
    zoned = unique.str.contains(r"(?:Z|[0-9][+-][0-9]{2}:?(?:[0-9]{2})?)\s*$", regex=True) & unique.str.contains(":")
    absent = unique.str.strip().str.lower().isin(NO_VALUE)
    moments = np.full(len(unique) + 1, UNKNOWN)
    local = _naive(unique.where(~zoned & ~absent), timezone)
    moments[:-1] = np.where(zoned, _zoned(unique.where(zoned & ~absent)), local)
    result = moments[codes]
    naive = np.append((~zoned & ~absent).to_numpy(), False)[codes] & (result != UNKNOWN)
    return result, int(naive.sum())


def _read_plain(texts: pd.Series | Sequence[str | None], timezone: tzinfo | None) -> tuple[Integers, int] | None:
    """Read dates that are all written 2024-05-01T12:00:00, which most logs do, many times faster; None for others."""
    cells = list(texts)
    try:
        sizes = np.fromiter(map(len, cells), np.int64, len(cells))
    except TypeError:
        return None
    told = sizes == len(_LOWEST)
    if not told.all():
        others = {str(cells[place]).strip().lower() for place in np.flatnonzero(~told)}
        cells = [cells[place] for place in np.flatnonzero(told)]
        if not cells or not others <= set(NO_VALUE):
            return None
    words = np.array(cells, f"U{len(_LOWEST)}")
    marks = words.view(np.uint32).reshape(-1, len(_LOWEST))
    if ((marks < _marks(_LOWEST)) | (marks > _marks(_HIGHEST))).any():
        return None
    try:
        stamps = words.astype("datetime64[s]")
    except ValueError:
        return None
    moments = np.full(len(told), UNKNOWN)
    moments[told] = _localise(pd.Series(stamps), timezone)
    return moments, len(cells)


def _marks(text: str) -> npt.NDArray[np.uint32]:
    return np.array([text]).view(np.uint32)


def _zoned(texts: pd.Series) -> Integers:
    return _microseconds(pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True))


def _naive(texts: pd.Series, timezone: tzinfo | None) -> Integers:
    return _localise(pd.to_datetime(texts, format="ISO8601", errors="coerce"), timezone)


def localise(moments: Integers, timezone: tzinfo) -> Integers:
    """Turn microseconds since 1970 by the clock on the wall of a zone into those in UTC."""
    return _localise(pd.Series(moments.astype("datetime64[us]")), timezone)


def _localise(stamps: pd.Series, timezone: tzinfo | None) -> Integers:
    if timezone in (None, UTC):
        return _microseconds(stamps)
    first = np.ones(len(stamps), bool)
    local = stamps.dt.tz_localize(timezone, ambiguous=first, nonexistent="shift_forward")
    return _microseconds(local.dt.tz_convert("UTC"))


def _microseconds(stamps: pd.Series) -> Integers:
    values = stamps.dt.tz_localize(None).to_numpy("datetime64[us]")
    return np.where(np.isnat(values), UNKNOWN, values.astype(np.int64))


def microseconds_of(date: str) -> int:
    """Read a date in ISO 8601 as microseconds since 1970; one without a zone is of UTC, as readers take it.

    Raises ``ValueError`` for what is no date.
    """
    moment = datetime.fromisoformat(date)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def date_of(moment_us: int) -> datetime:
    """Return the date, in UTC, of a moment in microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=moment_us)


def zone_notes(naive: int, timezone: tzinfo | None) -> list[str]:
    """Say of which zone the naive times of a log were taken to be; nothing where there are none."""
    if naive == 0:
        return []
    if timezone is None:
        return ["Times without a zone are read as UTC; name theirs with --timezone, as in --timezone Asia/Shanghai."]
    return [f"Times without a zone are read as {timezone}."]
