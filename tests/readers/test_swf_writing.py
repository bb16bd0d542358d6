"""SWF as we write it: read back as it was, as far as the format can hold it, and what it cannot is told."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import AnalysimError, UserError
from analysim.traces import Account, Trace, read_trace
from analysim.traces.swf_writing import write_swf
from analysim.traces.trace import make_frame
from tests.builders import shared_file

SECOND = 1_000_000
HELD = (
    "job_id",
    "submit_us",
    "duration_us",
    "gpu_milli",
    "tenant",
    "user",
    "partition",
    "estimate_us",
    "status",
    "recorded_start_us",
    "recorded_end_us",
)
"""Columns that SWF holds: seconds, GPUs, names, and starts as waits."""


def make_trace(origin: str | None = None, **columns: Any) -> Trace:
    """A trace from columns in the units of the frame."""
    rows = len(columns["submit_us"])
    values = {"job_id": np.arange(rows), "gpu_milli": np.full(rows, 1_000), **columns}
    frame = make_frame(
        {
            name: pd.Series(given, dtype="str") if isinstance(given[0], str) else np.asarray(given)
            for name, given in values.items()
        },
        rows,
    )
    return Trace(frame, "made", "made.csv", "csv", time_origin=origin, account=Account(rows=rows))


def lines(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if not line.startswith(";")]


def test_a_job_in_18_fields(tmp_path: Path) -> None:
    trace = make_trace(
        "2021-01-01T00:00:00+00:00",
        job_id=[7],
        submit_us=[0],
        duration_us=[60 * SECOND],
        gpu_milli=[4_000],
        estimate_us=[90 * SECOND],
        user=["ada"],
        tenant=["org/team"],
        partition=["main"],
        status=["CANCELLED"],
        recorded_start_us=[30 * SECOND],
        recorded_end_us=[90 * SECOND],
    )
    file = tmp_path / "made.swf"
    losses = write_swf(trace, file)
    assert lines(file) == ["7 0 30 60 4 -1 -1 4 90 -1 5 1 1 -1 1 1 -1 -1"]
    header = file.read_text().split("\n7 ")[0].splitlines()
    assert "; MaxJobs: 1" in header
    assert "; UnixStartTime: 1609459200" in header
    assert "; Note: A processor is a GPU." in header
    assert '; TenantName: 1 "org/team"' in header
    assert losses == [
        "Names of partitions are numbers; the comments PartitionName tell which.",
        "Names of users are numbers; the comments UserName tell which.",
        "Names of tenants are numbers; the comments TenantName tell which.",
    ]
    again = read_trace(file)
    assert again.time_origin == "2021-01-01T00:00:00+00:00"
    assert again.frame[list(HELD)].equals(trace.frame[list(HELD)])


NAMES = st.text(max_size=6) | st.sampled_from(["", "user3", "group3", "partition0", "a/b", "user03", ' " ', "\n"])
SECONDS = st.integers(0, 10**9)
JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "job_id": st.integers(0, 1 << 53),
            "submit_us": SECONDS,
            "duration_us": SECONDS,
            "gpu_milli": st.integers(0, 100_000),
            "tenant": NAMES,
            "user": NAMES,
            "partition": NAMES,
            "estimate_us": st.just(-1) | SECONDS,
            "status": st.sampled_from(["", "COMPLETED", "FAILED", "CANCELLED", "PARTIAL"]),
            "wait": st.just(-1) | SECONDS,
        }
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda job: job["job_id"],
)
ORIGINS = st.sampled_from([None, "2020-05-01T10:00:00+00:00", "2020-05-01T10:00:00", "2020-05-01T12:00:00+02:00"])


def from_jobs(jobs: list[dict[str, Any]], origin: str | None) -> Trace:
    columns = {name: np.array([job[name] for job in jobs], object) for name in jobs[0]}
    for name in ("submit_us", "duration_us", "estimate_us"):
        values = columns[name].astype(np.int64)
        columns[name] = np.where(values < 0, -1, values * SECOND)
    wait = columns.pop("wait").astype(np.int64) * SECOND
    start = np.where(wait < 0, -1, columns["submit_us"] + wait)
    end = np.where(wait < 0, -1, start + columns["duration_us"])
    gpus = columns["gpu_milli"].astype(np.int64) * 1_000
    ids = columns["job_id"].astype(np.int64)
    given = {**columns, "job_id": ids, "gpu_milli": gpus, "recorded_start_us": start, "recorded_end_us": end}
    return make_trace(origin, **given)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs=JOBS, origin=ORIGINS)
def test_what_swf_holds_is_read_back(tmp_path: Path, jobs: list[dict[str, Any]], origin: str | None) -> None:
    trace = from_jobs(jobs, origin)
    file = tmp_path / "made.swf"
    losses = write_swf(trace, file)
    assert all(line.startswith("Names of") for line in losses)
    expected = trace.frame[list(HELD)].copy()
    if origin is not None:  # a dated trace begins with its first submission
        first = expected["submit_us"].min()
        for name in ("submit_us", "recorded_start_us", "recorded_end_us"):
            expected[name] = expected[name].where(expected[name] < 0, expected[name] - first)
    again = read_trace(file)
    assert again.format == "swf"
    pd.testing.assert_frame_equal(again.frame[list(HELD)], expected)


def test_names_of_an_ordinary_log_stay_numbers(tmp_path: Path) -> None:
    trace = make_trace(submit_us=[0, SECOND, 2 * SECOND], user=["user7", "", "user0"], tenant=["group3", "group3", ""])
    assert write_swf(trace, tmp_path / "made.swf") == []
    assert [line.split()[11:13] for line in lines(tmp_path / "made.swf")] == [["7", "3"], ["-1", "3"], ["0", "-1"]]


def test_everything_that_swf_cannot_hold_is_told(tmp_path: Path) -> None:
    trace = make_trace(
        job_id=["a"],
        submit_us=[1_500_000],
        duration_us=[499_999],
        gpu_type=["V100"],
        gpus_per_node=[1],
        cpu_milli=[500],
        memory_mb=[1],
        priority=[3],
        preemptible=[False],
        cancel_us=[9 * SECOND],
        checkpoint_us=[SECOND],
        restart_us=[SECOND],
        model=["vgg"],
        status=["TIMEOUT"],
        recorded_start_us=[SECOND],
        recorded_end_us=[5 * SECOND],
        recorded_node=["n1"],
    )
    assert write_swf(trace, tmp_path / "made.swf") == [
        "2 times are rounded to whole seconds.",
        "Job ids are no numbers that SWF can hold: jobs are numbered from 1.",
        "1 recorded starts before the submission are left out.",
        "1 recorded ends are left out: an end is start + run time in SWF.",
        "SWF has no such status, written as unknown: TIMEOUT.",
        "SWF has no field for: GPUs on each node, GPU types, CPUs, memory, priorities, which jobs may not be stopped, "
        "when jobs are withdrawn, costs of saving state, costs of loading state, models, recorded nodes.",
    ]
    assert lines(tmp_path / "made.swf") == ["1 2 -1 0 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"]


def test_a_date_between_seconds(tmp_path: Path) -> None:
    trace = make_trace("2021-01-01T00:00:00.750000+00:00", submit_us=[0, 250_000])
    assert write_swf(trace, tmp_path / "made.swf") == ["1 times are rounded to whole seconds."]
    assert [line.split()[1] for line in lines(tmp_path / "made.swf")] == ["1", "1"]


def test_gzip_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    trace = make_trace(submit_us=[0, 5 * SECOND], user=["ada", "bob"])
    for name in ("a.swf", "a.swf.gz", "b.swf.gz"):
        write_swf(trace, tmp_path / name)
    packed = (tmp_path / "a.swf.gz").read_bytes()
    assert packed == (tmp_path / "b.swf.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.swf").read_bytes()
    assert read_trace(tmp_path / "a.swf.gz").frame["user"].tolist() == ["ada", "bob"]


def test_so_many_names_that_no_job_is_in_sight(tmp_path: Path) -> None:
    users = [f"somebody with a long name, number {number}" for number in range(3_000)]
    trace = make_trace(submit_us=np.arange(3_000) * SECOND, user=users)
    write_swf(trace, tmp_path / "made.swf")
    again = read_trace(tmp_path / "made.swf")
    assert (again.format, again.frame["user"].tolist()) == ("swf", users)


def test_names_in_comments_of_others_do_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    comments = '; UserName: 7 "half\n; UserName: x\n; UserName: 7 "\\q"\n; UnixStartTime: 1000\n'
    file.write_text(comments + "1 0 0 5 1 -1 -1 1 -1 -1 1 7 -1 -1 -1 -1 -1 -1\n")
    trace = read_trace(file)
    assert (trace.frame["user"].tolist(), trace.time_origin) == (["user7"], None)


def test_another_suffix_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    trace = make_trace(submit_us=[0])
    with pytest.raises(UserError, match=r"SWF files end in \.swf"):
        write_swf(trace, tmp_path / "made.csv")
    with pytest.raises(AnalysimError, match="cannot be written"):
        write_swf(trace, tmp_path / "none" / "made.swf")


@pytest.mark.slow
def test_kth_is_read_back_as_it_was(tmp_path: Path) -> None:
    trace = read_trace(shared_file("traces/swf/KTH-SP2-1996-2.1-cln.swf.gz"))
    assert write_swf(trace, tmp_path / "again.swf") == []
    again = read_trace(tmp_path / "again.swf")
    assert replace(again, name=trace.name).frame.equals(trace.frame)
