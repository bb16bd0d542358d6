"""When jobs wait, when they hold GPUs, and which job is first in each partition's queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysim.metrics.integers import NEVER, REJECTED, Integers, Record, to_labels
from analysim.metrics.steps import UNCOVERED, Grid, distinct, lowest_cover


@dataclass(frozen=True)
class Spans:
    """Stretches of time of jobs: job (rank), from grid index ``first`` to ``last``."""

    job: Integers
    first: Integers
    last: Integers


def spans_present(record: Record, grid: Grid) -> Spans:
    """From submission until the end, for each job with GPUs that was not rejected."""
    jobs = record.jobs
    present = np.flatnonzero((jobs.gpus > 0) & (jobs.state != REJECTED))
    ends = jobs.end_us[present]
    # An unfinished job is present until the run stops, which may come before its submission.
    ends = np.maximum(np.where(ends == NEVER, record.last_end_us, ends), jobs.submit_us[present])
    return Spans(present, grid.find(jobs.submit_us[present]), grid.find(ends))


def spans_active(record: Record, grid: Grid) -> Spans:
    """From each start to its stop, once a gang: running, restarting or checkpointing, with GPUs."""
    rows = record.rows
    chosen = np.flatnonzero(rows.active & (record.jobs.gpus[rows.job] > 0))
    key = rows.job[chosen] * (grid.steps + 1) + grid.row_first[chosen]
    order = np.argsort(key)
    chosen = chosen[order[np.flatnonzero(np.diff(key[order], prepend=-1))]]
    return Spans(rows.job[chosen], grid.row_first[chosen], grid.row_last[chosen])


def spans_pending(record: Record, grid: Grid) -> Spans:
    """When a job with GPUs is present but has no row in ``segments``: not held, reserved or suspended."""
    present = spans_present(record, grid)
    rows = record.rows
    chosen = np.flatnonzero(record.jobs.gpus[rows.job] > 0)
    job = np.concatenate((present.job, rows.job[chosen], present.job))
    first = np.concatenate((present.first, grid.row_first[chosen], present.last))
    last = np.concatenate((present.first, grid.row_last[chosen], present.last))
    size = grid.steps + 1
    order = np.argsort(job * size + first)
    job, first, last = job[order], first[order], last[order]
    # Keys grow from job to job, so one running maximum tells how far each job's rows reach.
    reached = np.maximum.accumulate(job * size + last)[:-1]
    gaps = np.flatnonzero((job[1:] * size + first[1:] > reached) & (job[1:] == job[:-1]))
    return Spans(job[gaps], reached[gaps] % size, first[gaps + 1])


def spans_at_head(record: Record, grid: Grid, pending: Spans) -> Spans:
    """When each job is the earliest pending one (in rank order) of its leaf partition."""
    partition = pd.factorize(to_labels(_leaves(record)))[0].astype(np.int64)[pending.job]
    size = grid.steps + 1
    first, last = partition * size + pending.first, partition * size + pending.last
    instants = distinct(np.concatenate((first, last)))
    if not len(instants):
        return pending
    begin, end = np.searchsorted(instants, first), np.searchsorted(instants, last)
    head = lowest_cover(begin, end, pending.job, len(instants) - 1)
    turns = np.flatnonzero(np.diff(head, prepend=-1))
    job, first, last = head[turns], instants[turns], instants[np.append(turns[1:], len(head))]
    led = job != UNCOVERED
    return Spans(job[led], first[led] % size, last[led] % size)


def _leaves(record: Record) -> pd.Series:
    """The leaf that each job was counted in; a trace's own partition where the run did not say it."""
    table = record.jobs.table
    return table["leaf"] if "leaf" in table else table["partition"]
