"""The text of sacct: what becomes of its rows, and every way in which its cells are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.clusters.recorded import cluster_of_nodes
from analysim.errors import TraceError
from analysim.traces import Trace, read_trace
from analysim.traces.readers import slurm_lines
from analysim.traces.readers.slurm_values import (
    count_tasks,
    read_gres,
    read_memory,
    read_span,
    read_tres,
    requested_memory,
)
from tests.readers.mangled import check_reading

UNKNOWN = -(1 << 63)
NAMES = "JobID|JobName|User|Account|Partition|State|Submit|Start|End|Elapsed|Timelimit|NNodes|AllocTRES|NodeList"
DEFAULTS = {
    "JobID": "1",
    "JobName": "train",
    "User": "ann",
    "Account": "lab",
    "Partition": "gpu",
    "State": "COMPLETED",
    "Submit": "2024-05-01T12:00:00",
    "Eligible": "2024-05-01T12:00:00",
    "Start": "2024-05-01T12:01:00",
    "End": "2024-05-01T12:11:00",
    "Elapsed": "00:10:00",
    "ElapsedRaw": "600",
    "Timelimit": "01:00:00",
    "NNodes": "1",
    "AllocTRES": "billing=8,cpu=8,gres/gpu=4,mem=64G,node=1",
    "NodeList": "b001",
    "ReqMem": "64G",
    "AllocCPUS": "8",
}


def row(names: str = NAMES, **cells: str) -> str:
    return "|".join(cells.get(name, DEFAULTS.get(name, "")) for name in names.split("|"))


def read(folder: Path, *rows: str, names: str = NAMES, **options: Any) -> Trace:
    file = folder / "dump.txt"
    file.write_text("\n".join([names, *rows]) + "\n")
    trace = read_trace(file, **options)
    assert trace.format == "slurm-sacct"
    assert trace.rows == len(trace.frame) + sum(trace.set_aside.values())
    return trace


def only(trace: Trace) -> dict[str, Any]:
    assert len(trace.frame) == 1
    return {str(name): value for name, value in trace.frame.iloc[0].to_dict().items()}


def test_columns_become_a_job(tmp_path: Path) -> None:
    job = only(read(tmp_path, row()))
    assert (job["job_id"], job["submit_us"], job["duration_us"]) == (1, 0, 600_000_000)
    assert (job["recorded_start_us"], job["recorded_end_us"]) == (60_000_000, 660_000_000)
    assert (job["gpu_milli"], job["gpus_per_node"], job["cpu_milli"], job["memory_mb"]) == (4_000, 4, 8_000, 65_536)
    assert (job["tenant"], job["user"], job["partition"], job["status"]) == ("lab", "ann", "gpu", "COMPLETED")
    assert (job["estimate_us"], job["recorded_node"]) == (3_600_000_000, "b001")


def test_trailing_separator_of_parsable(tmp_path: Path) -> None:
    assert only(read(tmp_path, row() + "|", names=NAMES + "|"))["gpu_milli"] == 4_000


def test_zones(tmp_path: Path) -> None:
    assert read(tmp_path, row()).time_origin == "2024-05-01T12:00:00+00:00"
    berlin = read(tmp_path, row(), timezone="Europe/Berlin")
    assert berlin.time_origin == "2024-05-01T10:00:00+00:00"
    assert any("Europe/Berlin" in note for note in berlin.notes)
    zoned = {name: DEFAULTS[name] + "+0200" for name in ("Submit", "Start", "End")}
    trace = read(tmp_path, row(**zoned))
    assert trace.time_origin == "2024-05-01T10:00:00+00:00"
    assert not any("zone" in note for note in trace.notes)


def test_epoch_seconds(tmp_path: Path) -> None:
    trace = read(tmp_path, row(Submit="1714564800", Start="1714564860", End="1714565460"))
    assert (only(trace)["duration_us"], trace.time_origin) == (600_000_000, "2024-05-01T12:00:00+00:00")


def test_times_of_another_form_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r'line 3: Start "Tue 10:22" is no time.*SLURM_TIME_FORMAT=standard'):
        read(tmp_path, row(), row(JobID="2", Start="Tue 10:22"))


FREE = "JobID|JobName|State|Submit|Start|End|SubmitLine|AllocTRES|Comment|NodeList"


@pytest.mark.parametrize(
    "cells",
    [
        {"JobName": "a|b"},
        {"JobName": "|"},
        {"JobName": "a|b|c", "Comment": "x|y", "SubmitLine": "sbatch a | tee|"},
        {"SubmitLine": "sbatch --wrap 'one\ntwo | three\n\nfour'"},
        {"JobName": "a|b", "SubmitLine": "one\n2|FAILED|three\nfour|"},
        {"Comment": "several\nlines|of\ntext"},
    ],
)
def test_free_text_may_hold_separators_and_lines(tmp_path: Path, cells: dict[str, str]) -> None:
    rows = [row(FREE, JobID="1"), row(FREE, JobID="2", **cells), row(FREE, JobID="3")]
    trace = read(tmp_path, *rows, names=FREE)
    assert trace.rows == 3
    assert trace.frame["gpu_milli"].tolist() == [4_000] * 3
    assert trace.frame["status"].tolist() == ["COMPLETED"] * 3
    assert trace.frame["recorded_node"].tolist() == ["b001"] * 3


def test_free_text_at_the_end_may_have_lines(tmp_path: Path) -> None:
    names = "JobID|State|Submit|Start|End|AllocTRES|SubmitLine"
    trace = read(tmp_path, row(names, SubmitLine="one\ntwo\n\nthree"), row(names, JobID="2"), names=names)
    assert (trace.rows, len(trace.frame)) == (2, 2)


def test_records_are_whole_wherever_blocks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for number in range(1, 30):
        rows += [row(FREE, JobID=str(number), JobName="a|b" * (number % 3), SubmitLine="x\ny|z" * (number % 2))]
        rows += [row(FREE, JobID=f"{number}.{step}", AllocTRES="") for step in ("batch", "0")]
    monkeypatch.setattr(slurm_lines, "_AT_ONCE", 100)
    trace = read(tmp_path, *rows, names=FREE)
    assert (trace.rows, len(trace.frame), trace.frame["gpu_milli"].sum()) == (87, 29, 29 * 4_000)


def test_steps_are_folded_into_their_job(tmp_path: Path) -> None:
    steps = [row(JobID=f"1.{step}", Submit=DEFAULTS["Start"], User="") for step in ("batch", "extern", "0")]
    trace = read(tmp_path, row(), *steps, row(JobID="2_7"), row(JobID="2_7.batch"))
    assert trace.frame["job_id"].tolist() == ["1", "2_7"]
    assert trace.set_aside == {"a step, folded into its job": 4}
    assert trace.account.set_aside["a step, folded into its job"].tolist() == [2, 3, 4, 6]


def test_steps_tell_what_their_job_does_not(tmp_path: Path) -> None:
    rows = [
        row(AllocTRES="", NodeList="None assigned", NNodes="2"),
        row(JobID="1.batch", AllocTRES="cpu=8,gres/gpu=4,node=1", NodeList="b001"),
        row(JobID="1.extern", AllocTRES="cpu=16,gres/gpu=8,node=2", NodeList="b[001-002]"),
        row(JobID="1.0", AllocTRES="cpu=1,gres/gpu=1,node=1", NodeList="b002"),
    ]
    job = only(read(tmp_path, *rows))
    assert (job["gpu_milli"], job["gpus_per_node"], job["recorded_node"]) == (8_000, 4, "b[001-002]")


def test_steps_apart_from_their_job(tmp_path: Path) -> None:
    trace = read(tmp_path, row(JobID="1.batch"), row(JobID="9.batch"), row())
    assert trace.set_aside == {"a step, folded into its job": 1, "a step whose job is not in the log": 1}


def test_arrays(tmp_path: Path) -> None:
    waiting = {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "NodeList": "None assigned"}
    rows = [row(JobID="123_4"), row(JobID="123_[5-9%2]", **waiting), row(JobID="7")]
    trace = read(tmp_path, *rows)
    assert trace.frame["job_id"].tolist() == ["123_4", "7"]
    assert trace.set_aside == {"never started": 1}
    assert any("1 rows stand for 5 pending tasks" in note for note in trace.notes)
    assert any("1 arrays limit how many tasks run at once" in note for note in trace.notes)


@pytest.mark.parametrize(("tasks", "count"), [("[5-9%2]", 5), ("[1,3,8-9]", 4), ("[0-10:5]", 3), ("[9]", 1), ("[x", 1)])
def test_pending_tasks_are_counted(tasks: str, count: int) -> None:
    assert count_tasks(tasks) == count


def test_components_are_one_gang(tmp_path: Path) -> None:
    rows = [
        row(JobID="123+0", AllocTRES="cpu=8,gres/gpu=8,mem=1G", NodeList="b001", End="2024-05-01T12:11:00"),
        row(JobID="123+0.batch"),
        row(JobID="123+1", AllocTRES="cpu=32,gres/gpu=16,mem=3G", NNodes="2", NodeList="b[002-003]"),
    ]
    trace = read(tmp_path, *rows)
    job = only(trace)
    assert (job["job_id"], job["gpu_milli"], job["gpus_per_node"], job["cpu_milli"]) == (123, 24_000, 8, 40_000)
    assert (job["memory_mb"], job["recorded_node"]) == (4_096, "b001,b[002-003]")
    assert trace.set_aside["a component of a heterogeneous job, folded into its job"] == 1


def test_components_of_several_shapes_are_spread_as_they_fit(tmp_path: Path) -> None:
    rows = [
        row(JobID="5+0", AllocTRES="gres/gpu=1,gres/gpu:v100=1", NodeList="b1"),
        row(JobID="5+1", AllocTRES="gres/gpu=8,gres/gpu:a100=8", NodeList="b2"),
    ]
    job = only(read(tmp_path, *rows))
    assert (job["gpu_milli"], job["gpus_per_node"], job["gpu_type"]) == (9_000, 0, "")


def test_who_cancelled_is_not_part_of_the_state(tmp_path: Path) -> None:
    assert only(read(tmp_path, row(State="CANCELLED by 1000")))["status"] == "CANCELLED"


@pytest.mark.parametrize(
    "cells",
    [
        {"State": "PENDING", "Start": "Unknown", "End": "Unknown"},
        {"State": "CANCELLED by 7", "Start": "None", "End": "2024-05-01T12:05:00", "Elapsed": "00:00:00"},
        {"State": "CANCELLED", "Start": "2024-05-01T12:05:00", "End": "2024-05-01T12:05:00", "Elapsed": "00:00:00"},
        {"State": "DEADLINE", "Start": "2024-05-01T12:05:00", "End": "2024-05-01T12:05:00", "Elapsed": "00:00:00"},
    ],
)
def test_what_never_started(tmp_path: Path, cells: dict[str, str]) -> None:
    trace = read(tmp_path, row(JobID="2"), row(NodeList="None assigned", AllocTRES="", NNodes="0", **cells))
    assert trace.set_aside == {"never started": 1}


def test_a_job_that_ran_no_second_ran(tmp_path: Path) -> None:
    trace = read(tmp_path, row(State="FAILED", End=DEFAULTS["Start"], Elapsed="00:00:00"))
    assert only(trace)["duration_us"] == 0


def test_running_jobs_run_until_the_log_was_taken(tmp_path: Path) -> None:
    trace = read(tmp_path, row(State="RUNNING", End="Unknown", Elapsed="1-00:00:00"), row(JobID="2"))
    job = trace.frame.set_index("job_id").loc[1]
    assert (job["duration_us"], job["recorded_end_us"]) == (86_400_000_000, -1)
    assert "still running at the end of the log: runs until then" in trace.account.repaired


def attempt(number: int, state: str, start: str, end: str, **cells: str) -> str:
    stamps = {"Start": f"2024-05-01T{start}:00" if start else "Unknown", "End": f"2024-05-01T{end}:00"}
    return row(JobID=str(number), State=state, Elapsed="", **stamps, **cells)


def test_requeued_jobs_are_one_job(tmp_path: Path) -> None:
    rows = [
        attempt(1, "NODE_FAIL", "12:05", "12:06"),
        row(JobID="2"),
        attempt(1, "PREEMPTED", "12:20", "12:40", Submit="2024-05-01T12:06:00", NodeList="b7"),
        attempt(1, "COMPLETED", "13:00", "15:00", Submit="2024-05-01T12:40:00", NodeList="b8"),
    ]
    trace = read(tmp_path, *rows)
    job = trace.frame.set_index("job_id").loc[1]
    assert (job["submit_us"], job["duration_us"]) == (0, 7_200_000_000)
    assert (job["status"], job["recorded_node"]) == ("COMPLETED", "b8")
    assert trace.account.set_aside["a further record of its id (requeued), folded into its job"].tolist() == [3, 4]
    assert any("1 jobs were requeued" in note for note in trace.notes)


def test_an_attempt_that_never_started_does_not_count(tmp_path: Path) -> None:
    cancelled = attempt(1, "CANCELLED by 5", "", "14:00", Submit="2024-05-01T12:40:00", NodeList="None assigned")
    trace = read(tmp_path, attempt(1, "PREEMPTED", "12:20", "12:40"), cancelled)
    assert only(trace)["duration_us"] == 1_200_000_000


def test_ids_that_are_used_again_are_other_jobs(tmp_path: Path) -> None:
    later = {name: DEFAULTS[name].replace("2024", "2026") for name in ("Submit", "Start", "End")}
    trace = read(tmp_path, row(), row(User="bob"), row(**later))
    assert trace.frame["job_id"].tolist() == ["1", "1~2", "1~3"]


def test_clusters_have_ids_of_their_own(tmp_path: Path) -> None:
    names = "Cluster|" + NAMES
    trace = read(tmp_path, row(names, Cluster="east"), row(names, Cluster="west"), names=names)
    assert len(trace.frame) == 2


def test_the_header_may_come_again(tmp_path: Path) -> None:
    trace = read(tmp_path, row(), NAMES, row(JobID="2"))
    assert trace.set_aside == {"the header again": 1}


@pytest.mark.parametrize(
    ("cells", "gpus", "kind"),
    [
        ({"AllocTRES": "cpu=4,gres/gpu=8"}, 8, ""),
        ({"AllocTRES": "gres/gpu:a100=8"}, 8, "a100"),
        ({"AllocTRES": "gres/gpu:a100=8,gres/gpu=8"}, 8, "a100"),
        ({"AllocTRES": "gres/gpu=8,gres/gpu:a100=4,gres/gpu:v100=4"}, 8, ""),
        ({"AllocTRES": "gres/gpu:a100=1,gres/gpu:v100=2"}, 3, ""),
        ({"AllocTRES": "cpu=4,gres/gpumem=80G,gres/gpuutil=50"}, 0, ""),
        ({"AllocTRES": "", "ReqTRES": "gres/gpu=2"}, 2, ""),
        ({"AllocTRES": "cpu=4", "AllocGRES": "gpu:2", "NNodes": "3"}, 6, ""),
        ({"AllocTRES": "", "ReqGRES": "gpu:a100:2(S:0-1),craynetwork:1", "NNodes": "2"}, 4, "a100"),
        ({"AllocTRES": "", "ReqGRES": "7696487:1"}, 1, ""),
        ({"AllocTRES": "", "ReqGRES": "gpu:2080ti:2"}, 2, "2080ti"),
        ({"AllocTRES": ""}, 0, ""),
    ],
)
def test_gpus(tmp_path: Path, cells: dict[str, str], gpus: int, kind: str) -> None:
    names = NAMES + "|ReqTRES|AllocGRES|ReqGRES"
    job = only(read(tmp_path, row(names, **cells), names=names))
    assert (job["gpu_milli"], job["gpu_type"]) == (gpus * 1_000, kind)


def test_energy_among_resources(tmp_path: Path) -> None:
    rows = [row(JobID=str(at), AllocTRES=f"cpu=8,energy={at * 977},gres/gpu=2,mem=1G,node=1") for at in range(1, 9)]
    assert read(tmp_path, *rows).frame["gpu_milli"].tolist() == [2_000] * 8


def test_gpus_that_cannot_be_read_are_not_told(tmp_path: Path) -> None:
    trace = read(tmp_path, row(AllocTRES="gres/gpu=many"), row(JobID="2"))
    assert trace.set_aside == {"GPUs not told": 1}


def test_shared_gpus_are_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, row(AllocTRES="cpu=1,gres/shard=4"), row(JobID="2"))
    assert any("1 jobs share GPUs" in note for note in trace.notes)


def test_without_resources_gpus_are_lacking(tmp_path: Path) -> None:
    names = "JobID|State|Submit|Start|End"
    assert read(tmp_path, row(names), names=names).lacks == "AllocTRES or ReqTRES (sacct --format=...)"
    assert read(tmp_path, row()).lacks == ""


def test_a_log_without_gpus_says_so(tmp_path: Path) -> None:
    trace = read(tmp_path, row(AllocTRES="cpu=8,mem=1G,node=1"))
    assert any("AccountingStorageTRES" in note for note in trace.notes)


def test_gpus_that_do_not_divide_by_the_nodes(tmp_path: Path) -> None:
    trace = read(tmp_path, row(AllocTRES="gres/gpu=6", NNodes="4"), row(JobID="2", AllocTRES="gres/gpu=6", NNodes="3"))
    assert trace.frame["gpus_per_node"].tolist() == [0, 2]
    assert "GPUs that do not divide by its nodes: spread as they fit" in trace.account.repaired


def test_lists_of_nodes(tmp_path: Path) -> None:
    names = NAMES.replace("NNodes|", "")
    nodes = ["b[002-003]", "b[1,4-5],c7", "None assigned", "b[2-"]
    rows = [row(names, JobID=str(at), NodeList=text, AllocTRES="gres/gpu=12") for at, text in enumerate(nodes)]
    trace = read(tmp_path, *rows, names=names)
    assert trace.frame["recorded_node"].tolist() == ["b[002-003]", "b[1,4-5],c7", "", ""]
    assert trace.frame["gpus_per_node"].tolist() == [6, 3, 0, 0]


def test_its_nodes_make_a_cluster(tmp_path: Path) -> None:
    cluster = cluster_of_nodes(read(tmp_path, row(NodeList="b[002-003]", NNodes="2"), row(JobID="2", NodeList="c1")))
    assert cluster is not None
    assert [group.names for group in cluster.racks[0].nodes] == ["b[002-003]", "c1"]


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("2800Mc", 11_200),
        ("2800Mn", 5_600),
        ("500G", 512_000),
        ("4000M", 4_000),
        ("4000", 4_000),
        ("1.5T", 1_572_864),
        ("2048K", 2),
        ("0n", UNKNOWN),
        ("16?", UNKNOWN),
    ],
)
def test_memory(text: str, memory: int) -> None:
    assert requested_memory(text, 4_000, 2) == memory


def test_memory_of_each_cpu_in_a_dump(tmp_path: Path) -> None:
    names = NAMES + "|ReqMem|AllocCPUS"
    cells = {"AllocTRES": "gres/gpu=1", "ReqMem": "2800Mc", "AllocCPUS": "4"}
    job = only(read(tmp_path, row(names, **cells), names=names))
    assert (job["memory_mb"], job["cpu_milli"]) == (11_200, 4_000)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2-00:00:00", 172_800),
        ("1-02:03:04", 93_784),
        ("1-02", 93_600),
        ("02:03:04", 7_384),
        ("03:04", 184),
        ("03:04.500", 184.5),
        ("90", 5_400),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("", None),
        ("oops", None),
    ],
)
def test_spans(text: str, seconds: float | None) -> None:
    assert read_span(text, 60_000_000) == (UNKNOWN if seconds is None else round(seconds * 1_000_000))


def test_values_beyond_reason_are_unknown() -> None:
    assert read_tres("cpu=999999999999999999,mem=999999999999P").cpu_milli == UNKNOWN
    assert read_memory("9" * 18 + "P")[0] == UNKNOWN
    assert read_gres("gpu:999999999", 1 << 40).gpu_milli == -1
    assert read_span("999999999-00:00:00") == UNKNOWN


def test_limits(tmp_path: Path) -> None:
    limits = ["2-00:00:00", "UNLIMITED", "Partition_Limit", ""]
    trace = read(tmp_path, *[row(JobID=str(at), Timelimit=limit) for at, limit in enumerate(limits)])
    assert trace.frame["estimate_us"].tolist() == [172_800_000_000, -1, -1, -1]


def test_elapsed_where_there_is_no_end(tmp_path: Path) -> None:
    names = "JobID|State|Submit|Start|Elapsed|Suspended|AllocTRES"
    job = only(read(tmp_path, row(names, Elapsed="1-00:00:00", Suspended="00:01:00"), names=names))
    assert (job["duration_us"], job["recorded_end_us"]) == (86_460_000_000, 86_520_000_000)


def test_elapsed_checks_the_times(tmp_path: Path) -> None:
    trace = read(tmp_path, row(Elapsed="00:07:00"))
    assert only(trace)["duration_us"] == 600_000_000
    assert any("Elapsed is not End - Start in 1 records" in note for note in trace.notes)


def test_clocks_that_were_changed(tmp_path: Path) -> None:
    cells = {"Start": "2024-03-31T01:30:00", "End": "2024-03-31T03:40:00", "Submit": "2024-03-31T01:00:00"}
    trace = read(tmp_path, row(Elapsed="01:10:00", **cells))
    assert only(trace)["duration_us"] == 4_200_000_000
    assert any("an hour off" in what for what in trace.account.repaired)
    named = read(tmp_path, row(Elapsed="01:10:00", **cells), timezone="Europe/Berlin")
    assert (only(named)["duration_us"], named.account.repaired) == (4_200_000_000, {})


def test_suspended_time_is_part_of_the_run_time(tmp_path: Path) -> None:
    names = NAMES + "|Suspended"
    trace = read(tmp_path, row(names, Elapsed="00:04:00", Suspended="00:06:00"), names=names)
    assert only(trace)["duration_us"] == 600_000_000
    assert any("1 records were suspended" in note for note in trace.notes)
    assert not any("Elapsed is not" in note for note in trace.notes)


def test_jobs_are_submitted_when_they_become_eligible(tmp_path: Path) -> None:
    names = NAMES + "|Eligible"
    later = {"Eligible": "2024-05-01T12:00:50", "Submit": "2024-05-01T11:00:00"}
    trace = read(tmp_path, row(names, **later), row(names, JobID="2"), names=names)
    assert trace.frame.set_index("job_id")["submit_us"].to_dict() == {2: 0, 1: 50_000_000}
    assert any("1 records became eligible later" in note for note in trace.notes)


def test_what_is_not_simulated_is_said(tmp_path: Path) -> None:
    names = NAMES + "|QOS|Dependency|Priority"
    rows = [row(names, QOS="high", Priority="4294901760"), row(names, JobID="2", QOS="low", Dependency="afterok:1")]
    trace = read(tmp_path, *rows, names=names)
    assert trace.frame["priority"].tolist() == [4_294_901_760, 0]
    assert any("1 jobs depend on others" in note for note in trace.notes)
    assert any("2 levels of QOS" in note for note in trace.notes)


def test_raw_ids_will_do(tmp_path: Path) -> None:
    names = NAMES.replace("JobID", "JobIDRaw")
    assert read(tmp_path, row(names, JobIDRaw="17"), names=names).frame["job_id"].tolist() == [17]


def test_ids_need_not_come_first(tmp_path: Path) -> None:
    names = "AllocTRES|JobName|State|JobID|Submit|Start|End"
    rows = [row(names), row(names, JobID="1.batch"), row(names, JobID="2", JobName="x|y")]
    assert read(tmp_path, *rows, names=names).frame["job_id"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NAMES + "\n", "has no jobs: only its header"),
        (f"{NAMES}\n{row()}\n{row(JobID='2')[:40]}", "line 3: 7 fields where the header has 14"),
        (f"{NAMES}\n{row()[:50]}\n{row(JobID='2')}\n", "line 2: 8 fields where the header has 14"),
        (f"{NAMES}\n{row().replace('|', ',')}\n{row(JobID='2')}\n", "line 2: 1 fields where the header has 14"),
        (f"{NAMES}\n{row(JobID='x12')}\n", 'line 2: "x12" is no job id'),
        ("JobID|State|Submit|Start\n1|COMPLETED||\n", "has no column End or Elapsed or ElapsedRaw"),
        ("JobID|State|End|Elapsed\n1|COMPLETED||\n", "has no column Submit or Start"),
        (f"{NAMES}\n{row(State='PENDING')}\n", "no job that could be simulated"),
        (f"{NAMES}\n{row()}\n" + "x" * 2_000_000, "line 3: 1 fields"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "dump.txt"
    file.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_trace(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["JobID,Name\n1,x\n", "JobID|Name\n1|x\n", "job_id|submit_time\n1|2\n"])
def test_other_tables_are_not_claimed(tmp_path: Path, text: str) -> None:
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_trace(file)
    assert "sacct" not in str(caught.value)


SEED = "\n".join(
    [
        NAMES + "|Comment",
        row() + "|",
        row(JobID="1.batch", AllocTRES="") + "|",
        row(JobID="2_[3-5%1]", State="PENDING", Start="Unknown", End="Unknown") + "|a|b",
        row(JobID="3+0", NodeList="b[1-2]", NNodes="2", Timelimit="2-00:00:00") + "|one",
        "two",
        row(JobID="3+1", AllocTRES="gres/gpu:a100=2,mem=4G") + "|",
        row(JobID="1", State="CANCELLED by 10", Elapsed="1-00:00:00") + "|",
    ]
)


@pytest.mark.slow
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_dumps_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    text = SEED
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + data.draw(st.text(alphabet="|\n019.:-T=,[]_+ gG%é\0", max_size=5)) + text[end:]
    file = tmp_path / "dump.txt"
    file.write_text(text)
    check_reading(file, "slurm-sacct")
