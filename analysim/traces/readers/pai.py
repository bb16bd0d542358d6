"""Alibaba PAI (cluster-trace-gpu-v2020): job, task and instance tables, folded into jobs.

https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import TraceError
from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.readers.amounts import NEVER, Floats, Integers, Mask, difference, scale
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.pai_tables import STATUSES, Folder, find_kind
from analysim.traces.readers.tables import Kind, Table, make_ids
from analysim.units import CPU_MILLI, GPU_MILLI, MEGABYTES, MICROSECONDS

_LACKS = "pai_task_table.csv (plan_gpu)"
_PERCENT = 100
_FOLDED: dict[str, Kind] = {"job_name": "text", "status": "text", "start_time": "number", "end_time": "number"}
_TASK: dict[str, Kind] = {
    **_FOLDED,
    "inst_num": "number",
    "plan_cpu": "number",
    "plan_mem": "number",
    "plan_gpu": "number",
    "gpu_type": "text",
}
_PLACED: dict[str, Kind] = {"job_name": "text", "machine": "text"}


def _recognises(sample: Sample) -> bool:
    return find_kind(sample) != ""


def _read(path: Path, options: ReadOptions) -> Log:
    folder = Folder.of(path)
    tasks = folder.read("task", _TASK)
    if tasks is not None:
        return _read_tasks(folder, tasks)
    if folder.kind == "instance":
        return _count_instances(folder)
    return _count_jobs(folder)


def _table(folder: Folder, kind: str, columns: dict[str, Kind]) -> Table:
    """Read the table that was named, which is there."""
    table = folder.read(kind, columns)
    if table is None:
        raise TraceError(f"{folder.named} is gone.", "Check the path.")
    return table


@dataclass
class _Fold:
    """Rows of tasks or instances folded into jobs, which come in the order of their first rows.

    ``start`` is a job's first start, ``end`` its last end where each row that started has ended; ``running``
    marks jobs of which a row still runs.
    """

    job: npt.NDArray[np.int32]
    names: list[str]
    first: Integers
    start: Integers
    end: Integers
    status: list[str]
    running: Mask
    account: Account

    @property
    def row(self) -> Integers:
        """Number of each job's first row."""
        return self.first + 1


def _fold(table: Table, what: str) -> _Fold:
    job, names = table.codes("job_name")
    size = len(names)
    start, end = _seconds(table, "start_time"), _seconds(table, "end_time")
    started, ended = start != UNKNOWN, end != UNKNOWN
    first_start, last_end = np.full(size, NEVER), np.full(size, UNKNOWN)
    np.minimum.at(first_start, job[started], start[started])
    np.maximum.at(last_end, job[ended], end[ended])
    last_end[job[started & ~ended]] = UNKNOWN
    ranks = _ranks(table)
    rank = np.zeros(size, np.int64)
    np.maximum.at(rank, job, ranks)
    running = np.zeros(size, bool)
    running[job[started & ~ended & (ranks == STATUSES.index("Running") + 1)]] = True
    first = np.full(size, table.rows)
    np.minimum.at(first, job, np.arange(table.rows))
    account = Account(table.rows)
    account.put_aside(f"{what}, folded into its job", np.delete(table.row, first))
    return _Fold(
        job=job,
        names=names,
        first=first,
        start=np.where(first_start == NEVER, UNKNOWN, first_start),
        end=last_end,
        status=[("", *STATUSES)[each] for each in rank],
        running=running,
        account=account,
    )


def _ranks(table: Table) -> Integers:
    """Status of each row as its place in STATUSES, from 1; 0 for another word."""
    codes, words = table.codes("status")
    places = np.array([STATUSES.index(word) + 1 if word in STATUSES else 0 for word in words])
    ranks: Integers = places[codes]
    return ranks


def _seconds(table: Table, name: str) -> Integers:
    """Times in microseconds; 0 is no time, as in the notebook of the trace's authors."""
    times = table.scaled(name, MICROSECONDS)
    return np.where(times <= 0, UNKNOWN, times)


