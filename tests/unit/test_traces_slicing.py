"""Parts of a trace: what is kept, what is counted as left out, and requests that leave nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysim.errors import UserError
from analysim.traces import Account, Trace
from analysim.traces.slicing import slice_trace
from analysim.traces.trace import make_frame

HOUR_US = 3_600_000_000
TENANTS = ["org/a", "org/b", "org", "organic", "", "lab"]


def make_trace(tenants: list[str] = TENANTS) -> Trace:
    """Six jobs, one an hour from hour 1, with 0, 1, 2, 4, 8 and 16 GPUs."""
    gpus = np.array([0, 1, 2, 4, 8, 16])
    frame = make_frame(
        {
            "job_id": np.arange(6),
            "submit_us": (np.arange(6) + 1) * HOUR_US,
            "gpu_milli": gpus * 1_000,
            "tenant": pd.Series(tenants, dtype="str"),
        },
        6,
    )
    return Trace(frame, "made", "made.csv", "csv", account=Account(rows=6))


def kept(trace: Trace) -> list[int]:
    assert trace.rows == len(trace.frame) + sum(trace.set_aside.values())
    assert trace.frame.index.equals(pd.RangeIndex(len(trace.frame)))
    return trace.frame["job_id"].tolist()


@pytest.mark.parametrize(
    ("tenants", "jobs"),
    [
        (["org"], [0, 1, 2]),
        (["org/a"], [0]),
        (["org/a", "lab"], [0, 5]),
        (["org", "org/b"], [0, 1, 2]),
        (["organic"], [3]),
        ([], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_tenant_includes_those_below_it(tenants: list[str], jobs: list[int]) -> None:
    part = slice_trace(make_trace(), tenants=tenants)
    assert kept(part) == jobs
    assert part.left_out == ({f"not of {', '.join(tenants)}": 6 - len(jobs)} if len(jobs) < 6 else {})


@pytest.mark.parametrize(
    ("least", "most", "jobs"),
    [(1, None, [1, 2, 3, 4, 5]), (None, 0, [0]), (2, 8, [2, 3, 4]), (4, 4, [3]), (0, 99, [0, 1, 2, 3, 4, 5])],
)
def test_sizes_are_inclusive(least: int | None, most: int | None, jobs: list[int]) -> None:
    assert kept(slice_trace(make_trace(), min_gpus=least, max_gpus=most)) == jobs


def test_a_window_counts_from_the_first_submission_of_the_whole_trace() -> None:
    part = slice_trace(make_trace(), "1h:4h", ["org", "organic"], 2, 2)
    assert kept(part) == [2]
    assert part.frame["submit_us"].tolist() == [3 * HOUR_US]
    assert part.left_out == {"submitted outside 1h:4h": 3, "fewer than 2 GPUs": 1, "more than 2 GPUs": 1}


def test_a_slice_of_a_slice_keeps_the_books() -> None:
    part = slice_trace(slice_trace(make_trace(), min_gpus=2), max_gpus=8)
    assert kept(part) == [2, 3, 4]
    assert part.left_out == {"fewer than 2 GPUs": 2, "more than 8 GPUs": 1}


def test_the_trace_it_is_made_from_stays_as_it_is() -> None:
    trace = make_trace()
    slice_trace(trace, "0:1h", ["org"], 0, 1)
    assert (kept(trace), trace.left_out) == ([0, 1, 2, 3, 4, 5], {})


@pytest.mark.parametrize(
    ("request_", "message", "remedy"),
    [
        ({"tenants": ["orgs"]}, "made.csv has no jobs of the tenant 'orgs'.", "Did you mean 'org'?"),
        ({"min_gpus": 17}, "No job of made.csv is left: all are fewer than 17 GPUs.", "Ask for less."),
        ({"min_gpus": 4, "max_gpus": 2}, "No job has 4 GPUs or more and 2 or fewer.", "Exchange the two numbers."),
        ({"window": "6h:"}, "No job of made.csv is submitted in the window 6h:.", "Its submissions span 5 h."),
        ({"window": "x"}, "The window 'x' is not an interval.", "Write from:to, as in 7d:30d."),
    ],
)
def test_requests_that_leave_nothing(request_: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(UserError) as caught:
        slice_trace(make_trace(), **request_)
    assert (str(caught.value).split(" " + remedy)[0], caught.value.remedy) == (message, remedy)


def test_a_trace_without_tenants() -> None:
    with pytest.raises(UserError, match="There are none to choose from"):
        slice_trace(make_trace([""] * 6), tenants=["org"])
