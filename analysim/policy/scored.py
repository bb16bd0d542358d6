"""Placement strategies that score every node: those that FGD (ATC 2023) was compared with, and FGD itself.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX
ATC 2023; formulas as in the authors' github.com/hkust-adsl/kubernetes-scheduler-simulator. Scores are integers, the
highest wins, ties go to the earliest node in one random permutation for each seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from analysim.cluster.capacity import Capacity
from analysim.cluster.topology import Topology
from analysim.jobs import NOWHERE, Job, Option, Placement, Workload
from analysim.policy.board import INFEASIBLE, UNLIMITED, Board, Flags, Integers, Piece, Scores, board_of, piece_of
from analysim.policy.fragmentation import Fragmentation, typical_pods
from analysim.policy.placement import Placer, fits_one_node
from analysim.units import GPU_MILLI

LARGEST_CPU_MILLI, LARGEST_GPU_MILLI = 128_000, 8_000
"""What the original divides CPUs and GPUs by: the largest node of its cluster. Ours is no smaller."""

_MOST_MASKS = 256
"""Sets of nodes remembered as flags before they are forgotten."""


class Scored(Placer):
    """Base of the strategies that score nodes; a subclass says how good each node is for a piece of a job.

    A job that fits on one node goes to the best node of all GPU types it may use. A gang of several nodes is placed
    node by node, type by type in the order written: ``gpus_per_node`` GPUs, or full nodes and then the remainder, each
    on the best node that is left. A share takes the tightest GPU that fits, whole GPUs go by index.
    """

    across_types = True
    watches = True

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._order: npt.NDArray[np.intp] | None = None
        self._flags: dict[int, Flags] = {}
        self._most_cpu = LARGEST_CPU_MILLI
        self._most_gpu = LARGEST_GPU_MILLI

    def begin(self, topology: Topology, workload: Workload) -> None:
        """Fix the order of the nodes for ties, and what full scores are relative to."""
        keys = [
            blake2b(f"{self.seed}:node-order:{node.name}".encode(), digest_size=8).digest() for node in topology.nodes
        ]
        self._order = np.array(sorted(range(topology.size), key=keys.__getitem__), np.intp)
        self._flags.clear()
        self._most_cpu = max(LARGEST_CPU_MILLI, *topology.cpu_milli)
        self._most_gpu = max(LARGEST_GPU_MILLI, *(GPU_MILLI * count for count in topology.gpu_count))

    def score(self, board: Board, rows: Integers, piece: Piece) -> tuple[Integers, Integers | None]:
        """Score a piece on the nodes ``rows``, where it fits; also say on which GPU if not on the tightest."""
        raise NotImplementedError

    # -- what the plan asks ------------------------------------------------------------------------------

    def place(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """Find a placement on the nodes of ``mask``, which are of one GPU type."""
        demand = job.demand
        if not fits_one_node(demand, option):
            if self._order is None:
                self.begin(capacity.topology, job.source)
            return super().place(capacity, job, option, mask)
        return self._place_piece(capacity, job, mask)

    def place_across(
        self, capacity: Capacity, job: Job, options: Sequence[Option], avoided: int = 0
    ) -> tuple[Placement, Option] | None:
        """Find the best node of all GPU types; a gang of several nodes tries them in the order written."""
        nodes = 0
        for option in options:
            if fits_one_node(job.demand, option):
                nodes |= option.mask
        placement = self._place_piece(capacity, job, nodes & ~avoided) if nodes else None
        if placement is not None:
            node = placement[0][0]
            return placement, next(option for option in options if node < 0 or option.mask >> node & 1)
        return super().place_across(capacity, job, options, avoided)

    def choose(self, capacity: Capacity, job: Job, levels: Sequence[int], gpus: int, mask: int) -> int:
        """Choose the best node for ``gpus`` GPUs of a gang."""
        return self._best(capacity, job, gpus, mask)[0]

    def choose_whole(self, capacity: Capacity, job: Job, nodes: int, count: int) -> list[int]:
        """Choose the best nodes for as many GPUs as each of them has: they are all of one size."""
        size = capacity.topology.gpu_count[(nodes & -nodes).bit_length() - 1]
        chosen: list[int] = []
        for _ in range(count):
            node, _ = self._best(capacity, job, size, nodes)
            chosen.append(node)
            nodes &= ~(1 << node)
        return chosen

    # -- the best node -----------------------------------------------------------------------------------

    def _place_piece(self, capacity: Capacity, job: Job, mask: int) -> Placement | None:
        demand = job.demand
        if not demand.gpus and not (capacity.models_resources and demand.resources):
            return ((NOWHERE, 0),)
        node, gpu = self._best(capacity, job, demand.gpus, mask)
        if node < 0:
            return None
        if not demand.gpus:
            return ((node, 0),)
        if not demand.sharing:
            return ((node, capacity.pick(node, demand.gpus)),)
        return ((node, 1 << gpu if gpu >= 0 else capacity.tightest(node, demand.share)),)

    def _best(self, capacity: Capacity, job: Job, gpus: int, mask: int) -> tuple[int, int]:
        """Return the best node of a set for a piece, and the GPU of it that was chosen; -1 where there is none."""
        if self._order is None:
            self.begin(capacity.topology, job.source)
        order = self._order
        assert order is not None
        board = board_of(capacity)
        scores = self.scores(board, piece_of(job.demand, gpus, capacity.models_resources))
        wanted = np.where(self._flags_of(mask, board.size), scores.values[order], INFEASIBLE)
        place = int(wanted.argmax()) if board.size else 0
        if wanted[place] == INFEASIBLE:
            return -1, -1
        node = int(order[place])
        return node, int(scores.gpus[node])

    def _flags_of(self, mask: int, size: int) -> Flags:
        """Turn a set of nodes into flags in the order for ties."""
        assert self._order is not None
        known = self._flags.get(mask)
        if known is not None:
            return known
        if len(self._flags) > _MOST_MASKS:
            self._flags.clear()
        packed = np.frombuffer(mask.to_bytes((size + 7) // 8, "little"), np.uint8)
        flags: Flags = np.unpackbits(packed, count=size, bitorder="little").astype(np.bool_)[self._order]
        self._flags[mask] = flags
        return flags

    def scores(self, board: Board, piece: Piece) -> Scores:
        """Return the scores of a piece on all nodes; only nodes that changed since the last time are scored again."""
        key = (self, piece)
        kept = board.scores.get(key)
        if kept is None:
            values, gpus = np.full(board.size, INFEASIBLE), np.full(board.size, -1)
            rows = np.arange(board.size)
        elif kept.serial == board.serial:
            return kept
        else:
            values, gpus = kept.values.copy(), kept.gpus
            rows = np.flatnonzero(board.stamps > kept.serial)
        fitting = fits(board, rows, piece)
        values[rows] = INFEASIBLE
        rows = rows[fitting]
        if rows.size:
            values[rows], chosen = self.score(board, rows, piece)
            if chosen is not None:
                gpus = gpus.copy()
                gpus[rows] = chosen
        return board.keep(key, Scores(board.serial, values, gpus))


def fits(board: Board, rows: Integers, piece: Piece) -> Flags:
    """Tell on which of the nodes ``rows`` a piece fits now: CPUs, memory and GPUs (the type is for the mask)."""
    enough = (board.cpu_milli[rows] >= piece.cpu_milli) & (board.memory_mb[rows] >= piece.memory_mb)
    if not piece.gpus:
        return enough
    if piece.share < GPU_MILLI:
        most: Integers = board.residual[rows].max(axis=1, initial=0)
        return enough & (most >= piece.share)
    return enough & (board.whole[rows] >= piece.gpus)


def _free_cpu(board: Board, rows: Integers) -> Integers:
    """Free CPUs, none where they are not modelled: they then weigh nothing."""
    cpu = board.cpu_milli[rows]
    return np.where(cpu == UNLIMITED, 0, cpu)


class BestFit(Scored):
    """The node on which least is left of CPUs and GPUs together.

    The original spreads the scores over 0..100 between the worst and the best feasible node. That never changes which
    are equal nor which is best (they are integers from a range no wider), and so is left out.
    """

    name = "bestfit"

    def score(self, board: Board, rows: Integers, piece: Piece) -> tuple[Integers, Integers | None]:
        """Score 100 for a node that would be full, 0 for the largest one if it stayed empty."""
        cpu = np.maximum(_free_cpu(board, rows) - piece.cpu_milli, 0) / self._most_cpu * 0.5
        gpu = (board.idle[rows] - piece.gpu_milli) / self._most_gpu * 0.5
        return ((1.0 - (cpu + gpu)) * 100).astype(np.int64), None


class DotProd(Scored):
    """The node whose free CPUs and GPUs have the smallest product with what is asked (after Tetris, SIGCOMM 2014)."""

    name = "dotprod"

    def score(self, board: Board, rows: Integers, piece: Piece) -> tuple[Integers, Integers | None]:
        """Score 100 less half the product of the two vectors, each relative to the largest node."""
        cpu = _free_cpu(board, rows) / self._most_cpu * (piece.cpu_milli / self._most_cpu)
        gpu = board.idle[rows] / self._most_gpu * (piece.gpu_milli / self._most_gpu)
        return (100 * (1 - (cpu + gpu) / 2)).astype(np.int64), None


class GpuPacking(Scored):
    """Shared GPUs before wholly free ones of used nodes, and those before unused nodes (after MLaaS, NSDI 2022)."""

    name = "gpupacking"

    def score(self, board: Board, rows: Integers, piece: Piece) -> tuple[Integers, Integers | None]:
        """Score 50..100 for a shared GPU, 33..50 for free GPUs of a used node, at most 33 for an unused node."""
        if not piece.gpus:
            return np.zeros(rows.size, np.int64), None
        whole = board.whole[rows]
        values = np.full(rows.size, max(50 - piece.gpus, 33), np.int64)
        if piece.share < GPU_MILLI:
            residual = board.residual[rows]
            tightest = np.where(residual >= piece.share, residual, GPU_MILLI).min(axis=1)
            shared = np.maximum(100 - tightest * 100 // GPU_MILLI // 10, 50)
            values = np.where(tightest < GPU_MILLI, shared, values)
        unused = whole == board.gpu_count[rows]
        return np.where(unused, np.maximum(33 - whole, whole), values), None


class GpuClustering(Scored):
    """Nodes that hold jobs of the same class only: shares, 1 GPU, 2 GPUs... (after Gandiva, OSDI 2018)."""

    name = "gpuclustering"

    def score(self, board: Board, rows: Integers, piece: Piece) -> tuple[Integers, Integers | None]:
        """Score up to 25 for how full a node is, and 75, 50, 25 or 0 for whom it holds."""
        if not piece.gpus:
            return np.zeros(rows.size, np.int64), None
        held = board.held[rows] > 0
        kinds = held.sum(axis=1)
        column = board.columns.get(piece.kind)
        same = np.zeros(rows.size, bool) if column is None else held[:, column]
        company = np.where(same, np.where(kinds == 1, 75, 50), np.where(kinds == 0, 25, 0))
        return 25 * (self._most_gpu - board.idle[rows]) // self._most_gpu + company, None


class Fgd(Scored):
    """The node (and of it the GPU) on which fragmentation, as the workload's typical pods see it, grows least."""

    name = "fgd"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._fragmentation: Fragmentation | None = None

    def begin(self, topology: Topology, workload: Workload) -> None:
        """Also find the typical pods of the workload."""
        super().begin(topology, workload)
        self._fragmentation = Fragmentation(topology, typical_pods(topology, workload))

    def score(self, board: Board, rows: Integers, piece: Piece) -> tuple[Integers, Integers | None]:
        """Score 100 times the sigmoid of how many GPUs of fragmentation go; a share goes where that is most."""
        measure = self._fragmentation
        assert measure is not None
        kinds, residual, whole = board.gpu_type[rows], board.residual[rows], board.whole[rows]
        before = measure.of(kinds, board.cpu_milli[rows], residual, whole)
        rank = measure.rank(board.cpu_milli[rows] - piece.cpu_milli)
        by_gpu = measure.of_gpus(kinds, rank, residual)
        staying = by_gpu.sum(axis=1)
        if not piece.gpus or piece.share == GPU_MILLI:
            each = measure.of_gpus(kinds, rank, np.full((rows.size, 1), GPU_MILLI))[:, 0]
            after = staying - piece.gpus * each - measure.usable_whole(kinds, rank, whole - piece.gpus)
            return self._scored(before - after), None
        fitting = residual >= piece.share
        less = np.where(fitting, residual - piece.share, 0)
        opened = residual == GPU_MILLI
        usable = measure.usable_whole(kinds, rank, whole)
        taken = usable - measure.usable_whole(kinds, rank, np.maximum(whole - 1, 0))
        after = (staying - usable)[:, None] - by_gpu + measure.of_gpus(kinds, rank, less) + opened * taken[:, None]
        scores = np.where(fitting, self._scored(before[:, None] - after), INFEASIBLE)
        return scores.max(axis=1), scores.argmax(axis=1)

    def _scored(self, gone: Integers) -> Integers:
        assert self._fragmentation is not None
        gpus = gone / (max(self._fragmentation.total, 1) * GPU_MILLI)
        return (1 / (1 + np.exp(-gpus)) * 100).astype(np.int64)
