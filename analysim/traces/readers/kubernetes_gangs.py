"""Objects of Kubernetes collected as columns, and folded into jobs so that nothing counts twice."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.traces.cells import LARGEST
from analysim.traces.log import UNKNOWN, Account
from analysim.traces.readers.amounts import NEVER, Integers, Mask
from analysim.traces.readers.kubernetes_owners import Shape
from analysim.traces.readers.kubernetes_pods import Told
from analysim.traces.schema import ABSENT
from analysim.units import GPU_MILLI

_COLUMNS = {
    "row": "i",
    "rank": "b",
    "job": "i",
    "slot": "i",
    "submit": "q",
    "start": "q",
    "end": "q",
    "finished": "b",
    "gpus": "q",
    "each": "q",
    "cpus": "q",
    "memory": "q",
    "priority": "q",
}
"""Columns of numbers and how wide they are."""

_WORDS = ("status", "node", "gpu_type", "partition", "priority_class")
"""Columns of text that repeats, kept as the number of a word; 0 is none."""

_MEGABYTE = 1 << 20
_BY_ANY = (("priority", UNKNOWN), ("gpu_type", 0), ("partition", 0))
"""Columns that any object of a job may tell, and what stands where it does not."""

_WORST = ("Succeeded", "Unknown", "Failed", "Pending", "Running")
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

Words = npt.NDArray[np.object_]


class Gangs:
    """What the objects of a file tell, an entry each, until all are read and can be folded.

    ``shapes`` are those of the Jobs by key, ``classes`` the values of the priority classes by name;
    ``unknown_classes`` are those that some job needs and the file does not tell.
    """

    def __init__(self) -> None:
        self.columns = {name: array(width) for name, width in _COLUMNS.items()}
        self.columns |= {name: array("i") for name in _WORDS}
        self.words = {"": 0}
        self.codes: dict[str, int] = {}  # of jobs and slots, both by name
        self.first_of: dict[str, str] = {}  # the key that counts, by the others of an object
        self.loose: list[tuple[int, str, str]] = []  # pods of Jobs: entry, key of the Job, key of the pod
        self.unindexed: set[int] = set()
        self.of_pods: list[tuple[int, list[str]]] = []  # Workloads of pods: entry, the group and the pod it may be
        self.shapes: dict[str, Shape] = {}
        self.classes: dict[str, int] = dict(_SYSTEM)
        self.unknown_classes: set[str] = set()

    def add(self, row: int, told: Told) -> None:
        """Enter what an object tells."""
        key = told.keys[0]
        for other in told.keys[1:]:
            if not other.startswith("pod/") and self.first_of.get(other, other) == other:
                self.first_of[other] = key
        entry = len(self.columns["row"])
        if told.rank > 0 and key.startswith("group/") and told.keys[1:]:
            self.of_pods.append((entry, told.keys))
            key = told.slot
        elif told.rank == 0 and key.startswith("job/"):
            self.loose.append((entry, key, told.keys[-1]))
            if not told.indexed:
                self.unindexed.add(entry)
        gpus, cpus, memory = (UNKNOWN if value is None or value > LARGEST else value for value in told.need)
        slot = self._code(told.slot or told.keys[-1])
        values = [row, told.rank, self._code(key), slot, told.submit, told.start, told.end]
        values += [told.finished, gpus, told.each, cpus, memory, told.priority]
        values += [self.words.setdefault(getattr(told, name), len(self.words)) for name in _WORDS]
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)

    def _code(self, name: str) -> int:
        return self.codes.setdefault(name, len(self.codes))

    def fold(self, account: Account) -> tuple[dict[str, Any], Integers, Mask]:
        """Return the columns of the jobs, their rows and which still run; enter the other rows in ``account``."""
        self._settle_keys()
        table = pd.DataFrame({name: np.array(column) for name, column in self.columns.items()})
        self.columns.clear()
        names, words = np.array([*self.codes, ""], object)[:-1], np.array(list(self.words), object)
        self.codes.clear()
        values = np.array([self.classes.get(word, UNKNOWN) for word in words], np.int64)
        named = values[table["priority_class"]]
        table["priority"] = table["priority"].where(table["priority"] != UNKNOWN, named)
        lacking = table["priority_class"][table["priority"] == UNKNOWN].unique()
        self.unknown_classes = set(words[lacking]) - {""}
        return _fold(table, names, words, account)

    def _settle_keys(self) -> None:
        """Give each object the job it belongs to, now that all are known."""
        job, slot = self.columns["job"], self.columns["slot"]
        attempts: dict[str, list[int]] = {}
        for entry, key, pod in self.loose:
            shape = self.shapes.get(key)
            if (entry in self.unindexed) if shape is None else not shape.is_gang:
                job[entry] = self._code(pod)
                self.first_of.setdefault(key, pod)
            elif shape is not None and entry in self.unindexed:
                attempts.setdefault(key, []).append(entry)
        for entry, (group, pod, *_) in self.of_pods:
            job[entry] = self._code(group if group in self.codes else pod)
        for key, entries in attempts.items():
            self._number_attempts(entries, max(1, self.shapes[key].completions or 1), slot)
        names = list(self.codes)
        settled = np.array([self._code(self._resolved(name)) for name in names], np.int32)
        self.columns["job"] = array("i", settled[np.frombuffer(job, np.int32)].tobytes())
        self.first_of.clear()

    def _resolved(self, key: str) -> str:
        for _ in range(4):  # a Workload's Job's JobSet, and one to spare
            key = self.first_of.get(key, key)
        return key

    def _number_attempts(self, entries: list[int], members: int, slot: array[int]) -> None:
        """Pods without an index fill as many places as there are members; the latest of a place counts."""
        submit = self.columns["submit"]
        entries.sort(key=lambda entry: (submit[entry], entry), reverse=True)
        for place, entry in enumerate(entries):
            slot[entry] = self._code(f"#{place % members}")


def _fold(
    table: pd.DataFrame, names: Words, words: Words, account: Account
) -> tuple[dict[str, Any], Integers, Mask]:
    """Fold a table of objects into jobs, in the order of the first row of each."""
    table = table.sort_values(["job", "rank", "submit", "row"], kind="stable", ignore_index=True)
    told = {name: _first(table, name, absent) for name, absent in _BY_ANY}
    told["submit"] = _unlate(_late(table["submit"]).groupby(table["job"]).min())
    tells = (table["rank"] == table.groupby("job")["rank"].transform("min")).to_numpy()
    account.put_aside("told by the other objects of its job, folded into it", table["row"][~tells])
    others = table[~tells].groupby("job")[["start", "end"]].max()
    table = table[tells]
    earlier = table.duplicated(["job", "slot"], keep="last").to_numpy()
    account.put_aside("an earlier attempt or copy of a pod or object, folded into its job", table["row"][earlier])
    start = _known_or(_started(table), others["start"])
    table = table[~earlier]
    jobs = table.groupby("job", sort=True)
    row = jobs["row"].min()
    account.put_aside("a further pod of a gang, folded into its job", table["row"][~table["row"].isin(row)])
    ended = jobs["finished"].all()
    end = _known_or(jobs["end"].max().where(ended, UNKNOWN), others["end"])
    gpus = _sum(jobs, "gpus")
    order = np.argsort(row.to_numpy(), kind="stable")
    columns = {
        **_names(names[row.index[order]]),
        "submit_us": told["submit"].to_numpy()[order],
        "recorded_start_us": start.to_numpy()[order],
        "recorded_end_us": end.to_numpy()[order],
        "gpu_milli": gpus.to_numpy()[order],
        "gpus_per_node": _gpus_per_node(table).where(gpus > 0, ABSENT).to_numpy()[order],
        "cpu_milli": _sum(jobs, "cpus").to_numpy()[order],
        "memory_mb": _megabytes(_sum(jobs, "memory")).to_numpy()[order],
        "status": words[_statuses(table, words).to_numpy()[order]],
        "recorded_node": _nodes(table, words).to_numpy()[order],
        "priority": told["priority"].to_numpy()[order],
        "gpu_type": words[told["gpu_type"].to_numpy()[order]],
        "partition": words[told["partition"].to_numpy()[order]],
    }
    running = ((end == UNKNOWN) & (start != UNKNOWN) & ~ended).to_numpy()
    return columns, row.to_numpy(np.int64)[order], running[order]


def _names(keys: Words) -> dict[str, Any]:
    """Ids and tenants of jobs by their keys: each is a kind, a namespace and a name."""
    words: dict[str, str] = {}
    names, tenants = np.empty(len(keys), object), np.empty(len(keys), object)
    for place, key in enumerate(keys):
        _, namespace, name = key.split("/", 2)
        names[place] = f"{namespace}/{name}" if namespace else name
        tenants[place] = words.setdefault(namespace, namespace)
    return {"job_id": names, "tenant": tenants}


def _megabytes(sizes: pd.Series) -> pd.Series:
    return (-(-sizes // _MEGABYTE)).where(sizes != UNKNOWN, UNKNOWN)


def _late(values: pd.Series) -> pd.Series:
    return values.where(values != UNKNOWN, NEVER)


def _unlate(values: pd.Series) -> pd.Series:
    return values.where(values != NEVER, UNKNOWN)


def _started(tellers: pd.DataFrame) -> pd.Series:
    """The first moment at which every member had started: UNKNOWN while one never has."""
    first = _late(tellers["start"]).groupby([tellers["job"], tellers["slot"]]).min()
    return _unlate(first.groupby(level="job").max())


def _known_or(values: pd.Series, others: pd.Series) -> pd.Series:
    """Fill in what others tell where the values are UNKNOWN."""
    rest = others.reindex(values.index, fill_value=UNKNOWN)
    return values.where(values != UNKNOWN, rest)


def _sum(jobs: Any, name: str) -> pd.Series:
    """Sum over the members; UNKNOWN where one is."""
    lacking = jobs[name].min() == UNKNOWN
    total: pd.Series = jobs[name].sum()
    return total.where(~lacking, UNKNOWN)


def _gpus_per_node(members: pd.DataFrame) -> pd.Series:
    """GPUs of each pod that has some, where they are equal and no two of them were seen on one node."""
    index = pd.Index(members["job"].unique(), name="job")
    having = members[members["gpus"] > 0]
    jobs = having.groupby("job")["each"]
    least, most = jobs.min(), jobs.max()
    equal = least.where((least == most) & (least % GPU_MILLI == 0), 0) // GPU_MILLI
    placed = having[having["node"] != 0]
    shared = placed["job"][placed.duplicated(["job", "node"])].unique()
    equal[equal.index.isin(shared)] = 0
    return equal.reindex(index, fill_value=0).sort_index()


def _statuses(members: pd.DataFrame, words: Words) -> pd.Series:
    """The state of the members: that of them which says most of the whole."""
    places = np.array([_WORST.index(word) if word in _WORST else -1 for word in words])
    place = places[members["status"]]
    # The last of a job, in the order of its place, says most.
    chosen = pd.DataFrame({"job": members["job"], "status": members["status"], "place": place})
    chosen = chosen.sort_values(["job", "place"], kind="stable").drop_duplicates("job", keep="last")
    return chosen.set_index("job")["status"]


def _first(table: pd.DataFrame, name: str, absent: int) -> pd.Series:
    """The first value that is told, by rank."""
    index = pd.Index(table["job"].unique(), name="job")
    told = table[table[name] != absent].drop_duplicates("job").set_index("job")[name]
    return told.reindex(index, fill_value=absent).sort_index()


def _nodes(members: pd.DataFrame, words: Words) -> pd.Series:
    """The nodes of the members, each once, between commas."""
    index = pd.Index(members["job"].unique(), name="job")
    placed = members[members["node"] != 0].drop_duplicates(["job", "node"])
    several = placed["job"].duplicated(keep=False)
    names = pd.Series(words[placed["node"]], index=placed["job"], dtype=object)
    joined = names[several.to_numpy()].groupby(level="job").agg(",".join)
    found: pd.Series = pd.concat([names[~several.to_numpy()], joined]).reindex(index, fill_value="")
    return found.sort_index()
