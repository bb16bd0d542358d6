"""How much of a node's idle GPUs a random pod of the workload cannot use: the measure F_n of FGD.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX
ATC 2023, section 4; details as in github.com/hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysim.cluster.topology import Topology
from analysim.jobs import Workload
from analysim.units import GPU_MILLI

Integers = npt.NDArray[np.int64]

COVERED_PERCENT = 95
"""How much of a workload its typical pods cover."""


@dataclass(frozen=True)
class TypicalPod:
    """One of the most frequent requests: CPUs in all, ``gpus`` GPUs with ``share`` thousandths of each, and the count.

    ``gpu_types`` are the numbers of the GPU types it may use.
    """

    cpu_milli: int
    share: int
    gpus: int
    gpu_types: frozenset[int]
    count: int


def typical_pods(topology: Topology, workload: Workload) -> list[TypicalPod]:
    """List the distinct requests of a workload, most frequent first, until they cover ``COVERED_PERCENT`` of its jobs.

    Of requests that are equally frequent the larger one (CPUs, share, GPUs, types) comes first, as in the original.
    Of a gang that spreads over nodes, what it asks of one of them counts. Memory is not looked at.
    """
    frame = workload.frame
    milli = frame["gpu_milli"].to_numpy(np.int64)
    gpus = -(-milli // GPU_MILLI)
    each = frame["gpus_per_node"].to_numpy(np.int64)
    each = np.where((each > 0) & (gpus > 0), each, np.minimum(gpus, max(topology.gpu_count, default=0)))
    cpus = frame["cpu_milli"].to_numpy(np.int64) * each // np.maximum(gpus, 1)
    keys = {
        "cpu": np.where(gpus > 0, cpus, frame["cpu_milli"].to_numpy(np.int64)),
        "share": np.where(gpus > 0, np.minimum(milli, GPU_MILLI), 0),
        "gpus": each,
        "type": np.where(gpus > 0, frame["gpu_type"].to_numpy(object), ""),
    }
    counts: dict[tuple[int, int, int, str], int] = {}
    for key in zip(*(column.tolist() for column in keys.values()), strict=True):
        counts[key] = counts.get(key, 0) + 1
    pods, covered, jobs = [], 0, len(frame)
    for key in sorted(counts, key=lambda key: (counts[key], key), reverse=True):
        if covered * 100 >= COVERED_PERCENT * jobs:
            break
        covered += counts[key]
        cpu, share, count, names = key
        pods.append(TypicalPod(cpu, share, count, _numbers(topology, names), counts[key]))
    return pods


def _numbers(topology: Topology, names: str) -> frozenset[int]:
    wanted = {name.strip() for name in names.split("|")}
    return frozenset(number for number, name in enumerate(topology.gpu_types) if not names or name in wanted)


class Fragmentation:
    """F_n of any node state, for one set of typical pods; all figures are integers.

    ``total`` is the count of all typical pods; what ``of`` gives is in thousandths of GPUs times ``total``.

    With I idle thousandths, F_n(m) is I unless the node can host pod m, then I less the residuals that are enough
    for m. So F_n is a sum over the GPUs, each weighted by the pods of one share that its residual and the node's
    CPUs would do for, less the same for pods of whole GPUs, which depends on the number of wholly free ones. Both
    weights are tables by (GPU type, rank of the free CPUs among the pods' CPUs, rank of the residual or the number).
    """

    def __init__(self, topology: Topology, pods: Iterable[TypicalPod]) -> None:
        pods = list(pods)
        self.total = sum(pod.count for pod in pods)
        partly = [pod for pod in pods if 0 < pod.share < GPU_MILLI]
        wholly = [pod for pod in pods if pod.share == GPU_MILLI]
        self._rows: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        self._cpus = np.unique(np.array([pod.cpu_milli for pod in partly + wholly], np.int64))
        self._asked: list[int] = self._cpus.tolist()
        shares = np.unique(np.array([pod.share for pod in partly], np.int64))
        self._level = np.searchsorted(shares, np.arange(GPU_MILLI + 1), side="right")
        self._levels: list[int] = self._level.tolist()
        most = max(topology.gpu_count, default=0)
        kinds = max(len(topology.gpu_types), 1)
        self._partly = np.zeros((kinds, len(self._cpus) + 1, len(shares) + 1), np.int64)
        self._wholly = np.zeros((kinds, len(self._cpus) + 1, most + 1), np.int64)
        for pod in pods:
            rank = int(np.searchsorted(self._cpus, pod.cpu_milli)) + 1
            for kind in pod.gpu_types:
                if 0 < pod.share < GPU_MILLI:
                    self._partly[kind, rank, self._level[pod.share]] += pod.count
                elif 0 < pod.gpus <= most:
                    self._wholly[kind, rank, pod.gpus] += pod.count
        for table in (self._partly, self._wholly):
            np.cumsum(table, axis=1, out=table)
            np.cumsum(table, axis=2, out=table)
        self._wholly *= np.arange(most + 1) * GPU_MILLI

    def rank(self, cpu_milli: Integers) -> Integers:
        """Rank free CPUs among those that the typical pods ask for."""
        return np.searchsorted(self._cpus, cpu_milli, side="right")

    def of_gpus(self, gpu_type: Integers, rank: Integers, residual: Integers) -> Integers:
        """Work out what each GPU adds by itself; ``residual`` is of shape (nodes, GPUs)."""
        usable = self._partly[gpu_type[:, None], rank[:, None], self._level[residual]]
        return residual * (self.total - usable)

    def usable_whole(self, gpu_type: Integers, rank: Integers, whole: Integers) -> Integers:
        """Work out what pods of whole GPUs take off, by the number of wholly free GPUs."""
        return self._wholly[gpu_type, rank, whole]

    def of(self, gpu_type: Integers, cpu_milli: Integers, residual: Integers, whole: Integers) -> Integers:
        """Work out F_n times ``total`` of many nodes: arrays by node, ``residual`` of shape (nodes, GPUs)."""
        rank = self.rank(cpu_milli)
        by_gpu: Integers = self.of_gpus(gpu_type, rank, residual).sum(axis=1)
        return by_gpu - self.usable_whole(gpu_type, rank, whole)

    def of_node(self, gpu_type: int, cpu_milli: int, free: int, partial: Iterable[int]) -> int:
        """Work out F_n times ``total`` of one node: ``free`` is the mask of wholly free GPUs."""
        rank = bisect_right(self._asked, cpu_milli)
        tables = self._rows.get((gpu_type, rank))
        if tables is None:
            lost = self.total - self._partly[gpu_type, rank]
            tables = self._rows[gpu_type, rank] = lost.tolist(), self._wholly[gpu_type, rank].tolist()
        by_level, by_whole = tables
        level, whole = self._levels, free.bit_count()
        parts = sum([left * by_level[level[left]] for left in partial])
        return GPU_MILLI * by_level[-1] * whole + parts - by_whole[whole]
