"""The tables of a finished run, as they stand in the run folder and in memory.

Times are float seconds on the trace's own clock, exact to the microsecond, so that
``round(x * 1e6)`` gives back the integer the engine worked with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

TableFormat = Literal["csv", "parquet"]
"""How the tables of a run folder are stored."""

TABLE_NAMES = ("jobs", "segments", "capacity", "decisions", "timeline", "rejected", "notes")
"""The tables of a run, in the order in which they are written."""

STATES = ("completed", "killed", "cancelled", "rejected", "unfinished")
"""How a job can end; every submitted job ends in exactly one of them."""

SEGMENT_KINDS = ("run", "restart", "checkpoint", "hold", "suspend")
"""What a job did with its GPUs on one node during one interval."""

RUN, RESTART, CHECKPOINT, HOLD, SUSPEND = range(len(SEGMENT_KINDS))
"""The kinds as numbers: their positions in ``SEGMENT_KINDS``."""

SIZE_CLASSES = (("0", 0), ("1", 1), ("2-4", 4), ("5-8", 8), ("9-64", 64), ("65-512", 512), ("513+", None))
"""GPU-size classes and the most GPUs in each. 1, 2-4, 5-8 and more than 8 are those of Jeon et al., "Analysis
of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads" (Philly), ATC 2019; large gangs are apart
because later clusters run them. Class 0 are the CPU jobs."""

DECISIONS = ("start", "reserve", "preempt", "kill", "suspend", "cancel", "migrate", "blocked", "quota", "resize")
"""What a row of ``decisions`` can say."""


@cache
def read_gpu_ids(text: str) -> tuple[int, ...]:
    """Read the column ``gpu_ids`` of ``segments``: ``"0-3,6"`` is (0, 1, 2, 3, 6)."""
    ids: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        ids.extend(range(int(first), int(last or first) + 1))
    return tuple(ids)


@dataclass
class RunTables:
    """All tables of one run. Columns are documented in ``docs/reference/run-folder.md``."""

    jobs: pd.DataFrame
    segments: pd.DataFrame
    capacity: pd.DataFrame
    decisions: pd.DataFrame
    timeline: pd.DataFrame
    rejected: pd.DataFrame
    notes: pd.DataFrame
