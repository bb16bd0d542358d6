"""Cells of sacct's columns as compact records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import TraceError
from analysim.traces.log import UNKNOWN
from analysim.traces.moments import read_moments, zone_notes
from analysim.traces.readers.amounts import Integers
from analysim.traces.readers.format import ReadOptions
from analysim.traces.readers.slurm_jobs import Cache, Records, compute_all, distinct
from analysim.traces.readers.slurm_lines import Layout
from analysim.traces.readers.slurm_values import (
    ABSENT,
    NOTHING,
    Resources,
    count_tasks,
    epoch,
    first_known,
    known_priority,
    read_count,
    read_gres,
    read_job,
    read_nodes,
    read_span,
    read_state,
    read_tres,
    requested_memory,
)
from analysim.units import CPU_MILLI, MICROSECONDS

RESOURCES = ("alloctres", "reqtres", "allocgres", "reqgres")
"""Columns that tell GPUs, in the order in which they are asked."""

_AMOUNTS = ("reqmem", "alloccpus", "ncpus", "reqcpus", "nnodes", "allocnodes")
_TEXTS = {
    "cluster": "cluster",
    "tenant": "account",
    "user": "user",
    "partition": "partition",
    "quality": "qos",
    "status": "state",
}
_MOMENTS = ("submit", "eligible", "start", "end")
_LONGEST_NUMBER = 15
_CLOCK = ("00:00:00", "99:99:99")
_CLOCK_SECONDS = [36_000, 3_600, 0, 600, 60, 0, 10, 1]
_MINUTE = 60 * MICROSECONDS


class Cells:
    """Collects records from the cells of a dump, block by block."""

    def __init__(self, path: Path, layout: Layout, options: ReadOptions) -> None:
        self.path = path
        self.layout = layout
        self.timezone = options.timezone
        self.records = Records(lists_nodes="nodelist" in layout.names)
        self.nodes = Cache(read_nodes)
        self.arrays = np.zeros(3, np.int64)  # rows of pending tasks, their tasks, rows that limit them

    def add(self, fields: list[str], rows: Integers, lines: list[int]) -> None:
        """Append the records of a block: their fields, one record after the other, and their rows and lines."""
        column = _Column(self.layout, fields)
        table: dict[str, npt.NDArray[Any]] = {"row": rows}
        table |= self._ids(column.at(self.layout.id_place), lines)
        for name, source in _TEXTS.items():
            texts, codes = distinct(column(source))
            read = map(read_state, texts) if name == "status" else texts
            table[name] = self.records.words[name].encode(list(read))[codes]
        for name in _MOMENTS:
            table[name] = self._moments(name, column(name), lines)
        table["elapsed"] = _read_spans(column("elapsedraw", "elapsed"))
        table["suspended"] = _read_spans(column("suspended"))
        table["limit"] = compute_all(lambda cell: read_span(cell, _MINUTE), column("timelimit", "timelimitraw"))
        table["priority"] = compute_all(lambda cell: known_priority(read_count(cell)), column("priority"))
        nodes, codes = distinct(column("nodelist"))
        lists = [self.nodes[text] for text in nodes]
        table["node"] = self.records.words["node"].encode([text for text, _ in lists])[codes]
        table |= self._resources(column, np.array([count for _, count in lists])[codes])
        self.records.add(table)
        if column.has("dependency"):
            self.records.depending += sum(map(bool, column("dependency")))

    def _ids(self, cells: Sequence[str], lines: list[int]) -> dict[str, npt.NDArray[Any]]:
        """Take ids apart into number, task and component (-1: none), and the texts of pending tasks."""
        plain = [cell.isdecimal() and len(cell) <= _LONGEST_NUMBER for cell in cells]
        parts = np.full((3, len(cells)), -1, np.int64)
        parts[0] = [int(cell) if simple else 0 for cell, simple in zip(cells, plain, strict=True)]
        pending = np.zeros(len(cells), np.int32)
        others = [at for at, simple in enumerate(plain) if not simple]
        jobs = [self._job(cells[at], lines[at]) for at in others]
        if jobs:
            parts[:, others] = np.array([job[:3] for job in jobs]).T
            pending[others] = self.records.words["tasks"].encode([job[3] for job in jobs])
        return {"number": parts[0], "task": parts[1], "component": parts[2], "tasks": pending}

    def _job(self, cell: str, line: int) -> tuple[int, int, int, str]:
        number, _, task = cell.partition("_")
        if number.isdecimal() and task.isdecimal() and len(cell) <= _LONGEST_NUMBER:
            return int(number), int(task), -1, ""
        job = read_job(cell)
        if job is None:
            raise TraceError(
                f'{self.path}, line {line}: "{cell[:40]}" is no job id.', "Export the log again as a whole."
            )
        if job[3]:
            self.arrays += (1, count_tasks(job[3]), "%" in job[3])
        return job

    def _moments(self, name: str, cells: Sequence[str], lines: list[int]) -> Integers:
        first = next((cell for cell in cells if cell and cell.lower() not in ABSENT), "")
        if not first:
            return np.full(len(cells), UNKNOWN)
        if first.isdecimal():  # SLURM_TIME_FORMAT=%s
            moments = compute_all(lambda cell: epoch(read_count(cell)), cells)
        else:
            moments, naive = read_moments(cells, self.timezone)
            self.records.naive += naive
        for at in np.flatnonzero(moments == UNKNOWN).tolist():
            if cells[at].lower() not in ABSENT and cells[at] != "0":
                raise TraceError(
                    f'{self.path}, line {lines[at]}: {name.title()} "{cells[at][:40]}" is no time.',
                    "Correct it, or export again with SLURM_TIME_FORMAT=standard.",
                )
        return moments

    def _resources(self, column: _Column, listed: Integers) -> dict[str, npt.NDArray[Any]]:
        """Read the resources of each record, of equal ones once."""
        names = [name for name in (*RESOURCES, *_AMOUNTS) if column.has(name)]
        keys, places = _together([*map(_distinct_resources, map(column, names)), distinct(listed.tolist())])
        found = [_read_resources(dict(zip(names, key, strict=False)), key[-1]) for key in keys]
        self.records.sharing += int(np.array([each.shares for each in found])[places].sum())
        table: dict[str, npt.NDArray[Any]] = {
            name: np.array([getattr(each, name) for each in found], np.int64)[places]
            for name in ("gpu_milli", "cpu_milli", "memory_mb", "nodes")
        }
        table["gpu_type"] = self.records.words["gpu_type"].encode([each.gpu_type for each in found])[places]
        return table

    def finish(self) -> Records:
        """Return all records, with notes about what they were read as."""
        records = self.records
        records.notes += zone_notes(records.naive, self.timezone)
        rows, tasks, throttled = self.arrays.tolist()
        if rows:
            records.notes.append(f"{rows:,} rows stand for {tasks:,} pending tasks of arrays, which never started.")
        if throttled:
            records.notes.append(f"{throttled:,} arrays limit how many tasks run at once (%), which is not simulated.")
        return records


class _Column:
    """The cells of a block by the name of their column; blank ones where there is none."""

    def __init__(self, layout: Layout, fields: list[str]) -> None:
        self.layout = layout
        self.fields = fields
        self.width = layout.separators + 1
        self.blank = [""] * (len(fields) // self.width)

    def has(self, name: str) -> bool:
        return name in self.layout.names

    def at(self, place: int) -> list[str]:
        return self.fields[place :: self.width]

    def __call__(self, *names: str) -> list[str]:
        """Return the first of some columns that is there."""
        place = self.layout.place(*names)
        return self.blank if place is None else self.at(place)


def _read_spans(cells: Sequence[str]) -> Integers:
    """Read spans of time into microseconds, those written 02:03:04 all at once."""
    spans = np.full(len(cells), UNKNOWN)
    sizes = np.fromiter(map(len, cells), np.int64, len(cells))
    clock = np.flatnonzero(sizes == len(_CLOCK[0]))
    if clock.size:
        words = np.array([cells[at] for at in clock.tolist()], f"U{len(_CLOCK[0])}")
        marks = words.view(np.uint32).reshape(-1, len(_CLOCK[0])).astype(np.int64)
        lowest, highest = ([ord(sign) for sign in text] for text in _CLOCK)
        fits = ((marks >= lowest) & (marks <= highest)).all(axis=1)
        digits = marks[fits] - ord("0")
        spans[clock[fits]] = (digits * _CLOCK_SECONDS).sum(axis=1) * MICROSECONDS
    others = np.flatnonzero((spans == UNKNOWN) & (sizes > 0)).tolist()
    spans[others] = compute_all(read_span, [cells[at] for at in others])
    return spans


def _distinct_resources(cells: Sequence[str]) -> tuple[list[str], Integers]:
    """Find what occurs in a column of resources, without energy, which makes almost every cell one of its own."""
    found, codes = distinct(cells)
    if not any("energy=" in cell for cell in found):
        return found, codes
    cut = [",".join(part for part in cell.split(",") if not part.startswith("energy=")) for cell in found]
    found, cut_codes = distinct(cut)
    return found, cut_codes[codes]


def _together(columns: list[tuple[list[Any], Integers]]) -> tuple[list[tuple[Any, ...]], Integers]:
    """Find what occurs in several columns side by side, as ``distinct`` does in one."""
    places = np.zeros(len(columns[0][1]), np.int64)
    for found, codes in columns:
        places = pd.factorize(places * len(found) + codes)[0]
    first = np.unique(places, return_index=True)[1]
    return list(zip(*([found[at] for at in codes[first]] for found, codes in columns), strict=True)), places


def _read_resources(cells: dict[str, str], listed: int) -> Resources:
    """What was allocated counts, then what was requested; who names no GPU anywhere has none."""
    allocated, requested = read_tres(cells.get("alloctres", "")), read_tres(cells.get("reqtres", ""))
    count = {name: read_count(cells.get(name, "")) for name in _AMOUNTS}
    nodes = first_known(count["nnodes"], allocated.nodes, count["allocnodes"], listed, requested.nodes)
    cpus = first_known(
        allocated.cpu_milli,
        _cpus(count["alloccpus"]),
        _cpus(count["ncpus"]),
        requested.cpu_milli,
        _cpus(count["reqcpus"]),
    )
    of_request = requested_memory(cells.get("reqmem", ""), cpus, nodes)
    memory = first_known(allocated.memory_mb, requested.memory_mb, of_request)
    old = [read_gres(cells.get(name, ""), nodes) for name in ("allocgres", "reqgres")]
    gpus = next((each for each in (allocated, requested, *old) if each.gpu_milli != UNKNOWN), NOTHING)
    number = 0 if gpus is NOTHING and not cells.keys().isdisjoint(RESOURCES) else gpus.gpu_milli
    return Resources(number, gpus.gpu_type, cpus, memory, nodes, allocated.shares or requested.shares)


def _cpus(count: int) -> int:
    return count * CPU_MILLI if count > 0 else UNKNOWN
