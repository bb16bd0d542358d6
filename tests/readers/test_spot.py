"""Alibaba's spot trace: workers, priorities and tenants."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, read_trace
from tests.builders import SECOND
from tests.readers.mangled import check_mangled

HEADER = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
TEXT = HEADER + (
    "501,13,A10,20.0,1.0,1,0.0,2764799.0,HP\n"
    "502,57,A100-SXM4-80GB,15.0,2.0,16,9589663.0,41060.0,Spot\n"
    "503,57,A10,4.0,0.5,3,9589664.0,10.0,Spot\n"
)


def read(folder: Path, text: str = TEXT) -> Trace:
    file = folder / "job_info_df.csv"
    file.write_text(text)
    return read_trace(file)


def test_fields_become_jobs(tmp_path: Path) -> None:
    trace = read(tmp_path)
    assert (trace.format, trace.time_origin, trace.rows) == ("alibaba-spot", None, 3)
    jobs = trace.frame.set_index("job_id")
    assert jobs["gpu_milli"].to_dict() == {501: 1_000, 502: 32_000, 503: 2_000}
    assert jobs["cpu_milli"].to_dict() == {501: 20_000, 502: 240_000, 503: 12_000}
    assert jobs["submit_us"].to_dict()[502] == 9_589_663 * SECOND
    assert jobs["duration_us"].to_dict()[502] == 41_060 * SECOND
    assert (jobs["gpu_type"][502], jobs["tenant"][502]) == ("A100-SXM4-80GB", "57")
    assert (jobs["gpus_per_node"] == 0).all()


def test_high_priority_jobs_are_not_preempted(tmp_path: Path) -> None:
    jobs = read(tmp_path).frame.set_index("job_id")
    assert jobs["priority"].to_dict() == {501: 1, 502: 0, 503: 0}
    assert jobs["preemptible"].to_dict() == {501: False, 502: True, 503: True}


def test_parts_of_gpus_are_rounded_up_for_the_whole_job(tmp_path: Path) -> None:
    assert read(tmp_path).account.repaired["GPUs and a part of one: gets whole ones"].tolist() == [3]


def test_another_job_type_is_told(tmp_path: Path) -> None:
    trace = read(tmp_path, TEXT.replace("HP", "Best"))
    assert trace.notes == ["1 jobs are neither HP nor Spot: they count as Spot."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT[:-12], "line 4: 7 fields where 9 are expected"),
        (TEXT.replace("41060.0", "?"), r'line 3, duration: "\?" is not a number'),
        (TEXT.replace("41060.0", "inf"), 'line 3, duration: "inf" is not a number'),
        (HEADER, "has column names but no rows"),
        (TEXT.replace(",", "\t"), 'has no column "job_name"'),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "job_info_df.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(file, format="alibaba-spot")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_files_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    check_mangled(TEXT, seed, tmp_path / "jobs.csv", "alibaba-spot")
