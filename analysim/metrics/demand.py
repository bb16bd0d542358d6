"""What jobs ask of one node: the share of each job, and the trace's demand mix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.metrics.integers import (
    Capacity,
    Flags,
    Integers,
    Record,
    to_integers,
    to_labels,
)
from analysim.units import CPU_MILLI, MEGABYTES

COVERED_PERCENT = 95
"""How much of a trace its demand mix covers: Weng et al., "Beware of Fragmentation" (FGD), ATC 2023."""


@dataclass(frozen=True)
class Shares:
    """What jobs ask of one node: GPUs (in ``parts``) from ``least`` to ``most``, and CPUs and memory with each GPU.

    A job that fits on one node asks the same everywhere (least = most). A wider one asks for full
    nodes: ``most`` on the largest eligible node, all there is on a smaller one.
    """

    least: Integers
    most: Integers
    cpu_milli: Integers
    memory_mb: Integers
    gpu_type: npt.NDArray[np.object_]
    parts: int

    def gpus_on(self, size: int) -> Integers:
        """GPUs asked of a node that has ``size`` of them."""
        return np.minimum(np.maximum(size, self.least), self.most)

    @classmethod
    def of(cls, record: Record, jobs: Integers) -> Shares:
        """Work out the shares of some jobs with GPUs; CPUs and memory are 0 where no node models them."""
        capacity, table = record.capacity, record.jobs.table
        gpus = record.jobs.gpus[jobs]
        per_node = to_integers(table["gpus_per_node"], record.parts, 0)[jobs]
        whole = -(-gpus // record.parts)
        codes, types = pd.factorize(to_labels(table["gpu_type"]))
        codes = codes[jobs]
        sizes = [_eligible_sizes(capacity, str(gpu_type)) for gpu_type in types]
        smallest = np.array([low for low, _ in sizes], np.int64)[codes]
        largest = np.array([high for _, high in sizes], np.int64)[codes]
        wide = (per_node <= 0) & (gpus > largest) & (largest > 0)
        narrow = np.where(per_node > 0, per_node, gpus)
        return cls(
            np.where(wide, smallest, narrow),
            np.where(wide, largest, narrow),
            _per_gpu(to_integers(table["cpus"], CPU_MILLI, 0)[jobs], whole, capacity.models_cpus),
            _per_gpu(to_integers(table["memory_gb"], MEGABYTES, 0)[jobs], whole, capacity.models_memory),
            np.asarray(types, np.object_)[codes],
            record.parts,
        )


def accepts(gpu_type: str, node_type: str) -> bool:
    """Tell whether a job that asks for ``gpu_type`` (``A|B``, empty for any) may use a node's GPUs."""
    return not gpu_type or node_type in gpu_type.split("|")


def _eligible_sizes(capacity: Capacity, gpu_type: str) -> tuple[int, int]:
    eligible = [accepts(gpu_type, node_type) for node_type in capacity.gpu_type]
    sizes = capacity.size[np.array(eligible, np.bool_) & (capacity.size > 0)]
    return (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)


