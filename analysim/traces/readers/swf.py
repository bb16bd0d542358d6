"""The Standard Workload Format of the Parallel Workloads Archive.

18 fields a line, -1 is unknown, comments begin with a semicolon
(https://www.cs.huji.ac.il/labs/parallel/workload/swf.html). A processor stands for a GPU. Files that we wrote name
users, tenants and partitions in comments of their own, and are dated where they have a UnixStartTime.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite, nan
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import TraceError
from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.readers.amounts import Integers, scale
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.streams import open_text
from analysim.units import GPU_MILLI, MICROSECONDS

_FIELDS = 18
_JOB, _SUBMIT, _WAIT, _RUN, _ALLOCATED = 0, 1, 2, 3, 4
_REQUESTED, _REQUESTED_TIME, _STATUS, _USER, _GROUP = 7, 8, 10, 11, 12
_QUEUE, _PARTITION, _PRECEDING = 14, 15, 16
STATUSES = {0: "FAILED", 1: "COMPLETED", 2: "PARTIAL", 3: "PARTIAL", 4: "PARTIAL", 5: "CANCELLED"}
_LINES_AT_ONCE = 200_000
_HEADER = re.compile(r";\s*(\w+):\s*(.*)")
_NAME = re.compile(r'(\d{1,15}) (".*")')

CONVERSION = "AnalySIM"
"""What the comment ``Conversion`` of files that we wrote says."""

NAMED = {"user": "UserName", "tenant": "TenantName", "partition": "PartitionName"}
"""Comments that name the numbers of a column: ``; UserName: 3 "ada"``, the name written as in JSON."""

PREFIXES = {"user": "user", "tenant": "group", "partition": "partition"}
"""What stands before a number in a column where the number has no name."""

Table = npt.NDArray[np.float64]


@dataclass
class _Header:
    """What comments say: the first one of each key, and the names of numbers by key."""

    values: dict[str, str] = field(default_factory=dict)
    names: dict[str, dict[float, str]] = field(default_factory=lambda: {key: {} for key in NAMED.values()})

    def add(self, comment: str) -> None:
        match = _HEADER.match(comment)
        if match is None:
            return
        self.values.setdefault(match[1], match[2].strip())
        if (name := _NAME.fullmatch(match[2].strip())) and match[1] in self.names:
            try:
                self.names[match[1]][float(name[1])] = json.loads(name[2])
            except ValueError:
                return  # somebody else's comment

    @property
    def start_us(self) -> int | None:
        """Date of time 0, in microseconds since 1970, of a file that we wrote."""
        seconds = self.values.get("UnixStartTime", "")
        ours = self.values.get("Conversion") == CONVERSION and re.fullmatch(r"[0-9]{1,10}", seconds)
        return int(seconds) * MICROSECONDS if ours else None


def _recognises(sample: Sample) -> bool:
    """Lines of 18 numbers or more between blanks, after comments that begin with a semicolon."""
    data = [line.split() for line in sample.lines if line.strip() and not line.lstrip().startswith(";")]
    if not data and not sample.whole:  # comments alone, as far as one can see
        return sample.text.startswith("; Version: 2") and "\n; MaxJobs:" in sample.text
    if not data:
        return any(_HEADER.match(line.lstrip()) for line in sample.lines)
    return all(len(fields) >= _FIELDS and _are_numbers(fields[:_FIELDS]) for fields in data[:20])


def _are_numbers(fields: list[str]) -> bool:
    try:
        for field in fields:
            float(field)
    except ValueError:
        return False
    return True


def _read(path: Path, options: ReadOptions) -> Log:
    header = _Header()
    parts: list[Table] = []
    with open_text(path) as text:
        line = 0
        while lines := list(islice(text, _LINES_AT_ONCE)):
            parts.append(_parse(lines, line, header, path))
            line += len(lines)
    table = np.concatenate(parts) if parts else np.empty((0, _FIELDS))
    if not len(table):
        raise TraceError(f"{path} has no jobs: only comments.", "An SWF file has a line of 18 fields for each job.")
    return _to_log(table, header)


def _parse(lines: list[str], before: int, header: _Header, path: Path) -> Table:
    data = []
    for number, line in enumerate(lines, start=before + 1):
        if line.lstrip().startswith(";"):
            header.add(line.strip())
        elif fields := line.split():
            data.append(_numbers(fields, number, path))
    return np.array(data, np.float64).reshape(-1, _FIELDS)


def _numbers(fields: list[str], line: int, path: Path) -> list[float]:
    try:
        values = list(map(float, fields[:_FIELDS]))
    except ValueError:
        values = [nan]
    if not all(map(isfinite, values)):
        bad = next(field for field in fields if not (_are_numbers([field]) and isfinite(float(field))))
        raise TraceError(f'{path}, line {line}: "{bad[:40]}" is not a number.', "Correct that line.")
    if len(values) < _FIELDS:
        raise TraceError(f"{path}, line {line}: {len(values)} fields where SWF has {_FIELDS}.", "Correct that line.")
    return values


def _to_log(table: Table, header: _Header) -> Log:
    known = table >= 0
    submit, wait, run = (_microseconds(table[:, each]) for each in (_SUBMIT, _WAIT, _RUN))
    submit = np.where(known[:, _SUBMIT], submit + (header.start_us or 0), UNKNOWN)
    start = np.where(known[:, _WAIT] & known[:, _SUBMIT], submit + wait, UNKNOWN)
    has_run = known[:, _RUN]
    processors = np.where(table[:, _ALLOCATED] > 0, table[:, _ALLOCATED], table[:, _REQUESTED])
    columns = {
        "job_id": scale(table[:, _JOB], 1),
        "submit_us": submit,
        "duration_us": np.where(has_run, run, UNKNOWN),
        "gpu_milli": np.where(processors > 0, scale(processors, GPU_MILLI), 0),
        "estimate_us": _microseconds(table[:, _REQUESTED_TIME]),
        "recorded_start_us": start,
        "recorded_end_us": np.where(has_run & (start != UNKNOWN), start + run, UNKNOWN),
        **{
            column: _names(table[:, position], PREFIXES[column], header.names[NAMED[column]])
            for column, position in (("user", _USER), ("tenant", _GROUP), ("partition", _PARTITION))
        },
        "status": pd.Series(table[:, _STATUS]).map(STATUSES).fillna("").astype("str"),
    }
    notes = ["A processor of the log stands for a GPU."]
    if maximum := header.values.get("MaxProcs"):
        notes.append(f"Its machine has {maximum} processors (MaxProcs).")
    following = int((table[:, _PRECEDING] > 0).sum())
    if following:
        notes.append(f"{following:,} jobs follow another one (preceding job number), which is not simulated.")
    row = np.arange(1, len(table) + 1)
    account = Account(rows=len(table))
    account.repair("processors not told: takes none", row[processors <= 0])
    return Log(columns, row, account, dated=header.start_us is not None, notes=notes)


def _microseconds(values: npt.NDArray[np.float64]) -> Integers:
    return scale(np.where(values >= 0, values, np.nan), MICROSECONDS)


def _names(values: npt.NDArray[np.float64], what: str, told: dict[float, str]) -> pd.Series:
    codes, numbers = pd.factorize(values)
    words = [told.get(number, f"{what}{number:.0f}") if number >= 0 else "" for number in numbers]
    return pd.Series(np.array([*words, ""], object)[codes], dtype="str")


FORMAT = Format("swf", "Standard Workload Format (Parallel Workloads Archive)", _recognises, _read)
