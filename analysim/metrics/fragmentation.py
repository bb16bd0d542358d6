"""Four measures of fragmentation, exact over time, from ``segments`` and ``capacity`` alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysim.metrics.demand import DemandMix, Shares
from analysim.metrics.integers import Flags, Floats, Integers, Record
from analysim.metrics.nodes import NodeStates
from analysim.metrics.steps import UNCOVERED, Grid, lowest_cover
from analysim.metrics.waiting import Spans, spans_at_head, spans_pending

MEASURES = ("unusable_share", "stranded_gpus", "largest_gang_share", "excess_nodes")
"""The measures of fragmentation, as ``summarise`` and the timeline name them."""


def average_fragmentation(record: Record, grid: Grid) -> dict[str, Floats]:
    """Average each of ``MEASURES`` over each bin of the grid; NaN where a share has nothing free to share."""
    heads = spans_at_head(record, grid, spans_pending(record, grid))
    states = NodeStates.of(record, grid)
    free = grid.accumulate(states.first, _rise(states, states.free))
    mix = DemandMix.of(record)
    jobs = int(mix.jobs.sum())
    return {
        "unusable_share": grid.average_share(_unusable(record, grid, states, mix), free * jobs),
        "stranded_gpus": grid.average(_stranded(record, grid, states, heads)) / record.parts,
        "largest_gang_share": grid.average_share(_largest_gang(record, grid, states), free),
        "excess_nodes": grid.average(_excess_nodes(record, grid, states)),
    }


def _rise(states: NodeStates, values: Integers) -> Integers:
    """How much a value of each state exceeds that of the state before on the same node."""
    before = np.where(np.diff(states.node, prepend=-1) == 0, np.roll(values, 1), 0)
    return values - before


def _unusable(record: Record, grid: Grid, states: NodeStates, mix: DemandMix) -> Integers:
    """Sum over nodes of free GPUs times the jobs of the mix that cannot use them there."""
    if record.parts > 1:
        return grid.accumulate(states.first, _rise(states, _useless(record, states, mix)))
    jobs = int(mix.jobs.sum())
    fitting = np.zeros(len(states.node), np.int64)
    for (gpu_type, size), nodes in _alike(record):
        there = np.flatnonzero(nodes[states.node] & (states.free > 0))
        fitting[there] = mix.that_fits(
            gpu_type,
            size,
            states.free[there],
            states.free_cpu_milli[there],
            states.free_memory_mb[there],
        )
    return grid.accumulate(states.first, _rise(states, states.free * (jobs - fitting)))


def _useless(record: Record, states: NodeStates, mix: DemandMix) -> Integers:
    """For each state of a node, its free parts of GPUs times the jobs of the mix that cannot use them.

    A job that does not fit on the node can use none; one that does cannot use what is left of a GPU where that is
    less than it takes of one: F_n(m) of Weng et al., "Beware of Fragmentation" (FGD), ATC 2023.
    """
    found = np.zeros(len(states.node), np.int64)
    known: dict[tuple[object, ...], int] = {}
    for kind, nodes in _alike(record):
        for state in np.flatnonzero(nodes[states.node] & (states.free > 0)).tolist():
            cpus, memory = int(states.free_cpu_milli[state]), int(states.free_memory_mb[state])
            key = (kind, int(states.whole[state]), states.leftovers[state], cpus, memory)
            if key not in known:
                known[key] = mix.useless(*key)
            found[state] = known[key]
    return found


def _stranded(record: Record, grid: Grid, states: NodeStates, heads: Spans) -> Integers:
    """Free GPUs on nodes that have fewer than the earliest pending job of every partition needs there."""
    shares = Shares.of(record, heads.job)
    stranded = np.zeros(grid.steps, np.int64)
    for size in np.unique(record.capacity.size):
        needed = lowest_cover(heads.first, heads.last, shares.gpus_on(int(size)), grid.steps)
        of_size = states.select(record.capacity.size[states.node] == size)
        for need in np.unique(needed):
            if need != UNCOVERED:
                small = np.where(of_size.free < need, of_size.free, 0)
                total = grid.accumulate(of_size.first, _rise(of_size, small))
                stranded += np.where(needed == need, total, 0)
    return stranded


def _largest_gang(record: Record, grid: Grid, states: NodeStates) -> Integers:
    """GPUs of the largest gang that fits: full nodes of one kind and the freest other node of that kind."""
    largest = np.zeros(grid.steps, np.int64)
    for (_, size), nodes in _alike(record):
        alike = states.select(nodes[states.node])
        full = np.where(alike.whole == size, size, 0)
        part = alike.select((alike.whole > 0) & (alike.whole < size))
        freest = lowest_cover(part.first, part.last, -part.whole, grid.steps)
        remainder = np.where(freest == UNCOVERED, 0, -freest)
        np.maximum(largest, grid.accumulate(alike.first, _rise(alike, full)) + remainder, out=largest)
    return largest


def _excess_nodes(record: Record, grid: Grid, states: NodeStates) -> Integers:
    """Nodes with a GPU held, less the fewest nodes (largest first) that would hold as many GPUs."""
    in_use = grid.accumulate(states.first, _rise(states, (states.held > 0).astype(np.int64)))
    held = grid.accumulate(states.first, _rise(states, states.held))
    capacity = record.capacity
    changed = np.unique(grid.find(capacity.time_us))
    gpus = np.zeros(len(capacity.names), np.int64)
    fewest = np.zeros(grid.steps, np.int64)
    at = grid.find(capacity.time_us)
    for start, stop in zip(changed, np.append(changed[1:], grid.steps), strict=True):
        now = at == start
        np.add.at(gpus, capacity.node[now], capacity.gpus[now])
        room = np.cumsum(np.sort(gpus)[::-1])
        fewest[start:stop] = np.searchsorted(room, held[start:stop]) + (held[start:stop] > 0)
    return in_use - fewest


def _alike(record: Record) -> list[tuple[tuple[str, int], Flags]]:
    """Group the nodes by GPU type and count: ((type, GPUs), flags of the nodes)."""
    kinds = pd.MultiIndex.from_arrays((record.capacity.gpu_type, record.capacity.size))
    codes, distinct = pd.factorize(kinds)
    return [(kind, codes == code) for code, kind in enumerate(distinct) if kind[1] > 0]
