"""The Slurm log of the MIT Supercloud Dataset: numbers for states and resources, and attempts under one id."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, read_trace
from tests.readers.mangled import check_mangled

COLUMNS = [
    "id_job",
    "id_array_job",
    "id_array_task",
    "id_user",
    "kill_requid",
    "nodes_alloc",
    "nodelist",
    "cpus_req",
    "derived_ec",
    "exit_code",
    "gres_used",
    "array_max_tasks",
    "array_task_pending",
    "constraints",
    "flags",
    "mem_req",
    "partition",
    "priority",
    "state",
    "timelimit",
    "time_submit",
    "time_eligible",
    "time_start",
    "time_end",
    "time_suspended",
    "track_steps",
    "tres_alloc",
    "tres_req",
    "job_type",
]
BEGIN = 1_609_535_912  # 2021-01-01T21:18:32Z
PER_CPU = 9_223_372_036_854_784_308  # 8,500 MB for each CPU, as Slurm flags it
DEFAULTS = dict.fromkeys(COLUMNS, "0") | {
    "id_array_task": "4294967294",
    "id_user": "42770158",
    "nodes_alloc": "1",
    "nodelist": "['r91-n91']",
    "cpus_req": "20",
    "gres_used": "",
    "mem_req": str(PER_CPU),
    "partition": "normal",
    "priority": "10239",
    "state": "3",
    "timelimit": "1440",
    "tres_alloc": '"1=20,2=170000,3=18446744073709551614,4=1,5=20,1002=2"',
    "tres_req": '"1=20,2=170000,4=1,5=20,1002=2"',
    "job_type": "LLSUB:BATCH",
}


def row(job: int, submit: int, start: int, end: int, **fields: object) -> str:
    """A row; times are seconds after BEGIN, 0 says that it did not happen."""
    times = {
        "time_submit": BEGIN + submit,
        "time_start": start and BEGIN + start,
        "time_end": end and BEGIN + end,
    }
    cells = {**DEFAULTS, "id_job": job, **times, **fields}
    return ",".join(str(cells[name]) for name in COLUMNS) + "\n"


def table(*rows: str) -> str:
    return ",".join(COLUMNS) + "\n" + "".join(rows)


def read(folder: Path, *rows: str, name: str | None = None) -> Trace:
    file = folder / "slurm-log.csv"
    file.write_text(table(*rows))
    return read_trace(file, format=name)


def test_fields_become_jobs(tmp_path: Path) -> None:
    trace = read(tmp_path, row(16_051_234_567_890, 0, 100, 400))
    assert (trace.format, trace.rows, trace.time_origin) == ("supercloud", 1, "2021-01-01T21:18:32+00:00")
    job = trace.frame.iloc[0]
    assert job["job_id"] == 16_051_234_567_890
    assert (job["submit_us"], job["duration_us"], job["estimate_us"]) == (0, 300_000_000, 86_400_000_000)
    assert (job["recorded_start_us"], job["recorded_end_us"]) == (100_000_000, 400_000_000)
    assert (job["gpu_milli"], job["gpus_per_node"], job["cpu_milli"], job["memory_mb"]) == (2_000, 2, 20_000, 170_000)
    assert (job["user"], job["partition"], job["status"]) == ("42770158", "normal", "COMPLETED")
    assert job["recorded_node"] == "r91-n91"


@pytest.mark.parametrize(
    ("state", "status"),
    [(4, "CANCELLED"), (5, "FAILED"), (6, "TIMEOUT"), (7, "NODE_FAIL"), (11, "OUT_OF_MEMORY"), (99, "STATE_99")],
)
def test_states_are_numbers(tmp_path: Path, state: int, status: str) -> None:
    assert read(tmp_path, row(1, 0, 5, 9, state=state)).frame["status"].tolist() == [status]


@pytest.mark.parametrize("limit", [4294967295, 4294967294, -1, ""])
def test_no_time_limit(tmp_path: Path, limit: object) -> None:
    assert read(tmp_path, row(1, 0, 5, 9, timelimit=limit)).frame["estimate_us"].tolist() == [-1]


@pytest.mark.parametrize(
    ("resources", "gpus"),
    [
        ("1=4,1002=1", 1),
        ("1=4,1001=2", 2),
        ("1=4,2=8500,4=1", 0),
        ("1=4,1002=18446744073709551614", 0),
        ("1002=3", 3),
    ],
)
def test_gpus_are_resources_1001_and_1002(tmp_path: Path, resources: str, gpus: int) -> None:
    trace = read(tmp_path, row(1, 0, 5, 9, tres_alloc=f'"{resources}"'))
    assert trace.frame["gpu_milli"].tolist() == [gpus * 1_000]


def test_what_is_not_told(tmp_path: Path) -> None:
    trace = read(tmp_path, row(1, 0, 5, 9, tres_alloc="1002=2"), row(2, 0, 5, 9, tres_alloc="", tres_req=""))
    assert (trace.frame["cpu_milli"].tolist(), trace.frame["memory_mb"].tolist()) == ([20_000], [0])
    assert trace.set_aside == {"GPUs not told": 1}


def test_several_nodes(tmp_path: Path) -> None:
    nodes = "\"['r1-n1', 'r2-n2']\""
    trace = read(
        tmp_path,
        row(1, 0, 5, 9, nodes_alloc=2, nodelist=nodes, tres_alloc='"1=80,1002=4"'),
        row(2, 0, 5, 9, nodes_alloc=2, nodelist=nodes, tres_alloc='"1=80,1002=3"'),
    )
    assert trace.frame["recorded_node"].tolist() == ["r1-n1,r2-n2"] * 2
    assert trace.frame["gpus_per_node"].tolist() == [2, 0]
    assert trace.account.repaired["GPUs that do not divide by its nodes: spread as they fit"].tolist() == [2]


def test_jobs_that_never_started(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        row(1, 0, 5, 9),
        row(2, 0, 0, 0, state=0, nodes_alloc=0, nodelist="[]", tres_alloc=""),
        row(3, 0, 7, 7, state=4, nodes_alloc=0, nodelist="[]", tres_alloc=""),
    )
    assert (trace.rows, len(trace.frame), trace.set_aside) == (3, 1, {"never started": 2})


def test_running_jobs_run_until_the_log_ends(tmp_path: Path) -> None:
    trace = read(tmp_path, row(1, 0, 5, 500), row(2, 0, 100, 0, state=1), row(3, 0, 100, 0, state=3))
    assert trace.frame["duration_us"].tolist() == [495_000_000, 400_000_000]
    assert trace.set_aside == {"no end told": 1}


def test_suspended_time_is_no_run_time(tmp_path: Path) -> None:
    trace = read(tmp_path, row(1, 0, 0 + 5, 105, time_suspended=40), row(2, 0, 5, 105, time_suspended=BEGIN))
    assert trace.frame["duration_us"].tolist() == [60_000_000, 100_000_000]


def test_attempts_of_a_job_are_one_job(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        row(7, 50, 60, 100, state=6, nodelist="['b']"),
        row(8, 10, 20, 30),
        row(7, 0, 10, 40, state=7, nodelist="['a']"),
    )
    jobs = trace.frame.set_index("job_id")
    assert (jobs["submit_us"][7], jobs["duration_us"][7]) == (0, 70_000_000)
    assert (jobs["recorded_start_us"][7], jobs["recorded_end_us"][7]) == (10_000_000, 100_000_000)
    assert (jobs["status"][7], jobs["recorded_node"][7]) == ("TIMEOUT", "b")
    assert trace.set_aside == {"another attempt of a job queued again, folded into its job": 1}
    assert trace.rows == 3


def test_the_labelled_part_has_a_clock_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "scheduler_data.csv"
    rows = (row(1, -BEGIN, 5 - BEGIN, 65 - BEGIN), row(2, 30 - BEGIN, -1 - BEGIN, -1 - BEGIN, state=0))
    file.write_text(table(*rows))
    trace = read_trace(file)
    assert (trace.time_origin, trace.frame["duration_us"].tolist()) == (None, [60_000_000])
    assert trace.set_aside == {"never started": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table(), "has column names but no rows"),
        (table(row(1, 0, 5, 9))[:-160], "line 2: 16 fields where 29 are expected"),
        (table(row(1, 0, 5, 9, state="DONE")), r'line 2, state: "DONE" is not a number'),
        (table(row(1, 0, 5, 9)).replace("tres_req", "requested"), 'has no column "tres_req"'),
        (table(row(1, 0, 5, 9)).replace(",", "|"), 'has no column "id_job"'),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "slurm-log.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(file, format="supercloud")


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_files_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    text = table(row(7, 50, 60, 100), row(7, 0, 10, 40, state=7), row(8, 9, 20, 0, state=1))
    check_mangled(text, seed, tmp_path / "slurm-log.csv", "supercloud")
