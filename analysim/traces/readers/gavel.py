"""Traces of Gavel and of Shockwave, which descends from it: a job a line, fields between tabs, no header.

What the columns are follows from how many there are (``parse_trace`` in ``scheduler/utils.py`` of
https://github.com/stanford-futuredata/gavel and https://github.com/uw-mad-dash/shockwave, over their history). Only
the 12 columns of Shockwave tell durations. The others tell steps: their durations are those steps on V100s, at the
speeds in Gavel's ``simulation_throughputs.json``, where that file lies beside the trace.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from analysim.errors import TraceError
from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.readers.amounts import Floats, scale
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.streams import open_text
from analysim.units import GPU_MILLI, MICROSECONDS

THROUGHPUTS = "simulation_throughputs.json"
"""Steps per second by GPU type, model and number of GPUs."""

_GPU_TYPE = "v100"
_STEPS = ("num_steps_arg", "needs_data_dir", "total_steps")
_OLDEST = ("job_type", "command", "num_steps_arg", "total_steps", "arrival_time", "scale_factor")
_START = ("job_type", "command", "working_directory", *_STEPS, "scale_factor")
_LAYOUTS = {
    6: _OLDEST,
    7: ("job_type", "command", *_STEPS, "arrival_time", "scale_factor"),
    9: ("job_type", "command", *_STEPS, "scale_factor", "priority_weight", "SLO", "arrival_time"),
    10: (*_START, "priority_weight", "SLO", "arrival_time"),
    11: (*_START, "mode", "priority_weight", "SLO", "arrival_time"),
    12: (*_START, "mode", "priority_weight", "SLO", "duration", "arrival_time"),
}
_NUMBERS = ("total_steps", "scale_factor", "priority_weight", "SLO", "duration", "arrival_time")
_KEY = re.compile(r"\('(.*)', (\d{1,9})\)")

Speeds = dict[tuple[str, float], float]


def _recognises(sample: Sample) -> bool:
    rows = [line.split("\t") for line in sample.lines[:20] if line.strip()]
    return bool(rows) and all(len(row) == len(rows[0]) and _is_job(row) for row in rows)


def _is_job(row: list[str]) -> bool:
    """Whether a row has a known number of columns, an option for the steps, and numbers where they belong."""
    cells = dict(zip(_LAYOUTS.get(len(row), ()), row, strict=False))
    numbers = (cells[name] for name in ("total_steps", "scale_factor", "arrival_time") if name in cells)
    return cells.get("num_steps_arg", "").startswith("-") and all(
        re.fullmatch(r"\d+(\.\d+)?", number.strip()) for number in numbers
    )


def _read(path: Path, options: ReadOptions) -> Log:
    jobs = _read_lines(path)
    account = Account(rows=jobs.rows)
    notes: list[str] = []
    durations = scale(jobs.number("duration"), MICROSECONDS)
    kept = np.ones(jobs.rows, bool)
    if not jobs.tell("duration"):
        durations = scale(jobs.number("total_steps") / _find_speeds(jobs, path, notes), MICROSECONDS)
        kept = durations != UNKNOWN
        account.put_aside(f"no speed told for its model and GPUs in {THROUGHPUTS}", np.flatnonzero(~kept) + 1)
    objectives = int((jobs.number("SLO") >= 0).sum())
    if objectives:
        notes.append(f"{objectives:,} jobs have a service level objective (SLO), which is not read.")
    if set(jobs.texts["mode"]) - {"static"}:
        notes.append("Jobs that change their batch size (mode) run for their duration all the same.")
    columns = {
        "job_id": np.arange(jobs.rows),
        "submit_us": scale(jobs.number("arrival_time"), MICROSECONDS),
        "duration_us": durations,
        "gpu_milli": scale(jobs.number("scale_factor"), GPU_MILLI),
        "priority": scale(jobs.number("priority_weight"), 1),
        "model": np.array(jobs.texts["job_type"], object),
    }
    chosen = {name: values[kept] for name, values in columns.items()}
    return Log(chosen, np.arange(1, jobs.rows + 1)[kept], account, dated=False, notes=notes)


class _Jobs:
    """The columns of a trace by name; what its layout lacks is empty."""

    def __init__(self) -> None:
        self.rows = 0
        self.numbers: dict[str, list[float]] = {name: [] for name in _NUMBERS}
        self.texts: dict[str, list[str]] = {"job_type": [], "mode": []}

    def add(self, cells: dict[str, str], place: str) -> None:
        """Add a job from its cells. Raises ``TraceError`` for one that is no number."""
        for name, numbers in self.numbers.items():
            if name in cells:
                numbers.append(_number(cells[name], name, place))
        for name, texts in self.texts.items():
            if name in cells:
                if "\0" in cells[name]:
                    raise TraceError(f"{place}, {name}: the text has a NUL byte.", "Correct that line.")
                texts.append(sys.intern(cells[name].strip()))
        self.rows += 1

    def tell(self, name: str) -> bool:
        return bool(self.numbers[name])

    def number(self, name: str) -> Floats:
        """Return a column of numbers; NaN where the layout lacks it."""
        return np.array(self.numbers[name]) if self.tell(name) else np.full(self.rows, np.nan)


def _read_lines(path: Path) -> _Jobs:
    jobs = _Jobs()
    layout: tuple[str, ...] = ()
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            cells = line.rstrip("\r\n").split("\t")
            layout = layout or _find_layout(path, len(cells))
            if len(cells) != len(layout):
                raise TraceError(
                    f"{path}, line {number}: {len(cells)} fields where {len(layout)} are expected.",
                    "Correct that line; copy or download the file again if it ends there.",
                )
            jobs.add(dict(zip(layout, cells, strict=True)), f"{path}, line {number}")
    if not jobs.rows:
        raise TraceError(f"{path} is empty.", "A trace has a line for each job.")
    return jobs


def _find_layout(path: Path, width: int) -> tuple[str, ...]:
    if width not in _LAYOUTS:
        known = ", ".join(map(str, _LAYOUTS))
        raise TraceError(f"{path}: its first line has {width} fields.", f"Gavel's traces have {known}, between tabs.")
    return _LAYOUTS[width]


def _number(text: str, name: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TraceError(f'{place}, {name}: "{text[:40]}" is not a number.', "Correct that line, or leave it out.")
    return value


def _find_speeds(jobs: _Jobs, path: Path, notes: list[str]) -> Floats:
    """Look the steps per second of each job up; NaN where they are not told."""
    file = path.with_name(THROUGHPUTS)
    if not file.is_file():
        raise TraceError(
            f"{path} tells the steps of its jobs, not how long they take.",
            f"Put Gavel's scheduler/{THROUGHPUTS} beside it (steps per second), or bring a trace of Shockwave.",
        )
    speeds = _read_speeds(file)
    keys = zip(jobs.texts["job_type"], jobs.numbers["scale_factor"], strict=True)
    notes.append(f"Durations are steps divided by the speed on {_GPU_TYPE.upper()}s in {file}.")
    return np.array([speeds.get(key, math.nan) for key in keys])


def _read_speeds(file: Path) -> Speeds:
    """Read steps per second by model and number of GPUs; those of jobs that share GPUs are left out."""
    try:
        with open_text(file) as text:
            models = json.load(text)[_GPU_TYPE]
        found = {_key(name): _speed(entry) for name, entry in models.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TraceError(
            f"{file} is no table of speeds as Gavel writes it ({type(error).__name__}).",
            f"Take {THROUGHPUTS} from the folder scheduler of Gavel's repository.",
        ) from error
    return {key: speed for key, speed in found.items() if 0 < speed < math.inf}


def _key(name: str) -> tuple[str, float]:
    match = _KEY.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, 1)


def _speed(entry: Any) -> float:
    return float(entry["null"])


FORMAT = Format("gavel", "Gavel and Shockwave (jobs between tabs, in steps or seconds)", _recognises, _read)
