"""Chronus' job tables: minutes, users, and deadlines that are told of but not read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, read_trace
from tests.readers.mangled import check_mangled

HEADER = (
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,"
    "expect_value_list,best_effort,job_type\n"
)
ROWS = "0,vc_a,1,8555,5049,vgg16,747,14,1105,10,0,strict\n1,vc_b,0,832,296,alexnet,98,8,832,10,1,best\n"


def read(folder: Path, text: str, name: str | None = None) -> Trace:
    file = folder / "trace_job.csv"
    file.write_text(text)
    return read_trace(file, format=name)


def test_times_are_minutes(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER + ROWS)
    jobs = trace.frame.set_index("job_id")
    assert trace.format == "chronus"
    assert jobs["submit_us"].to_dict() == {1: 832 * 60_000_000, 0: 8_555 * 60_000_000}
    assert jobs["duration_us"].to_dict() == {1: 98 * 60_000_000, 0: 747 * 60_000_000}
    assert (jobs["user"][0], jobs["model"][0], jobs["gpu_milli"][1]) == ("vc_a", "vgg16", 0)


def test_deadlines_are_told_of(tmp_path: Path) -> None:
    assert "1 jobs have deadlines (expect_time_list), which are not read." in read(tmp_path, HEADER + ROWS).notes


def test_a_list_of_deadlines(tmp_path: Path) -> None:
    text = HEADER + ROWS.replace(",1105,10,0,strict", ",1105-2000,10-5,0,soft")
    assert len(read(tmp_path, text).frame) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER, "has column names but no rows"),
        (HEADER + ROWS[:60], "line 3: 4 fields where 12 are expected"),
        (HEADER + ROWS.replace("747", "12m"), r'line 2, duration: "12m" is not a number'),
        (HEADER.replace(",", "|") + ROWS.replace(",", "|"), 'has no column "job_id"'),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(tmp_path, text, "chronus")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_files_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    check_mangled(HEADER + ROWS, seed, tmp_path / "trace_job.csv", "chronus")
