"""The tables of a finished run, as they stand in the run folder and in memory.

Times are float seconds on the trace's own clock, exact to the microsecond, so that
``round(x * 1e6)`` gives back the integer the engine worked with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

TABLE_NAMES = ("jobs", "segments", "capacity", "decisions", "timeline", "rejected", "notes")
"""The tables of a run, in the order in which they are written."""

STATES = ("completed", "killed", "cancelled", "rejected", "unfinished")
"""How a job can end; every submitted job ends in exactly one of them."""

SEGMENT_KINDS = ("run", "restart", "checkpoint", "hold", "suspend")
"""What a job did with its GPUs on one node during one interval."""

DECISIONS = ("start", "reserve", "preempt", "kill", "suspend", "cancel", "migrate", "blocked", "quota")
"""What a row of ``decisions`` can say."""


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
