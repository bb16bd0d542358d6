"""Records of Slurm's accounting, whether sacct wrote them as text or as JSON, folded into jobs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.readers.amounts import NEVER, Floats, Integers, Mask, difference, last_moment, spread_over_nodes
from analysim.traces.readers.slurm_values import PENDING, RUNNING
from analysim.units import MICROSECONDS

TEXTS = ("cluster", "gpu_type", "node", "tenant", "user", "partition", "quality", "status", "tasks")
"""Columns of records that hold texts, as numbers in ``Records.words``."""

AGAIN = "a further record of its id (requeued), folded into its job"
COMPONENT = "a component of a heterogeneous job, folded into its job"
_APART = 30 * 86_400 * MICROSECONDS
"""A record submitted so long after the one before of its id is another job: ids are used again."""

_HOUR = 3_600 * MICROSECONDS
_AT_ONCE = 100_000
_KEYS = ("cluster", "number", "task", "component", "tasks")


class Numbered(dict[Any, int]):
    """Numbers for whatever is asked for, in that order."""

    def __missing__(self, key: Any) -> int:
        self[key] = code = len(self)
        return code


class Words(Numbered):
    """Numbers for texts; the empty text is 0."""

    def __init__(self) -> None:
        super().__init__({"": 0})

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        """Turn texts into numbers."""
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))


class Cache(dict[Any, Any]):
    """Results of a function, each computed once."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        super().__init__()
        self.compute = compute

    def __missing__(self, key: Hashable) -> Any:
        self[key] = value = self.compute(key)
        return value


def distinct(cells: Sequence[Any]) -> tuple[list[Any], Integers]:
    """Return what occurs among cells, each once, and for each cell which of that it is."""
    numbers = Numbered()
    codes = np.fromiter(map(numbers.__getitem__, cells), np.int64, len(cells))
    return list(numbers), codes


def compute_all(function: Callable[[Any], int], cells: Sequence[Any]) -> Integers:
    """Compute an integer of each cell, of equal ones once."""
    values, codes = distinct(cells)
    return np.array(list(map(function, values)), np.int64)[codes]


@dataclass
class Records:
    """Records read so far, in compact columns.

    Their columns are ``row``; ``number``, ``task`` and ``component`` of the id (-1: none); the moments
    ``submit``, ``eligible``, ``start`` and ``end``; the spans ``elapsed``, ``suspended`` and ``limit``;
    ``gpu_milli``, ``cpu_milli``, ``memory_mb``, ``nodes``, ``priority``; and ``TEXTS``. What is not told is
    UNKNOWN. ``naive`` counts moments without a zone; ``lists_nodes`` tells that nodes are told at all.
    """

    account: Account = field(default_factory=Account)
    words: dict[str, Words] = field(default_factory=lambda: {name: Words() for name in TEXTS})
    grown: dict[str, _Grown] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    naive: int = 0
    lists_nodes: bool = False
    depending: int = 0
    sharing: int = 0

    def add(self, columns: dict[str, npt.NDArray[Any]]) -> None:
        """Append columns of equal length."""
        for name, values in columns.items():
            if name not in self.grown:
                self.grown[name] = _Grown(values.dtype)
            self.grown[name].append(values)

    def joined(self) -> dict[str, Any]:
        """Return the columns as a whole; the records are given up."""
        return {name: self.grown.pop(name).whole() for name in list(self.grown)}


