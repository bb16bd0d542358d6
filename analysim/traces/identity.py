"""Job ids: none empty, none given twice, integers where all are; rows are numbered where there are none."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.traces.problems import Finding

Mask = npt.NDArray[np.bool_]

NO_ID = "no job id told: called by its row"

_AT_ONCE = 100_000
_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,18}")
_END = 1 << 63


def are_integers(texts: Iterable[str]) -> bool:
    """Tell whether all ids are integers of 64 bits in plain decimal; ``007`` and ``+7`` are none."""
    return all(_PLAIN.fullmatch(text) and -_END < int(text) < _END for text in texts)


def fill_ids(ids: pd.Series, rows: npt.NDArray[np.int64]) -> tuple[pd.Series, Mask]:
    """Call jobs without an id ``#`` and their row; return the ids, and which jobs those are."""
    empty = np.zeros(len(ids), bool) if ids.dtype == np.int64 else (ids == "").to_numpy(bool)
    if empty.any():
        ids = ids.mask(empty, "#" + pd.Series(rows, index=ids.index).astype(str))
    return ids, empty


def tell_apart(ids: pd.Series, kept: Mask) -> tuple[pd.Series, Mask]:
    """Give ids of jobs that are kept and that were used before ``~2``, ``~3``, ...; return also which those are."""
    again = np.zeros(len(ids), bool)
    if _are_unique(ids):
        return ids, again
    again[kept] = ids[kept].duplicated().to_numpy()
    if not again.any():
        return ids, again
    texts = ids.astype(str).to_numpy(object)
    used, last = set(texts[kept]), dict[str, int]()
    for place in np.flatnonzero(again).tolist():
        text = texts[place]
        number = last.get(text, 1) + 1
        while f"{text}~{number}" in used:
            number += 1
        last[text] = number
        texts[place] = f"{text}~{number}"
        used.add(texts[place])
    return pd.Series(texts, dtype="str"), again


def to_integers(ids: pd.Series, kept: Mask) -> pd.Series:
    """Turn ids into integers where those of all jobs that are kept are, as a column of our schema would be."""
    if ids.dtype == np.int64:
        return ids
    places = np.flatnonzero(kept)
    parts = (places[begin : begin + _AT_ONCE] for begin in range(0, len(places), _AT_ONCE))
    if not all(are_integers(ids.iloc[part].to_numpy(object)) for part in parts):
        return ids
    integers = np.zeros(len(ids), np.int64)
    integers[places] = ids.iloc[places].to_numpy(object).astype(np.int64)
    return pd.Series(integers)


def _are_unique(ids: pd.Series) -> bool:
    """Tell whether no id comes twice, by their hashes: those of millions of texts are small; a doubt is a no."""
    parts = (ids.iloc[begin : begin + _AT_ONCE].to_numpy(object) for begin in range(0, len(ids), _AT_ONCE))
    hashes = np.sort(np.concatenate([pd.util.hash_array(part, categorize=False) for part in parts]))
    return not (hashes[1:] == hashes[:-1]).any()


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
