"""CSV text as columns: header, field counts, column types, and cells looked up again for a message."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import TraceError
from analysim.traces.opening import TraceFile
from analysim.traces.problems import Cell
from analysim.traces.schema import BY_NAME

Integers = npt.NDArray[np.int64]

_BLOCK = 1 << 20  # bytes looked at together: they stay in the processor's cache
_NEWLINE, _COMMA, _QUOTE = b'\n,"'
_BLANK = b" \t\r\n"
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)
_OTHER_SEPARATORS = {
    ";": "semicolons, as Excel writes them where the decimal mark is a comma",
    "\t": "tabs",
    "|": "vertical bars",
}


class DelimitedTable:
    """The columns of a CSV file under the names of its header.

    Raises ``TraceError`` when the text is no table: another separator, no rows, repeated names, rows with
    more or fewer fields than the header. Blank lines are no rows.
    """

    def __init__(self, file: TraceFile) -> None:
        self.file = file
        self.path = file.path
        self.header = _read_header(file)
        self._ends = _field_ends(file.contents, len(self.header))
        if self._ends is None:
            self._check_rows()
        if not file.packed:
            file.release()  # pandas reads it by path: no need to hold it twice
        self._frame = self._parse(names=self.header, header=0)
        file.release()
        self._id_bytes = np.empty(0, np.int64)
        self.rows = len(self._frame)
        if self.rows == 0:
            raise TraceError(f"{self.path} has column names but no rows.", "A trace has a line for each job.")
        if self._ends is not None and self.rows != len(self._ends) - 1:
            raise TraceError(*_broken_line(file))

    def column(self, name: str) -> pd.Series:
        """Return a column with the type that pandas infers: numbers, booleans or text (NaN where empty)."""
        return self._frame[name]

    def text(self, name: str) -> pd.Series:
        """Return a column as the text in the file, NaN where empty."""
        self._read_texts([name])
        return self._frame[name]

    def keep(self, mapped: Mapping[str, str]) -> None:
        """Let go of the columns that are not mapped (schema name: column), and get text ready as text."""
        if "job_id" in mapped:
            self._id_bytes = self._count_bytes(mapped["job_id"])
        self._ends = None
        self._frame = self._frame[list(dict.fromkeys(mapped.values()))]
        self._read_texts(own for name, own in mapped.items() if BY_NAME[name].kind == "text")

    def drop(self, name: str) -> None:
        """Let go of a column; its cells can still be looked up."""
        del self._frame[name]

    def _read_texts(self, names: Iterable[str]) -> None:
        """Read those columns again which pandas took for numbers, or for numbers in part."""
        again = [name for name in dict.fromkeys(names) if not _is_text(self._frame[name])]
        if again:
            positions = [self.header.index(name) for name in again]
            texts = self._parse(names=self.header, header=0, usecols=positions, dtype=str)
            self._frame = self._frame.assign(**{name: texts[name] for name in again})

    def ids(self, name: str) -> pd.Series:
        """Return a column as int64 if all its cells are integers in plain decimal, else as text.

        ``007`` and ``+7`` are text: they would come back as another id.
        """
        inferred = self._frame[name]
        if inferred.dtype != np.int64:
            return self.text(name)
        digits = _count_digits(inferred.to_numpy())
        if np.array_equal(self._id_bytes, digits):
            return inferred
        texts = self.text(name)
        return inferred if np.array_equal(texts.str.len().to_numpy(), digits) else texts

    def _count_bytes(self, name: str) -> Integers:
        """Count the bytes of each cell as the file has them; none where the fields were not found."""
        if self._ends is None:
            return np.empty(0, np.int64)
        position = self.header.index(name)
        starts = self._ends[1:, position - 1] if position else self._ends[:-1, -1]
        return self._ends[1:, position].astype(np.int64) - starts - 1

    def cells(self, wanted: Iterable[tuple[int, str]]) -> dict[tuple[int, str], Cell]:
        """Look up cells by (row from 0, column) as the file has them."""
        columns: dict[int, list[str]] = {}
        for row, name in wanted:
            columns.setdefault(row, []).append(name)
        found = {}
        for row, (line, fields) in enumerate(self._records()):
            for name in columns.pop(row, ()):
                found[row, name] = Cell(row + 1, line, fields[self.header.index(name)])
            if not columns:
                break
        return found

    def _parse(self, **options: object) -> pd.DataFrame:
        # By path, pandas reads a large plain file on several threads.
        by_path = self.file.lasting and not self.file.packed
        source = self.path if by_path else io.BytesIO(self.file.contents)
        with warnings.catch_warnings():
            # A column of mixed types is read again as text, see `text`.
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            try:
                frame: pd.DataFrame = pd.read_csv(
                    source,
                    keep_default_na=False,
                    na_values=[""],
                    skipinitialspace=True,
                    index_col=False,
                    compression=None,
                    encoding="utf-8",
                    **options,  # type: ignore[call-overload]  # pandas-stubs has no overload for these
                )
            except (pd.errors.ParserError, OverflowError, ValueError) as error:
                reason = " ".join(str(error).split()).rstrip(".")
                raise TraceError(
                    f"{self.path} cannot be read as CSV: {reason}.", "Correct that line."
                ) from error
        return frame

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, fields) of each data row."""
        records = _records(self.file)
        next(records)
        return records

    def _check_rows(self) -> None:
        """Name the first row with a wrong number of fields, slowly but whatever its quotes and newlines."""
        expected = len(self.header)
        for row, (line, fields) in enumerate(self._records()):
            if len(fields) != expected:
                raise TraceError(*_ragged(self.file, row, line, fields, expected))


