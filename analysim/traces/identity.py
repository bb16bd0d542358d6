"""Job ids: none empty, none given twice; rows are numbered where there are none."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysim.traces.problems import Finding


def number_rows(rows: int) -> pd.Series:
    """Give each row its number in the file, from 1, as its id."""
    return pd.Series(np.arange(1, rows + 1))


def check_ids(ids: pd.Series, name: str) -> list[Finding]:
    """Find empty ids and ids given twice in a column called ``name`` in the file."""
    findings = []
    empty = ids.isna()
    if empty.any():
        findings.append(Finding("no id", name, np.flatnonzero(empty), "is not an id", "Give each job an id."))
    if not ids.is_unique:
        findings += _find_repeats(ids, empty, name)
    return findings


def _find_repeats(ids: pd.Series, empty: pd.Series, name: str) -> list[Finding]:
    repeated = np.flatnonzero(ids.duplicated() & ~empty)
    if repeated.size == 0:
        return []
    codes, _ = pd.factorize(ids)
    firsts = np.unique(codes, return_index=True)[1]
    offset = 1 if codes.min() < 0 else 0
    return [
        Finding(
            "duplicate id",
            name,
            repeated,
            "is the id of {other} too",
            "Give each job an id of its own, or leave the column out to have the rows numbered.",
            others=firsts[codes[repeated] + offset],
        )
    ]
