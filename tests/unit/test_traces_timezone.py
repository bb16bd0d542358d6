"""Dates without a zone in our own schema are of the zone that the user names."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysim.errors import UserError
from analysim.traces import read_trace

ROWS = "job_id,submit_time,duration,num_gpus,start_time\n"


def test_naive_dates_follow_the_clock_change_and_zoned_ones_do_not(tmp_path: Path) -> None:
    """Berlin: 01:30 on 2024-03-31 is 00:30 UTC, 03:30 is 01:30 UTC, as the clock went from 2 to 3."""
    file = tmp_path / "t.csv"
    file.write_text(
        ROWS + "a,2024-03-31T01:30:00,60,1,2024-03-31T03:30:00\nb,2024-03-31T03:30:00,60,1,\nc,2024-03-31T01:00:00Z,60,1,\n"
    )
    trace = read_trace(file, timezone="Europe/Berlin")
    jobs = trace.frame.set_index("job_id")
    assert trace.time_origin == "2024-03-31T00:30:00+00:00"
    assert (jobs["submit_us"] / 60e6).to_dict() == {"a": 0, "c": 30, "b": 60}
    assert jobs["recorded_start_us"]["a"] == 3_600_000_000
    assert "Times without a time zone are read as Europe/Berlin." in trace.notes
    assert (read_trace(file).frame["submit_us"].max()) == 150 * 60_000_000


def test_an_unknown_zone_is_named(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(ROWS + "a,0,60,1,\n")
    with pytest.raises(UserError, match="'Europe/Berlyn' is not a time zone"):
        read_trace(file, timezone="Europe/Berlyn")
