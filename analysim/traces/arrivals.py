"""When jobs are submitted: how many in a time, at which hour of the day and on which day of the week."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.traces.moments import microseconds_of
from analysim.traces.trace import Trace
from analysim.units import MICROSECONDS

_HOUR_US = 3_600 * MICROSECONDS
_DAY_US = 24 * _HOUR_US
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

Integers = npt.NDArray[np.int64]


def describe_rate(submit_us: Integers) -> dict[str, float | int | None]:
    """Give the span of submissions and how many jobs an hour has, counted from the first."""
    if submit_us.size == 0:
        return {"span_s": 0.0, "mean_jobs_per_hour": None, "peak_jobs_per_hour": None}
    since = submit_us - submit_us.min()
    span_us = int(since.max())
    return {
        "span_s": span_us / MICROSECONDS,
        "mean_jobs_per_hour": submit_us.size * _HOUR_US / span_us if span_us else None,
        "peak_jobs_per_hour": int(np.unique(since // _HOUR_US, return_counts=True)[1].max()),
    }


def describe_rhythm(trace: Trace, timezone: tzinfo | None) -> dict[str, Any]:
    """Count jobs by hour of the day and day of the week, in ``timezone`` (None: UTC) where the trace has dates.

    ``clock`` says which clock that is: a zone, that of dates which were written without one, or, for a trace
    without dates, hours and days since its time 0.
    """
    submit = trace.frame["submit_us"].to_numpy()
    hours, days, clock = _on_clock(submit, trace.time_origin, timezone)
    names = _WEEKDAYS if trace.time_origin else tuple(f"day {number}" for number in range(1, 8))
    weekdays = np.bincount(days, minlength=7).tolist()
    return {
        "clock": clock,
        "by_hour": np.bincount(hours, minlength=24).tolist(),
        "by_weekday": dict(zip(names, weekdays, strict=True)),
    }


def _on_clock(submit: Integers, origin: str | None, timezone: tzinfo | None) -> tuple[Integers, Integers, str]:
    if origin is None:
        return submit // _HOUR_US % 24, submit // _DAY_US % 7, "hours and days since time 0"
    stamps = pd.DatetimeIndex((submit + microseconds_of(origin)).view("datetime64[us]"))
    if datetime.fromisoformat(origin).tzinfo is None:
        clock = "local time, as the dates are written without a zone"
    else:
        stamps = stamps.tz_localize(UTC).tz_convert(timezone or UTC)
        clock = str(timezone or "UTC")
    return stamps.hour.to_numpy(np.int64), stamps.day_of_week.to_numpy(np.int64), clock
