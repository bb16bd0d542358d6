"""Microsoft Philly (2017): the native job log, a JSON list, and lists derived from it.

Native ``cluster_job_log`` (https://github.com/msr-fiddle/philly-traces); ``marwage_jobs.json`` with ``id``,
``num_gpus`` and ``runtime`` in minutes; the table ``timestamp, duration, num_gpus, gpu_time, cluster``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysim.errors import TraceError
from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.moments import read_moments
from analysim.traces.readers.amounts import Integers, difference, last_moment, scale, witness
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.json_records import read_records
from analysim.traces.readers.philly_attempts import (
    Attempts,
    Placement,
    check_dates,
    find_attempts,
    place,
    read_text,
)
from analysim.traces.readers.tables import NO_TEXT, Kind, has_columns, make_ids, read_table
from analysim.traces.readers.zones import name_zone
from analysim.units import GPU_MILLI, MICROSECONDS

_RECORDS_AT_ONCE = 50_000
_LARGEST = 1e15
_ZONE = "America/Los_Angeles"
_RUNS_ON = "still running at the end of the log: runs until then"
_HALVES = "an attempt without start or end: it counts nothing"
_MOMENTS = ("submit", "start", "end", "ran", "last", "halves")

_DERIVED: dict[str, Kind] = {
    "timestamp": "moment",
    "duration": "number",
    "num_gpus": "number",
    "gpu_time": "number",
    "cluster": "text",
}


def _recognises(sample: Sample) -> bool:
    """A JSON list of jobs with attempts; the ids of Philly are called ``jobid``, in the derived list ``id``."""
    if not sample.begins_json or not sample.mentions("attempts", "submitted_time"):
        return False
    return sample.mentions("jobid") or sample.mentions("id", "num_gpus")


@dataclass
class _Jobs:
    """Columns of the jobs read so far; texts that repeat are kept once."""

    ids: list[str] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in ("status", "vc", "user", "node")})
    gpus: list[int] = field(default_factory=list)
    each: list[int] = field(default_factory=list)
    minutes: list[float] = field(default_factory=list)
    moments: list[dict[str, Integers]] = field(default_factory=list)
    naive: int = 0
    words: dict[str, str] = field(default_factory=dict)

    def add(self, records: list[tuple[int, dict[str, Any]]], timezone: tzinfo | None, path: Path) -> None:
        """Add some records: what they say of the job, and its attempts' times as one column."""
        attempts = Attempts()
        submitted: list[str | None] = []
        for number, record in records:
            where = f"{path}, record {number}"
            found = find_attempts(record, where)
            attempts.add(found, where)
            self._add_placement(place(found, where), record, where)
            self.ids.append(_id(record, where))
            submitted.append(read_text(record.get("submitted_time"), "submitted_time", where))
            self.minutes.append(_number(record.get("runtime"), "runtime", where))
            for name in ("status", "vc", "user"):
                self._add_word(name, read_text(record.get(name), name, where) or "")
        submit, naive = read_moments(submitted, timezone)
        numbers = [number for number, _ in records]
        check_dates(submitted, submit, numbers, "submitted_time", path)
        times = attempts.spans(timezone, numbers, path)
        self.naive += naive + attempts.naive
        self.moments.append({"submit": submit, **times})

    def _add_placement(self, placement: Placement, record: dict[str, Any], where: str) -> None:
        gpus = placement.gpus
        if gpus is None:
            told = _number(record.get("num_gpus"), "num_gpus", where)
            gpus = None if np.isnan(told) else round(told)
        self.gpus.append(UNKNOWN if gpus is None else gpus * GPU_MILLI)
        self.each.append(placement.each)
        self._add_word("node", placement.nodes)

    def _add_word(self, name: str, word: str) -> None:
        self.texts[name].append(self.words.setdefault(word, word))

    def column(self, name: str) -> Integers:
        """One column of moments, of all records."""
        return np.concatenate([part.pop(name) for part in self.moments])