def _read_tasks(folder: Folder, tasks: Table) -> Log:
    fold = _fold(tasks, "a further task")
    count = tasks.number("inst_num")
    untold = np.isnan(count)
    count = np.where(untold, 1.0, count)
    fold.account.repair("instances of a task not told: one", fold.row[np.unique(fold.job[untold])])
    gpus = _total(fold, count, tasks.number("plan_gpu") / _PERCENT)
    cpus = _total(fold, count, tasks.number("plan_cpu") / _PERCENT)
    columns: dict[str, Any] = {
        **_common_columns(fold),
        "gpu_milli": scale(gpus, GPU_MILLI),
        "gpu_type": _gpu_types(fold, tasks),
        "cpu_milli": np.maximum(scale(cpus, CPU_MILLI), 0),
        "memory_mb": np.maximum(scale(_total(fold, count, tasks.number("plan_mem")), MEGABYTES), 0),
    }
    notes = ["Rows are those of pai_task_table; times are on the trace's own clock, right in UTC+8."]
    notes += _add_jobs(folder, fold.names, columns)
    if folder.kind == "instance":
        columns["recorded_node"] = _nodes(_table(folder, "instance", _PLACED), fold.names)
    running = fold.running & (np.asarray(columns["recorded_end_us"]) == UNKNOWN)
    return Log(columns, fold.row, fold.account, dated=False, running=running, notes=notes)


def _common_columns(fold: _Fold) -> dict[str, Any]:
    return {
        "job_id": make_ids(fold.names),
        "submit_us": np.full(len(fold.names), UNKNOWN),
        "recorded_start_us": fold.start,
        "recorded_end_us": fold.end,
        "status": pd.Series(fold.status, dtype="str"),
    }


def _total(fold: _Fold, count: Floats, each: Floats) -> Floats:
    """Sum what a task's instances ask for over the tasks of each job; what is not told is none."""
    totals = np.bincount(fold.job, count * np.nan_to_num(each), len(fold.names))
    return totals.astype(np.float64)


def _gpu_types(fold: _Fold, tasks: Table) -> pd.Series:
    """GPU type of the first task of each job that asks for GPUs."""
    asks = np.flatnonzero((tasks.number("plan_gpu") > 0) & (tasks.number("inst_num") != 0))
    first = np.full(len(fold.names), tasks.rows)
    np.minimum.at(first, fold.job[asks], asks)
    codes, words = tasks.codes("gpu_type")
    chosen = np.append(codes, len(words))[first]
    return pd.Series(np.array([*words, ""], object)[chosen], dtype="str")


def _add_jobs(folder: Folder, names: list[str], columns: dict[str, Any]) -> list[str]:
    """Add what the job table tells: submission, user, status, an end that no task tells, and the model."""
    tagged = folder.find("group_tag") is not None
    kinds: dict[str, Kind] = {**_FOLDED, "user": "text", "job_name": "id"}
    jobs = folder.read("job", {**kinds, "inst_id": "id"} if tagged else kinds)
    if jobs is None:
        return ["pai_job_table is not at hand: jobs are submitted when they start, and users are not told."]
    found, without = _find_rows(jobs.columns["job_name"], names)
    columns["submit_us"] = _pick(_seconds(jobs, "start_time"), found)
    end = columns["recorded_end_us"]
    columns["recorded_end_us"] = np.where(end == UNKNOWN, _pick(_seconds(jobs, "end_time"), found), end)
    columns["user"] = _pick_text(jobs.text("user"), found)
    status = _pick_text(jobs.text("status"), found)
    columns["status"] = status.where(status != "", columns["status"])
    if tagged:
        columns["model"] = _workloads(folder, jobs, found)
    return [f"{without:,} jobs of pai_job_table are in no row read, and so not in the trace."] if without else []


def _find_rows(keys: list[str], wanted: list[str]) -> tuple[Integers, int]:
    """Return the first row of each wanted key, -1 where it is in none, and how many keys are not wanted."""
    index = pd.Index(keys, dtype=object)
    firsts = np.flatnonzero(~index.duplicated())
    places = index[firsts].get_indexer(pd.Index(wanted, dtype=object))
    found = np.where(places < 0, -1, firsts[places])
    return found, int(firsts.size - (places >= 0).sum())


def _pick(values: Integers, rows: Integers) -> Integers:
    return np.append(values, UNKNOWN)[rows]


def _pick_text(texts: pd.Series, rows: Integers) -> pd.Series:
    return pd.Series(np.append(texts.to_numpy(object), "")[rows], dtype="str")


