"""The accounting of Slurm as ``sacct --json`` writes it, in the shapes of data_parser v0.0.38 to v0.0.41.

https://slurm.schedmd.com/rest_api.html (slurmdb jobs). The rules are those of ``docs/reference/formats/slurm.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from analysim.errors import TraceError
from analysim.traces.cells import LARGEST
from analysim.traces.log import UNKNOWN, Log
from analysim.traces.readers.fields import at
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.json_records import read_records
from analysim.traces.readers.slurm_jobs import TEXTS, Cache, Records, fold
from analysim.traces.readers.slurm_values import (
    RUNNING,
    bounded,
    count_tasks,
    epoch,
    first_known,
    known_priority,
    read_counts,
    read_nodes,
    read_state,
)
from analysim.units import CPU_MILLI, MICROSECONDS

LACKS = "tres.allocated or tres.requested (sacct --json)"
_AT_ONCE = 10_000
_KINDS = ["cpu", "mem", "node", "gres"]
_MINUTE = 60 * MICROSECONDS

Record = dict[str, Any]


def _recognises(sample: Sample) -> bool:
    """A JSON object with ``jobs``, or a list, of which each has an association and a moment of submission."""
    return sample.begins_json and sample.mentions("association", "submission", "derived_exit_code")


def _read(path: Path, options: ReadOptions) -> Log:
    reader = _Reader(path)
    jobs = read_records(path, "jobs")
    while reader.add(islice(jobs, _AT_ONCE)):
        pass
    if not reader.records.grown:
        raise TraceError(f"{path} has no jobs.", "Export more of the log: sacct --allusers --json --starttime ...")
    return reader.finish()


class _Reader:
    """Collects records from the objects of jobs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = Records(lists_nodes=True)
        self.nodes = Cache(read_nodes)
        self.counts = Cache(read_counts)
        self.tells_resources = False
        self.pending = np.zeros(3, np.int64)  # records of pending tasks, their tasks, records that limit them
        self.early = 0  # records whose start is the moment at which they became eligible

    def add(self, jobs: Iterator[tuple[int, Record]]) -> int:
        """Append the records of some jobs, each of which is let go as it is read; return how many there are."""
        read = [self._read(number, job) for number, job in jobs]
        if not read:
            return 0
        table: dict[str, npt.NDArray[Any]] = {}
        for name in read[0]:
            values = [each[name] for each in read]
            table[name] = self.records.words[name].encode(values) if name in TEXTS else np.array(values, np.int64)
        self.records.add(table)
        return len(read)

    def _read(self, number: int, job: Record) -> Record:
        """Read one job into the columns of ``Records``."""
        if not isinstance(job.get("time"), dict) or not _is_count(job.get("job_id")):
            raise TraceError(
                f"{self.path}, record {number} has no job_id or no time.", "This is no job of sacct --json."
            )
        state = _text(at(job, "state", "current") or job.get("state"))
        association = at(job, "association") or {}
        nodes, listed = self.nodes[_text(job.get("nodes"))]
        self.records.depending += bool(_text(job.get("dependency")))
        return {
            "row": number,
            **self._id(job),
            **self._times(job["time"], read_state(state)),
            **self._resources(job, listed),
            "priority": known_priority(_count(job.get("priority"))),
            "cluster": _text(job.get("cluster")),
            "tenant": _text(job.get("account")) or _text(association.get("account")),
            "user": _text(job.get("user")) or _text(association.get("user")),
            "partition": _text(job.get("partition")),
            "quality": _text(job.get("qos")),
            "status": read_state(state),
            "node": nodes,
        }

    def _id(self, job: Record) -> Record:
        """Take the id from the array or the heterogeneous job that the job belongs to."""
        own: Record = {"number": _count(job["job_id"]), "task": -1, "component": -1, "tasks": ""}
        array, leader = _count(at(job, "array", "job_id")), _count(at(job, "het", "job_id"))
        if array > 0:
            own["number"] = array
            own["task"] = max(-1, _count(at(job, "array", "task_id")))
            tasks = _text(at(job, "array", "task"))
            if own["task"] < 0 and tasks:
                own["tasks"] = f"[{tasks}]"
                throttled = "%" in tasks or _count(at(job, "array", "limits", "max", "running", "tasks")) > 0
                self.pending += (1, count_tasks(tasks), throttled)
        elif leader > 0:
            own["number"] = leader
            own["component"] = max(0, _count(at(job, "het", "job_offset")))
        return own

    def _times(self, time: Record, state: str) -> Record:
        """Read moments (0: none) and spans. Versions 0.0.38 and 0.0.39 write eligible where start should be."""
        names = ("submission", "eligible", "start", "end")
        submit, eligible, start, end = (epoch(_count(time.get(name))) for name in names)
        elapsed, suspended = (_scaled(time.get(name), MICROSECONDS) for name in ("elapsed", "suspended"))
        spent = UNKNOWN if elapsed == UNKNOWN else elapsed + max(suspended, 0)
        if UNKNOWN not in (start, end, spent) and start == eligible and end - start > spent and state not in RUNNING:
            start = end - spent
            self.early += 1
        return {
            "submit": submit,
            "eligible": eligible,
            "start": start,
            "end": end,
            "elapsed": elapsed,
            "suspended": suspended,
            "limit": _scaled(time.get("limit"), _MINUTE),
        }

    def _resources(self, job: Record, listed: int) -> Record:
        tres = job.get("tres")
        tres = tres if isinstance(tres, dict) else {}
        self.tells_resources |= bool(tres)
        allocated, requested = (self.counts[tuple(_pairs(tres.get(name)))] for name in ("allocated", "requested"))
        gpus = allocated if allocated.gpu_milli != UNKNOWN else requested
        self.records.sharing += allocated.shares or requested.shares
        nodes = first_known(_count(job.get("allocation_nodes")), allocated.nodes, listed, requested.nodes)
        cpus = first_known(allocated.cpu_milli, requested.cpu_milli, _scaled(at(job, "required", "CPUs"), CPU_MILLI))
        return {
            "gpu_milli": 0 if gpus.gpu_milli == UNKNOWN and tres else gpus.gpu_milli,
            "gpu_type": gpus.gpu_type,
            "cpu_milli": cpus,
            "memory_mb": first_known(
                allocated.memory_mb, requested.memory_mb, _required_memory(job.get("required"), cpus, nodes)
            ),
            "nodes": nodes,
        }

    def finish(self) -> Log:
        """Fold what was read into jobs."""
        records = self.records
        records.account.rows = records.grown["row"].size
        rows, tasks, throttled = self.pending.tolist()
        if rows:
            records.notes.append(f"{rows:,} records stand for {tasks:,} pending tasks of arrays, which never started.")
        if throttled:
            records.notes.append(f"{throttled:,} arrays limit how many tasks run at once (%), which is not simulated.")
        if self.early:
            records.notes.append(
                f"{self.early:,} records have the moment they became eligible as their start: they start at"
                " end - elapsed (a mistake of Slurm 22.05 and 23.02)."
            )
        return fold(records, "" if self.tells_resources else LACKS)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a text, or the first one of a list: states are written either way."""
    if isinstance(value, list):
        value = value[0] if value else ""
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    """Read a whole number, plain or as {set, infinite, number}; UNKNOWN where it is not set, infinite or none."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    whole = isinstance(value, int) and not isinstance(value, bool)
    return bounded(value) if whole else UNKNOWN


def _is_count(value: Any) -> bool:
    return _count(value) != UNKNOWN


def _scaled(value: Any, unit: int) -> int:
    count = _count(value)
    return count * unit if 0 <= count <= LARGEST // unit else UNKNOWN


def _pairs(resources: Any) -> Iterator[tuple[str, int]]:
    """Turn a list of {type, name, count} into pairs as AllocTRES has them, without those of no account."""
    for each in _list(resources):
        if isinstance(each, dict) and each.get("type") in _KINDS:
            name = _text(each.get("name"))
            yield f"{each['type']}/{name}" if name else each["type"], _count(each.get("count"))


def _required_memory(required: Any, cpus: int, nodes: int) -> int:
    """Read what was required, MB for each CPU or for each node."""
    for name, each in (("memory_per_cpu", cpus // CPU_MILLI if cpus > 0 else 0), ("memory_per_node", max(nodes, 0))):
        memory = _count(at(required, name))
        if memory > 0 and each > 0:
            return bounded(memory * each)
    return UNKNOWN


FORMAT = Format("slurm-json", "Slurm accounting (sacct --json)", _recognises, _read)
