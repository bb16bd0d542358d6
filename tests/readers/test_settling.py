"""What is the same for all formats: ids, what is too large, the end of a log, and files told by their header."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysim.errors import TraceError
from analysim.traces import Trace, convert_trace, read_trace
from analysim.traces.identity import NO_ID
from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.settling import settle

TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
SACCT = "JobID|Submit|Start|End|State|AllocTRES\n"
DAY = "2026-03-02T08:0"
SECOND = 1_000_000
YEAR = 366 * 86_400 * SECOND


def read(folder: Path, text: str, name: str = "log.txt") -> Trace:
    file = folder / name
    file.write_text(text)
    return read_trace(file)


def check_conversion(folder: Path, trace: Trace) -> None:
    """A trace written as CSV and read again is the same, in the same order."""
    convert_trace(trace, folder / "again.csv")
    again = read_trace(folder / "again.csv")
    assert again.frame["job_id"].tolist() == trace.frame["job_id"].tolist()
    assert again.frame.equals(trace.frame)


def make_log(**columns: list[int]) -> Log:
    size = len(columns["submit_us"])
    given = {name: np.array(values, np.int64) for name, values in columns.items()}
    row = np.arange(1, size + 1)
    return Log({"job_id": row, "gpu_milli": np.full(size, 1_000), **given}, row, Account(size), dated=False)


def test_ids_are_told_apart_from_those_that_are_there(tmp_path: Path) -> None:
    rows = "".join(f"{name},1,0,1,v,5,1\n" for name in ("a", "a", "a~2", "a", "a~2"))
    trace = read(tmp_path, TIRESIAS + rows)
    assert trace.frame["job_id"].tolist() == ["a", "a~2", "a~2~2", "a~3", "a~4"]
    check_conversion(tmp_path, trace)


def test_a_row_without_an_id_is_called_by_its_number(tmp_path: Path) -> None:
    trace = read(tmp_path, TIRESIAS + "7,1,0,1,v,5,1\n,1,0,1,v,5,1\n,1,0,1,v,5,1\n")
    assert trace.frame["job_id"].tolist() == ["#2", "#3", "7"]
    assert trace.account.repaired[NO_ID].tolist() == [2, 3]


@pytest.mark.parametrize(
    "ids", [("10", "9", "-1"), ("10", "9", str(2**63 - 1)), ("10", "9", "007"), ("10", str(2**63))]
)
def test_ids_sort_the_same_when_written_and_read_again(tmp_path: Path, ids: tuple[str, ...]) -> None:
    trace = read(tmp_path, TIRESIAS + "".join(f"{name},1,0,1,v,5,1\n" for name in ids))
    assert (trace.frame["job_id"].dtype == np.int64) == (str(2**63) not in ids and "007" not in ids)
    check_conversion(tmp_path, trace)


def test_ids_are_integers_by_the_jobs_that_are_kept(tmp_path: Path) -> None:
    ran = f"{DAY}0:00|{DAY}1:00|{DAY}2:00|COMPLETED|gres/gpu=1\n"
    pending = f"11_[1-4]|{DAY}0:00|Unknown|Unknown|PENDING|\n"
    trace = read(tmp_path, SACCT + "10|" + ran + pending + "9|" + ran)
    assert trace.frame["job_id"].tolist() == [9, 10]
    check_conversion(tmp_path, trace)


@pytest.mark.parametrize(("place", "reason"), [(1, "an absurd number of GPUs"), (5, "a time or duration beyond 285")])
def test_what_the_schema_refuses_is_set_aside(tmp_path: Path, place: int, reason: str) -> None:
    fields = ["2", "1", "0", "1", "v", "5", "1"]
    fields[place] = "9007199254741" if place == 1 else "9007199254.7405"
    trace = read(tmp_path, TIRESIAS + "1,1,0,1,v,5,1\n" + ",".join(fields) + "\n")
    assert [each[: len(reason)] for each in trace.set_aside] == [reason]
    check_conversion(tmp_path, trace)


def test_other_values_that_are_too_large_are_left_out() -> None:
    huge = (1 << 53) + 1
    names = ("estimate_us", "checkpoint_us", "cpu_milli", "memory_mb", "priority", "recorded_end_us")
    log = make_log(submit_us=[0, 0], duration_us=[5, 5], **{name: [huge, 7] for name in names})
    frame = settle(log, "log").frame
    assert frame[list(names)].to_numpy().tolist() == [[-1, -1, 0, 0, 0, -1], [7] * len(names)]
    assert log.account.repaired["cpus negative or too large: left out"].tolist() == [1]
    assert len(log.account.repaired) == len(names)


def test_one_absurd_end_is_not_the_end_of_the_log() -> None:
    ends = [100 * SECOND, 60 * YEAR, UNKNOWN]
    log = make_log(submit_us=[0, 0, 0], recorded_start_us=[0, 0, 10 * SECOND], recorded_end_us=ends)
    log.running = np.array([False, False, True])
    assert settle(log, "log").frame["duration_us"].tolist() == [100 * SECOND, 60 * YEAR, 90 * SECOND]
    assert log.notes == ["1 jobs end over a year after all submissions and starts: running jobs end before that."]


def test_slurm_jobs_run_until_the_log_ends_but_for_one_end(tmp_path: Path) -> None:
    rows = (
        f"1|{DAY}0:00|{DAY}1:00|{DAY}3:00|COMPLETED|gres/gpu=1\n"
        f"2|{DAY}0:00|{DAY}1:00|2090-03-02T08:00:00|COMPLETED|gres/gpu=1\n"
        f"3|{DAY}0:00|{DAY}2:00|Unknown|RUNNING|gres/gpu=1\n"
    )
    trace = read(tmp_path, SACCT + rows)
    assert trace.frame["duration_us"].tolist()[::2] == [120 * SECOND, 60 * SECOND]
    assert any("end over a year after" in note for note in trace.notes)


def test_a_file_in_our_schema_is_read_as_such(tmp_path: Path) -> None:
    text = "job_id,submit_time,duration,num_gpus,timestamp,gpu_time,cluster\n1,0,5,1,2020-01-01 00:00:00,5,a\n"
    assert read(tmp_path, text).format == "csv"
    assert read(tmp_path, text.removeprefix("job_id,").replace("\n1,", "\n")).format == "philly-csv"


@pytest.mark.parametrize(
    "text", [TIRESIAS + "1,1,0,1,v,5,1\n", SACCT + f"1|{DAY}0:00|{DAY}1:00|{DAY}2:00|COMPLETED|\n"]
)
def test_blank_lines_may_come_first(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, "\n  \n" + text).format == read(tmp_path, text).format
    with pytest.raises(TraceError, match="line 5"):
        read(tmp_path, "\n  \n" + text + text.splitlines()[1].replace("1", "x") + "\n")


def test_a_nul_byte_in_a_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="line 1, job_type: the text has a NUL byte"):
        read(tmp_path, "ResNet\0\tpython\tx\t-n\t0\t100\t1\tstatic\t1\t1\t60\t0\n")
    with pytest.raises(TraceError, match="line 2, model_name: the text has a NUL byte"):
        read(tmp_path, TIRESIAS + "1,1,0,1,v\0,5,1\n")


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: x, creationTimestamp: "2024-05-01T00:00:00Z"}
spec: {containers: [{resources: {requests: {nvidia.com/gpu: "1"}}}]}
status:
  phase: Succeeded
  startTime: "2024-05-01T00:00:10Z"
  containerStatuses: [{state: {terminated: {finishedAt: "2024-05-01T01:00:00Z"}}}]
"""


def test_two_objects_without_a_line_between_are_refused(tmp_path: Path) -> None:
    assert len(read(tmp_path, POD + "---\n" + POD.replace("NAME", "b")).frame) == 2
    with pytest.raises(TraceError, match=r'line 9: "apiVersion" comes twice in one document.*Put --- between'):
        read(tmp_path, POD + POD.replace("NAME", "b"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"apiVersion": "v1", "items": [], "kind": "List"}', "has no objects. Export some: kubectl get"),
        ("JobID,Submit,Start,End,AllocTRES\n1,a,b,c,d\n", "sacct --allusers --parsable2"),
        ("JobID      AllocCPUS     State \n------ ---------- ---------\n1  4 COMPLETED\n", "sacct --allusers"),
        ("; Version: 2.2\n; MaxProcs: 100\n", "has no jobs: only comments"),
        ("1 0 nan 5 1" + " -1" * 13 + "\n", 'line 1: "nan" is not a number'),
        ("1 0 0 5 1" + " -1" * 13 + "\n1 0 0 inf 1" + " -1" * 13 + "\n", 'line 2: "inf" is not a number'),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
