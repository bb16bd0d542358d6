"""Tables of a known format, as text between commas: read in pieces, into one compact column each."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import TraceError
from analysim.traces.identity import are_integers
from analysim.traces.log import UNKNOWN
from analysim.traces.moments import NO_VALUE, read_moments
from analysim.traces.readers.amounts import Floats, Integers, Mask, scale
from analysim.traces.streams import open_text

Kind = Literal["id", "text", "number", "moment"]
"""What a column holds: ids (each its own), text that repeats, numbers, or dates (ISO 8601)."""

NO_TEXT = ("", "nan", "none", "null")
"""Cells, in lower case, that say nothing."""

_ROWS_AT_ONCE = 50_000
_LONGEST = 40
_REMEDY = "Correct that cell, or leave the row out."


def open_csv(path: Path) -> AbstractContextManager[TextIO]:
    """Open a table, plain or gzip, with its line ends as the csv module wants them."""
    return open_text(path, newline="")


@dataclass
class Table:
    """Columns of a table. ``naive`` counts the dates without a zone, by column."""

    path: Path
    rows: int = 0
    naive: dict[str, int] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)

    @property
    def row(self) -> Integers:
        """Numbers of the data rows, from 1."""
        return np.arange(1, self.rows + 1)

    def keep(self, *names: str) -> None:
        """Let go of all columns but some."""
        self.columns = {name: self.columns[name] for name in names}

    def ids(self, name: str) -> pd.Series:
        """Return ids: int64 if all are integers as they are written, else text."""
        return make_ids(self.columns[name])

    def text(self, name: str) -> pd.Series:
        """Return a column of text; empty where the file says nothing."""
        if name not in self.columns:
            return pd.Series("", index=pd.RangeIndex(self.rows), dtype="str")
        codes, words = self.codes(name)
        return pd.Series(np.array([*words, ""], object)[codes], dtype="str")

    def codes(self, name: str) -> tuple[npt.NDArray[np.int32], list[str]]:
        """Return a column of text as numbers of its words; the words differ, and may be empty."""
        codes, words = self.columns[name]
        return codes, words

    def number(self, name: str) -> Floats:
        """Return a column of numbers; NaN where the file says nothing."""
        values: Floats = self.columns[name] if name in self.columns else np.full(self.rows, np.nan)
        return values

    def scaled(self, name: str, unit: int) -> Integers:
        """Return a column of numbers in units of 1/``unit``; UNKNOWN where the file says nothing."""
        return scale(self.number(name), unit)

    def amount(self, name: str, unit: int) -> Integers:
        """Return numbers as ``scaled`` does, of which negative ones say nothing."""
        values = self.scaled(name, unit)
        return np.where(values < 0, UNKNOWN, values)

    def moment(self, name: str) -> Integers:
        """Return a column of dates as microseconds since 1970; UNKNOWN where the file says nothing."""
        values: Integers = self.columns[name]
        return values


def read_table(
    path: Path,
    kinds: Mapping[str, Kind],
    *,
    timezone: tzinfo | None = None,
    names: Sequence[str] = (),
    optional: Collection[str] = (),
    opened: Callable[[Path], AbstractContextManager[TextIO]] = open_csv,
) -> Table:
    """Read the columns of ``kinds`` from a table whose first row names its columns.

    ``names`` are those of a table without such a row (one that has it all the same is read too). Columns
    that are ``optional`` may be missing. Raises ``TraceError`` for a missing column, no rows, a row with
    another number of fields, and a cell that is no number or no date.
    """
    table = Table(path)
    with opened(path) as text:
        rows = _read_rows(csv.reader(text, strict=True), path)
        first = next(rows, None)
        if first is None:
            raise TraceError(f"{path} is empty.", "A trace has a line for each job.")
        header = [name.strip() for name in first[1]]
        if names and header != list(names):
            header = list(names)
            rows = _chain(first, rows)
        wanted = _find_columns(path, header, kinds, optional)
        builders = {name: _BUILDERS[kind](table, name, timezone) for name, kind in wanted.items()}
        for lines, columns in _read_pieces(rows, header, path):
            for name, builder in builders.items():
                builder.add(columns[header.index(name)], lines)
            table.rows += len(lines)
    if table.rows == 0:
        raise TraceError(f"{path} has column names but no rows.", "A trace has a line for each job.")
    for name in list(builders):
        table.columns[name] = builders.pop(name).finish()
    return table


def make_ids(texts: Sequence[str]) -> pd.Series:
    """Return ids as int64 if all are integers in plain decimal (``007`` is none), else as text: they are compact so."""
    return pd.Series(list(map(int, texts)), dtype=np.int64) if are_integers(texts) else pd.Series(texts, dtype="str")


def has_columns(header: Collection[str], *needed: str) -> bool:
    """Whether a header has all columns that are needed."""
    return set(needed) <= set(header)


def _find_columns(
    path: Path, header: list[str], kinds: Mapping[str, Kind], optional: Collection[str]
) -> dict[str, Kind]:
    for name in kinds:
        if header.count(name) > 1:
            raise TraceError(f'{path}: two columns are called "{name}".', "Rename or remove one.")
        if name not in header and name not in optional:
            raise TraceError(
                f'{path} has no column "{name}"; its first line is {",".join(header)[:80]!r}.',
                "Check which file or format this is, and that commas stand between its fields.",
            )
    return {name: kind for name, kind in kinds.items() if name in header}


def _read_rows(reader: Any, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Go through the rows that are not blank, with the number of the line where each ends."""
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise TraceError(f"{path}, line {reader.line_num}: {error}.", "Correct that line.") from error


