"""The state of all nodes as arrays, kept up to date node by node, with the scores computed from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysim.cluster.capacity import Capacity, bits_of
from analysim.cluster.watched import WatchedCapacity, class_of
from analysim.jobs import Demand
from analysim.units import GPU_MILLI

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

UNLIMITED = 1 << 40
"""Free CPUs or memory of a node for which they are not modelled."""

INFEASIBLE = -(1 << 20)
"""Score of a node where a piece does not fit: below every score that a strategy gives."""

MOST_KEPT = 1 << 23
"""Scores of nodes kept in all, 16 bytes each: a trace may have more shapes than memory holds scores of."""


class Piece(NamedTuple):
    """What a job asks of one node: CPUs and memory in all, ``gpus`` GPUs with ``share`` thousandths of each."""

    cpu_milli: int
    memory_mb: int
    gpus: int
    share: int
    kind: int

    @property
    def gpu_milli(self) -> int:
        """Thousandths of GPUs in all."""
        return self.gpus * self.share


def piece_of(demand: Demand, gpus: int, modelled: bool) -> Piece:
    """Work out what ``gpus`` GPUs of a demand (all of a CPU job: 0) ask of the node they are on."""
    parts = max(gpus, 1) if demand.resources and modelled else 0
    kind = class_of(demand) if gpus else -1
    return Piece(parts * demand.cpu_milli, parts * demand.memory_mb, gpus, demand.share if gpus else 0, kind)


@dataclass
class Scores:
    """Scores of one piece on all nodes as of ``serial``, and the GPU that goes with each (-1: the tightest)."""

    serial: int
    values: Integers
    gpus: Integers


class Board:
    """Free CPUs, memory and GPU thousandths of all nodes, in topology order.

    ``cpu_milli`` and ``memory_mb`` are ``UNLIMITED`` where they are not modelled, ``residual[n, g]`` what is free of
    each GPU (0 beyond a node's last), ``whole`` counts the wholly free ones, ``idle`` sums the thousandths, and
    ``held[n, c]`` are the GPUs held by jobs of the class with column ``columns[class]``. ``stamps`` tell when each
    node changed last. ``scores`` keeps what strategies computed, whatever their key; values are never written to,
    only replaced, so that a copy may share them.
    """

    def __init__(self, capacity: Capacity) -> None:
        topology = capacity.topology
        self.size = topology.size
        self.gpu_type: Integers = np.array(topology.gpu_type, np.int64)
        self.gpu_count: Integers = np.array(topology.gpu_count, np.int64)
        self.cpu_milli: Integers = np.full(self.size, UNLIMITED, np.int64)
        self.memory_mb: Integers = np.full(self.size, UNLIMITED, np.int64)
        self.residual: Integers = np.zeros((self.size, max(topology.gpu_count, default=0)), np.int64)
        self.whole: Integers = np.zeros(self.size, np.int64)
        self.idle: Integers = np.zeros(self.size, np.int64)
        self.columns: dict[int, int] = {}
        self.held: Integers = np.zeros((self.size, 0), np.int64)
        self.stamps: Integers = np.zeros(self.size, np.int64)
        self.serial = 0
        self.scores: dict[Any, Scores] = {}

    def copy(self) -> Board:
        """Copy the arrays; what was scored is shared until it is scored anew."""
        twin = object.__new__(Board)
        twin.__dict__.update(self.__dict__)
        for name in ("cpu_milli", "memory_mb", "residual", "whole", "idle", "held", "stamps"):
            setattr(twin, name, getattr(self, name).copy())
        twin.columns = dict(self.columns)
        twin.scores = dict(self.scores)
        return twin

    def keep(self, key: Any, scores: Scores) -> Scores:
        """Keep scores for the next time, and forget those that were longest not computed where there are too many."""
        self.scores.pop(key, None)
        while self.scores and len(self.scores) * self.size > MOST_KEPT:
            del self.scores[next(iter(self.scores))]
        self.scores[key] = scores
        return scores

    def update(self, capacity: Capacity, nodes: set[int] | range) -> None:
        """Read some nodes again."""
        topology = capacity.topology
        held = capacity.held if isinstance(capacity, WatchedCapacity) else None
        self.serial += 1
        for node in nodes:
            row = self.residual[node]
            row[:] = 0
            free = capacity.free[node]
            row[list(bits_of(free))] = GPU_MILLI
            partial = capacity.partial[node]
            for gpu, left in partial.items():
                row[gpu] = left
            whole = free.bit_count()
            self.whole[node] = whole
            self.idle[node] = whole * GPU_MILLI + sum(partial.values())
            if topology.cpu_milli[node] >= 0:
                self.cpu_milli[node] = capacity.cpu_milli[node]
            if topology.memory_mb[node] >= 0:
                self.memory_mb[node] = capacity.memory_mb[node]
            if held is not None:
                self._read_held(node, held[node])
            self.stamps[node] = self.serial

    def _read_held(self, node: int, held: Any) -> None:
        self.held[node] = 0
        for kind, gpus in held.items():
            column = self.columns.get(kind)
            if column is None:
                column = self.columns[kind] = len(self.columns)
                self.held = np.pad(self.held, ((0, 0), (0, 1)))
            self.held[node, column] = gpus


def board_of(capacity: Capacity) -> Board:
    """Return the board of a capacity as it is now; where nobody watches the capacity, a new one each time."""
    if not isinstance(capacity, WatchedCapacity):
        board = Board(capacity)
        board.update(capacity, range(board.size))
        return board
    if capacity.board is None:
        capacity.board = Board(capacity)
    kept: Board = capacity.board
    if capacity.changed:
        kept.update(capacity, capacity.changed)
        capacity.changed.clear()
    return kept
