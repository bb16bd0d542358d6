"""The Slurm log of the MIT Supercloud Dataset (``slurm-log.csv``): the job table of Slurm's database, anonymised.

Times are seconds since 1970 (in the labelled part: since its start), states Slurm's numbers, and resources pairs of
Slurm's number for a resource and an amount: 1 CPUs, 2 memory in MB, 1001 and 1002 GPUs
(https://dcc.mit.edu, https://arxiv.org/abs/2108.02037; numbers: ``tres-mapping.txt`` of the dataset).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.traces.identity import NO_ID, fill_ids
from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.readers.amounts import NEVER, Integers, difference, scale, spread_over_nodes
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.tables import Kind, Table, has_columns, read_table
from analysim.units import CPU_MILLI, GPU_MILLI, MICROSECONDS

_KINDS: dict[str, Kind] = {
    "id_job": "id",
    **dict.fromkeys(("state", "time_submit", "time_start", "time_end"), "number"),
    **dict.fromkeys(("tres_alloc", "tres_req"), "text"),
}
_FURTHER: dict[str, Kind] = {
    **dict.fromkeys(("time_suspended", "timelimit", "nodes_alloc", "cpus_req"), "number"),
    **dict.fromkeys(("id_user", "partition", "nodelist"), "text"),
}
_CPU, _MEMORY, _GPUS = "1", "2", ("1001", "1002")
_UNSET = 18446744073709551614  # and the next one
_LIMITLESS = 4294967294  # and 4294967295: no time limit told, none at all
_RUNNING, _SUSPENDED = 1, 2
_STATES = {
    0: "PENDING",
    _RUNNING: "RUNNING",
    _SUSPENDED: "SUSPENDED",
    3: "COMPLETED",
    4: "CANCELLED",
    5: "FAILED",
    6: "TIMEOUT",
    7: "NODE_FAIL",
    8: "PREEMPTED",
    9: "BOOT_FAIL",
    10: "DEADLINE",
    11: "OUT_OF_MEMORY",
    1024: "REQUEUED",
}
_DATED_FROM = 1_000_000_000  # seconds: September 2001; a log on its own clock does not get there


def _recognises(sample: Sample) -> bool:
    return has_columns(sample.header, *_KINDS, "id_array_job", "nodes_alloc")


def _read(path: Path, options: ReadOptions) -> Log:
    table = read_table(path, {**_KINDS, **_FURTHER}, optional=_FURTHER)
    account = Account(rows=table.rows)
    ids, empty = fill_ids(table.ids("id_job"), table.row)  # before attempts are folded by them
    account.repair(NO_ID, table.row[empty])
    jobs = _Attempts(table, ids).fold(account)
    state = table.scaled("state", 1)[jobs.last]
    dated = bool(np.nanmax(table.number("time_submit"), initial=0) >= _DATED_FROM)
    columns = {
        "job_id": ids[jobs.first].reset_index(drop=True),
        "submit_us": jobs.submit,
        "recorded_start_us": jobs.start,
        "recorded_end_us": jobs.end,
        "duration_us": jobs.duration,
        "estimate_us": _limits(table)[jobs.last],
        "status": [_STATES.get(number, "" if number == UNKNOWN else f"STATE_{number}") for number in state.tolist()],
        "user": table.text("id_user")[jobs.last].reset_index(drop=True),
        "partition": table.text("partition")[jobs.last].reset_index(drop=True),
        "recorded_node": _nodes(table, jobs.last),
        **_resources(table, jobs.last),
    }
    return Log(
        columns,
        jobs.first + 1,
        account,
        dated=dated,
        running=np.isin(state, (_RUNNING, _SUSPENDED)),
        notes=[] if dated else ["Its times are seconds on a clock of their own, not dates."],
    )


@dataclass
class _Jobs:
    """Rows of each job's first and last attempt, and what its attempts make together."""

    first: Integers
    last: Integers
    submit: Integers
    start: Integers
    end: Integers
    duration: Integers


