"""Acme: the native logs of Seren and Kalos, and the conversion of Kalos."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, describe, read_trace
from tests.builders import SECOND, shared_file
from tests.readers.mangled import check_mangled

SEREN = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
    "5,u1,1,8,128,Other,FAILED,2023-03-01 00:18:00+08:00,2023-03-01 00:18:30+08:00,2023-03-01 00:20:30+08:00,"
    "120,30,960.0\n"
    "6,u1,1,0,4,Evaluation,COMPLETED,2023-03-01 00:19:00+08:00,2023-03-01 00:19:00+08:00,2023-03-01 00:20:00+08:00,"
    "60,0,0.0\n"
)
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,"
    "fail_time,stop_time,duration,queue,gpu_time\n"
    "dlc1,u7,8,64,960,1000,100.0,Pretrain,FAILED,2023-05-17 11:00:00+00:00,2023-05-17 11:00:10+00:00,"
    "2023-05-17 11:00:20+00:00,2023-05-17 11:00:20+00:00,,20,10.0,1280.0\n"
    "dlc2,u7,1,8,120,,,Pretrain,RUNNING,2023-05-17 11:00:00+00:00,2023-05-17 11:00:05+00:00,,,,,5.0,\n"
    "dlc3,u7,1,8,120,,,Pretrain,CANCELLED,2023-05-17 11:00:00+00:00,,2023-05-17 11:00:15+00:00,,,15,,\n"
)
CONVERTED = (
    "job_id,arrival_time,num_iteration,iteration_computing_time,iteration_networking_time,gpu_workers,ps,gpu_per_worker\n"
    "0,0.0,208,0.5,0.25,8,0,8.0\n"
    "1,313.0,3,0.5,0.75,16,0,4.0\n"
)


def read(folder: Path, text: str) -> Trace:
    file = folder / "trace.csv"
    file.write_text(text)
    return read_trace(file)


def test_seren(tmp_path: Path) -> None:
    trace = read(tmp_path, SEREN)
    assert (trace.format, trace.time_origin) == ("acme", "2023-02-28T16:18:00+00:00")
    jobs = trace.frame.set_index("job_id")
    assert jobs["duration_us"].to_dict() == {5: 120 * SECOND, 6: 60 * SECOND}
    assert jobs["gpu_milli"].to_dict() == {5: 8_000, 6: 0}
    assert jobs["gpus_per_node"].to_dict() == {5: 8, 6: 0}
    assert (jobs["model"][6], jobs["status"][5], jobs["user"][5], jobs["cpu_milli"][5]) == (
        "Evaluation",
        "FAILED",
        "u1",
        128_000,
    )
    assert trace.notes == []


def test_kalos_counts_duration_from_the_submission(tmp_path: Path) -> None:
    trace = read(tmp_path, KALOS)
    jobs = trace.frame.set_index("job_id")
    assert jobs["duration_us"].to_dict() == {"dlc1": 10 * SECOND, "dlc2": 15 * SECOND}
    assert trace.time_origin == "2023-05-17T11:00:00+00:00"
    assert trace.notes == [
        "duration is end_time - submit_time (as in Kalos): 1 jobs run from start_time to end_time.",
    ]


def test_kalos_memory_is_told_for_each_pod(tmp_path: Path) -> None:
    jobs = read(tmp_path, KALOS).frame.set_index("job_id")
    assert jobs["memory_mb"].to_dict() == {"dlc1": 8 * 1000 * 1024, "dlc2": 0}


def test_a_running_job_and_one_that_never_started(tmp_path: Path) -> None:
    trace = read(tmp_path, KALOS)
    assert trace.account.repaired["still running at the end of the log: runs until then"].tolist() == [2]
    assert trace.set_aside == {"never started": 1}


def test_witnesses(tmp_path: Path) -> None:
    notes = read(tmp_path, SEREN.replace("120,30,960.0", "12,3,9.0")).notes
    assert notes == [
        "duration is not end_time - start_time in 1 of 2 rows: the times count.",
        "queue is not start_time - submit_time in 1 of 2 rows: the times count.",
        "gpu_time is not duration * gpu_num in 1 of 2 rows.",
    ]


def test_the_conversion(tmp_path: Path) -> None:
    trace = read(tmp_path, CONVERTED)
    assert (trace.format, trace.time_origin) == ("acme-converted", None)
    assert trace.frame["duration_us"].tolist() == [104 * SECOND, 1_500_000]
    assert trace.frame["gpu_milli"].tolist() == [64_000, 64_000]
    assert trace.frame["gpus_per_node"].tolist() == [8, 4]
    assert trace.frame["submit_us"].tolist() == [0, 313 * SECOND]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SEREN[:-10], "line 3: 10 fields where 13 are expected"),
        (SEREN.replace(",8,128", ",eight,128"), 'line 2, gpu_num: "eight" is not a number'),
        (SEREN.splitlines()[0], "has column names but no rows"),
        (SEREN.replace(",", ";"), 'has no column "job_id"'),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(file, format="acme")


@pytest.mark.parametrize(("text", "name"), [(SEREN, "acme"), (KALOS, "acme"), (CONVERTED, "acme-converted")])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_files_are_read_or_refused(tmp_path: Path, text: str, name: str, seed: int) -> None:
    check_mangled(text, seed, tmp_path / "jobs.csv", name)


def test_kalos_is_as_published() -> None:
    """319 jobs, 456,843 GPU-hours, up to 1,024 GPUs."""
    facts = describe(read_trace(shared_file("traces/acme/converted_kalos_trace.csv")))
    assert (facts["format"], facts["rows"], facts["jobs"], facts["max_gpus"]) == ("acme-converted", 319, 319, 1_024)
    assert facts["gpu_hours"] == pytest.approx(456_843, abs=0.5)
