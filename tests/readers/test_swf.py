"""The Standard Workload Format: its fields, its quirks, and the real logs where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysim.errors import TraceError
from analysim.traces import Trace, describe, read_trace
from tests.builders import shared_file

HEADER = "; Version: 2.2\n; MaxProcs: 100\n; Note: a tiny one of our own\n"
LINES = [
    "1 100 30 600 4 -1 -1 8 900 -1 1 7 3 -1 -1 -1 -1 -1",
    "2  50 -1 -1 -1 -1 -1 2 60 -1 5 8 3 -1 1 2 1 10",
    "3 200.5 0 0 -1 -1 -1 2 -1 -1 0 8 -1 -1 -1 -1 -1 -1 99 extra",
]


def read(folder: Path, text: str) -> Trace:
    file = folder / "log.swf"
    file.write_text(text)
    return read_trace(file)


def test_fields_become_jobs(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER + "\n".join(LINES))
    assert trace.format == "swf"
    jobs = trace.frame.set_index("job_id")
    assert list(jobs.index) == [1, 3]
    assert jobs["submit_us"].to_dict() == {1: 100_000_000, 3: 200_500_000}
    assert jobs["duration_us"].to_dict() == {1: 600_000_000, 3: 0}
    assert jobs["gpu_milli"].to_dict() == {1: 4_000, 3: 2_000}
    assert jobs["estimate_us"].to_dict() == {1: 900_000_000, 3: -1}
    assert (jobs["recorded_start_us"][1], jobs["recorded_end_us"][1]) == (130_000_000, 730_000_000)
    assert (jobs["user"][1], jobs["tenant"][1], jobs["tenant"][3]) == ("user7", "group3", "")
    assert jobs["status"].to_dict() == {1: "COMPLETED", 3: "FAILED"}


def test_every_row_is_accounted_for(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER + "\n".join(LINES))
    assert (trace.rows, len(trace.frame), trace.set_aside) == (3, 2, {"never started": 1})
    assert trace.account.set_aside["never started"].tolist() == [2]
    assert any("1 jobs follow another one" in note for note in trace.notes)


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r'line 25: "abc" is not a number'):
        read(tmp_path, HEADER + "\n".join(LINES[:1] * 21) + "\n" + LINES[0].replace("600", "abc"))


def test_comments_alone_are_no_log(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    file.write_text(HEADER)
    with pytest.raises(TraceError, match="no jobs: only comments"):
        read_trace(file, format="swf")


def test_kth_is_as_published() -> None:
    """28,476 jobs on 100 processors: its header (MaxRecords, MaxProcs)."""
    trace = read_trace(shared_file("traces/swf/KTH-SP2-1996-2.1-cln.swf.gz"))
    facts = describe(trace)
    assert (facts["format"], facts["rows"], facts["jobs"]) == ("swf", 28_476, 28_476)
    assert trace.frame["gpu_milli"].max() <= 100_000