class _Attempts:
    """The rows of the log: a job has another one each time it is queued again, under the same id."""

    def __init__(self, table: Table, ids: pd.Series) -> None:
        self.ids = ids
        self.submit = _moments(table, "time_submit")
        self.start = _moments(table, "time_start")
        self.end = _moments(table, "time_end")
        # Without a node it did not start: what Slurm writes as its start is when it was withdrawn.
        without = table.number("nodes_alloc") == 0
        self.start[without] = UNKNOWN
        self.end[without] = UNKNOWN
        self.suspended = table.amount("time_suspended", MICROSECONDS)

    def fold(self, account: Account) -> _Jobs:
        """Make jobs of attempts: submitted and started with the first, ended with the last.

        The duration of a job of several attempts is what all of them ran, where the last one's is told.
        """
        codes, _ = pd.factorize(self.ids)
        order = np.lexsort((self.submit, codes))  # stable: attempts of one moment stay in the order of the file
        begins = np.flatnonzero(np.append(True, np.diff(codes[order]) != 0))
        first, last = order[begins], order[np.append(begins[1:], codes.size) - 1]
        others = np.setdiff1d(order, first, assume_unique=True)
        account.put_aside("another attempt of a job queued again, folded into its job", np.sort(others) + 1)
        ran = self._ran()
        total = np.add.reduceat(np.where(ran == UNKNOWN, 0, ran)[order], begins)
        starts = np.where(self.start == UNKNOWN, NEVER, self.start)
        start = np.minimum.reduceat(starts[order], begins)
        return _Jobs(
            first,
            last,
            self.submit[first],
            np.where(start == NEVER, UNKNOWN, start),
            self.end[last],
            np.where(ran[last] == UNKNOWN, UNKNOWN, total),
        )

    def _ran(self) -> Integers:
        """What each attempt ran: end - start less the time it was suspended; UNKNOWN where they are not told."""
        elapsed = difference(self.end, self.start)
        # More than the time elapsed is no span but the moment it was suspended at.
        pause = np.where((self.suspended > 0) & (self.suspended <= elapsed), self.suspended, 0)
        return np.where(elapsed == UNKNOWN, UNKNOWN, elapsed - pause)


def _moments(table: Table, name: str) -> Integers:
    """Times in microseconds; 0 and less say that it did not happen (yet), but for a submission at 0."""
    values = table.amount(name, MICROSECONDS)
    values[(values == 0) & (name != "time_submit")] = UNKNOWN
    return values


def _limits(table: Table) -> Integers:
    """Time limits, which the file has in minutes."""
    minutes = table.number("timelimit")
    return scale(np.where((minutes >= 0) & (minutes < _LIMITLESS), minutes, np.nan), 60 * MICROSECONDS)


def _resources(table: Table, rows: Integers) -> dict[str, Integers]:
    """GPUs, CPUs and memory that jobs got; of those that got nothing, what they asked for."""
    got, asked = table.text("tres_alloc")[rows], table.text("tres_req")[rows]
    codes, texts = pd.factorize(got.where(got != "", asked))
    amounts = np.array([_amounts(text) for text in texts], np.float64)[codes]
    gpus = scale(amounts[:, 0], GPU_MILLI)
    cpus = np.where(np.isnan(amounts[:, 1]), table.number("cpus_req")[rows], amounts[:, 1])
    return {
        "gpu_milli": gpus,
        "gpus_per_node": spread_over_nodes(gpus, table.number("nodes_alloc")[rows]),
        "cpu_milli": scale(cpus, CPU_MILLI),
        "memory_mb": scale(amounts[:, 2], 1),
    }


def _amounts(text: str) -> tuple[float, float, float]:
    """GPUs, CPUs and MB in ``1=20,2=170000,1002=2``, NaN where not told; GPUs are 0 where others are listed."""
    found = {number: int(amount) for number, amount in re.findall(r"(\d+)=(\d{1,20})(?!\d)", text)}
    told = {number: float(amount) for number, amount in found.items() if amount < _UNSET}
    gpus = sum(told.get(number, 0.0) for number in _GPUS) if found else math.nan
    return gpus, told.get(_CPU, math.nan), told.get(_MEMORY, math.nan)


def _nodes(table: Table, rows: Integers) -> npt.NDArray[np.object_]:
    """Write the nodes ``['a', 'b']`` of each job as ``a,b``."""
    if "nodelist" not in table.columns:
        return np.full(rows.size, "", object)
    codes, words = table.codes("nodelist")
    names = np.array([",".join(re.findall(r"'([^']*)'", word)) or word.strip("[]") for word in words], object)
    return names[codes[rows]]


FORMAT = Format("supercloud", "MIT Supercloud Dataset (slurm-log.csv)", _recognises, _read)
