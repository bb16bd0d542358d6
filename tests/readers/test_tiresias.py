"""Tiresias' job tables: seconds, their older layout, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, describe, read_trace
from tests.builders import shared_file
from tests.readers.mangled import check_mangled

HEADER = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
ROWS = "0,1,0,600,vgg19,160,30\n1,8,30,130,vgg11,150.5,20\n2,0,50,150,,120,0\n"


def read(folder: Path, text: str, name: str | None = None) -> Trace:
    file = folder / "jobs.csv"
    file.write_text(text)
    return read_trace(file, format=name)


def test_fields_become_jobs(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER + ROWS)
    jobs = trace.frame.set_index("job_id")
    assert (trace.format, trace.rows, trace.time_origin) == ("tiresias", 3, None)
    assert jobs["submit_us"].to_dict() == {0: 0, 1: 30_000_000, 2: 50_000_000}
    assert jobs["duration_us"].to_dict() == {0: 160_000_000, 1: 150_500_000, 2: 120_000_000}
    assert jobs["gpu_milli"].to_dict() == {0: 1_000, 1: 8_000, 2: 0}
    assert jobs["model"].to_dict() == {0: "vgg19", 1: "vgg11", 2: ""}


def test_the_older_layout(tmp_path: Path) -> None:
    header = "job_id,num_gpu,submit_time,start_time,duration,model_size,aggr_interval,model_name,model_scale\n"
    trace = read(tmp_path, header + "10,12,11,14,20,400,0,vgg19,1\n10,12,11,14,20,400,0,vgg19,1\n")
    assert trace.format == "tiresias"
    assert trace.frame["job_id"].tolist() == ["10", "10~2"]
    assert trace.frame["recorded_start_us"].tolist() == [-1, -1]


def test_a_table_in_our_schema_is_none_of_it(tmp_path: Path) -> None:
    trace = read(tmp_path, "job_id,submit_time,duration,num_gpus,model\n1,0,60,4,vgg19\n")
    assert trace.format == "csv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "0,1,0,6,vgg,abc,3\n", r'line 2, duration: "abc" is not a number'),
        (HEADER + "0,1,0,6,vgg,160\n", "line 2: 6 fields where 7 are expected"),
        (HEADER + ROWS[:30], "line 3: 4 fields where 7 are expected"),
        (HEADER, "has column names but no rows"),
        (HEADER.replace(",", ";") + ROWS.replace(",", ";"), 'has no column "job_id"'),
        (HEADER + "0,1,inf,6,vgg,160,3\n", r'submit_time: "inf" is not a number'),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(tmp_path, text, "tiresias")


def test_a_cell_that_says_nothing_sets_its_job_aside(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER + ROWS + "3,,60,1,vgg,10,1\n4,1,60,1,vgg,,1\n")
    assert (trace.rows, len(trace.frame)) == (5, 3)
    assert sum(trace.set_aside.values()) == 2
    assert trace.account.set_aside["GPUs not told"].tolist() == [4]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_files_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    check_mangled(HEADER + ROWS, seed, tmp_path / "jobs.csv", "tiresias")


def test_the_example_of_tiresias() -> None:
    """60 jobs over half an hour: the file's own count and last submission."""
    facts = describe(read_trace(shared_file("traces/tiresias/60_job.csv")))
    assert (facts["format"], facts["rows"], facts["jobs"]) == ("tiresias", 60, 60)
    assert (facts["span_s"], facts["max_gpus"]) == (1779.0, 8.0)
