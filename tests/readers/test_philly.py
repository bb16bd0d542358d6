"""Philly: attempts, GPUs, nodes and times of the native log, and the lists derived from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, describe, read_trace
from analysim.traces.identity import NO_ID
from tests.builders import SECOND, shared_file
from tests.readers.mangled import check_mangled

STILL = "still running at the end of the log: runs until then"
HALF = "an attempt without start or end: it counts nothing"
DERIVED = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:00:00,66.0,2,132.0,abc\n"
    "2017-10-09 06:00:00,10.0,1,10.0,abc\n"
    "2017-10-09 06:00:00,10.0,1,10.0,abc\n"
)


def at(clock: str) -> str:
    return f"2017-10-07 {clock}"


def attempt(start: str | None, end: str | None, **gpus: int) -> dict[str, Any]:
    """An attempt that held so many GPUs on each node."""
    detail = [{"ip": ip, "gpus": [f"gpu{index}" for index in range(count)]} for ip, count in gpus.items()]
    return {"start_time": start and at(start), "end_time": end and at(end), "detail": detail}


def job(name: str, *attempts: Any, **fields: Any) -> dict[str, Any]:
    given = {"status": "Pass", "vc": "ee9e8c", "jobid": name, "attempts": list(attempts), "user": "ce2f4c"}
    return {**given, "submitted_time": at("01:00:00"), **fields}


def read(folder: Path, *jobs: Any, timezone: str | None = None, indent: int | None = None) -> Trace:
    file = folder / "cluster_job_log"
    file.write_text(json.dumps(list(jobs), indent=indent))
    return read_trace(file, timezone=timezone)


def row(trace: Trace, name: str = "a") -> Any:
    return trace.frame.set_index("job_id").loc[name]


@pytest.mark.parametrize("indent", [None, 4])
def test_run_time_is_the_sum_of_attempts(tmp_path: Path, indent: int | None) -> None:
    attempts = (attempt("01:10:00", "01:20:00", m1=8), attempt("01:30:00", "02:30:00", m2=4, m3=4))
    trace = read(tmp_path, job("a", *attempts), indent=indent)
    found = row(trace)
    assert (trace.format, trace.time_origin) == ("philly", "2017-10-07T01:00:00+00:00")
    assert found["duration_us"] == 70 * 60 * SECOND
    assert (found["recorded_start_us"], found["recorded_end_us"]) == (600 * SECOND, 5_400 * SECOND)
    assert (found["gpu_milli"], found["gpus_per_node"], found["recorded_node"]) == (8_000, 4, "m2,m3")
    assert (found["status"], found["user"]) == ("Pass", "ce2f4c")
    assert found["tenant"] == found["partition"] == "ee9e8c"


def test_gpus_are_those_of_the_last_attempt_that_names_some(tmp_path: Path) -> None:
    without = {"start_time": at("01:30:00"), "end_time": at("01:31:00"), "detail": []}
    found = row(read(tmp_path, job("a", attempt("01:10:00", "01:20:00", m1=3, m2=1), without)))
    assert (found["gpu_milli"], found["gpus_per_node"], found["recorded_node"]) == (4_000, 0, "m1,m2")


def test_a_node_without_gpus_makes_a_cpu_job(tmp_path: Path) -> None:
    found = row(read(tmp_path, job("a", attempt("01:10:00", "01:20:00", m1=0))))
    assert (found["gpu_milli"], found["recorded_node"]) == (0, "m1")


@pytest.mark.parametrize("attempts", [[], None, "None", ""])
def test_a_job_without_attempts_never_started(tmp_path: Path, attempts: Any) -> None:
    trace = read(tmp_path, job("a", attempt("01:10:00", "01:20:00", m1=1)), job("b", attempts=attempts))
    assert (trace.rows, trace.set_aside) == (2, {"never started": 1})
    assert trace.account.set_aside["never started"].tolist() == [2]


@pytest.mark.parametrize("missing", [None, "None"])
def test_a_last_attempt_without_end_still_runs(tmp_path: Path, missing: str | None) -> None:
    open_ended = attempt("01:30:00", None, m1=2) | {"end_time": missing}
    jobs = [
        job("a", attempt("01:10:00", "01:20:00", m1=2), open_ended),
        job("b", attempt("01:10:00", "03:00:00", m1=1)),
        job("c", open_ended),
    ]
    trace = read(tmp_path, *jobs)
    assert row(trace)["duration_us"] == (10 + 90) * 60 * SECOND
    assert row(trace, "c")["duration_us"] == 90 * 60 * SECOND
    assert row(trace)["recorded_end_us"] == -1
    assert {reason: rows.tolist() for reason, rows in trace.account.repaired.items()} == {STILL: [1, 3]}


def test_an_attempt_without_start_or_end_counts_nothing(tmp_path: Path) -> None:
    attempts = (
        attempt("01:10:00", None, m1=1),
        attempt(None, "01:25:00", m1=1),
        attempt("01:30:00", "01:40:00", m1=1),
        attempt(None, None, m1=1),
    )
    trace = read(tmp_path, job("a", *attempts))
    found = row(trace)
    assert found["duration_us"] == 600 * SECOND
    assert (found["recorded_start_us"], found["recorded_end_us"]) == (600 * SECOND, 2_400 * SECOND)
    assert trace.account.repaired[HALF].tolist() == [1]


def test_jobs_that_cannot_be_simulated_are_set_aside(tmp_path: Path) -> None:
    jobs = [
        job("a", attempt("01:10:00", "01:20:00", m1=1)),
        job("b", attempt("01:10:00", "01:20:00") | {"detail": None}),
        job("c", attempt("01:10:00", "01:05:00", m1=1), attempt("01:10:00", "02:05:00", m1=1)),
        job("d", attempt("01:10:00", None, m1=1), attempt(None, None, m1=1)),
        job("e", attempt(None, "01:20:00", m1=1)),
        job("f", attempt("01:10:00", None)),
    ]
    trace = read(tmp_path, *jobs)
    assert trace.set_aside == {"GPUs not told": 2, "negative duration": 1, "no end told": 1, "never started": 1}
    assert STILL not in trace.account.repaired


def test_missing_fields(tmp_path: Path) -> None:
    bare = {"attempts": [attempt("01:10:00", "01:20:00", m1=1)], "submitted_time": None, "jobid": None, "user": None}
    trace = read(tmp_path, bare)
    found = row(trace, "#1")
    assert (found["status"], found["user"], found["tenant"], found["submit_us"]) == ("", "", "", 0)
    assert list(trace.account.repaired) == ["no submission told: submitted when it started", NO_ID]


def test_naive_times_are_of_the_zone_that_is_named(tmp_path: Path) -> None:
    one = job("a", attempt("01:10:00", "01:20:00", m1=1))
    assert any("--timezone America/Los_Angeles" in note for note in read(tmp_path, one).notes)
    trace = read(tmp_path, one, timezone="America/Los_Angeles")
    assert trace.time_origin == "2017-10-07T08:00:00+00:00"
    assert trace.notes == ["Times without a zone are read as America/Los_Angeles."]


def test_marwage_has_gpus_and_a_runtime_in_minutes(tmp_path: Path) -> None:
    attempts = [attempt("01:10:00", "01:20:00"), attempt("01:30:00", "01:40:00")]
    for each in attempts:
        del each["detail"]
    first = {"id": "a", "num_gpus": 8, "runtime": 30.0, "attempts": attempts, "submitted_time": at("01:00:00")}
    trace = read(tmp_path, first, {**first, "id": "b", "runtime": 20.0}, indent=4)
    assert (trace.format, row(trace)["gpu_milli"], row(trace)["duration_us"]) == ("philly", 8_000, 1_200 * SECOND)
    assert "runtime is not last end - first start in 1 of 2 rows: the times count." in trace.notes


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (job("a", attempts=7), "record 2: attempts is '7', not a list of objects"),
        (job("a", "x"), "record 2: attempts is .* not a list of objects"),
        (job("a", attempt("01:10:00", "soon", m1=1)), 'record 2, end_time: "2017-10-07 soon" is not a date'),
        (job("a", submitted_time="yesterday"), 'record 2, submitted_time: "yesterday" is not a date'),
        (job("a", attempt("01:10:00", "01:20:00") | {"detail": [{"ip": "m1", "gpus": 3}]}), "gpus is '3', not a list"),
        (job("a", num_gpus="many"), "num_gpus is 'many', not a number"),
        (job("a", status=[1]), "status is .* not a text"),
        (7, "is no object"),
    ],
)
def test_broken_records_are_named(tmp_path: Path, record: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(tmp_path, job("a", attempt("01:10:00", "01:20:00", m1=1)), record)


def test_broken_files(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    text = json.dumps([job("a", attempt("01:10:00", "01:20:00", m1=1))] * 3)
    file.write_text(text[: len(text) // 2])
    with pytest.raises(TraceError, match="ends too early, at record 2"):
        read_trace(file)
    file.write_text("[]")
    with pytest.raises(TraceError, match="lists no jobs"):
        read_trace(file, format="philly")


def test_the_derived_table_has_rows_for_ids(tmp_path: Path) -> None:
    file = tmp_path / "philly_sia.csv"
    file.write_text(DERIVED)
    trace = read_trace(file)
    assert (trace.format, trace.rows) == ("philly-csv", 3)
    assert trace.frame["job_id"].tolist() == [2, 3, 1]
    assert trace.frame["submit_us"].tolist() == [0, 0, 3_600 * SECOND]
    assert trace.frame["gpu_milli"].tolist() == [1_000, 1_000, 2_000]
    assert set(trace.frame["tenant"]) == set(trace.frame["partition"]) == {"abc"}
    file.write_text(DERIVED.replace("132.0", "66.0"))
    assert "gpu_time is not duration * num_gpus in 1 of 3 rows." in read_trace(file).notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DERIVED[:-8], "line 4: 4 fields where 5 are expected"),
        (DERIVED.replace("66.0", "long"), 'line 2, duration: "long" is not a number'),
        (DERIVED.replace("2017-10-09 07", "no"), "is not a date"),
        (DERIVED.splitlines()[0], "has column names but no rows"),
        (DERIVED.replace(",", ";"), 'has no column "timestamp"'),
        (DERIVED.replace("cluster", "duration"), 'two columns are called "duration"'),
        (DERIVED.replace(",abc", ',"abc'), "line"),
    ],
)
def test_broken_derived_tables(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "philly_sia.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(file, format="philly-csv")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_logs_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    text = json.dumps([job("a", attempt("01:10:00", "01:20:00", m1=2)), job("b", attempts=None)])
    check_mangled(text, seed, tmp_path / "log.json", "philly")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_tables_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    check_mangled(DERIVED, seed, tmp_path / "jobs.csv", "philly-csv")


@pytest.mark.slow
def test_the_real_derived_table() -> None:
    """82,247 jobs of a filtered subset; 65 rows are exact duplicates and distinct jobs."""
    facts = describe(read_trace(shared_file("traces/philly/philly_sia.csv.gz"), timezone="America/Los_Angeles"))
    assert (facts["format"], facts["rows"], facts["jobs"], facts["partitions"]) == ("philly-csv", 82_247, 82_247, 15)
    assert facts["max_gpus"] == 128


def test_the_real_list_of_attempts() -> None:
    """3,034 jobs, all finished; its runtime spans first start to last end in every one."""
    trace = read_trace(shared_file("traces/philly/marwage_jobs.json"), timezone="America/Los_Angeles")
    assert (trace.format, trace.rows, len(trace.frame)) == ("philly", 3_034, 3_034)
    assert not any("runtime" in note for note in read_trace(trace.path).notes)