def _is_text(series: pd.Series) -> bool:
    return series.dtype != object and pd.api.types.is_string_dtype(series.dtype)


def _read_header(file: TraceFile) -> list[str]:
    _, fields = next(_records(file))
    names = [name.strip() for name in fields]
    if len(names) == 1:
        for separator, what in _OTHER_SEPARATORS.items():
            if separator in names[0]:
                raise TraceError(
                    f"{file.path} separates its columns by {what}, not by commas.",
                    "Save it as CSV with commas and decimal points (pandas: "
                    f"read_csv(..., sep={separator!r}{', decimal=' + repr(',') if separator == ';' else ''})"
                    ".to_csv(..., index=False)).",
                )
    if all(_is_number(name) for name in names):
        raise TraceError(
            f"{file.path} has no column names: its first line is {','.join(fields)}.",
            "Put a line of column names above it.",
        )
    seen: dict[str, int] = {}
    for position, name in enumerate(names):
        if name in seen and name:
            raise TraceError(
                f'{file.path}: columns {seen[name] + 1} and {position + 1} are both called "{name}".',
                "Rename or remove one of them.",
            )
        seen[name] = position
    return [name or f"(column {position + 1})" for position, name in enumerate(names)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _records(file: TraceFile) -> Iterator[tuple[int, list[str]]]:
    """Yield (line on which it begins, fields) of each record; blank lines are none."""
    text = io.TextIOWrapper(io.BytesIO(file.contents), encoding="utf-8-sig", newline="")
    reader = csv.reader(text, skipinitialspace=True)
    line = 1
    try:
        for fields in reader:
            if fields and (len(fields) > 1 or fields[0].strip()):
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise TraceError(f"{file.path}, line {line}: {error}.", "Correct that line.") from error


def _broken_line(file: TraceFile) -> tuple[str, str]:
    """Name the line in which pandas ends a row and a carriage return stands alone."""
    data = file.contents
    found = re.search(rb"\r(?!\n)", data)
    line = data.count(b"\n", 0, found.start()) + 1 if found else 1
    return (
        f"{file.path}, line {line}: a carriage return stands within the line.",
        'Remove it, or put "quotation marks" around the value.',
    )


def _ragged(file: TraceFile, row: int, line: int, fields: list[str], expected: int) -> tuple[str, str]:
    if any("\n" in field for field in fields) and file.contents.count(_QUOTE) % 2:
        return (
            f"{file.path}, row {row + 1} (line {line}): a quotation mark is opened and never closed.",
            "Close it, or remove it.",
        )
    count = f"{len(fields)} {'field' if len(fields) == 1 else 'fields'}"
    names = f"{expected} {'column' if expected == 1 else 'columns'}"
    return (
        f"{file.path}, row {row + 1} (line {line}): {count} where the header names {names}.",
        'Put "quotation marks" around a value with a comma in it; keep the commas of empty cells.',
    )


def _count_digits(integers: Integers) -> Integers:
    """Count the characters of each integer in plain decimal."""
    negative = integers < 0
    return np.searchsorted(_POWERS, np.where(negative, -integers, integers), side="right") + 1 + negative


def _field_ends(data: bytes, columns: int) -> npt.NDArray[np.uint32] | Integers | None:
    """Find where each field ends: an array (records with the header, columns) of byte positions.

    Returns None where that shape does not hold: ragged rows, blank lines, stray quotation marks.
    """
    length = len(data)
    while data[length - 1] in _BLANK:
        length -= 1
    kind = np.uint32 if length < 2**32 else np.int64
    blocks = []
    inside = np.uint8(0)
    quoted = _QUOTE in data
    for start in range(0, length, _BLOCK):
        block = np.frombuffer(data, np.uint8, min(_BLOCK, length - start), start)
        ends = (block == _NEWLINE) | (block == _COMMA)
        if quoted:
            parity = np.bitwise_xor.accumulate((block == _QUOTE).view(np.uint8)) ^ inside
            ends &= parity == 0
            inside = parity[-1]
        blocks.append((np.flatnonzero(ends) + start).astype(kind))
    positions = np.append(np.concatenate(blocks), kind(length))
    newlines = np.flatnonzero(np.frombuffer(data, np.uint8)[positions[:-1]] == _NEWLINE)
    expected = np.arange(columns - 1, positions.size - 1, columns)
    if positions.size % columns or inside or not np.array_equal(newlines, expected):
        return None
    return positions.reshape(-1, columns)