def _read(path: Path, options: ReadOptions) -> Log:
    jobs = _Jobs()
    records = read_records(path)
    while piece := list(islice(records, _RECORDS_AT_ONCE)):
        jobs.add(piece, options.timezone, path)
    if not jobs.ids:
        raise TraceError(f"{path} lists no jobs.", "Export more of the log.")
    return _to_log(jobs, options.timezone)


def _to_log(jobs: _Jobs, timezone: tzinfo | None) -> Log:
    submit, start, end, ran, last, halves = map(jobs.column, _MOMENTS)
    gpus = np.array(jobs.gpus, np.int64)
    row = np.arange(1, len(gpus) + 1)
    account = Account(len(row))
    log_end, late = last_moment([submit, start, last], [end])
    running = last != UNKNOWN
    on = running & (start != UNKNOWN) & (gpus != UNKNOWN) & (ran >= 0)
    ran[on] += log_end - last[on]
    account.repair(_RUNS_ON, row[on])
    ran[(start == UNKNOWN) | ((end == UNKNOWN) & ~running)] = UNKNOWN
    account.repair(_HALVES, row[(halves > 0) & (gpus != UNKNOWN) & (ran >= 0)])
    runtime = scale(np.array(jobs.minutes) * 60, MICROSECONDS)
    vc = pd.Series(jobs.texts["vc"], dtype="str")
    columns = {
        "job_id": make_ids(jobs.ids),
        "submit_us": submit,
        "duration_us": ran,
        "gpu_milli": gpus,
        "gpus_per_node": np.array(jobs.each, np.int64),
        "tenant": vc,
        "partition": vc,
        "user": pd.Series(jobs.texts["user"], dtype="str"),
        "status": pd.Series(jobs.texts["status"], dtype="str"),
        "recorded_start_us": start,
        "recorded_end_us": end,
        "recorded_node": pd.Series(jobs.texts["node"], dtype="str"),
    }
    notes = [
        *name_zone(jobs.naive, timezone, "Philly's", _ZONE),
        *witness("runtime", runtime, difference(end, start), "last end - first start"),
        *(late if on.any() else []),
    ]
    return Log(columns, row, account, dated=True, running=running, end_us=log_end, notes=notes)


def _id(record: dict[str, Any], where: str) -> str:
    """Return a job's id; settling names one without."""
    for name in ("jobid", "id"):
        if text := read_text(record.get(name), name, where):
            return text
    return ""


def _number(value: Any, name: str, where: str) -> float:
    if value is None or (isinstance(value, str) and value.strip().lower() in NO_TEXT):
        return np.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(min(max(value, -_LARGEST), _LARGEST))
        if np.isfinite(number):
            return number
    raise TraceError(f"{where}: {name} is {str(value)[:40]!r}, not a number.", "Correct that record, or leave it out.")


def _recognises_derived(sample: Sample) -> bool:
    return has_columns(sample.header, *_DERIVED)


def _read_derived(path: Path, options: ReadOptions) -> Log:
    table = read_table(path, _DERIVED, timezone=options.timezone)
    duration, gpus = table.scaled("duration", MICROSECONDS), table.scaled("num_gpus", GPU_MILLI)
    columns = {
        "job_id": table.row,
        "submit_us": table.moment("timestamp"),
        "duration_us": duration,
        "gpu_milli": gpus,
        "tenant": table.text("cluster"),
        "partition": table.text("cluster"),
    }
    computed = scale(table.number("duration") * table.number("num_gpus"), MICROSECONDS)
    notes = [
        "Jobs are numbered by row: the list has no ids.",
        *name_zone(table.naive["timestamp"], options.timezone, "Philly's", _ZONE),
        *witness("gpu_time", table.scaled("gpu_time", MICROSECONDS), computed, "duration * num_gpus", then=""),
    ]
    return Log(columns, table.row, Account(table.rows), dated=True, notes=notes)


FORMAT = Format("philly", "Microsoft Philly, cluster_job_log (JSON)", _recognises, _read)
DERIVED = Format("philly-csv", "Microsoft Philly, derived table of jobs", _recognises_derived, _read_derived)