class _Grown:
    """A column that grows in place: joining its parts in the end would need the memory twice."""

    def __init__(self, kind: npt.DTypeLike) -> None:
        self.values: npt.NDArray[Any] = np.empty(_AT_ONCE, kind)
        self.size = 0

    def append(self, part: npt.NDArray[Any]) -> None:
        if self.size + len(part) > len(self.values):
            self.values.resize(self.size + len(part) + self.size // 2, refcheck=False)
        self.values[self.size : self.size + len(part)] = part
        self.size += len(part)

    def whole(self) -> npt.NDArray[Any]:
        self.values.resize(self.size, refcheck=False)
        return self.values


def fold(records: Records, lacks: str) -> Log:
    """Fold records into jobs by the rules of ``docs/reference/formats/slurm.md``."""
    table = records.joined()
    notes = records.notes
    table["state_running"] = _among(records.words["status"], table["status"], RUNNING)
    _forget_starts(table, records)
    notes += _run_times(table, records)
    end, late = _last_moment(table)
    notes += late
    notes += _hold_until_eligible(table)
    table["gpus_per_node"] = spread_over_nodes(table["gpu_milli"], _floats(table.pop("nodes")))
    for name in ("eligible", "elapsed", "suspended"):
        del table[name]
    table["limit"][table["limit"] == 0] = UNKNOWN
    again = _fold_attempts(table, records.account)
    if again:
        notes.append(f"{again:,} jobs were requeued: the run time is that of the last attempt that started.")
    _fold_components(table, records)
    notes += _count_notes(table, records, lacks)
    return _to_log(table, records, end, lacks)


def _among(words: Words, codes: npt.NDArray[Any], wanted: Iterable[str]) -> Mask:
    return np.isin(codes, [words[word] for word in wanted if word in words])


def _floats(values: Integers) -> Floats:
    return np.where(values == UNKNOWN, np.nan, values.astype(np.float64))


def _plus(first: Integers, second: Integers) -> Integers:
    """Add; UNKNOWN where the first is, and the second counts 0 where it is unknown."""
    return np.where(first == UNKNOWN, UNKNOWN, first + np.where(second == UNKNOWN, 0, second))


def _forget_starts(table: dict[str, Any], records: Records) -> None:
    """A job that was pending, or ended in the moment it "started" without a node, never started."""
    words, status = records.words["status"], table["status"]
    nowhere = table["node"] == 0 if records.lists_nodes else _among(words, status, ["CANCELLED"])
    told = (table["start"] != UNKNOWN) & (table["end"] != UNKNOWN)
    never = _among(words, status, [PENDING]) | (told & (table["start"] == table["end"]) & nowhere)
    never |= (table["start"] == UNKNOWN) & nowhere & ~(table["elapsed"] > 0)
    for name in ("start", "end", "elapsed"):
        table[name][never] = UNKNOWN


def _run_times(table: dict[str, Any], records: Records) -> list[str]:
    """Run time is End - Start, else Elapsed with the time suspended, which are checked against each other."""
    told = _plus(table["elapsed"], table["suspended"])
    ended = ~table["state_running"]
    start, end = table["start"], table["end"]
    missing = (start == UNKNOWN) & (end != UNKNOWN) & (told != UNKNOWN)
    start[missing] = (end - told)[missing]
    missing = ended & (end == UNKNOWN) & (start != UNKNOWN) & (told != UNKNOWN)
    end[missing] = (start + told)[missing]
    between = difference(end, start)
    gap = difference(between, told)
    both = (gap != UNKNOWN) & ended
    gap = np.abs(np.where(both, gap, 0))
    shifted = (np.abs(gap - _HOUR) <= MICROSECONDS) & (records.naive > 0)
    records.account.repair(
        "End - Start is an hour off, as clocks were changed: runs for Elapsed", table["row"][shifted]
    )
    instead = ended & ((between == UNKNOWN) | shifted)
    table["duration"] = np.where(instead, told, np.where(ended, between, UNKNOWN))
    notes = []
    if differing := int(((gap > MICROSECONDS) & ~shifted).sum()):
        notes.append(f"Elapsed is not End - Start in {differing:,} records: the times count.")
    if suspended := int((table["suspended"] > 0).sum()):
        notes.append(f"{suspended:,} records were suspended for a time, which is part of their run time.")
    return notes


def _last_moment(table: dict[str, Any]) -> tuple[int | None, list[str]]:
    """The moment at which the log was taken: the latest in it, or up to which its running jobs had run."""
    running = table["state_running"] & (table["start"] != UNKNOWN) & (table["end"] == UNKNOWN)
    until = _plus(_plus(table["start"][running], table["elapsed"][running]), table["suspended"][running])
    latest, late = last_moment([table["submit"], table["start"]], [table["end"], until])
    return None if latest == UNKNOWN else latest, late if running.any() else []


def _hold_until_eligible(table: dict[str, Any]) -> list[str]:
    """A job is submitted when it became eligible: nothing could have started it before."""
    later = difference(table["eligible"], table["submit"])
    held = (later > MICROSECONDS) & ((table["start"] == UNKNOWN) | (table["eligible"] <= table["start"]))
    table["submit"] = np.where(held, table["eligible"], table["submit"])
    count = int(held.sum())
    if not count:
        return []
    return [
        f"{count:,} records became eligible later than they were submitted (a dependency, --begin or a hold):"
        " they are submitted when they became eligible."
    ]


def _fold_attempts(table: dict[str, Any], account: Account) -> int:
    """Leave one record of each job: its last attempt that started, submitted as the first; count such jobs."""
    places = _repeated(table)
    if not places.size:
        return 0
    part = {name: table[name][places] for name in (*_KEYS, "user", "submit", "start", "end", "row")}
    order = np.lexsort([part[name] for name in ("row", "end", "start", "submit", "user", *_KEYS)])
    part = {name: values[order] for name, values in part.items()}
    same = np.ones(len(order) - 1, bool)
    for name in (*_KEYS, "user"):
        same &= part[name][1:] == part[name][:-1]
    same &= ~(difference(part["submit"][1:], np.maximum(part["submit"], part["end"])[:-1]) > _APART)
    job = np.append(0, np.cumsum(~same))
    # Within a job those that started come last, and the latest of them at the end.
    by_start = np.lexsort((part["row"], part["end"], part["start"], job))
    begins = np.append(0, np.flatnonzero(np.diff(job)) + 1)
    chosen = places[order[by_start[np.append(begins[1:], len(job)) - 1]]]
    first = places[order[np.lexsort((part["row"], job))[begins]]]
    submits = np.where(part["submit"] == UNKNOWN, NEVER, part["submit"])
    submit = np.minimum.reduceat(submits, begins)
    rows = table["row"][first]
    for name in table:
        table[name][first] = table[name][chosen]
    table["submit"][first] = np.where(submit == NEVER, UNKNOWN, submit)
    table["row"][first] = rows
    account.put_aside(AGAIN, np.setdiff1d(part["row"], rows))
    folded = np.setdiff1d(places, first)
    _take(table, np.delete(np.arange(len(table["row"])), folded))
    return int((np.diff(np.append(begins, len(job))) > 1).sum())


def _repeated(table: dict[str, Any]) -> npt.NDArray[np.intp]:
    """Find the records whose number and task occur more than once, which few do."""
    order = np.lexsort((table["task"], table["number"]))
    same = np.ones(max(len(order) - 1, 0), bool)
    for name in ("number", "task"):
        same &= np.diff(table[name][order]) == 0
    return np.sort(order[np.append(same, False) | np.insert(same, 0, False)]) if same.any() else order[:0]


def _take(table: dict[str, Any], places: npt.NDArray[Any]) -> None:
    for name in table:
        table[name] = table[name][places]


def _fold_components(table: dict[str, Any], records: Records) -> None:
    """Make one job of the components of each heterogeneous job, with all their GPUs and nodes."""
    places = np.flatnonzero(table["component"] >= 0)
    if not places.size:
        return
    of_job: dict[tuple[int, int], list[int]] = {}
    for place in places[np.argsort(table["component"][places], kind="stable")].tolist():
        of_job.setdefault((int(table["cluster"][place]), int(table["number"][place])), []).append(place)
    kept = np.ones(len(table["row"]), bool)
    texts = list(records.words["node"])
    for members in of_job.values():
        leader = members[0]
        _merge(table, members, leader)
        lists = [texts[code] for code in table["node"][members] if code]
        table["node"][leader] = records.words["node"][",".join(dict.fromkeys(lists))]
        rows = np.sort(table["row"][members])
        table["row"][leader] = rows[0]
        records.account.put_aside(COMPONENT, rows[1:])
        kept[members[1:]] = False
    table["component"][:] = -1
    _take(table, np.flatnonzero(kept))
    _take(table, np.argsort(table["row"], kind="stable"))


def _merge(table: dict[str, Any], members: list[int], leader: int) -> None:
    for name in ("gpu_milli", "cpu_milli", "memory_mb"):
        values = table[name][members]
        table[name][leader] = UNKNOWN if (values == UNKNOWN).any() else values.sum()
    each = table["gpus_per_node"][members][table["gpu_milli"][members] > 0]
    table["gpus_per_node"][leader] = each[0] if each.size and (each == each[0]).all() else 0
    types = table["gpu_type"][members][table["gpu_milli"][members] > 0]
    table["gpu_type"][leader] = types[0] if types.size and (types == types[0]).all() else 0
    for name, choose in (("submit", np.min), ("start", np.min), ("end", np.max), ("duration", np.max)):
        told = table[name][members][table[name][members] != UNKNOWN]
        table[name][leader] = choose(told) if told.size else UNKNOWN
    table["state_running"][leader] = table["state_running"][members].any()


def _count_notes(table: dict[str, Any], records: Records, lacks: str) -> list[str]:
    notes = []
    if records.depending:
        notes.append(f"{records.depending:,} jobs depend on others, which is not simulated.")
    if records.sharing:
        notes.append(f"{records.sharing:,} jobs share GPUs (gres/shard, gres/mps), which are counted as none.")
    levels = len(np.unique(table["quality"]))
    if levels > 1:
        notes.append(f"The log has {levels:,} levels of QOS, which are not simulated.")
    if not lacks and not (table["gpu_milli"] > 0).any():
        notes.append("No job has GPUs: is gres/gpu among AccountingStorageTRES in slurm.conf?")
    return notes


def _to_log(table: dict[str, Any], records: Records, end: int | None, lacks: str) -> Log:
    gpus = table["gpu_milli"]
    gpus[(gpus != UNKNOWN) & (gpus < 0)] = UNKNOWN
    columns: dict[str, Any] = {"job_id": _ids(table, records.words["tasks"])}
    for target, name in _TARGETS.items():
        columns[target] = table.pop(name)
    for target, name in _TEXT_TARGETS.items():
        words = pd.array(list(records.words[name]), dtype="str")
        columns[target] = pd.Series(words.take(table.pop(name)))
    running = table["state_running"] & (columns["recorded_end_us"] == UNKNOWN)
    return Log(columns, table["row"], records.account, True, running, end, lacks, records.notes)


_TARGETS = {
    "submit_us": "submit",
    "duration_us": "duration",
    "gpu_milli": "gpu_milli",
    "gpus_per_node": "gpus_per_node",
    "cpu_milli": "cpu_milli",
    "memory_mb": "memory_mb",
    "priority": "priority",
    "estimate_us": "limit",
    "recorded_start_us": "start",
    "recorded_end_us": "end",
}
_TEXT_TARGETS = {
    "gpu_type": "gpu_type",
    "tenant": "tenant",
    "user": "user",
    "partition": "partition",
    "status": "status",
    "recorded_node": "node",
}


def _ids(table: dict[str, Any], tasks: Words) -> Any:
    """Write the ids as Slurm does; integers where all are."""
    numbers, task, pending = table["number"], table["task"], table["tasks"]
    if (task < 0).all() and not pending.any():
        return numbers
    texts = list(tasks)
    parts = []
    for begin in range(0, len(numbers), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        cells = zip(numbers[part].tolist(), task[part].tolist(), pending[part].tolist(), strict=True)
        ids = [_id(number, of, texts[code]) for number, of, code in cells]
        parts.append(pd.Series(ids, dtype="str"))
    return pd.concat(parts, ignore_index=True)


def _id(number: int, task: int, pending: str) -> str:
    if task >= 0:
        return f"{number}_{task}"
    return f"{number}_{pending}" if pending else str(number)
