"""The tables of a run as arrays of integers, so that every integral over time is exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import InvariantError
from analysim.tables import HOLD, RUN, SEGMENT_KINDS, STATES, SUSPEND, RunTables
from analysim.units import CPU_MILLI, GPU_MILLI, MEGABYTES, MICROSECONDS

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

NEVER = int(np.iinfo(np.int64).min)
"""The time of what did not happen."""

UNBOUNDED = 1 << 60
"""CPUs or memory of a node that does not model them: everything fits."""

NOWHERE = -1
"""The node of a row that takes nothing which the cluster models."""

COMPLETED, KILLED, CANCELLED, REJECTED, UNFINISHED = range(len(STATES))


def to_integers(column: pd.Series, scale: int, missing: int) -> Integers:
    """Scale a column and round it to integers; NaN becomes ``missing``."""
    values = column.to_numpy(np.float64, na_value=np.nan)
    absent = np.isnan(values)
    scaled: Integers = np.rint(np.where(absent, 0.0, values) * scale).astype(np.int64)
    scaled[absent] = missing
    return scaled


def to_microseconds(column: pd.Series) -> Integers:
    """Turn seconds into microseconds; NaN becomes ``NEVER``."""
    return to_integers(column, MICROSECONDS, NEVER)


def to_labels(column: pd.Series) -> pd.Series:
    """Read a column of names; empty text where it is absent, as an empty cell of a CSV file is."""
    return column.astype(object).where(column.notna(), "")


def exact_sum(values: Integers) -> int:
    """Sum 64-bit integers without overflow."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFF_FFFF).sum())


@dataclass(frozen=True)
class Jobs:
    """The columns of ``jobs`` that every metric needs, one entry a job in rank order; ``gpus`` in parts.

    ``state`` is an index into ``STATES``; ``end_us`` is ``NEVER`` for rejected and unfinished jobs.
    """

    table: pd.DataFrame
    submit_us: Integers
    end_us: Integers
    duration_us: Integers
    gpus: Integers
    state: npt.NDArray[np.int8]

    @classmethod
    def of(cls, table: pd.DataFrame, parts: int) -> Jobs:
        """Read the table ``jobs``, GPUs in so many parts."""
        return cls(
            table,
            to_microseconds(table["submit_time_s"]),
            to_microseconds(table["end_time_s"]),
            to_microseconds(table["duration_s"]),
            to_integers(table["num_gpus"], parts, 0),
            pd.Categorical(table["state"], categories=list(STATES)).codes,
        )

    @property
    def elastic(self) -> Flags:
        """Which jobs may have run on other numbers of GPUs than they asked for; none in tables that do not tell."""
        if "max_gpus" not in self.table:
            return np.zeros(len(self), np.bool_)
        asked = to_integers(self.table["num_gpus"], 1, 0)
        bounds = (to_integers(self.table[name], 1, 0) for name in ("min_gpus", "max_gpus"))
        return np.asarray(np.any([(bound > 0) & (bound != asked) for bound in bounds], axis=0))

    def __len__(self) -> int:
        return len(self.submit_us)


@dataclass(frozen=True)
class Rows:
    """``segments``: which job (rank) held how many GPUs of which node, from when to when.

    ``kind`` is an index into ``SEGMENT_KINDS``. Rows of no length are left out; ``kept`` are the others.
    """

    table: pd.DataFrame
    kept: Integers | slice
    job: Integers
    node: Integers
    start_us: Integers
    end_us: Integers
    gpus: Integers
    kind: npt.NDArray[np.int8]

    def work_gpus(self, jobs: Jobs) -> Integers:
        """GPUs by which the progress of each row counts: those that its job asks for, once an interval.

        For a job on the GPUs it asks for these are the row's own; for an elastic one on others, the first node row
        of the interval has them all, so that work is the same on whatever GPUs it is done.
        """
        elastic = jobs.elastic
        if not elastic.any():
            return self.gpus
        chosen = np.flatnonzero(elastic[self.job] & (self.kind == RUN))
        order = chosen[np.lexsort((self.start_us[chosen], self.job[chosen]))]
        first = np.flatnonzero(
            (np.diff(self.job[order], prepend=-1) != 0) | (np.diff(self.start_us[order], prepend=NEVER) != 0)
        )
        counted = self.gpus.copy()
        counted[order] = 0
        counted[order[first]] = jobs.gpus[self.job[order[first]]]
        same = np.add.reduceat(self.gpus[order], first) == counted[order[first]] if len(first) else first
        own = order[np.repeat(same, np.diff(first, append=len(order)))]
        counted[own] = self.gpus[own]
        return counted

    @property
    def elapsed_us(self) -> Integers:
        """Length of each row."""
        return self.end_us - self.start_us

    @property
    def active(self) -> Flags:
        """Rows in which the job has started: neither reserved nor suspended."""
        return np.asarray((self.kind != HOLD) & (self.kind != SUSPEND))

    def read(self, column: str, scale: int) -> Integers:
        """Read a further column in parts of ``scale``; 0 where it is absent."""
        return to_integers(self.table[column], scale, 0)[self.kept]

    @classmethod
    def of(cls, table: pd.DataFrame, jobs: Jobs, nodes: pd.Index, parts: int) -> Rows:
        """Read the table ``segments``, GPUs in so many parts."""
        start_us, end_us = to_microseconds(table["start_s"]), to_microseconds(table["end_s"])
        gpus = to_integers(table["gpus"], parts, 0)
        job = pd.Index(jobs.table["job_id"]).get_indexer(pd.Index(table["job_id"])).astype(np.int64)
        node = nodes.get_indexer(pd.Index(table["node"])).astype(np.int64)
        unknown = (job < 0) | ((node < 0) & (gpus > 0))
        if unknown.any():
            first = table.iloc[int(np.argmax(unknown))]
            raise InvariantError(
                f"segments has job {first['job_id']} on node {first['node']!r}, which jobs or capacity lack.",
                "Take all tables from the same run folder.",
            )
        lasting = end_us > start_us
        kept: Integers | slice = slice(None) if lasting.all() else np.flatnonzero(lasting)
        kind = pd.Categorical(table["kind"], categories=list(SEGMENT_KINDS)).codes
        return cls(table, kept, job[kept], node[kept], start_us[kept], end_us[kept], gpus[kept], kind[kept])


