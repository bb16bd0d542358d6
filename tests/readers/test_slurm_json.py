"""The JSON of sacct, in the shapes that its versions have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError, UserError
from analysim.traces import Trace, read_trace
from tests.readers.mangled import check_reading

SUBMIT = 1_714_564_800


def tres(gpus: int = 4, kind: str = "", **more: int) -> list[dict[str, Any]]:
    counts = {"cpu": 8, "mem": 65_536, "node": 1, **more}
    found = [{"type": name, "name": "", "id": at, "count": count} for at, (name, count) in enumerate(counts.items(), 1)]
    found.append({"type": "gres", "name": "gpu", "id": 1001, "count": gpus})
    if kind:
        found.append({"type": "gres", "name": f"gpu:{kind}", "id": 1002, "count": gpus})
    return found


def number(value: int | None, infinite: bool = False) -> dict[str, Any]:
    return {"set": value is not None, "infinite": infinite, "number": value or 0}


def job(job_id: int = 1, **changes: Any) -> dict[str, Any]:
    """A job as data_parser v0.0.40 writes it; ``time`` and others are laid over what it has."""
    whole: dict[str, Any] = {
        "account": "lab",
        "allocation_nodes": 1,
        "array": {"job_id": 0, "limits": {"max": {"running": {"tasks": 0}}}, "task_id": number(None), "task": ""},
        "association": {"account": "lab", "cluster": "east", "partition": "", "user": "ann", "id": 3},
        "cluster": "east",
        "derived_exit_code": {"status": ["SUCCESS"], "return_code": number(0)},
        "time": {
            "elapsed": 600,
            "eligible": SUBMIT,
            "end": SUBMIT + 660,
            "start": SUBMIT + 60,
            "submission": SUBMIT,
            "suspended": 0,
            "limit": number(60),
        },
        "het": {"job_id": 0, "job_offset": number(None)},
        "job_id": job_id,
        "nodes": "b001",
        "partition": "gpu",
        "priority": number(77),
        "qos": "normal",
        "required": {"CPUs": 8, "memory_per_cpu": number(None), "memory_per_node": number(65_536)},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "steps": [{"step": {"id": f"{job_id}.batch"}, "tres": {"allocated": tres(1)}}],
        "tres": {"allocated": tres(), "requested": tres()},
        "user": "ann",
    }
    for name, value in changes.items():
        whole[name] = {**whole[name], **value} if isinstance(value, dict) else value
    return whole


def read(folder: Path, *jobs: dict[str, Any], indent: int | None = None, **options: Any) -> Trace:
    file = folder / "dump.json"
    meta = {"plugin": {"data_parser": "data_parser/v0.0.40"}, "command": ["sacct", "--json"]}
    file.write_text(json.dumps({"jobs": jobs, "meta": meta, "errors": [], "warnings": []}, indent=indent))
    trace = read_trace(file, **options)
    assert trace.format == "slurm-json"
    assert trace.rows == len(trace.frame) + sum(trace.set_aside.values())
    return trace


def only(trace: Trace) -> dict[str, Any]:
    assert len(trace.frame) == 1
    return {str(name): value for name, value in trace.frame.iloc[0].to_dict().items()}


@pytest.mark.parametrize("indent", [None, 2])
def test_fields_become_a_job(tmp_path: Path, indent: int | None) -> None:
    trace = read(tmp_path, job(), indent=indent)
    found = only(trace)
    assert (found["job_id"], found["submit_us"], found["duration_us"]) == (1, 0, 600_000_000)
    assert (found["gpu_milli"], found["gpus_per_node"]) == (4_000, 4)
    assert (found["cpu_milli"], found["memory_mb"], found["priority"]) == (8_000, 65_536, 77)
    assert (found["tenant"], found["user"], found["partition"], found["status"]) == ("lab", "ann", "gpu", "COMPLETED")
    assert (found["estimate_us"], found["recorded_node"]) == (3_600_000_000, "b001")
    assert (trace.time_origin, trace.notes) == ("2024-05-01T12:00:00+00:00", [])


def test_the_shapes_of_version_38(tmp_path: Path) -> None:
    old = job(priority=77, state={"current": "CANCELLED by 7"}, time={"limit": 60})
    old["array"] = {"job_id": None, "limits": {}, "task": None, "task_id": None}
    old["het"] = {"job_id": 0, "job_offset": None}
    found = only(read(tmp_path, old))
    assert (found["priority"], found["estimate_us"], found["status"]) == (77, 3_600_000_000, "CANCELLED")


def test_a_list_of_jobs_alone(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps([job(1), job(2)]))
    assert read_trace(file).frame["job_id"].tolist() == [1, 2]


def test_types_of_gpus(tmp_path: Path) -> None:
    shapes = [tres(8, "a100", node=2), [{"type": "gres", "name": "gpu:v100", "count": 2}], [{"type": "cpu", "count": 1}]]
    jobs = [job(at, tres={"allocated": each, "requested": []}) for at, each in enumerate(shapes)]
    frame = read(tmp_path, *jobs).frame
    assert frame["gpu_milli"].tolist() == [8_000, 2_000, 0]
    assert frame["gpu_type"].tolist() == ["a100", "v100", ""]


def test_requested_where_nothing_was_allocated(tmp_path: Path) -> None:
    assert only(read(tmp_path, job(tres={"allocated": []})))["gpu_milli"] == 4_000


def test_without_resources_gpus_are_lacking(tmp_path: Path) -> None:
    bare = job()
    del bare["tres"]
    assert read(tmp_path, bare).lacks == "tres.allocated or tres.requested (sacct --json)"


def test_limits_that_are_infinite_or_not_set(tmp_path: Path) -> None:
    limits = [number(None, infinite=True), number(None), 0]
    trace = read(tmp_path, *[job(at, time={"limit": limit}) for at, limit in enumerate(limits)])
    assert trace.frame["estimate_us"].tolist() == [-1, -1, -1]


def test_arrays(tmp_path: Path) -> None:
    waiting = {"state": {"current": ["PENDING"]}, "nodes": "None assigned", "time": {"start": 0, "end": 0, "elapsed": 0}}
    tasks = [
        job(124, array={"job_id": 123, "task_id": number(4)}),
        job(125, array={"job_id": 123, "task_id": 0}),
        job(123, array={"job_id": 123, "task": "5-9%2"}, **waiting),
    ]
    trace = read(tmp_path, *tasks)
    assert trace.frame["job_id"].tolist() == ["123_0", "123_4"]
    assert trace.set_aside == {"never started": 1}
    assert any("1 records stand for 5 pending tasks" in note for note in trace.notes)
    assert any("1 arrays limit" in note for note in trace.notes)


def test_components_are_one_gang(tmp_path: Path) -> None:
    parts = [
        job(10, het={"job_id": 10, "job_offset": number(0)}, tres={"allocated": tres(8)}),
        job(11, het={"job_id": 10, "job_offset": number(1)}, tres={"allocated": tres(8)}, nodes="b002"),
    ]
    found = only(read(tmp_path, *parts))
    assert (found["job_id"], found["gpu_milli"], found["gpus_per_node"]) == (10, 16_000, 8)
    assert found["recorded_node"] == "b001,b002"


def test_requeued_jobs_are_one_job(tmp_path: Path) -> None:
    again = {"submission": SUBMIT + 660, "eligible": SUBMIT + 660, "start": SUBMIT + 900, "end": SUBMIT + 1_000}
    trace = read(tmp_path, job(state={"current": ["PREEMPTED"]}), job(time={**again, "elapsed": 100}))
    assert (only(trace)["submit_us"], only(trace)["duration_us"]) == (0, 100_000_000)
    assert any("1 jobs were requeued" in note for note in trace.notes)


def test_running_jobs_run_until_the_log_was_taken(tmp_path: Path) -> None:
    running = job(state={"current": ["RUNNING"]}, time={"end": 0, "elapsed": 7_200})
    assert only(read(tmp_path, running))["duration_us"] == 7_200_000_000


def test_what_never_started(tmp_path: Path) -> None:
    at = SUBMIT + 30
    cancelled = job(2, state={"current": ["CANCELLED"]}, nodes="None assigned", time={"start": at, "end": at, "elapsed": 0})
    assert read(tmp_path, job(), cancelled).set_aside == {"never started": 1}


def test_starts_that_are_moments_of_eligibility(tmp_path: Path) -> None:
    """Slurm 22.05 and 23.02 write ``eligible`` as ``time.start``: the start is the end less the time elapsed."""
    trace = read(tmp_path, job(time={"start": SUBMIT, "elapsed": 100}))
    assert (only(trace)["duration_us"], only(trace)["recorded_start_us"]) == (100_000_000, 560_000_000)
    assert any("1 records have the moment they became eligible" in note for note in trace.notes)


def test_jobs_are_submitted_when_they_become_eligible(tmp_path: Path) -> None:
    trace = read(tmp_path, job(), job(2, time={"eligible": SUBMIT + 50}))
    assert trace.frame["submit_us"].tolist() == [0, 50_000_000]


def test_memory_that_was_required(tmp_path: Path) -> None:
    none = {"allocated": [], "requested": []}
    jobs = [
        job(1, tres=none, required={"memory_per_cpu": number(1_000), "memory_per_node": number(None)}),
        job(2, tres=none, required={"memory_per_node": number(3_000)}, allocation_nodes=2),
    ]
    assert read(tmp_path, *jobs).frame["memory_mb"].tolist() == [8_000, 6_000]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: text.rindex('"steps"')], "the file ends too early, at record 2"),
        (lambda text: text.replace('"job_id": 2,', ""), "record 2 has no job_id or no time"),
        (lambda text: text.replace('"job_id": 2,', '"job_id": oops,'), "record 2, line 1: bad JSON"),
        (lambda text: '{"jobs": [], "association": 1, "submission": 1, "derived_exit_code": 1}', "has no jobs"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, change: Any, message: str) -> None:
    file = tmp_path / "dump.json"
    file.write_text(change(json.dumps({"jobs": [job(1), job(2)]})))
    with pytest.raises(TraceError) as caught:
        read_trace(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_dumps_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    jobs = [job(1), job(4, array={"job_id": 3, "task": "1-2%1"}), job(5, het={"job_id": 5, "job_offset": number(0)})]
    text = json.dumps({"jobs": jobs})
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 6)))
        text = text[:start] + data.draw(st.text(alphabet='[]{}",:\\ue-.019 \né', max_size=4)) + text[end:]
    file = tmp_path / "dump.json"
    file.write_text(text)
    check_reading(file, "slurm-json")


@pytest.mark.slow
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_values_of_another_kind_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    odd = job()
    names = list(odd)
    values = st.sampled_from([None, -1, 10**30, 1.5, "x", "", [], {}, [[]], {"set": 1}, float("nan"), True])
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)):
        if isinstance(odd[name], dict) and data.draw(st.booleans()):
            odd[name] = {**odd[name], data.draw(st.sampled_from(list(odd[name]))): data.draw(values)}
        else:
            odd[name] = data.draw(values)
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"jobs": [odd, job(2)]}))
    try:
        trace = read_trace(file, format="slurm-json")
    except UserError:
        return
    assert trace.rows == len(trace.frame) + sum(trace.set_aside.values())
