"""Dates of a log as microseconds since 1970, with the zone of naive ones made explicit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.traces.log import UNKNOWN

Integers = npt.NDArray[np.int64]

_ABSENT = ("", "none", "null", "nan", "nat", "n/a", "unknown")


def read_moments(texts: pd.Series | Sequence[str | None], timezone: tzinfo | None) -> tuple[Integers, int]:
    """Turn ISO 8601 dates into microseconds since 1970 in UTC, and count those without a zone.

    Cells that tell no date are ``UNKNOWN``, and so are cells that are none. Naive ones are of ``timezone``
    (None: UTC); an hour that comes twice in it is the first one, an hour that is skipped is the one after.
    """
    series = pd.Series(texts, dtype=object)
    codes, words = pd.factorize(series)
    unique = pd.Series(np.asarray(words, object), dtype=object).astype(str)
    # A zone is Z or an offset after the time of day: the hyphens of the date come earlier.
    zoned = unique.str.contains(r"(?:Z|[0-9][+-][0-9]{2}:?(?:[0-9]{2})?)\s*$", regex=True) & unique.str.contains(":")
    absent = unique.str.strip().str.lower().isin(_ABSENT)
    moments = np.full(len(unique) + 1, UNKNOWN)
    local = _naive(unique.where(~zoned & ~absent), timezone)
    moments[:-1] = np.where(zoned, _zoned(unique.where(zoned & ~absent)), local)
    result = moments[codes]
    naive = np.append((~zoned & ~absent).to_numpy(), False)[codes] & (result != UNKNOWN)
    return result, int(naive.sum())


def _zoned(texts: pd.Series) -> Integers:
    return _microseconds(pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True))


def _naive(texts: pd.Series, timezone: tzinfo | None) -> Integers:
    stamps = pd.to_datetime(texts, format="ISO8601", errors="coerce")
    first = np.ones(len(stamps), bool)
    local = stamps.dt.tz_localize(timezone or UTC, ambiguous=first, nonexistent="shift_forward")
    return _microseconds(local.dt.tz_convert("UTC"))


def _microseconds(stamps: pd.Series) -> Integers:
    values = stamps.dt.tz_localize(None).to_numpy("datetime64[us]")
    return np.where(np.isnat(values), UNKNOWN, values.astype(np.int64))


def zone_notes(naive: int, timezone: tzinfo | None) -> list[str]:
    """Say of which zone the naive times of a log were taken to be; nothing where there are none."""
    if naive == 0:
        return []
    if timezone is None:
        return ["Times without a zone are read as UTC; name theirs with --timezone, as in --timezone Asia/Shanghai."]
    return [f"Times without a zone are read as {timezone}."]