def _workloads(folder: Folder, jobs: Table, found: Integers) -> pd.Series:
    """What each job trains, by the group tag of its instances."""
    tags = folder.read("group_tag", {"inst_id": "id", "workload": "text"})
    if tags is None:
        return pd.Series("", index=pd.RangeIndex(len(found)), dtype="str")
    workloads = tags.text("workload")
    told = np.flatnonzero((workloads != "").to_numpy())
    ids = [tags.columns["inst_id"][row] for row in told]
    places, _ = _find_rows(ids, jobs.columns["inst_id"])
    return _pick_text(_pick_text(workloads.iloc[told], places), found)


def _nodes(table: Table, names: list[str]) -> pd.Series:
    """Machines of each job's instances, separated by commas, in the order in which the table first has them."""
    nodes = np.full(len(names), "", object)
    (job, jobs), (machine, machines) = table.codes("job_name"), table.codes("machine")
    place = pd.Index(names, dtype=object).get_indexer(pd.Index(jobs, dtype=object))
    told = (place >= 0)[job] & (np.array(machines, object) != "")[machine]
    # One number for each pair of job and machine, worked on in place: there are millions of instances.
    pairs = place[job[told]]
    pairs *= len(machines)
    pairs += machine[told]
    pairs.sort()
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    owners = pairs // max(len(machines), 1)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    words = np.array(machines, object)[pairs % max(len(machines), 1)]
    for begin, end in pairwise(np.append(starts, pairs.size)):
        nodes[owners[begin]] = ",".join(words[begin:end])
    return pd.Series(nodes, dtype="str")


def _count_instances(folder: Folder) -> Log:
    """The instance table alone tells jobs, nodes and times, not GPUs: every job is kept to be counted."""
    instances = _table(folder, "instance", {**_FOLDED, **_PLACED})
    fold = _fold(instances, "a further instance")
    instances.keep(*_PLACED)
    columns = _common_columns(fold)
    notes = ["Rows are those of pai_instance_table; times are on the trace's own clock, right in UTC+8."]
    notes += _add_jobs(folder, fold.names, columns)
    columns["recorded_node"] = _nodes(instances, fold.names)
    return _counted(Log(columns, fold.row, fold.account, dated=False, running=fold.running, notes=notes))


def _count_jobs(folder: Folder) -> Log:
    """The job table alone tells submissions and ends, not GPUs and starts: every job is kept to be counted."""
    jobs = _table(folder, "job", {**_FOLDED, "user": "text", "job_name": "id"})
    submit, end = _seconds(jobs, "start_time"), _seconds(jobs, "end_time")
    columns = {
        "job_id": jobs.ids("job_name"),
        "submit_us": submit,
        "duration_us": difference(end, submit),
        "recorded_end_us": end,
        "user": jobs.text("user"),
        "status": jobs.text("status"),
    }
    notes = ["pai_task_table is not at hand: jobs run from submission to end, as when they start is not told."]
    return _counted(Log(columns, jobs.row, Account(jobs.rows), dated=False, notes=notes))


def _counted(log: Log) -> Log:
    """Keep every job of a log that can only be described: what lacks a time is counted without a run time."""
    size = len(log.row)
    unknown = np.full(size, UNKNOWN)
    submit, start, end = (
        np.asarray(log.columns.get(name, unknown)) for name in ("submit_us", "recorded_start_us", "recorded_end_us")
    )
    duration = np.asarray(log.columns.get("duration_us", unknown))
    running = np.zeros(size, bool) if log.running is None else log.running & (end == UNKNOWN)
    timeless = (submit == UNKNOWN) & (start == UNKNOWN)
    ends = timeless & (end != UNKNOWN)
    lost = timeless & (end == UNKNOWN)
    short = (duration == UNKNOWN) & ~((start != UNKNOWN) & ((end != UNKNOWN) | running))
    log.account.repair("no start told: submitted when it ended", log.row[ends])
    log.account.repair("no time told: submitted as the log begins", log.row[lost])
    log.account.repair("no run time told: counted without one", log.row[short])
    told = np.concatenate([each[each != UNKNOWN] for each in (submit, start, end)])
    begin = int(told.min()) if told.size else 0
    log.columns["submit_us"] = np.where(ends, end, np.where(lost, begin, submit))
    log.columns["duration_us"] = np.where(short, 0, duration)
    log.running = running
    log.lacks = _LACKS
    return log


FORMAT = Format("pai", "Alibaba PAI (cluster-trace-gpu-v2020), job, task and instance tables", _recognises, _read)
