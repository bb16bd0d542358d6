"""Muri's job tables: milliseconds, and classes in which 0 is the more important."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, read_trace
from tests.readers.mangled import check_mangled

HEADER = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n"
)
ROWS = "0,1,0,5000,dqn,128,2868001,46000,490,446,8,0,1\n1,8,201694000,20,vgg16,16,4472936000,5,214,82,0.5,66,0\n"


def read(folder: Path, text: str, name: str | None = None) -> Trace:
    file = folder / "trace1.csv"
    file.write_text(text)
    return read_trace(file, format=name)


def test_times_are_milliseconds(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER + ROWS)
    jobs = trace.frame.set_index("job_id")
    assert trace.format == "muri"
    assert jobs["submit_us"].to_dict() == {0: 0, 1: 201_694_000_000}
    assert jobs["duration_us"].to_dict() == {0: 2_868_001_000, 1: 4_472_936_000_000}
    assert (jobs["model"][1], jobs["gpu_milli"][1]) == ("vgg16", 8_000)


def test_opportunistic_jobs_are_less_important(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER + ROWS)
    assert trace.frame["priority"].tolist() == [-1, 0]
    assert any("Opportunistic jobs" in note for note in trace.notes)


def test_priorities_may_be_missing(tmp_path: Path) -> None:
    lines = [line.rsplit(",", 1)[0] for line in (HEADER + ROWS).splitlines()]
    trace = read(tmp_path, "\n".join(lines))
    assert (trace.format, trace.frame["priority"].tolist()) == ("muri", [0, 0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER, "has column names but no rows"),
        (HEADER + ROWS[:70], "line 3: 6 fields where 13 are expected"),
        (HEADER + ROWS.replace(",1\n", ",low\n"), r'line 2, priority: "low" is not a number'),
        (HEADER.replace(",", "\t") + ROWS.replace(",", "\t"), 'has no column "job_id"'),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(tmp_path, text, "muri")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_files_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    check_mangled(HEADER + ROWS, seed, tmp_path / "trace1.csv", "muri")
