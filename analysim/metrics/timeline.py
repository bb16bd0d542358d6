"""The course of a run: exact averages over equal intervals of time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysim.metrics.fragmentation import average_fragmentation
from analysim.metrics.integers import Floats, Integers, Record
from analysim.metrics.steps import Grid
from analysim.metrics.waiting import spans_active, spans_present
from analysim.tables import RunTables
from analysim.units import MICROSECONDS

MOST_INTERVALS = 2_000

_RATE_ONE = 1 << 40
"""Rates of progress in parts of a GPU: integers cancel exactly when a job stops, and whole GPUs are exact."""


def make_timeline(tables: RunTables, intervals: int = MOST_INTERVALS) -> pd.DataFrame:
    """Average the state of a run over equal intervals from first submit to last end.

    A row an interval: start_s, end_s, then the exact time averages gpus_up, gpus_held, gpus_productive,
    jobs_running, jobs_pending, gpus_pending and the four measures of fragmentation (a share is NaN where
    nothing was free all the time). Edges lie on whole microseconds, so there is at most one interval a
    microsecond; a run without length has none. Formulas are in ``docs/reference/metrics.md``.
    """
    record = Record.of(tables)
    edges_us = _edges(record.first_submit_us, record.last_end_us, intervals)
    grid = Grid.of(record, edges_us)
    return pd.DataFrame(
        {
            "start_s": edges_us[:-1] / MICROSECONDS,
            "end_s": edges_us[1:] / MICROSECONDS,
            **_gpus(record, grid),
            **_jobs(record, grid),
            **average_fragmentation(record, grid),
        }
    )


def _edges(first_us: int, last_us: int, intervals: int) -> Integers:
    span = last_us - first_us
    count = min(intervals, span)
    return np.array([first_us + span * edge // max(count, 1) for edge in range(count + 1)], np.int64)


def _gpus(record: Record, grid: Grid) -> dict[str, Floats]:
    rows, capacity = record.rows, record.capacity
    first, last = grid.row_first, grid.row_last
    progress_us = rows.read("progress_s", MICROSECONDS)
    counted = rows.work_gpus(record.jobs)
    rate = np.rint(counted * (progress_us / rows.elapsed_us) * _RATE_ONE).astype(np.int64)
    up = grid.accumulate(grid.find(capacity.time_us), capacity.gpus)
    parts = record.parts
    return {
        "gpus_up": grid.average(up) / parts,
        "gpus_held": grid.average(grid.count(first, last, rows.gpus)) / parts,
        "gpus_productive": grid.average(grid.count(first, last, rate) / _RATE_ONE) / parts,
    }


def _jobs(record: Record, grid: Grid) -> dict[str, Floats]:
    present, active = spans_present(record, grid), spans_active(record, grid)
    gpus = record.jobs.gpus
    here = grid.count(present.first, present.last, np.ones_like(present.job))
    running = grid.count(active.first, active.last, np.ones_like(active.job))
    asked = grid.count(present.first, present.last, gpus[present.job])
    given = grid.count(active.first, active.last, gpus[active.job])
    return {
        "jobs_running": grid.average(running),
        "jobs_pending": grid.average(here - running),
        "gpus_pending": grid.average(asked - given) / record.parts,
    }
