"""What each node has free from one change to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysim.metrics.integers import NOWHERE, UNBOUNDED, Flags, Integers, Record
from analysim.metrics.sharing import Leftovers, find_leftovers
from analysim.metrics.steps import Grid
from analysim.units import CPU_MILLI, MEGABYTES


@dataclass(frozen=True)
class NodeStates:
    """Each entry: a node from grid index ``first`` to ``last``, what it has free and the GPUs held on it.

    Sorted by node, then time. ``leftovers`` is what is left of each GPU taken in part, ``whole`` what is
    free without these.
    """

    node: Integers
    first: Integers
    last: Integers
    free: Integers
    held: Integers
    free_cpu_milli: Integers
    free_memory_mb: Integers
    whole: Integers
    leftovers: Leftovers

    @classmethod
    def of(cls, record: Record, grid: Grid) -> NodeStates:
        """Replay capacity and segments, node by node."""
        capacity, changes = record.capacity, _Changes.of(record, grid)
        up = changes.of_capacity(capacity.gpus)
        held = changes.of_rows(record.rows.gpus)
        cpus = changes.of_resource(capacity.cpu_milli, "cpus", CPU_MILLI, capacity.models_cpus)
        memory = changes.of_resource(capacity.memory_mb, "memory_gb", MEGABYTES, capacity.models_memory)
        # One share may come as another of its size goes, on another GPU of the node.
        always = record.parts > 1
        changed = np.flatnonzero((up != 0) | (held != 0) | (cpus != 0) | (memory != 0) | always)
        node, first = np.divmod(changes.places[changed], grid.steps + 1)
        last = np.append(first[1:], grid.steps)[: len(first)]
        last[np.flatnonzero(np.diff(node))] = grid.steps
        up, held, cpus, memory = (_add_up(node, each[changed]) for each in (up, held, cpus, memory))
        free = np.maximum(up - held, 0)
        none = np.broadcast_to(np.array(None, np.object_), node.shape)
        leftovers = find_leftovers(record, grid, node, first) if always else none
        return cls(
            node,
            first,
            last,
            free,
            held,
            cpus if capacity.models_cpus else np.broadcast_to(UNBOUNDED, node.shape),
            memory if capacity.models_memory else np.broadcast_to(UNBOUNDED, node.shape),
            free - np.array([sum(each) for each in leftovers], np.int64) if always else free,
            leftovers,
        )

    def select(self, chosen: Flags) -> NodeStates:
        """Keep some of the states."""
        if chosen.all():
            return self
        return NodeStates(**{name: values[chosen] for name, values in vars(self).items()})


@dataclass(frozen=True)
class _Changes:
    """The places (node * (steps + 1) + grid index) where anything changes, and how to sum changes at each."""

    record: Record
    places: Integers
    on: Integers
    order: Integers
    heads: Integers

    @classmethod
    def of(cls, record: Record, grid: Grid) -> _Changes:
        rows, capacity = record.rows, record.capacity
        size = grid.steps + 1
        on = np.flatnonzero(rows.node != NOWHERE)
        base = rows.node[on] * size
        at_capacity = capacity.node * size + grid.find(capacity.time_us)
        places = np.concatenate((at_capacity, base + grid.row_first[on], base + grid.row_last[on]))
        order = np.argsort(places)
        places = places[order]
        heads = np.flatnonzero(np.diff(places, prepend=-1))
        return cls(record, places[heads], on, order, heads)

    def of_capacity(self, values: Integers) -> Integers:
        """Sum changes of ``capacity`` at each place."""
        return self._sum(values, np.zeros(len(self.on), np.int64))

    def of_rows(self, values: Integers) -> Integers:
        """Sum what rows of ``segments`` take and give back at each place."""
        return self._sum(np.zeros(len(self.record.capacity.node), np.int64), values[self.on])

    def of_resource(self, values: Integers, column: str, scale: int, modelled: bool) -> Integers:
        """Sum the changes of what is free of a resource at each place; 0 when no node models it."""
        if not modelled:
            return np.broadcast_to(np.int64(0), self.places.shape)
        return self._sum(values, -self.record.rows.read(column, scale)[self.on])

    def _sum(self, at_capacity: Integers, at_rows: Integers) -> Integers:
        changes = np.concatenate((at_capacity, at_rows, -at_rows))[self.order]
        return np.add.reduceat(changes, self.heads) if len(self.heads) else changes


def _add_up(node: Integers, change: Integers) -> Integers:
    """Sum the changes of each node up to each of its instants; entries are sorted by node."""
    sums = np.cumsum(change)
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    before = np.where(starts > 0, sums[starts - 1], 0)
    return np.asarray(sums - np.repeat(before, np.diff(starts, append=len(node))))
