"""The append-only record of what happened: integers in blocks, turned into tables once at the end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysim.jobs import Placement
from analysim.tables import RUN


class Rows:
    """Rows of integers with a fixed number of columns: one ``extend`` a row."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.pending: list[int] = []
        self._blocks: list[npt.NDArray[np.int64]] = []

    def pack(self) -> None:
        """Move what was collected into an array."""
        self._blocks.append(np.fromiter(self.pending, np.int64, len(self.pending)).reshape(-1, self.width))
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

    ``segments``: rank, start, end, node, mask number, kind, speed, progress. ``ends``: rank, first start, end,
    state, total wait, preemptions, migrations. ``decisions``: time, rank, action, reason. ``plain``: rank, start, end,
    node, mask number, a row a node, of a job that started once and completed: they stand for rows of ``segments``
    and one of ``ends``. First starts are not decisions of their own: ``ends`` has them.
    ``notes`` are (time, name, value). Times in microseconds.
    """

    def __init__(self) -> None:
        self.segments = Rows(8)
        self.ends = Rows(7)
        self.decisions = Rows(4)
        self.plain = Rows(5)
        self.notes: list[tuple[int, str, float]] = []
        self.quota_changes: list[tuple[int, str]] = []
        self.masks: dict[int, int] = {}

    def held(
        self,
        rank: int,
        placement: Placement,
        start: int,
        end: int,
        kind: int,
        speed: int = 0,
        progress: int = 0,
    ) -> None:
        """Record what a job did with its GPUs from ``start`` to ``end``; of no time, only a run leaves a row."""
        if end <= start and kind != RUN:
            return
        rows = self.segments.pending
        for node, mask in placement:
            rows.extend((rank, start, end, node, self.number(mask), kind, speed, progress))

    def number(self, mask: int) -> int:
        """Number a GPU mask, which may be wider than an integer of a table."""
        masks = self.masks
        number = masks.get(mask)
        if number is None:
            number = masks[mask] = len(masks)
        return number

    def pack(self) -> None:
        """Move what was collected into arrays, from time to time."""
        for rows in (self.segments, self.ends, self.decisions, self.plain):
            if rows.pending:
                rows.pack()

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


