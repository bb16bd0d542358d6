"""Attempts of Philly's jobs: where each ran, and for how long in all."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Any

import numpy as np

from analysim.errors import TraceError
from analysim.traces.log import UNKNOWN
from analysim.traces.moments import read_moments
from analysim.traces.readers.amounts import NEVER, Integers
from analysim.traces.readers.tables import NO_TEXT

_REMEDY = "Correct that record, or leave it out."


@dataclass(frozen=True)
class Placement:
    """GPUs of a job (None: not told), those on each node where they are spread evenly, and its nodes."""

    gpus: int | None
    each: int = 0
    nodes: str = ""


def find_attempts(record: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Return the attempts of a job, of which there may be none. Raises ``TraceError``."""
    return _objects(record.get("attempts"), "attempts", where)


def place(attempts: list[dict[str, Any]], where: str) -> Placement:
    """Find where a job ran: at the last attempt that names a GPU, else at the last that names a node."""
    without = Placement(None)
    for attempt in reversed(attempts):
        nodes: dict[str, int] = {}
        for part in _objects(attempt.get("detail"), "detail", where):
            name = read_text(part.get("ip"), "ip", where) or ""
            nodes[name] = nodes.get(name, 0) + _count_gpus(part.get("gpus"), where)
        gpus = sum(nodes.values())
        names = ",".join(name for name in nodes if name)
        if gpus:
            even = len(set(nodes.values())) == 1 and "" not in nodes
            return Placement(gpus, gpus // len(nodes) if even else 0, names)
        if nodes and without.gpus is None:
            without = Placement(0, 0, names)
    return without


def read_text(value: Any, name: str, where: str) -> str | None:
    """Return a text of a record, None where it says nothing. Raises ``TraceError`` for another thing."""
    if value is None:
        return None
    if isinstance(value, str):
        return None if value.strip().lower() in NO_TEXT else value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TraceError(f"{where}: {name} is {str(value)[:40]!r}, not a text.", _REMEDY)


def check_dates(texts: list[str | None], moments: Integers, records: list[int], name: str, path: Path) -> None:
    """Raise ``TraceError`` for the first text that could not be read as a date."""
    for position in np.flatnonzero(moments == UNKNOWN):
        text = texts[position]
        if text is not None:
            raise TraceError(f'{path}, record {records[position]}, {name}: "{text[:40]}" is not a date.', _REMEDY)


@dataclass
class Attempts:
    """Starts and ends of the attempts of some jobs, one after another; ``counts`` tells how many each has."""

    counts: list[int] = field(default_factory=list)
    starts: list[str | None] = field(default_factory=list)
    ends: list[str | None] = field(default_factory=list)
    naive: int = 0

    def add(self, attempts: list[dict[str, Any]], where: str) -> None:
        """Add the attempts of the next job."""
        self.counts.append(len(attempts))
        for attempt in attempts:
            self.starts.append(read_text(attempt.get("start_time"), "start_time", where))
            self.ends.append(read_text(attempt.get("end_time"), "end_time", where))

    def spans(self, timezone: tzinfo | None, records: list[int], path: Path) -> dict[str, Integers]:
        """Sum the attempts up, a number for each job, in microseconds.

        ``start`` is the first start and ``end`` the last end; ``ran`` sums the attempts with both, and is
        negative where one ends before it starts. ``last`` is the start of the last attempt where that has
        not ended: then there is no ``end``. ``halves`` counts other attempts without start or end.
        """
        job = np.repeat(np.arange(len(self.counts)), self.counts)
        numbers = np.repeat(np.array(records), self.counts).tolist()
        start, naive_starts = read_moments(self.starts, timezone)
        end, naive_ends = read_moments(self.ends, timezone)
        check_dates(self.starts, start, numbers, "start_time", path)
        check_dates(self.ends, end, numbers, "end_time", path)
        self.naive = naive_starts + naive_ends
        return self._sum_up(job, start, end)

    def _sum_up(self, job: Integers, start: Integers, end: Integers) -> dict[str, Integers]:
        size = len(self.counts)
        started, ended = start != UNKNOWN, end != UNKNOWN
        final = np.append(job[1:] != job[:-1], np.ones(min(job.size, 1), bool))
        open_ended = final & started & ~ended
        first, latest, last = np.full(size, NEVER), np.full(size, UNKNOWN), np.full(size, UNKNOWN)
        np.minimum.at(first, job[started], start[started])
        np.maximum.at(latest, job[ended], end[ended])
        last[job[open_ended]] = start[open_ended]
        ran, halves = np.zeros(size, np.int64), np.zeros(size, np.int64)
        both = started & ended
        np.add.at(ran, job[both], end[both] - start[both])
        np.add.at(halves, job[~both & ~open_ended], 1)
        ran[job[both & (end < start)]] = -1
        return {
            "start": np.where(first == NEVER, UNKNOWN, first),
            "end": np.where(last == UNKNOWN, latest, UNKNOWN),
            "ran": ran,
            "last": last,
            "halves": halves,
        }


def _objects(value: Any, name: str, where: str) -> list[dict[str, Any]]:
    if value is None or (isinstance(value, str) and value.strip().lower() in NO_TEXT):
        return []
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return value
    raise TraceError(f"{where}: {name} is {str(value)[:40]!r}, not a list of objects.", _REMEDY)


def _count_gpus(value: Any, where: str) -> int:
    if value is None or (isinstance(value, str) and value.strip().lower() in NO_TEXT):
        return 0
    if isinstance(value, list):
        return len(value)
    raise TraceError(f"{where}: gpus is {str(value)[:40]!r}, not a list.", _REMEDY)