def _per_gpu(total: Integers, gpus: Integers, modelled: bool) -> Integers:
    return -(-total // gpus) if modelled else np.zeros(len(total), np.int64)


@dataclass(frozen=True)
class DemandMix:
    """The most frequent shares of a trace and how many jobs have each."""

    shares: Shares
    jobs: Integers

    @classmethod
    def of(cls, record: Record) -> DemandMix:
        """Count the distinct shares of jobs with GPUs, most frequent first (ties: earliest job first).

        Shares are taken until ``COVERED_PERCENT`` of these jobs are covered.
        """
        shares = Shares.of(record, np.flatnonzero(record.jobs.gpus > 0))
        frame = pd.DataFrame({name: value for name, value in vars(shares).items() if name != "parts"})
        counts = frame.groupby(list(frame.columns), sort=False).size()
        order = np.argsort(-counts.to_numpy(), kind="stable")
        jobs = counts.to_numpy()[order].astype(np.int64)
        covered_before = np.cumsum(jobs) - jobs
        taken = covered_before * 100 < COVERED_PERCENT * len(frame)
        kept = counts.index.to_frame(index=False).iloc[order[taken]]
        columns = {name: kept[name].to_numpy(np.int64) for name in frame.columns[:-1]}
        types = kept["gpu_type"].to_numpy(np.object_)
        return cls(Shares(**columns, gpu_type=types, parts=record.parts), jobs[taken])

    def that_fits(
        self, gpu_type: str, size: int, gpus: Integers, cpu_milli: Integers, memory_mb: Integers
    ) -> Integers:
        """Count the jobs of the mix that fit on nodes of a type and size with so much free."""
        need = self.shares.gpus_on(size)
        eligible = np.array([accepts(asked, gpu_type) for asked in self.shares.gpu_type], np.bool_)
        fitting = np.zeros(len(gpus), np.int64)
        order = np.argsort(gpus, kind="stable")
        for there in np.split(order, np.flatnonzero(np.diff(gpus[order])) + 1) if len(gpus) else ():
            small = eligible & (need <= gpus[there[0]])
            fitting[there] = self._that_fit_beside(small, need, cpu_milli[there], memory_mb[there])
        return fitting

    def useless(
        self, kind: tuple[str, int], whole: int, leftovers: tuple[int, ...], cpu_milli: int, memory_mb: int
    ) -> int:
        """Sum, over the jobs of the mix, what of a node's free GPUs each cannot use."""
        gpu_type, size = kind
        need = self.shares.gpus_on(size)
        parts = self.shares.parts
        most = max(leftovers, default=0)
        free = whole + sum(leftovers)
        fits = np.array([accepts(asked, gpu_type) for asked in self.shares.gpu_type], np.bool_)
        count = -(-need // parts)
        fits &= (count * self.shares.cpu_milli <= cpu_milli) & (count * self.shares.memory_mb <= memory_mb)
        fits &= (need <= whole) | ((need < parts) & (need <= most))
        small = sum(np.where(left < np.minimum(need, parts), left, 0) for left in leftovers)
        return int((np.where(fits, small, free) * self.jobs).sum())

    def _that_fit_beside(
        self, small: Flags, need: Integers, cpu_milli: Integers, memory_mb: Integers
    ) -> Integers:
        whole = -(-need // self.shares.parts)
        cpus = (whole * self.shares.cpu_milli)[small]
        memory = (whole * self.shares.memory_mb)[small]
        return weight_below(cpus, memory, self.jobs[small], cpu_milli, memory_mb)


def weight_below(x: Integers, y: Integers, weight: Integers, x_max: Integers, y_max: Integers) -> Integers:
    """Return, for each (x_max, y_max), the weight of the points with x <= x_max and y <= y_max.

    One sweep over the distinct x, which keeps the weight passed so far at each distinct y.
    """
    columns, column = np.unique(x, return_inverse=True)
    heights, height = np.unique(y, return_inverse=True)
    x_rank = np.searchsorted(columns, x_max, side="right")
    y_rank = np.searchsorted(heights, y_max, side="right")
    by_column = np.argsort(column, kind="stable")
    point_bounds = np.searchsorted(column[by_column], np.arange(len(columns) + 1))
    by_rank = np.argsort(x_rank, kind="stable")
    query_bounds = np.searchsorted(x_rank[by_rank], np.arange(len(columns) + 2))
    result = np.zeros(len(x_max), np.int64)
    passed = np.zeros(len(heights) + 1, np.int64)
    for rank in range(len(columns)):
        points = by_column[point_bounds[rank] : point_bounds[rank + 1]]
        np.add.at(passed, height[points] + 1, weight[points])
        queries = by_rank[query_bounds[rank + 1] : query_bounds[rank + 2]]
        if len(queries):
            result[queries] = np.cumsum(passed)[y_rank[queries]]
    return result
