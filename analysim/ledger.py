"""The append-only record of what happened: integers in blocks, turned into tables once at the end."""

from __future__ import annotations


import numpy as np
import numpy.typing as npt

from analysim.jobs import Placement

BLOCK = 1 << 16
"""Integers collected in a list before they are packed into an array."""

RUN, RESTART, CHECKPOINT, HOLD, SUSPEND = range(5)
"""Codes of the segment kinds, in the order of ``tables.SEGMENT_KINDS``."""


class Rows:
    """Rows of integers with a fixed number of columns: one ``extend`` a row."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.pending: list[int] = []
        self._blocks: list[npt.NDArray[np.int64]] = []

    def pack(self) -> None:
        """Move what was collected into an array."""
        self._blocks.append(np.array(self.pending, np.int64).reshape(-1, self.width))
        self.pending.clear()

    def array(self) -> npt.NDArray[np.int64]:
        """All rows so far, one array row each."""
        if self.pending:
            self.pack()
        if not self._blocks:
            return np.zeros((0, self.width), np.int64)
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0]


class Ledger:
    """What happened, in the order in which it ended.

    ``segments``: rank, start, end, node, mask number, kind, speed, progress, demand. ``ends``: rank, first start, end,
    state, total wait, preemptions, migrations. ``decisions``: time, pass, rank, action, reason, GPUs.
    ``notes`` are (time, name, value). Times in microseconds.
    """

    def __init__(self) -> None:
        self.segments = Rows(9)
        self.ends = Rows(7)
        self.decisions = Rows(6)
        self.notes: list[tuple[int, str, float]] = []
        self.quota_changes: list[tuple[int, int, str]] = []
        self.masks: dict[int, int] = {}

    def held(
        self,
        rank: int,
        placement: Placement,
        start: int,
        end: int,
        kind: int,
        demand: int,
        speed: int = 0,
        progress: int = 0,
    ) -> None:
        """Record what a job did with its GPUs from ``start`` to ``end``; nothing where that is no time."""
        if end <= start:
            return
        rows = self.segments.pending
        masks = self.masks
        for node, mask in placement:
            number = masks.get(mask)
            if number is None:
                number = masks[mask] = len(masks)
            rows.extend((rank, start, end, node, number, kind, speed, progress, demand))
        if len(rows) > BLOCK:
            self.segments.pack()

    def ended(self, row: tuple[int, int, int, int, int, int, int]) -> None:
        """Record how a job ended."""
        rows = self.ends.pending
        rows.extend(row)
        if len(rows) > BLOCK:
            self.ends.pack()

    def decided(self, row: tuple[int, int, int, int, int, int]) -> None:
        """Record a decision."""
        rows = self.decisions.pending
        rows.extend(row)
        if len(rows) > BLOCK:
            self.decisions.pack()

    def mask_list(self) -> list[int]:
        """GPU masks by their number."""
        return list(self.masks)


def format_mask(mask: int) -> str:
    """Write the GPU indexes of a mask as ranges: ``0-3,6``."""
    parts: list[str] = []
    index = 0
    while mask >> index:
        if not mask >> index & 1:
            index += 1
            continue
        first = index
        while mask >> index & 1:
            index += 1
        parts.append(str(first) if index - first == 1 else f"{first}-{index - 1}")
    return ",".join(parts)