def _chain(first: tuple[int, list[str]], rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rows


def _read_pieces(
    rows: Iterator[tuple[int, list[str]]], header: list[str], path: Path
) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
    """Turn rows into pieces of columns, with the line of each row."""
    lines: list[int] = []
    piece: list[list[str]] = []
    for line, row in rows:
        if len(row) != len(header):
            raise TraceError(
                f"{path}, line {line}: {len(row)} fields where {len(header)} are expected.",
                "Correct that line; copy or download the file again if it ends there.",
            )
        lines.append(line)
        piece.append(row)
        if len(lines) == _ROWS_AT_ONCE:
            yield lines, list(zip(*piece, strict=True))
            lines, piece = [], []
    if lines:
        yield lines, list(zip(*piece, strict=True))


class _Ids:
    def __init__(self, table: Table, name: str, timezone: tzinfo | None) -> None:
        self.table = table
        self.name = name
        self.cells: list[str] = []

    def add(self, cells: Sequence[str], lines: list[int]) -> None:
        _check_text(self.table, self.name, cells, lines)
        self.cells.extend(map(str.strip, cells))

    def finish(self) -> list[str]:
        return self.cells


class _Words:
    """Text as the numbers of its words, each of which is kept once."""

    def __init__(self, table: Table, name: str, timezone: tzinfo | None) -> None:
        self.table = table
        self.name = name
        self.numbers: dict[str, int] = {}
        self.parts: list[npt.NDArray[np.int32]] = []

    def add(self, cells: Sequence[str], lines: list[int]) -> None:
        _check_text(self.table, self.name, cells, lines)
        numbers = self.numbers
        self.parts.append(np.array([numbers.setdefault(cell, len(numbers)) for cell in cells], np.int32))

    def finish(self) -> tuple[npt.NDArray[np.int32], list[str]]:
        cleaned = [_clean(word) for word in self.numbers]
        words = list(dict.fromkeys(cleaned))
        place = {word: number for number, word in enumerate(words)}
        if len(words) == len(cleaned):
            return np.concatenate(self.parts), words
        renumbered = np.array([place[word] for word in cleaned], np.int32)
        return renumbered[np.concatenate(self.parts)], words


class _Numbers:
    def __init__(self, table: Table, name: str, timezone: tzinfo | None) -> None:
        self.table = table
        self.name = name
        self.parts: list[Floats] = []

    def add(self, cells: Sequence[str], lines: list[int]) -> None:
        texts = pd.Series(cells, dtype=object)
        values = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64)
        _check(self.table, self.name, texts, ~np.isfinite(values), "a number", lines)
        self.parts.append(values)

    def finish(self) -> Floats:
        return np.concatenate(self.parts)


class _Moments:
    def __init__(self, table: Table, name: str, timezone: tzinfo | None) -> None:
        self.table = table
        self.name = name
        self.timezone = timezone
        self.parts: list[Integers] = []
        table.naive[name] = 0

    def add(self, cells: Sequence[str], lines: list[int]) -> None:
        texts = pd.Series(cells, dtype=object)
        moments, naive = read_moments(texts, self.timezone)
        _check(self.table, self.name, texts, moments == UNKNOWN, "a date", lines)
        self.table.naive[self.name] += naive
        self.parts.append(moments)

    def finish(self) -> Integers:
        return np.concatenate(self.parts)


_BUILDERS: dict[Kind, Any] = {"id": _Ids, "text": _Words, "number": _Numbers, "moment": _Moments}


def _clean(text: str) -> str:
    stripped = text.strip()
    return "" if stripped.lower() in NO_TEXT else stripped


def _check_text(table: Table, name: str, cells: Sequence[str], lines: list[int]) -> None:
    """Raise an error for the first cell with a NUL byte, which no table in our schema may have."""
    if "\0" in "".join(cells):
        line = next(line for line, cell in zip(lines, cells, strict=True) if "\0" in cell)
        raise TraceError(f"{table.path}, line {line}, {name}: the text has a NUL byte.", _REMEDY)


def _check(table: Table, name: str, texts: pd.Series, unread: Mask, what: str, lines: list[int]) -> None:
    """Raise an error for the first cell that could not be read and is not one that says nothing."""
    if not unread.any():
        return
    for position in np.flatnonzero(unread):
        text = str(texts.iloc[position])
        if text.strip().lower() not in NO_VALUE:
            shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
            raise TraceError(f'{table.path}, line {lines[position]}, {name}: "{shown}" is not {what}.', _REMEDY)
