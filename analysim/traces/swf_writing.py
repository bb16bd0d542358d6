"""Write a trace in the Standard Workload Format, and say what it cannot hold."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import UserError
from analysim.traces.moments import microseconds_of
from analysim.traces.readers.swf import CONVERSION, NAMED, PREFIXES, STATUSES
from analysim.traces.schema import COLUMNS
from analysim.traces.trace import Trace
from analysim.units import GPU_MILLI, MICROSECONDS
from analysim.whole_file import write_whole

_LARGEST_ID = 1 << 53  # what readers that take fields for floats tell apart
_MEANT = {
    "gpus_per_node": "GPUs on each node",
    "gpu_type": "GPU types",
    "cpus": "CPUs",
    "memory_gb": "memory",
    "priority": "priorities",
    "preemptible": "which jobs may not be stopped",
    "cancel_time": "when jobs are withdrawn",
    "checkpoint_s": "costs of saving state",
    "restart_s": "costs of loading state",
    "features": "features of nodes",
    "deadline": "deadlines",
    "min_gpus": "the fewest GPUs of elastic jobs",
    "max_gpus": "the most GPUs of elastic jobs",
    "throughput": "how elastic jobs scale",
    "topology_required": "required levels of the tree",
    "topology_preferred": "preferred levels of the tree",
    "model": "models",
    "node": "recorded nodes",
}
"""Columns that SWF has no field for, and what they say."""

Integers = npt.NDArray[np.int64]


def write_swf(trace: Trace, path: str | Path) -> list[str]:
    """Write a trace as ``.swf`` or ``.swf.gz`` and return lines about what the file could not hold of it.

    Times are whole seconds, rounded where they must be; a processor stands for a GPU; users, tenants (groups)
    and partitions are numbers whose names stand in comments, which our reader takes them from. Raises
    ``UserError`` for another suffix, ``AnalysimError`` where it cannot be written. Format:
    https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
    """
    target = Path(path)
    if not target.name.endswith((".swf", ".swf.gz")):
        raise UserError(f"{path}: SWF files end in .swf.", "End the name in .swf or .swf.gz.")
    writing = _Writing(trace)
    data = writing.text().encode()
    write_whole(target, gzip.compress(data, mtime=0) if target.name.endswith(".gz") else data)
    return writing.losses


class _Writing:
    """The lines of the file; what could not be held gathers in ``losses``."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.frame = trace.frame
        self.losses: list[str] = []
        self.names: list[str] = []
        self.origin_us = microseconds_of(trace.time_origin) if trace.time_origin else None
        self.fractions = 0

    def text(self) -> str:
        jobs = self.jobs().to_csv(sep=" ", header=False, index=False, lineterminator="\n")
        self.tell_columns()
        return "\n".join([*self.header(), *self.names]) + "\n" + jobs

    def header(self) -> list[str]:
        source = " ".join(self.trace.name.split())
        lines = [
            "; Version: 2.2",
            f"; Computer: {source}",
            f"; Conversion: {CONVERSION}",
            f"; MaxJobs: {len(self.frame)}",
            f"; MaxRecords: {len(self.frame)}",
            "; Note: A processor is a GPU.",
        ]
        if self.origin_us is not None:
            lines += [f"; UnixStartTime: {self.origin_us // MICROSECONDS}", "; TimeZoneString: UTC"]
        return lines

    def jobs(self) -> pd.DataFrame:
        """The 18 fields of each job."""
        frame, size = self.frame, len(self.frame)
        submit = self.moments("submit_us")
        gpus = -(-frame["gpu_milli"].to_numpy() // GPU_MILLI)  # processors are whole
        partition = self.numbers("partition")
        unknown = np.full(size, -1)
        fields = {
            "job": self.ids(),
            "submit": submit,
            "wait": self.waits(submit),
            "run": self.spans("duration_us"),
            "allocated": gpus,
            "used_cpu": unknown,
            "used_memory": unknown,
            "requested": gpus,
            "requested_time": self.spans("estimate_us"),
            "requested_memory": unknown,
            "status": self.statuses(),
            "user": self.numbers("user"),
            "group": self.numbers("tenant"),
            "executable": unknown,
            "queue": partition,
            "partition": partition,
            "preceding": unknown,
            "think_time": unknown,
        }
        if self.fractions:
            self.losses.insert(0, f"{self.fractions:,} times are rounded to whole seconds.")
        return pd.DataFrame(fields, copy=False)

    def ids(self) -> Integers:
        ids = self.frame["job_id"]
        if ids.dtype == np.int64 and bool(((ids >= 0) & (ids <= _LARGEST_ID)).all()):
            return ids.to_numpy()
        self.losses.append("Job ids are no numbers that SWF can hold: jobs are numbered from 1.")
        return np.arange(1, len(ids) + 1)

    def moments(self, name: str) -> Integers:
        """Return moments in seconds of the file's clock, -1 where there are none."""
        return self.round(name, 0 if self.origin_us is None else self.origin_us % MICROSECONDS)

    def spans(self, name: str) -> Integers:
        return self.round(name, 0)

    def round(self, name: str, shift: int) -> Integers:
        values = self.frame[name].to_numpy()
        known = values >= 0
        moved = values + shift
        self.fractions += int((known & (moved % MICROSECONDS != 0)).sum())
        return np.where(known, (moved + MICROSECONDS // 2) // MICROSECONDS, -1)

    def waits(self, submit: Integers) -> Integers:
        """Return recorded waits; recorded ends are not written, being start + run time to SWF."""
        start = self.moments("recorded_start_us")
        early = (start >= 0) & (start < submit)
        if early.any():
            self.losses.append(f"{int(early.sum()):,} recorded starts before the submission are left out.")
        known = (start >= 0) & ~early
        frame = self.frame
        starts, ends = frame["recorded_start_us"].to_numpy(), frame["recorded_end_us"].to_numpy()
        meant = np.where(known, starts + frame["duration_us"].to_numpy(), -1)
        others = int(((ends >= 0) & (ends != meant)).sum())
        if others:
            self.losses.append(f"{others:,} recorded ends are left out: an end is start + run time in SWF.")
        return np.where(known, start - submit, -1)

    def statuses(self) -> Integers:
        numbers = {word: number for number, word in reversed(STATUSES.items())}
        words = self.frame["status"]
        lost = sorted(set(words.unique()) - set(numbers) - {""})
        if lost:
            shown = ", ".join(lost[:5]) + (" and others" if len(lost) > 5 else "")
            self.losses.append(f"SWF has no such status, written as unknown: {shown}.")
        return np.asarray(words.map(numbers).fillna(-1), np.int64)

    def numbers(self, name: str) -> Integers:
        """Return names as numbers: those that they are made of (``user7``), else counted and told in comments."""
        codes, words = pd.factorize(self.frame[name])
        made = re.compile(PREFIXES[name] + r"(0|[1-9]\d{0,14})")
        matches = [made.fullmatch(word) for word in words]
        if all(match or not word for match, word in zip(matches, words, strict=True)):
            numbers = [int(match[1]) if match else -1 for match in matches]
        else:
            counted = iter(range(1, len(words) + 1))
            numbers = [next(counted) if word else -1 for word in words]
            named = [(number, word) for number, word in zip(numbers, words, strict=True) if word]
            self.names += [f"; {NAMED[name]}: {number} {json.dumps(word)}" for number, word in named]
            self.losses.append(f"Names of {name}s are numbers; the comments {NAMED[name]} tell which.")
        return np.array(numbers, np.int64)[codes] if len(words) else np.empty(0, np.int64)

    def tell_columns(self) -> None:
        """Name the columns that hold something which SWF has no field for."""
        said = [
            _MEANT[column.name]
            for column in COLUMNS
            if column.name in _MEANT and bool((self.frame[column.target] != column.default).any())
        ]
        if bool((self.frame["gpu_milli"] % GPU_MILLI != 0).any()):
            said.append("shares of GPUs, which become whole ones")
        if said:
            self.losses.append(f"SWF has no field for: {', '.join(said)}.")
