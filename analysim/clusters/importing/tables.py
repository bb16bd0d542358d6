"""Tables between commas: rows by column, and cells as numbers, with one clear line for what is wrong."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from analysim.clusters.importing.sources import Source

_MOST = 10**12


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its line and its cells by column."""

    source: Source
    line: int
    cells: dict[str, str]

    def text(self, column: str) -> str:
        """A cell that may not be empty. Raises ``ConfigError``."""
        cell = self.cells[column]
        if not cell:
            raise self.source.error(self.line, f"{column} is empty.", "Fill it in or delete the line.")
        return cell

    def number(self, column: str, least: float = 0.0) -> float:
        """A cell that is a number of ``least`` or more. Raises ``ConfigError``."""
        cell = self.cells[column]
        try:
            value = float(cell)
        except ValueError:
            value = float("nan")
        if not least <= value <= _MOST:
            raise self.source.error(
                self.line, f"{column} is {cell!r}, no number of {least:g} or more.", "Correct the line or delete it."
            )
        return value

    def whole(self, column: str, least: int = 0) -> int:
        """A cell that is a whole number of ``least`` or more. Raises ``ConfigError``."""
        value = self.number(column, least)
        if value != int(value):
            raise self.source.error(
                self.line, f"{column} is {self.cells[column]!r}, no whole number.", "Correct the line or delete it."
            )
        return int(value)


def read_rows(source: Source, columns: Sequence[str], header: bool = True) -> list[Row]:
    """Read the rows of a table whose columns are known; a header in the first line is passed over.

    Raises ``ConfigError`` for a row with another number of fields, and a table without rows.
    """
    rows = []
    reader = csv.reader(source.lines, skipinitialspace=True)
    try:
        for number, fields in enumerate(reader):
            if not fields or (header and number == 0):
                continue
            if len(fields) != len(columns):
                raise source.error(
                    reader.line_num,
                    f"{len(fields)} fields where {len(columns)} are expected ({', '.join(columns)}).",
                    "The file may be cut off, or have another separator than commas.",
                )
            cells = dict(zip(columns, (field.strip() for field in fields), strict=True))
            rows.append(Row(source, reader.line_num, cells))
    except csv.Error as error:
        raise source.error(reader.line_num, f"no table between commas: {error}.", "Check the line.") from None
    if not rows:
        raise source.error(None, "a header and no rows.", "Give the whole table.")
    return rows
