"""Public traces read as they come; the figures are those that their authors published."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysim.traces import describe, find_problems, read_trace

TRACES = Path(__file__).parents[3] / "shared" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not beside the checkout")

VENUS = {"submit_time": "arrival_s", "duration": "service_sec", "num_gpus": "gpu_count"}
PHILLY = {"submit_time": "timestamp", "partition": "cluster"}


def test_venus() -> None:
    trace = read_trace(TRACES / "helios" / "venus_gpu_jobs.csv.gz", VENUS)
    told = describe(trace)
    assert (told["jobs"], round(told["mean_gpus"], 3), told["median_duration_s"]) == (125_303, 6.736, 204.0)
    assert trace.frame["job_id"].str.contains("#").all()
    assert trace.frame["submit_us"].value_counts().max() == 371
    assert trace.notes == []


def test_philly() -> None:
    trace = read_trace(TRACES / "philly" / "philly_sia.csv.gz", PHILLY)
    assert (trace.rows, len(trace.frame)) == (82_247, 82_247)
    assert trace.notes == [
        "Column gpu_time is not used.",
        "There is no job_id column: jobs are numbered by row, from 1.",
    ]
    assert trace.time_origin == "2017-09-04T10:30:41"
    assert trace.frame["submit_us"].is_monotonic_increasing
    # Names of virtual clusters that read as numbers: 6214e9 is a float, 103959 an integer.
    assert {"6214e9", "103959", "11cb48"} <= set(trace.frame["partition"])
    assert trace.frame.drop(columns="job_id").duplicated().sum() == 65


def test_philly_without_a_mapping() -> None:
    (problem,) = find_problems(TRACES / "philly" / "philly_sia.csv.gz")
    assert problem.message.endswith(
        "has no column submit_time; it has timestamp, duration, num_gpus, gpu_time, cluster."
    )
    assert problem.remedy == "Name your own: --column submit_time=timestamp"
