"""Hashes for names: stable, keyed, and of the same shape as what they stand for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.traces import Account, Trace
from analysim.traces.anonymising import anonymise
from analysim.traces.trace import make_frame

NAMED = ("user", "tenant", "partition", "model", "recorded_node")
KNOWN = "30ab7352a8"


def make_trace(**columns: Any) -> Trace:
    rows = len(next(iter(columns.values())))
    values = {name: pd.Series(given, dtype="str") for name, given in columns.items()}
    return Trace(
        make_frame({"job_id": np.arange(rows), **values}, rows), "made", "made.csv", "csv", account=Account(rows=rows)
    )


def test_names_become_hashes_and_the_rest_stays() -> None:
    trace = make_trace(
        user=["ada", ""], tenant=["org/a", ""], partition=["main", ""], model=["vgg", ""], recorded_node=["n1", ""]
    )
    frame = anonymise(trace, "secret").frame
    for column, prefix in zip(NAMED, ("user", None, "partition", "model", "node"), strict=True):
        assert frame[column][1] == ""
        if prefix:
            assert re.fullmatch(rf"{prefix}-[0-9a-f]{{10}}", frame[column][0])
    assert re.fullmatch(r"tenant-[0-9a-f]{10}/tenant-[0-9a-f]{10}", frame["tenant"][0])
    others = [column for column in frame if column not in NAMED]
    assert frame[others].equals(trace.frame[others])
    assert trace.frame["user"].tolist() == ["ada", ""]


def test_a_hash_that_is_known() -> None:
    """As ``b2sum -l 40`` prints it for the bytes of the name."""
    assert anonymise(make_trace(user=["ada"])).frame["user"].tolist() == [f"user-{KNOWN}"]


def test_the_same_name_is_the_same_hash_in_every_file() -> None:
    one = anonymise(make_trace(user=["ada", "bob"], tenant=["org/a", "org/b"]), "secret").frame
    two = anonymise(make_trace(user=["bob", "eve"], tenant=["x/a", "org"]), "secret").frame
    assert one["user"][1] == two["user"][0]
    roots = [path.split("/")[0] for path in one["tenant"]]
    assert roots[0] == roots[1] == two["tenant"][1]
    assert one["tenant"][0].split("/")[1] == two["tenant"][0].split("/")[1]


def test_another_key_is_another_hash() -> None:
    trace = make_trace(user=["ada"])
    hashes = {anonymise(trace, key).frame["user"][0] for key in ("", "a", "b", "x" * 64, "x" * 65, "x" * 66)}
    assert len(hashes) == 6


def test_ids_that_are_text_are_hashed_and_stay_apart() -> None:
    trace = make_trace(job_id=[f"job_{number}" for number in range(20_000)])
    ids = anonymise(trace).frame["job_id"]
    assert ids.is_unique and ids.str.fullmatch(r"job-[0-9a-f]{16}").all()
    assert ids.is_monotonic_increasing  # all are of one instant


def test_lists_of_nodes() -> None:
    trace = make_trace(recorded_node=["n1,n2", "n2", "b[001-003,7],n1"])
    nodes = anonymise(trace).frame["recorded_node"].tolist()
    first, second = nodes[0].split(",")
    assert nodes[1] == second
    assert re.fullmatch(rf"node-[0-9a-f]{{10}},{first}", nodes[2])


@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.text(max_size=8), min_size=1, max_size=8), key=st.text(max_size=80))
def test_names_are_equal_where_they_were(names: list[str], key: str) -> None:
    frame = anonymise(make_trace(user=names, tenant=names), key).frame
    for column in ("user", "tenant"):
        before, after = pd.factorize(pd.Series(names))[0], pd.factorize(frame[column])[0]
        assert before.tolist() == after.tolist()
