"""Days drawn again: times of day stay, everything of a job moves together, seeds decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.errors import UserError
from analysim.traces import Account, Trace
from analysim.traces.resampling import DAY_US, resample_days
from analysim.traces.trace import make_frame

HOUR_US = 3_600_000_000


def make_trace(submit_us: list[int], origin: str | None = None, **columns: Any) -> Trace:
    rows = len(submit_us)
    values = {name: np.asarray(given, np.int64) for name, given in columns.items()}
    frame = make_frame({"job_id": np.arange(rows), "submit_us": np.asarray(submit_us, np.int64), **values}, rows)
    return Trace(frame, "made", "made.csv", "csv", time_origin=origin, account=Account(rows=rows))


def origins(trace: Trace) -> list[tuple[int, int]]:
    """(job of the original, place of its day) of each job."""
    pairs = (identity.split("@") for identity in trace.frame["job_id"])
    return [(int(job), int(place)) for job, place in pairs]


@settings(max_examples=60, deadline=None)
@given(
    submits=st.lists(st.integers(0, 5 * DAY_US), min_size=1, max_size=30),
    seed=st.integers(0, 2**32),
    days=st.none() | st.integers(1, 12),
)
def test_jobs_keep_their_time_of_day(submits: list[int], seed: int, days: int | None) -> None:
    trace = make_trace(sorted(submits))
    original = trace.frame["submit_us"].to_numpy()
    try:
        again = resample_days(trace, seed, days)
    except UserError as error:
        assert "on the days drawn" in str(error)
        return
    first = original[0]
    taken: dict[int, list[int]] = {}
    for (job, place), submit in zip(origins(again), again.frame["submit_us"], strict=True):
        assert (submit - first) % DAY_US == (original[job] - first) % DAY_US
        assert (submit - first) // DAY_US == place - 1
        taken.setdefault(place, []).append(job)
    day = (original - first) // DAY_US
    for jobs in taken.values():
        assert sorted(jobs) == np.flatnonzero(day == day[jobs[0]]).tolist()
    assert max(taken) <= (days or int(day.max()) + 1)
    assert again.frame["job_id"].is_unique
    assert again.rows == len(again.frame)


def test_the_same_seed_draws_the_same_days() -> None:
    trace = make_trace([day * DAY_US + hour * HOUR_US for day in range(20) for hour in range(3)])
    one, two, other = (resample_days(trace, seed) for seed in (1, 1, 2))
    assert one.frame.equals(two.frame)
    assert not one.frame.equals(other.frame)
    assert len(one.frame) == 60
    assert len(resample_days(trace, 1, days=7).frame) == 21


def test_a_day_is_drawn_as_often_as_any_other() -> None:
    trace = make_trace([day * DAY_US for day in range(4)])
    jobs = [job for job, _ in origins(resample_days(trace, 3, days=8_000))]
    counts = np.bincount(jobs, minlength=4)
    assert counts.sum() == 8_000
    assert counts == pytest.approx(2_000, abs=200)


def test_withdrawals_and_records_move_along() -> None:
    trace = make_trace(
        [5 * HOUR_US, DAY_US + 7 * HOUR_US],
        cancel_us=[-1, DAY_US + 8 * HOUR_US],
        recorded_start_us=[6 * HOUR_US, -1],
        recorded_end_us=[30 * HOUR_US, -1],
        duration_us=[24 * HOUR_US, 9],
    )
    frame = resample_days(trace, 0, days=30).frame
    first = frame["job_id"].str.startswith("0@")
    moved = frame["submit_us"] - np.where(first, 5 * HOUR_US, DAY_US + 7 * HOUR_US)
    assert first.any() and not first.all()
    assert (frame["recorded_start_us"][first] - moved[first] == 6 * HOUR_US).all()
    assert (frame["recorded_end_us"][first] - moved[first] == 30 * HOUR_US).all()
    assert (frame["cancel_us"][~first] - moved[~first] == DAY_US + 8 * HOUR_US).all()
    assert (frame["cancel_us"][first] == -1).all()
    assert (frame["recorded_start_us"][~first] == -1).all()


def test_dates_make_days_of_the_calendar() -> None:
    """Submitted at 20:00, 23:00 and, the next day, 01:00: two days, though within five hours."""
    trace = make_trace([0, 3 * HOUR_US, 5 * HOUR_US], "2021-01-01T20:00:00+00:00")
    again = resample_days(trace, 5, days=40)
    assert again.time_origin == "2021-01-01T00:00:00+00:00"
    hours = {0: 20, 1: 23, 2: 1}
    for (job, place), submit in zip(origins(again), again.frame["submit_us"], strict=True):
        assert submit == (place - 1) * DAY_US + hours[job] * HOUR_US
    places = [{place for job, place in origins(again) if job == wanted} for wanted in (0, 1, 2)]
    assert places[0] == places[1]
    assert places[0] | places[2] == set(range(1, 41))


def test_a_clock_that_does_not_begin_with_the_trace() -> None:
    trace = make_trace([10 * DAY_US, 12 * DAY_US], "2021-01-01T06:00:00")
    again = resample_days(trace, 1, days=9)
    assert again.time_origin == "2021-01-11T00:00:00"
    assert (again.frame["submit_us"] % DAY_US == 6 * HOUR_US).all()


def test_what_is_said_of_it() -> None:
    trace = make_trace([0, DAY_US])
    trace.left_out["submitted outside 0d:2d"] = 3
    again = resample_days(trace, 9, days=2)
    assert (again.left_out, again.set_aside) == ({}, {})
    assert again.notes == ["Made of 2 days drawn with replacement from 2 of made (seed 9)."]


@pytest.mark.parametrize("days", [0, -1, 100_001])
def test_days_that_cannot_be_drawn(days: int) -> None:
    with pytest.raises(UserError, match="days cannot be drawn"):
        resample_days(make_trace([0]), 0, days)


def test_a_trace_without_jobs() -> None:
    with pytest.raises(UserError, match="no jobs to draw from"):
        resample_days(make_trace([]), 0)
