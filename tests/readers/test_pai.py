"""PAI: tables without names side by side, tasks folded into gangs, and tables that stand alone."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, describe, read_trace
from tests.builders import SECOND, shared_file
from tests.readers.mangled import check_mangled

JOB_NAMES = "job_name,inst_id,user,status,start_time,end_time\n"
JOBS = (
    "aa,i1,u1,Terminated,1000.0,2000.0\n"
    "bb,i2,u2,Running,1010.0,\n"
    "cc,i3,u2,Failed,1020.0,1500.0\n"
    "dd,i4,u3,Waiting,1030.0,\n"
    "ee,i5,u3,Terminated,1040.0,1100.0\n"
)
TASKS = (
    "aa,ps,1.0,Terminated,1100.0,1900.0,600.0,10.0,,\n"
    "bb,worker,2.0,Running,1200.0,,400.0,29.296875,50.0,MISC\n"
    "aa,worker,3.0,Terminated,1110.0,1990.0,400.0,29.296875,50.0,T4\n"
    "aa,evaluator,1.0,Terminated,1120.0,1200.0,100.0,1.0,100.0,P100\n"
    "cc,tensorflow,1.0,Failed,1020.0,1500.0,600.0,29.296875,200.0,V100\n"
    "dd,worker,1.0,Waiting,,,600.0,29.296875,100.0,V100\n"
)
INSTANCES = (
    "aa,worker,n1,w1,i1,Terminated,1110.0,1990.0,m1\n"
    "aa,worker,n2,w2,i1,Terminated,1111.0,1980.0,m2\n"
    "aa,ps,n3,w3,i1,Interrupted,,1995.0,m1\n"
    "bb,worker,n4,w4,i2,Running,1200.0,,m3\n"
    "bb,worker,n5,,i2,Waiting,,,\n"
    "cc,worker,n6,,i3,Waiting,,,\n"
    "ff,worker,n7,w7,i6,Interrupted,,1700.0,m3\n"
)
TAGS = "i1,u1,T4,g1,bert\ni2,u2,,g2,\ni1,u1,T4,g1,bert\n"
FILES = {"job": JOBS, "task": TASKS, "instance": INSTANCES, "group_tag": TAGS}


def write(folder: Path, *kinds: str) -> Path:
    """Write some tables; return the first."""
    for kind in kinds:
        (folder / f"pai_{kind}_table.csv").write_text(FILES[kind])
    return folder / f"pai_{kinds[0]}_table.csv"


def pack(file: Path) -> Path:
    """Pack a table as it can be downloaded, and remove it."""
    packed = file.with_name(file.name.removesuffix(".csv") + ".tar.gz")
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(file, file.name)
    file.unlink()
    return packed


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return read_trace(write(tmp_path, "task", "job", "instance", "group_tag"))


def test_tasks_fold_into_gangs(trace: Trace) -> None:
    jobs = trace.frame.set_index("job_id")
    assert (trace.format, trace.time_origin) == ("pai", None)
    assert list(jobs.index) == ["aa", "bb", "cc"]
    first = jobs.loc["aa"]
    assert first["cpu_milli"] == 6_000 + 3 * 4_000 + 1_000
    assert first["memory_mb"] == round((10 + 3 * 29.296875 + 1) * 1_024)
    assert (first["gpu_type"], jobs["gpu_type"]["bb"]) == ("T4", "MISC")
    assert (first["gpus_per_node"], first["recorded_node"]) == (0, "")


def test_parts_of_gpus_add_up_before_they_are_rounded(trace: Trace) -> None:
    """3 instances with half a GPU and one with a whole are 2.5 GPUs, and get 3."""
    assert trace.frame.set_index("job_id")["gpu_milli"].to_dict() == {"aa": 3_000, "bb": 1_000, "cc": 2_000}
    assert trace.account.repaired["GPUs and a part of one: gets whole ones"].tolist() == [1]


def test_jobs_are_submitted_before_their_first_task_is_launched(trace: Trace) -> None:
    jobs = trace.frame.set_index("job_id")
    assert jobs["submit_us"].to_dict() == {"aa": 1_000 * SECOND, "bb": 1_010 * SECOND, "cc": 1_020 * SECOND}
    assert jobs["recorded_start_us"]["aa"] == 1_100 * SECOND
    assert jobs["recorded_end_us"]["aa"] == 1_990 * SECOND
    assert jobs["duration_us"].to_dict() == {"aa": 890 * SECOND, "bb": 790 * SECOND, "cc": 480 * SECOND}
    assert trace.account.repaired["still running at the end of the log: runs until then"].tolist() == [2]


def test_users_states_and_workloads(trace: Trace) -> None:
    jobs = trace.frame.set_index("job_id")
    assert jobs["user"].to_dict() == {"aa": "u1", "bb": "u2", "cc": "u2"}
    assert jobs["status"].to_dict() == {"aa": "Terminated", "bb": "Running", "cc": "Failed"}
    assert jobs["model"].to_dict() == {"aa": "bert", "bb": "", "cc": ""}


def test_every_row_is_accounted_for(trace: Trace) -> None:
    assert trace.rows == 6
    assert trace.set_aside == {"a further task, folded into its job": 2, "never started": 1}
    assert trace.account.set_aside["a further task, folded into its job"].tolist() == [3, 4]
    assert "1 jobs of pai_job_table are in no row read, and so not in the trace." in trace.notes


def test_any_table_may_be_named_and_instances_tell_nodes(tmp_path: Path) -> None:
    write(tmp_path, "task", "job", "instance")
    frames = [read_trace(tmp_path / f"pai_{kind}_table.csv").frame for kind in ("task", "job", "instance")]
    assert frames[0].equals(frames[1])
    assert frames[2].drop(columns="recorded_node").equals(frames[0].drop(columns="recorded_node"))
    assert frames[2].set_index("job_id")["recorded_node"].to_dict() == {"aa": "m1,m2", "bb": "m3", "cc": ""}


def test_packed_tables_and_a_row_of_names(tmp_path: Path) -> None:
    plain = read_trace(write(tmp_path, "task", "job"))
    (tmp_path / "pai_job_table.csv").write_text(JOB_NAMES + JOBS)
    task = pack(tmp_path / "pai_task_table.csv")
    assert read_trace(task).frame.equals(plain.frame)
    assert read_trace(tmp_path / "pai_job_table.csv").frame.equals(plain.frame)
    (tmp_path / "pai_job_table.csv").unlink()
    with gzip.open(tmp_path / "pai_job_table.csv.gz", "wt") as file:
        file.write(JOBS)
    assert read_trace(task).frame.equals(plain.frame)


def test_tasks_alone(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, "task"))
    jobs = trace.frame.set_index("job_id")
    assert jobs["submit_us"].to_dict() == {"aa": 1_100 * SECOND, "bb": 1_200 * SECOND, "cc": 1_020 * SECOND}
    assert jobs["status"].to_dict() == {"aa": "Terminated", "bb": "Running", "cc": "Failed"}
    assert trace.lacks == ""
    assert any("pai_job_table is not at hand" in note for note in trace.notes)


def test_instances_alone_count_every_job(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, "instance"))
    jobs = trace.frame.set_index("job_id")
    assert trace.lacks == "pai_task_table.csv (plan_gpu)"
    assert (trace.rows, trace.set_aside) == (7, {"a further instance, folded into its job": 3})
    assert jobs["submit_us"].to_dict() == {name: each * SECOND for name, each in
                                           {"aa": 1_110, "bb": 1_200, "cc": 1_110, "ff": 1_700}.items()}  # fmt: skip
    assert jobs["duration_us"].to_dict() == {name: each * SECOND for name, each in
                                             {"aa": 885, "bb": 795, "cc": 0, "ff": 0}.items()}  # fmt: skip
    assert jobs["status"].to_dict() == {"aa": "Interrupted", "bb": "Running", "cc": "Waiting", "ff": "Interrupted"}
    assert jobs["recorded_node"].to_dict() == {"aa": "m1,m2", "bb": "m3", "cc": "", "ff": "m3"}
    repaired = {reason: rows.tolist() for reason, rows in trace.account.repaired.items()}
    assert repaired["no start told: submitted when it ended"] == [7]
    assert repaired["no time told: submitted as the log begins"] == [6]
    assert repaired["no run time told: counted without one"] == [6, 7]


def test_instances_without_any_time_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "pai_instance_table.csv"
    file.write_text("aa,ps,n1,w1,i1,Running,,,m1\naa,ps,n2,w2,i1,Running,,,m2\nbb,ps,n3,w3,i2,Waiting,,,\n")
    assert describe(read_trace(file))["jobs"] == 2
    file.write_text("bb,ps,n3,w3,i2,Waiting,,,\n")
    assert describe(read_trace(file))["jobs"] == 1


def test_jobs_alone(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, "job"))
    jobs = trace.frame.set_index("job_id")
    assert (trace.rows, len(jobs), trace.lacks) == (5, 5, "pai_task_table.csv (plan_gpu)")
    assert jobs["duration_us"].to_dict()["aa"] == 1_000 * SECOND
    assert trace.account.repaired["no run time told: counted without one"].tolist() == [2, 4]


def test_zero_is_no_time_and_untold_instances_are_one(tmp_path: Path) -> None:
    file = tmp_path / "pai_task_table.csv"
    file.write_text(TASKS + "gg,worker,,Failed,0.0,0.0,600.0,1.0,100.0,T4\nhh,worker,,Failed,5.0,6.0,,,100.0,T4\n")
    trace = read_trace(file)
    assert trace.set_aside["no submission and no start told"] == 2
    assert trace.frame.set_index("job_id")["gpu_milli"]["hh"] == 1_000


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("task", TASKS[:-12], "line 6: 8 fields where 10 are expected"),
        ("task", TASKS.replace(",200.0,", ",two,") * 9, 'line 5, plan_gpu: "two" is not a number'),
        ("job", JOBS.replace(",", ";"), "no job, task or instance table of PAI"),
    ],
)
def test_broken_files(tmp_path: Path, kind: str, text: str, message: str) -> None:
    write(tmp_path, "task", "job")
    file = tmp_path / f"pai_{kind}_table.csv"
    file.write_text(text)
    if message.startswith("has"):
        file = file.rename(tmp_path / "pai_job_table.csv")
        (tmp_path / "pai_task_table.csv").unlink()
    named = file if "PAI" in message or message.startswith("has") else write_again(tmp_path)
    with pytest.raises(TraceError, match=message):
        read_trace(named, format="pai")


def write_again(folder: Path) -> Path:
    """The sound table beside a broken one."""
    return write(folder, "job")


def test_damaged_archives(tmp_path: Path) -> None:
    packed = pack(write(tmp_path, "task"))
    data = gzip.decompress(packed.read_bytes())
    for damaged in (data[:700], data[:512]):
        packed.write_bytes(gzip.compress(damaged))
        with pytest.raises(TraceError):
            read_trace(packed)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(TraceError, match="ends too early"):
        read_trace(packed)


def test_an_archive_without_a_table(tmp_path: Path) -> None:
    packed = tmp_path / "pai_job_table.csv.tar"
    with tarfile.open(packed, "w") as archive:
        entry = tarfile.TarInfo("pai_job_table.csv.readme")
        entry.size = 2
        archive.addfile(entry, io.BytesIO(b"hi"))
    with pytest.raises(TraceError, match="holds no table"):
        read_trace(packed, format="pai")


@pytest.mark.parametrize("kind", ["task", "job", "instance"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_tables_are_read_or_refused(tmp_path: Path, kind: str, seed: int) -> None:
    check_mangled(FILES[kind], seed, tmp_path / f"pai_{kind}_table.csv", "pai")


def test_the_real_instances() -> None:
    """19,752 rows of 3,834 jobs, without the table that tells GPUs."""
    trace = read_trace(shared_file("traces/pai/pai_instance_table.tail_recovered.csv.gz"))
    assert (trace.format, trace.rows, len(trace.frame)) == ("pai", 19_752, 3_834)
    assert trace.lacks == "pai_task_table.csv (plan_gpu)"
