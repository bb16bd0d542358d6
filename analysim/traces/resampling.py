"""Other traces like one: its days drawn again, with replacement (bootstrap)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import UserError
from analysim.traces.log import Account
from analysim.traces.schema import ABSENT
from analysim.traces.trace import MOVED_COLUMNS, Trace, sort_jobs
from analysim.units import MICROSECONDS

DAY_US = 86_400 * MICROSECONDS
"""Microseconds in a day."""

_MOST_DAYS = 100_000

Integers = npt.NDArray[np.int64]


def resample_days(trace: Trace, seed: int, days: int | None = None) -> Trace:
    """Draw so many whole days of a trace with replacement (as many as it has), one after the other.

    Jobs keep their time of day, and withdrawals and recorded times their distance to the submission. Days are
    those of the calendar where ``time_origin`` is known, which then becomes the first one's midnight; else they
    count from the first submission. Days without jobs are drawn like others; the first and the last may be
    parts of a day. Ids are text with ``@k`` behind them, k the place of the day from 1. The same seed draws
    the same days. Raises ``UserError`` for a negative seed, too few or too many days, and where no job is drawn.
    """
    if seed < 0:
        raise UserError(f"The seed {seed} is negative.", "Give a whole number, 0 or more.")
    if days is not None and not 1 <= days <= _MOST_DAYS:
        raise UserError(f"{days:,} days cannot be drawn.", f"Draw from 1 to {_MOST_DAYS:,} days.")
    if trace.frame.empty:
        raise UserError(f"{trace.path} has no jobs to draw from.", "Give a trace with jobs.")
    submit = trace.frame["submit_us"].to_numpy()
    begin, origin = _first_day(trace, submit)
    day = (submit - begin) // DAY_US
    count = int(day.max()) + 1
    drawn = np.random.default_rng(seed).integers(0, count, size=days or count)
    rows, places = _jobs_of(day, drawn)
    if rows.size == 0:
        raise UserError(f"No job of {trace.path} was submitted on the days drawn.", "Draw more days, or another seed.")
    # The clock begins with the first day where that has a date, else it stays the trace's own.
    shift = (places - day[rows]) * DAY_US - (begin if origin else 0)
    frame = _move(trace.frame.take(rows).reset_index(drop=True), shift, places)
    note = f"Made of {drawn.size:,} days drawn with replacement from {count:,} of {trace.name} (seed {seed})."
    return replace(
        trace,
        frame=frame,
        time_origin=origin,
        account=Account(rows=len(frame)),
        left_out={},
        notes=[*trace.notes, note],
    )


def _first_day(trace: Trace, submit: Integers) -> tuple[int, str | None]:
    """Return when the first day begins, on the trace's clock, and its date where that is known."""
    first = int(submit.min())
    if trace.time_origin is None:
        return first, None
    zero = datetime.fromisoformat(trace.time_origin)
    midnight = (zero + timedelta(microseconds=first)).replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight - zero) // timedelta(microseconds=1), midnight.isoformat()


def _jobs_of(day: Integers, drawn: Integers) -> tuple[Integers, Integers]:
    """Return the rows of the jobs of the days drawn, and the place of each one's day, from 0."""
    begins = np.searchsorted(day, drawn, side="left")
    ends = np.searchsorted(day, drawn, side="right")
    sizes = ends - begins
    places = np.repeat(np.arange(drawn.size), sizes)
    within = np.arange(places.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(begins, sizes) + within, places


def _move(frame: pd.DataFrame, shift: Integers, places: Integers) -> pd.DataFrame:
    moved: dict[str, Any] = {"submit_us": frame["submit_us"].to_numpy() + shift}
    for name in MOVED_COLUMNS:
        times = frame[name].to_numpy()
        later = times + shift
        moved[name] = np.where((times < 0) | (later < 0), ABSENT, later)
    moved["job_id"] = frame["job_id"].astype(str) + "@" + pd.Series(places + 1).astype(str)
    return sort_jobs(frame.assign(**moved))
