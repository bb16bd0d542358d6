"""What is wrong with a trace file, each kind of mistake told in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from analysim.errors import TraceError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

SHOWN = 5
"""Bad cells of one problem that are shown."""

_LONGEST = 40


@dataclass(frozen=True)
class Cell:
    """A cell as the file has it: 1-based data row, line of the file (None for Parquet), text."""

    row: int
    line: int | None
    text: str

    @property
    def place(self) -> str:
        """Where the cell is: ``row 3 (line 4)``."""
        return f"row {self.row}" if self.line is None else f"row {self.row} (line {self.line})"

    @property
    def shown(self) -> str:
        """Its text as a message quotes it."""
        text = " ".join(self.text.split())
        return f'"{text[:_LONGEST]}..."' if len(text) > _LONGEST else f'"{text}"' if text else "an empty cell"


@dataclass(frozen=True)
class Problem:
    """One kind of mistake in one column: how many cells, the first of them, and one line about the first.

    ``column`` is the file's own name, empty when the whole file is at fault.
    """

    kind: str
    column: str
    count: int
    cells: tuple[Cell, ...]
    message: str
    remedy: str


@dataclass(frozen=True)
class Finding:
    """Cells that break a rule, by row from 0 in file order, before their text is looked up.

    ``what`` completes the sentence "row 3, column x: "text" ..."; ``{other}`` in it stands for the place
    of the row in ``others``.
    """

    kind: str
    column: str
    rows: npt.NDArray[np.intp]
    what: str | Callable[[int], str]
    remedy: str
    others: npt.NDArray[np.intp] | None = None


class CellSource(Protocol):
    """A table whose cells can be looked up as the file has them."""

    path: str

    def cells(self, wanted: Iterable[tuple[int, str]]) -> dict[tuple[int, str], Cell]:
        """Look up cells by (row from 0, file column)."""


def file_problem(error: TraceError) -> Problem:
    """Make a problem of an error that concerns the whole file."""
    return Problem("unreadable file", "", 1, (), error.message, error.remedy)


def locate(findings: list[Finding], source: CellSource) -> list[Problem]:
    """Look up the first cells of each finding and say what is wrong with them; earliest row first."""
    findings = sorted(findings, key=lambda finding: int(finding.rows[0]))
    wanted = []
    for finding in findings:
        wanted += [(int(row), finding.column) for row in finding.rows[:SHOWN]]
        if finding.others is not None:
            wanted.append((int(finding.others[0]), finding.column))
    found = source.cells(wanted) if wanted else {}
    return [_problem(finding, found, source.path) for finding in findings]


def _problem(finding: Finding, found: dict[tuple[int, str], Cell], path: str) -> Problem:
    cells = tuple(found[int(row), finding.column] for row in finding.rows[:SHOWN])
    what = finding.what if isinstance(finding.what, str) else finding.what(int(finding.rows[0]))
    if finding.others is not None:
        what = what.replace("{other}", found[int(finding.others[0]), finding.column].place)
    first, count = cells[0], len(finding.rows)
    message = f"{path}, {first.place}, column {finding.column}: {first.shown} {what}{_more(cells, count)}."
    return Problem(finding.kind, finding.column, count, cells, message, finding.remedy)


def _more(cells: tuple[Cell, ...], count: int) -> str:
    if count == 1:
        return ""
    others = ", ".join(f"{cell.place} {cell.shown}" for cell in cells[1:])
    rest = " and others" if count > len(cells) else ""
    return f"; {count - 1:,} more: {others}{rest}"


def to_error(problems: list[Problem]) -> TraceError:
    """Make the error for a file with problems: the first one, and how many other kinds there are."""
    first = problems[0]
    others = len(problems) - 1
    remedy = first.remedy
    if others:
        remedy += (
            f" {others} other {'kind' if others == 1 else 'kinds'} of problem: see analysim trace validate."
        )
    return TraceError(first.message, remedy)
