"""The rules, the same for every format, by which a log becomes jobs: kept, repaired or set aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import TraceError
from analysim.traces.cells import largest_of
from analysim.traces.identity import NO_ID, fill_ids, tell_apart, to_integers
from analysim.traces.log import TIME_COLUMNS, UNKNOWN, Log
from analysim.traces.moments import date_of
from analysim.traces.readers.amounts import last_moment
from analysim.traces.schema import COLUMNS
from analysim.traces.trace import make_frame
from analysim.units import GPU_MILLI

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NO_SUBMISSION = "no submission told: submitted when it started"
EARLY_START = "started before it was submitted: submitted when it started"
"""Repairs after which the wait that is recorded is none."""


@dataclass(frozen=True)
class Settled:
    """Jobs in the canonical columns, and the date of time 0 where the log is dated."""

    frame: pd.DataFrame
    time_origin: str | None


def settle(log: Log, path: str) -> Settled:
    """Make jobs of a log by the rules of ``docs/reference/formats/index.md``; ``log.account`` is completed.

    A job is set aside when it has no submission and no start, when it never started, when its end or its
    GPUs are not told, when its duration or its GPUs are negative, or when a time is beyond 285 years or its GPUs
    are absurdly many. It is kept, and entered as repaired, when it was running as the log ended (it then runs
    until that end), when it asks for GPUs and a part of one (it gets whole ones), when its submission is missing or
    later than its start (it is submitted as it starts), when it has no id (it gets ``#`` and its row) or one that
    was used before (it gets ``~2``), when its GPUs cannot be spread evenly over its nodes, and when another value
    is too large for our schema (it is left out).
    Raises ``TraceError`` when no job is left.
    """
    jobs = _Jobs(log)
    jobs.mend_submissions()
    jobs.find_durations()
    jobs.check_gpus()
    jobs.check_range()
    if not jobs.kept.any():
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in log.account.counts().items())
        raise TraceError(f"{path} has no job that could be simulated: {reasons}.", "Export more of the log.")
    jobs.settle_ids()
    return jobs.settle()


class _Jobs:
    """The columns of a log while they are settled."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.size = len(log.row)
        self.kept: Mask = np.ones(self.size, bool)
        self.submit = self.integers("submit_us")
        self.start = self.integers("recorded_start_us")
        self.end = self.integers("recorded_end_us")
        self.duration = self.integers("duration_us")
        self.gpus = self.integers("gpu_milli")

    def integers(self, name: str) -> Integers:
        """Return a column as integers of its own, UNKNOWN throughout where the log lacks it."""
        values = self.log.columns.get(name)
        return np.full(self.size, UNKNOWN) if values is None else np.array(values, np.int64)

    def put_aside(self, reason: str, bad: Mask) -> None:
        """Set jobs aside that are still kept."""
        bad = bad & self.kept
        self.log.account.put_aside(reason, self.log.row[bad])
        self.kept &= ~bad

    def repair(self, reason: str, bad: Mask) -> None:
        self.log.account.repair(reason, self.log.row[bad & self.kept])

    def mend_submissions(self) -> None:
        missing = self.submit == UNKNOWN
        started = self.start != UNKNOWN
        self.repair(NO_SUBMISSION, missing & started)
        self.put_aside("no submission and no start told", missing & ~started)
        early = started & ~missing & (self.start < self.submit)
        self.repair(EARLY_START, early)
        self.submit = np.where((missing & started) | early, self.start, self.submit)

    def find_durations(self) -> None:
        """A duration that is told wins over end - start; a job that runs as the log ends runs until then."""
        started, ended = self.start != UNKNOWN, self.end != UNKNOWN
        unknown = self.duration == UNKNOWN
        between = unknown & started & ended
        running = np.zeros(self.size, bool) if self.log.running is None else self.log.running
        until = unknown & started & ~ended & running
        self.repair("still running at the end of the log: runs until then", until)
        self.duration = np.where(between, self.end - self.start, self.duration)
        if until.any():
            self.duration = np.where(until, self.last() - self.start, self.duration)
        unknown &= ~(between | until)
        self.put_aside("never started", unknown & ~started)
        self.put_aside("no end told", unknown)
        self.put_aside("negative duration", self.duration < 0)

    def last(self) -> int:
        """The moment at which the log ends."""
        if self.log.end_us is not None:
            return self.log.end_us
        last, notes = last_moment([self.submit, self.start], [self.end, self.integers("cancel_us")])
        self.log.notes.extend(notes)
        return last

    def check_gpus(self) -> None:
        if self.log.lacks:
            self.gpus[:] = 0
            return
        self.put_aside("GPUs not told", self.gpus == UNKNOWN)
        self.put_aside("negative number of GPUs", self.gpus < 0)
        part = (self.gpus > GPU_MILLI) & (self.gpus % GPU_MILLI != 0)
        self.repair("GPUs and a part of one: gets whole ones", part)
        self.gpus = np.where(part, -(-self.gpus // GPU_MILLI) * GPU_MILLI, self.gpus)

    def check_range(self) -> None:
        """What our schema refuses as too large: a float of seconds cannot hold such times to the microsecond."""
        reason, longest = "a time or duration beyond 285 years", _LARGEST["submit_us"]
        self.put_aside(reason, (self.duration > longest) | (np.abs(self.submit) > longest))
        if self.kept.any():  # times may be negative on a log's own clock
            self.put_aside(reason, self.submit - self.submit[self.kept].min() > longest)
        self.put_aside("an absurd number of GPUs", self.gpus > _LARGEST["gpu_milli"])

    def settle_ids(self) -> None:
        """Ids of jobs that are kept: none empty, none twice; integers if all are, as when written and read again."""
        ids, empty = fill_ids(pd.Series(self.log.columns["job_id"]), self.log.row)
        self.repair(NO_ID, empty)
        ids, again = tell_apart(ids, self.kept)
        self.repair("job id used before: told apart by ~2, ~3", again)
        self.log.columns["job_id"] = to_integers(ids, self.kept)

    def settle(self) -> Settled:
        first = int(self.submit[self.kept].min())
        zero = first if self.log.dated or first < 0 else 0
        settled = {
            "submit_us": self.submit - zero,
            "duration_us": self.duration,
            "gpu_milli": self.gpus,
            "gpus_per_node": self.gangs(),
        }
        count = int(self.kept.sum())
        frame = make_frame({name: self.keep(values) for name, values in self.settled(settled, zero)}, count)
        origin = date_of(zero).isoformat() if self.log.dated else None
        return Settled(frame, origin)

    def settled(self, settled: dict[str, Integers], zero: int) -> Iterator[tuple[str, Any]]:
        """Go through the columns that there are, and let go of those of the log."""
        for column in COLUMNS:
            values = settled.pop(column.target, None)
            if values is None:
                values = self.column(column.target, zero)
            self.log.columns.pop(column.target, None)
            if values is not None:
                yield column.target, values

    def keep(self, values: Any) -> Any:
        """Return the values of jobs that are kept."""
        kept = values[self.kept]
        return kept.reset_index(drop=True) if isinstance(kept, pd.Series) else kept

    def gangs(self) -> Integers:
        each = self.integers("gpus_per_node")
        each[each < 0] = 0
        uneven = (each > 0) & (self.gpus // GPU_MILLI % np.where(each > 0, each, 1) != 0)
        self.repair("GPUs that do not divide by its nodes: spread as they fit", uneven)
        each[uneven | (self.gpus == 0)] = 0
        return each

    def column(self, target: str, zero: int) -> Any:
        values = self.log.columns.get(target)
        if values is None:
            return None
        kind = _KINDS[target]
        if kind == "id":
            return pd.Series(values) if not isinstance(values, pd.Series) else values
        if kind == "text":
            return pd.Series(values, dtype="str")
        if kind == "flag":
            return np.asarray(values, bool)
        return self.numbers(target, np.array(values, np.int64), zero)

    def numbers(self, target: str, integers: Integers, zero: int) -> Integers:
        """Blank what is not told, before time 0, or beyond what our schema holds."""
        unknown = integers == UNKNOWN
        if target in TIME_COLUMNS:
            integers = np.where(unknown, integers, integers - zero)
            unknown |= integers < 0
        bad = np.abs(integers) > _LARGEST[target]
        if _KINDS[target] != "integer":
            bad |= (integers < 0) & (integers != _DEFAULTS[target])
        self.repair(f"{_NAMES[target]} negative or too large: left out", bad & ~unknown)
        integers[unknown | bad] = _DEFAULTS[target]
        return integers


_KINDS = {column.target: column.kind for column in COLUMNS}
_DEFAULTS = {column.target: column.default for column in COLUMNS}
_NAMES = {column.target: column.name for column in COLUMNS}
_LARGEST = {column.target: largest_of(column) for column in COLUMNS}
