"""Lines of ``sacct --parsable`` as records: one line each, whatever stands in their free text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TextIO

from analysim.errors import TraceError
from analysim.traces.readers.slurm_values import read_job

_AT_ONCE = 1 << 21
"""Characters read at a time."""

_LONGEST = 1 << 20
"""Characters in the longest line that is taken for one."""

_MOST_LINES, _MOST_FIELDS = 200, 500
"""Lines in the longest record that is taken for one, and fields beyond those of the header."""

_COMMENTS = ("comment", "admincomment", "systemcomment")
_PATHS = ("workdir", "stdin", "stdout", "stderr", "container")
_FREE = frozenset({"jobname", "submitline", "wckey", "extra", "constraints", "licenses", *_COMMENTS, *_PATHS})
"""Columns in which users write what they like, ``|`` and line breaks included."""

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\S*|[0-9]{1,19}|Unknown|None|N/A|")
_SPAN = re.compile(r"[0-9:.-]+|UNLIMITED|Partition_Limit|INVALID|Unknown|", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]*")
_STATE = re.compile(r"[A-Z_]+(?: by .*)?\+?|")
_SHAPES = {
    "submit": _MOMENT,
    "eligible": _MOMENT,
    "start": _MOMENT,
    "end": _MOMENT,
    "elapsed": _SPAN,
    "elapsedraw": _NUMBER,
    "suspended": _SPAN,
    "timelimit": _SPAN,
    "timelimitraw": _SPAN,
    "nnodes": _NUMBER,
    "allocnodes": _NUMBER,
    "alloccpus": _NUMBER,
    "ncpus": _NUMBER,
    "reqcpus": _NUMBER,
    "priority": _NUMBER,
    "state": _STATE,
    "exitcode": re.compile(r"(?:[0-9]+:[0-9]+)?"),
    "alloctres": re.compile(r"(?:[\w/:.-]+=[^=|]*)*"),
    "reqtres": re.compile(r"(?:[\w/:.-]+=[^=|]*)*"),
}


@dataclass(frozen=True)
class Layout:
    """The columns of a dump by their names in small letters, and whether each line ends with ``|``."""

    names: list[str]
    trailing: bool

    @property
    def separators(self) -> int:
        """How many ``|`` each record has."""
        return len(self.names) - (not self.trailing)

    def place(self, *names: str) -> int | None:
        """Return where the first of some columns that is there stands."""
        return next((self.names.index(name) for name in names if name in self.names), None)

    @cached_property
    def id_place(self) -> int:
        """Where the id of the job stands."""
        place = self.place("jobid", "jobidraw")
        return 0 if place is None else place

    @cached_property
    def checks(self) -> list[Callable[[str], object] | None]:
        """What each field must look like; None for free text."""
        return [self._check(name) for name in self.names]

    def _check(self, name: str) -> Callable[[str], object] | None:
        if name in _FREE:
            return None
        if name in ("jobid", "jobidraw"):
            return _is_job
        shape = _SHAPES.get(name)
        return shape.fullmatch if shape else _anything

    def fit(self, fields: Sequence[str]) -> list[str] | None:
        """Deal fields to the columns where free text holds ``|`` or line breaks; None where they do not fit.

        Each column gets one field, free text one or more, so that what has a known form (ids, moments, spans,
        numbers, states, resources) gets a field of that form, an empty one only where there is no other.
        """
        if self.trailing:
            *fields, rest = fields
            if rest:
                return None
        best = {0: 0}  # where the fields of the columns so far may end, and how many told ones have their form
        begins: list[dict[int, int]] = []  # for each column: where its fields begin, by where they end
        for check in self.checks:
            reached: dict[int, int] = {}
            begin_of: dict[int, int] = {}
            if check is None:
                begin = -1
                for end in range(1, len(fields) + 1):
                    if end - 1 in best and (begin < 0 or best[end - 1] > best[begin]):
                        begin = end - 1
                    if begin >= 0:
                        reached[end], begin_of[end] = best[begin], begin
            else:
                for begin, told in best.items():
                    if begin < len(fields) and "\n" not in fields[begin] and check(fields[begin]):
                        reached[begin + 1] = told + (fields[begin] != "" and check is not _anything)
                        begin_of[begin + 1] = begin
            best = reached
            begins.append(begin_of)
        return _walk_back(fields, begins)


def _walk_back(fields: Sequence[str], begins: list[dict[int, int]]) -> list[str] | None:
    end = len(fields)
    dealt: list[str] = []
    for begin_of in reversed(begins):
        if end not in begin_of:
            return None
        dealt.append(" ".join(fields[begin_of[end] : end]).replace("\n", " "))
        end = begin_of[end]
    return dealt[::-1]


def _is_job(text: str) -> bool:
    return read_job(text.partition(".")[0]) is not None


def _anything(text: str) -> bool:
    return True


def read_layout(header: str) -> Layout | None:
    """Read the first line of a dump; None where it is no header of sacct."""
    names = [name.strip().lower() for name in header.split("|")]
    trailing = len(names) > 1 and not names[-1]
    layout = Layout(names[:-1] if trailing else names, trailing)
    if len(names) < 2 or layout.place("jobid", "jobidraw") is None:
        return None
    return layout if layout.place("submit", "start", "state", "elapsed", "elapsedraw") is not None else None


def read_blocks(path: Path, text: TextIO, layout: Layout, first: int) -> Iterator[tuple[list[str], Sequence[int]]]:
    """Go through a dump behind its header in blocks: records with one separator between fields, line numbers.

    ``first`` is the number of the line behind the header.
    A record whose free text has ``|`` or line breaks is put together, with blanks for them. Raises
    ``TraceError`` for a line that is no record and no part of one.
    """
    mender = _Mender(path, layout)
    while block := text.read(_AT_ONCE):
        if not block.endswith("\n"):
            block += text.readline(_LONGEST)
        lines = block.split("\n")
        if not lines[-1]:
            lines.pop()
        separators = layout.separators
        if not mender.begun and all(line.count("|") == separators for line in lines):
            yield lines, range(first, first + len(lines))
        else:
            yield mender.mend(lines, first)
        first += len(lines)
    mender.finish()


class _Mender:
    """Puts lines together that are one record, across blocks."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path = path
        self.layout = layout
        self.begun: list[str] = []  # lines of a record that is not complete
        self.found = 0  # separators in them
        self.line = 1  # number of the first of them
        self.odd = (1, "")  # the line that showed that it is not complete, and its number
        self.joined: list[str] = []  # lines of the record before, where it has several
        self.last_is_free = not layout.trailing and layout.names[-1] in _FREE

    def mend(self, lines: list[str], first: int) -> tuple[list[str], list[int]]:
        """Return the records that end in some lines, and the number of each one's first line."""
        records: list[str] = []
        numbers: list[int] = []
        separators = self.layout.separators
        for number, line in enumerate(lines, start=first):
            found = line.count("|")
            if found == separators and not self.begun:
                records.append(line)
                numbers.append(number)
                self.joined = []
                continue
            if found == separators and self._begins(line):
                raise self.error()
            if not self.begun:
                if not line.strip() or (self.last_is_free and not self._begins(line)):
                    continue  # blank, or the rest of free text that ends the record before
                self._begin(number, line, records, numbers)
            self.begun.append(line)
            self.found += found
            record = self._complete()
            if record is not None:
                records.append(record)
                numbers.append(self.line)
                self.joined, self.begun = self.begun, []
        return records, numbers

    def finish(self) -> None:
        """Raise ``TraceError`` where the dump ends within a record."""
        if self.begun:
            raise self.error()

    def _begin(self, number: int, line: str, records: list[str], numbers: list[int]) -> None:
        """Begin a record, or go on with the one before, which only seemed complete for ``|`` in its free text."""
        self.line, self.odd, self.found = number, (number, line), 0
        before = self.joined or records[-1:]
        if before and records and not self._begins(line) and numbers[-1] + len(before) == number:
            records.pop()
            self.line = numbers.pop()
            self.begun = list(before)
            self.found = sum(each.count("|") for each in before)

    def _begins(self, line: str) -> bool:
        """Whether the field of the job id, as far as it can be told, holds one."""
        place = self.layout.id_place
        fields = line.split("|", place + 1)
        return len(fields) > place and _is_job(fields[place])

    def _complete(self) -> str | None:
        """Return the record that was begun, in one line; None where more lines belong to it."""
        if self.found < self.layout.separators:
            dealt = None
        elif self.found > self.layout.separators + _MOST_FIELDS:
            raise self.error()
        else:
            dealt = self.layout.fit("\n".join(self.begun).split("|"))
        if dealt is not None:
            return "|".join(dealt) + "|" * self.layout.trailing
        if len(self.begun) >= _MOST_LINES:
            raise self.error()
        return None

    def error(self) -> TraceError:
        """Make the error for a line that is no record."""
        number, line = self.odd
        count = line.count("|") + (not self.layout.trailing)
        return TraceError(
            f"{self.path}, line {number}: {count} fields where the header has {len(self.layout.names)}.",
            "Export the log again as a whole, or without columns of free text (JobName, Comment, SubmitLine).",
        )
