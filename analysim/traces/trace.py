"""A trace in memory: one frame in the canonical columns, and where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.traces.log import Account
from analysim.traces.schema import COLUMNS, Column

MOVED_COLUMNS = ("cancel_us", "recorded_start_us", "recorded_end_us")
"""Columns of moments that move with the submission of their job."""

_AT_ONCE = 100_000


@dataclass
class Trace:
    """Jobs of a cluster, sorted by (submit time, id), with what is known about their source.

    ``frame`` has the columns ``schema.FRAME_COLUMNS``: times in integer microseconds, GPUs and CPUs in
    thousandths, memory in MB. ``account`` says where each row of the file went. ``time_origin`` is the
    ISO 8601 date of time 0 where the file held dates. ``lacks`` names the table that would tell how many GPUs
    the jobs ask for, where the file cannot: such a trace can be described, not simulated. ``left_out`` counts
    the jobs that shaping (a window, a slice) took out, by reason. ``initial`` are the ids of jobs that hold GPUs
    when the trace begins.
    """

    frame: pd.DataFrame
    name: str
    path: str
    format: str
    time_origin: str | None = None
    account: Account = field(default_factory=Account)
    notes: list[str] = field(default_factory=list)
    sha256: str = ""
    lacks: str = ""
    left_out: dict[str, int] = field(default_factory=dict)
    initial: frozenset[Any] = frozenset()

    @property
    def rows(self) -> int:
        """Data rows read: jobs of the frame, and rows set aside."""
        return self.account.rows

    @property
    def set_aside(self) -> dict[str, int]:
        """How many rows are no jobs of the frame, by reason."""
        return {**self.account.counts(), **self.left_out}


def make_frame(values: Mapping[str, Any], rows: int) -> pd.DataFrame:
    """Make the frame of a trace from columns under their names in it; the others hold their default."""
    columns = {column.target: values.get(column.target) for column in COLUMNS}
    del values  # where nobody else holds it, its columns go as they are sorted: a large trace is not there twice
    for column in COLUMNS:
        if columns[column.target] is None:
            columns[column.target] = _default(column, rows)
    order = _order(pd.Series(columns["submit_us"], copy=False), pd.Series(columns["job_id"], copy=False))
    if order is not None:
        for name in columns:
            columns[name] = pd.Series(columns[name], copy=False).take(order).reset_index(drop=True)
    return pd.DataFrame(columns, copy=False)


def _default(column: Column, rows: int) -> Any:
    if isinstance(column.default, str):
        return pd.Series(column.default, index=pd.RangeIndex(rows), dtype="str")
    return np.full(rows, column.default, bool if isinstance(column.default, bool) else np.int64)


def sort_jobs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs in their one order, (submit_us, job_id), numbered from 0.

    Ids compare as integers when the column is int64, else as text by code point.
    """
    order = _order(frame["submit_us"], frame["job_id"])
    return (frame if order is None else frame.take(order)).reset_index(drop=True)


def _order(submits: pd.Series, ids: pd.Series) -> npt.NDArray[np.intp] | None:
    """Find the order of jobs; None where they are in it."""
    submit = submits.to_numpy()
    steps = np.diff(submit)
    if not (steps < 0).any() and not (steps == 0).any():
        return None
    order = np.argsort(submit, kind="stable")
    _order_ties(order, submit[order], ids)
    return None if (order == np.arange(order.size)).all() else order


def _order_ties(order: npt.NDArray[np.intp], submit: npt.NDArray[np.int64], ids: pd.Series) -> None:
    """Put jobs of the same instant, which stand side by side in ``order``, in the order of their ids."""
    same = submit[1:] == submit[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    if tied.size == 0:
        return
    rows, instants = order[tied], submit[tied]
    begin = 0
    while begin < tied.size:  # some at a time: the ids of all would be as many Python texts
        last = instants[min(begin + _AT_ONCE, tied.size) - 1]
        end = int(np.searchsorted(instants, last, side="right"))
        part = rows[begin:end]
        keys = pd.DataFrame({"submit": instants[begin:end], "id": ids.take(part).to_numpy(), "row": part})
        order[tied[begin:end]] = keys.sort_values(["submit", "id"], kind="stable")["row"].to_numpy()
        begin = end
