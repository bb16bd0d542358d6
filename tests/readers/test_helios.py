"""Helios: the native log of its clusters, and the derived list of Venus' GPU jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, describe, read_trace
from tests.builders import SECOND, shared_file
from tests.readers.mangled import check_mangled

NATIVE = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "11,u1,vcA,16,64,2,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:01:00,2020-06-09 19:01:00,3600,60\n"
    "12,u2,vcA,0,4,1,FAILED,2020-06-09 18:00:10,2020-06-09 18:00:10,2020-06-09 18:00:20,10,0\n"
    "13,u2,vcB,10,4,3,TIMEOUT,2020-06-09 18:00:10,2020-06-09 18:00:10,2020-06-09 18:00:20,10,0\n"
    "14,u2,vcB,8,4,1,CANCELLED,2020-06-09 18:00:10,,,,\n"
    "15,u2,vcB,8,4,1,NODE_FAIL,2020-06-09 18:00:10,2020-06-09 18:00:20,,30,10\n"
    "16,u2,vcB,8,4,1,SUSPENDED,2020-06-09 18:00:10,2020-06-09 18:01:00,,,\n"
)
DERIVED = "job_id,arrival_s,service_sec,gpu_count\n7#0,0.0,172800.0,32\n7#1,0.0,60.5,20\n9#2,5.0,0.0,1\n"


def read(folder: Path, text: str, timezone: str | None = None) -> Trace:
    file = folder / "cluster_log.csv"
    file.write_text(text)
    return read_trace(file, timezone=timezone)


def test_fields_become_jobs(tmp_path: Path) -> None:
    trace = read(tmp_path, NATIVE, "Asia/Shanghai")
    assert (trace.format, trace.time_origin) == ("helios", "2020-06-09T10:00:00+00:00")
    jobs = trace.frame.set_index("job_id")
    assert list(jobs.index) == [11, 12, 13, 15, 16]
    first = jobs.loc[11]
    assert (first["gpu_milli"], first["gpus_per_node"], first["cpu_milli"]) == (16_000, 8, 64_000)
    assert (first["recorded_start_us"], first["recorded_end_us"]) == (60 * SECOND, 3_660 * SECOND)
    assert (first["user"], first["tenant"], first["partition"], first["status"]) == ("u1", "vcA", "vcA", "COMPLETED")


def test_cpu_jobs_are_kept(tmp_path: Path) -> None:
    assert read(tmp_path, NATIVE).frame.set_index("job_id").loc[12, "gpu_milli"] == 0


def test_states_and_missing_times(tmp_path: Path) -> None:
    trace = read(tmp_path, NATIVE)
    jobs = trace.frame.set_index("job_id")
    assert trace.set_aside == {"never started": 1}
    assert jobs["status"].to_dict()[15] == "NODE_FAIL"
    assert jobs["duration_us"].to_dict()[15] == 30 * SECOND
    assert jobs["duration_us"].to_dict()[16] == 3_600 * SECOND
    assert trace.account.repaired["still running at the end of the log: runs until then"].tolist() == [6]


def test_gpus_that_do_not_divide_by_the_nodes(tmp_path: Path) -> None:
    trace = read(tmp_path, NATIVE)
    assert trace.account.repaired["GPUs that do not divide by its nodes: spread as they fit"].tolist() == [3]
    assert trace.frame.set_index("job_id").loc[13, "gpus_per_node"] == 0


def test_duration_and_queue_are_witnesses(tmp_path: Path) -> None:
    assert not any("counts" in note or "the times count" in note for note in read(tmp_path, NATIVE).notes)
    trace = read(tmp_path, NATIVE.replace("3600,60", "36,6"))
    assert trace.frame.set_index("job_id").loc[11, "duration_us"] == 3_600 * SECOND
    assert "duration is not end_time - start_time in 1 of 3 rows: the times count." in trace.notes
    assert "queue is not start_time - submit_time in 1 of 4 rows: the times count." in trace.notes


def test_naive_times_are_told(tmp_path: Path) -> None:
    assert any("--timezone Asia/Shanghai" in note for note in read(tmp_path, NATIVE).notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NATIVE[:-20], "line 7: 9 fields where 12 are expected"),
        (NATIVE.replace(",16,", ",many,"), 'line 2, gpu_num: "many" is not a number'),
        (NATIVE.replace("2020-06-09 18:01:00", "2020-13-09"), 'line 2, start_time: "2020-13-09" is not a date'),
        (NATIVE.splitlines()[0] + "\n", "has column names but no rows"),
        (NATIVE.replace(",", ";"), 'has no column "job_id"'),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "cluster_log.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(file, format="helios")


def test_the_derived_list(tmp_path: Path) -> None:
    trace = read(tmp_path, DERIVED)
    assert (trace.format, trace.time_origin) == ("helios-derived", None)
    assert trace.frame["job_id"].tolist() == ["7#0", "7#1", "9#2"]
    assert trace.frame["duration_us"].tolist() == [172_800 * SECOND, 60_500_000, 0]
    assert trace.frame["gpu_milli"].tolist() == [32_000, 20_000, 1_000]
    assert trace.notes == ["1 jobs run 48 h exactly: that is where their service time was clamped."]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_logs_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    check_mangled(NATIVE, seed, tmp_path / "log.csv", "helios")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_lists_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    check_mangled(DERIVED, seed, tmp_path / "jobs.csv", "helios-derived")


@pytest.mark.slow
def test_venus_is_as_published() -> None:
    """125,303 GPU jobs of 6.736 GPUs, of which the median runs 204 s (Hu et al., SC '21)."""
    trace = read_trace(shared_file("traces/helios/venus_gpu_jobs.csv.gz"))
    facts = describe(trace)
    assert (facts["format"], facts["rows"], facts["jobs"]) == ("helios-derived", 125_303, 125_303)
    assert facts["mean_gpus"] == pytest.approx(6.736, abs=0.0005)
    assert facts["median_duration_s"] == 204
    assert trace.frame["submit_us"].value_counts().max() == 371
