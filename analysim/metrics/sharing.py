"""What is left of the GPUs that jobs share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from analysim.metrics.integers import Integers, Record
from analysim.metrics.steps import Grid
from analysim.tables import read_gpu_ids

Leftovers = npt.NDArray[np.object_]
"""For each state of a node, what is left of each GPU that is taken in part: a tuple of parts, smallest first."""


def find_leftovers(record: Record, grid: Grid, node: Integers, first: Integers) -> Leftovers:
    """Replay the shares of GPUs, node by node; ``node`` and ``first`` are states sorted by node, then time."""
    changes = _changes(record, grid)
    found = np.empty(len(node), np.object_)
    held: dict[int, int] = {}
    position, current = 0, -1
    for state, (where, when) in enumerate(zip(node.tolist(), first.tolist(), strict=True)):
        if where != current:
            held, current = {}, where
        while position < len(changes) and changes[position][:2] <= (where, when):
            at, _, gpu, amount = changes[position]
            position += 1
            if at == where:
                held[gpu] = held.get(gpu, 0) + amount
        found[state] = tuple(sorted(record.parts - each for each in held.values() if 0 < each < record.parts))
    return found


def _changes(record: Record, grid: Grid) -> list[tuple[int, int, int, int]]:
    """What is taken (more than 0) and given back of shared GPUs: (node, grid index, GPU, parts), in this order."""
    rows = record.rows
    chosen = np.flatnonzero((rows.gpus > 0) & (rows.gpus < record.parts) & (rows.node >= 0))
    texts: npt.NDArray[Any] = rows.table["gpu_ids"].to_numpy(np.object_)[rows.kept][chosen]
    gpus = [read_gpu_ids(str(text))[0] for text in texts]
    columns = (rows.node[chosen], grid.row_first[chosen], grid.row_last[chosen], rows.gpus[chosen])
    changes = []
    for gpu, where, begin, end, amount in zip(gpus, *(each.tolist() for each in columns), strict=True):
        changes += [(where, begin, gpu, amount), (where, end, gpu, -amount)]
    return sorted(changes)
