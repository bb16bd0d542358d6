"""What a reader found in a scheduler's log, before the rules of settling make a trace of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Rows = npt.NDArray[np.int64]

UNKNOWN = int(np.iinfo(np.int64).min)
"""What stands in an integer column of a log where the file says nothing."""

TIME_COLUMNS = ("submit_us", "recorded_start_us", "recorded_end_us", "cancel_us")
"""Columns of moments, all on one clock."""


@dataclass
class Account:
    """Where every row of a file went: ``rows`` read = jobs kept + rows ``set_aside``, by reason.

    Row numbers are 1-based: data rows of a table, records of a JSON list, in file order. ``repaired`` rows
    belong to jobs that are kept, though something about them had to be mended or assumed.
    """

    rows: int = 0
    set_aside: dict[str, Rows] = field(default_factory=dict)
    repaired: dict[str, Rows] = field(default_factory=dict)

    def put_aside(self, reason: str, rows: Any) -> None:
        """Enter rows that are no jobs of the trace."""
        _enter(self.set_aside, reason, rows)

    def repair(self, reason: str, rows: Any) -> None:
        """Enter rows of jobs that are kept, and what was done about them."""
        _enter(self.repaired, reason, rows)

    def counts(self) -> dict[str, int]:
        """Count the rows set aside by reason."""
        return {reason: int(rows.size) for reason, rows in self.set_aside.items()}

    def repairs(self) -> dict[str, int]:
        """Count the jobs mended by reason."""
        return {reason: int(rows.size) for reason, rows in self.repaired.items()}

    def table(self) -> pd.DataFrame:
        """List what was set aside and repaired: what, reason, and ranges of rows (first_row, last_row)."""
        books = (("set aside", self.set_aside), ("repaired", self.repaired))
        parts = [_ranges(what, reason, rows) for what, book in books for reason, rows in book.items()]
        return pd.concat(parts, ignore_index=True) if parts else _ranges("", "", np.empty(0, np.int64))


def _ranges(what: str, reason: str, rows: Rows) -> pd.DataFrame:
    rows = np.sort(rows)
    first = np.flatnonzero(np.diff(rows, prepend=-1) != 1)
    last = np.append(first[1:], rows.size) - 1 if rows.size else first
    return pd.DataFrame(
        {
            "what": pd.Series([what] * first.size, dtype="str"),
            "reason": pd.Series([reason] * first.size, dtype="str"),
            "first_row": rows[first],
            "last_row": rows[last],
        }
    )


def _enter(book: dict[str, Rows], reason: str, rows: Any) -> None:
    found = np.atleast_1d(np.asarray(rows, np.int64))
    if found.size:
        book[reason] = np.concatenate([book[reason], found]) if reason in book else found


@dataclass
class Log:
    """Jobs as a log tells them: one entry each, in file order.

    ``columns`` are arrays (or lists) of equal length under the names of ``schema.FRAME_COLUMNS``; integers
    that the file does not tell are ``UNKNOWN``, text is empty. ``job_id`` and ``submit_us`` must be there.
    Moments are integer microseconds: since 1970 in UTC when ``dated``, else on the log's own clock.
    ``row`` holds the number of each job's first row; rows folded into a job beyond the first are entered in
    ``account`` by the reader. ``running`` marks jobs that had not ended when the log did, ``end_us`` is that
    moment (None: the latest moment of the log). ``lacks`` says which table would tell the GPUs, where the
    file cannot. ``notes`` are lines for people.
    """

    columns: dict[str, Any]
    row: Rows
    account: Account
    dated: bool
    running: npt.NDArray[np.bool_] | None = None
    end_us: int | None = None
    lacks: str = ""
    notes: list[str] = field(default_factory=list)
