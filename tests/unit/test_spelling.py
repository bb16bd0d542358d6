"""Remedies for names that are not known."""

from __future__ import annotations

import pytest

from analysim.spelling import suggest


@pytest.mark.parametrize(
    ("name", "known", "remedy"),
    [
        ("preemt", ["fifo", "preempt"], "Did you mean 'preempt'?"),
        ("V", ["v", "fifo"], "Did you mean 'v'?"),
        ("zzz", ["fifo", "srtf"], "Known: fifo, srtf."),
        ("zzz", [f"p{index}" for index in range(14)], "Known: p0, p1, p2, p3 and 10 more."),
        ("zzz", [], "There are none to choose from."),
    ],
)
def test_suggest(name: str, known: list[str], remedy: str) -> None:
    assert suggest(name, known, limit=4) == remedy