@dataclass(frozen=True)
class Capacity:
    """``capacity`` as changes: at ``time_us`` a node's GPUs, CPUs and memory change by these amounts.

    ``gpu_type`` and ``size`` (the most GPUs it ever has) are per node, in the order of the table;
    ``models_cpus`` and ``models_memory`` tell whether any node states them.
    """

    names: pd.Index
    gpu_type: npt.NDArray[np.object_]
    size: Integers
    time_us: Integers
    node: Integers
    gpus: Integers
    cpu_milli: Integers
    memory_mb: Integers
    models_cpus: bool
    models_memory: bool

    @classmethod
    def of(cls, table: pd.DataFrame, parts: int) -> Capacity:
        """Read the table ``capacity``, GPUs in so many parts."""
        codes, names = pd.factorize(table["node"])
        order = np.argsort(codes, kind="stable")
        node = codes[order].astype(np.int64)
        gpus = to_integers(table["gpus"], parts, 0)[order]
        size = np.zeros(len(names), np.int64)
        np.maximum.at(size, node, gpus)
        first = np.ones(len(node), np.bool_)
        first[1:] = node[1:] != node[:-1]

        def changes(values: Integers) -> Integers:
            return np.where(first, values, values - np.roll(values, 1))

        return cls(
            pd.Index(names),
            to_labels(table["gpu_type"]).to_numpy(np.object_)[order][first],
            size,
            to_microseconds(table["time_s"])[order],
            node,
            changes(gpus),
            changes(to_integers(table["cpus"], CPU_MILLI, UNBOUNDED)[order]),
            changes(to_integers(table["memory_gb"], MEGABYTES, UNBOUNDED)[order]),
            bool(table["cpus"].notna().any()),
            bool(table["memory_gb"].notna().any()),
        )


@dataclass(frozen=True)
class Record:
    """All that a run recorded and metrics need, in integers.

    GPUs are counted in ``parts`` of one: 1 where all jobs take whole GPUs, else as many as divide every share.
    """

    jobs: Jobs
    rows: Rows
    capacity: Capacity
    parts: int

    @classmethod
    def of(cls, tables: RunTables) -> Record:
        """Read the tables of a run. Raises ``InvariantError`` when they do not belong together."""
        shares = to_integers(tables.jobs["num_gpus"], GPU_MILLI, 0) % GPU_MILLI
        parts = GPU_MILLI // int(np.gcd.reduce(shares, initial=GPU_MILLI))
        jobs = Jobs.of(tables.jobs, parts)
        capacity = Capacity.of(tables.capacity, parts)
        return cls(jobs, Rows.of(tables.segments, jobs, capacity.names, parts), capacity, parts)

    @property
    def first_submit_us(self) -> int:
        """When the first job was submitted; 0 without jobs."""
        return int(self.jobs.submit_us.min()) if len(self.jobs) else 0

    @property
    def last_end_us(self) -> int:
        """When the last job ended or let go of a GPU; the first submit when nothing did."""
        ends = (self.jobs.end_us.max(initial=NEVER), self.rows.end_us.max(initial=NEVER))
        return max(self.first_submit_us, *(int(end) for end in ends))
