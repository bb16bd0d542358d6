"""Figures of a trace: demand, distributions, arrivals, waits, tenants, rows; and dates in files that are written."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.traces import Trace, describe, describe_rows, read_trace, write_trace
from analysim.traces.demand import demand_steps
from analysim.traces.log import Account
from analysim.traces.settling import NO_SUBMISSION
from analysim.units import MICROSECONDS
from tests.builders import frame, job, trace

HOUR = 3_600


def made(*rows: dict[str, Any], **fields: Any) -> Trace:
    return Trace(trace(*rows), "made", "made.csv", "csv", **{"account": Account(rows=len(rows)), **fields})


def test_demand_by_hand() -> None:
    told = made(job(1, 0, HOUR, 4), job(2, HOUR / 2, HOUR, 8), job(3, HOUR, HOUR, 2), job(4, 0, 9, 0))
    steps, levels = demand_steps(told.frame)
    assert (steps / MICROSECONDS / HOUR).tolist() == [0, 0.5, 1, 1.5, 2]
    assert levels.tolist() == [4, 12, 10, 2, 0]
    assert describe(told, cluster_gpus=10)["demand"] == {
        "mean_gpus": 8.0,  # until the last submission, after an hour
        "peak_gpus": 12,
        "cluster_gpus": 10,
        "mean_share": 0.8,
        "peak_share": 1.2,
        "hours_above": 0.5,
    }
    assert describe(made(job(1, 5, 10, 4)))["demand"] == {"mean_gpus": None, "peak_gpus": 4}
    assert describe(made(job(1, 5, 0, 4)))["demand"] is None


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=30
    )
)
@settings(max_examples=60, deadline=None)
def test_demand_is_that_of_counting(jobs: list[tuple[int, int, int]]) -> None:
    table = frame(
        submit_us=[submit for submit, _, _ in jobs],
        duration_us=[duration for _, duration, _ in jobs],
        gpu_milli=[1_000 * gpus for _, _, gpus in jobs],
    )
    times, levels = demand_steps(table)
    for moment in range(65):
        expected = sum(gpus for submit, duration, gpus in jobs if submit <= moment < submit + duration)
        place = int(np.searchsorted(times, moment, side="right")) - 1
        assert (levels[place] if place >= 0 else 0) == expected
    assert times.size == 0 or levels[-1] == 0


def test_durations_by_jobs_and_by_gpu_time() -> None:
    told = describe(made(*(job(number, 0, number, 1) for number in range(1, 10)), job(10, 0, 91, 9)))
    assert told["durations"]["by_jobs"]["p50_s"] == 5
    assert told["durations"]["by_jobs"]["p90_s"] == 9
    assert told["durations"]["by_gpu_time"]["p10_s"] == 91  # 45 of 864 GPU-seconds are of shorter jobs
    assert describe(made(job(1, 0, 0, 1)))["durations"]["by_gpu_time"] is None


def test_hours_in_a_zone_that_changes_its_clock() -> None:
    rows = [job(1, 0, 1), job(2, 2 * 86_400, 1)]
    told = made(*rows, time_origin="2024-03-30T23:30:00+00:00")
    berlin = describe(told, timezone=ZoneInfo("Europe/Berlin"))["arrivals"]
    assert (berlin["by_hour"][0], berlin["by_hour"][1]) == (1, 1)  # summer time begins in between
    assert berlin["by_weekday"] == {"Mon": 0, "Tue": 1, "Wed": 0, "Thu": 0, "Fri": 0, "Sat": 0, "Sun": 1}
    utc = describe(told)["arrivals"]
    assert (utc["clock"], utc["by_hour"][23]) == ("UTC", 2)
    naive = describe(made(*rows, time_origin="2024-03-30T23:30:00"), timezone=ZoneInfo("Europe/Berlin"))["arrivals"]
    assert naive["by_hour"][23] == 2
    assert naive["clock"] == "local time, as the dates are written without a zone"


def test_waits_that_were_made_up_do_not_count() -> None:
    rows = [
        job(1, 0, 9, recorded_start_us=0),
        job(2, 1, 9, recorded_start_us=1_000_000),
        job(3, 2, 9, recorded_start_us=6_000_000),
        job(4, 9, 9, recorded_start_us=3_000_000),  # started before it was submitted
        job(5, 9, 9),
    ]
    assert describe(made(*rows))["waits"]["jobs"] == 3
    account = Account(rows=6, repaired={NO_SUBMISSION: np.array([1, 6])}, set_aside={"no end told": np.array([6])})
    assert describe(made(*rows, account=account))["waits"] == {
        "jobs": 2,
        "mean_s": 2.0,
        "median_s": 2.0,
        "p90_s": pytest.approx(3.6),
        "p99_s": pytest.approx(3.96),
    }


def test_tenants_with_most_gpu_time_come_first() -> None:
    rows = [job(number, 0, HOUR, 1, tenant=f"t{number:02d}") for number in range(12)]
    told = describe(made(*rows, job(20, 0, HOUR, 8, tenant="big"), job(21, 0, HOUR, 1)))
    assert [row["tenant"] for row in told["top_tenants"]][:2] == ["big", "t00"]
    assert len(told["top_tenants"]) == 10
    assert told["top_tenants"][0] == {
        "tenant": "big",
        "jobs": 1,
        "jobs_share": 1 / 14,
        "gpu_hours": 8.0,
        "gpu_time_share": 8 / 21,
    }


def test_rows_are_told_as_ranges() -> None:
    account = Account(rows=9, set_aside={"never started": np.array([7, 2, 3])}, repaired={"odd": np.array([1])})
    told = describe_rows(made(job(1, 0, 1), account=account))
    assert told["set_aside_rows"] == {"never started": {"ranges": [[2, 3], [7, 7]], "more": 0}}
    assert told["repaired_rows"] == {"odd": {"ranges": [[1, 1]], "more": 0}}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("zone", ["+00:00", ""])
def test_dates_are_written_to_the_microsecond(tmp_path: Path, suffix: str, zone: str) -> None:
    table = trace(
        job("a", 0, 1, recorded_start_us=1, recorded_end_us=-1), job("b", 0.000001, 1, cancel=4_503_599_627.370495)
    )
    origin = f"2024-05-01T10:00:00.123456{zone}"
    assert write_trace(table, tmp_path / f"x{suffix}", origin) == []
    again = read_trace(tmp_path / f"x{suffix}")
    assert again.time_origin == origin
    pd.testing.assert_frame_equal(again.frame[table.columns], table, check_dtype=False)


_ODD = st.text(st.sampled_from('ab0 ,;"\'\t\n\r|é中\u2028\x1f#\\-'), max_size=5)


@pytest.mark.slow
@given(st.lists(st.tuples(_ODD, _ODD), min_size=1, max_size=4), st.sampled_from([".csv", ".parquet"]))
@settings(max_examples=60, deadline=None)
def test_text_is_written_as_it_is(words: list[tuple[str, str]], suffix: str) -> None:
    rows = [job(f"{place}{one}", place, 1, user=one, tenant=two) for place, (one, two) in enumerate(words)]
    table = trace(*rows)
    with TemporaryDirectory() as folder:
        write_trace(table, f"{folder}/x{suffix}")
        again = read_trace(f"{folder}/x{suffix}").frame
    for name in ("user", "tenant"):
        assert again[name].tolist() == table[name].tolist()
    assert again["job_id"].astype(str).tolist() == table["job_id"].tolist()


def test_dates_that_a_file_cannot_hold(tmp_path: Path) -> None:
    table = trace(job("a", 9, 1, recorded_start_us=2_000_000, recorded_end_us=10_000_000))
    losses = write_trace(table, tmp_path / "x.csv", "2024-05-01T10:00:00+00:00")
    assert losses == ["1 of start_time before the first submission or after 2255 are left out."]
    again = read_trace(tmp_path / "x.csv")
    assert again.time_origin == "2024-05-01T10:00:09+00:00"
    assert again.frame["recorded_end_us"].tolist() == [1_000_000]
    (loss,) = write_trace(table, tmp_path / "y.csv", "1969-05-01T10:00:00+00:00")
    assert loss.startswith("Dates before 1970")
    assert read_trace(tmp_path / "y.csv").frame["submit_us"].tolist() == [9_000_000]
