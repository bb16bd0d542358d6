"""The headline figures of a run, and runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysim.metrics.fairness import measure_fairness
from analysim.metrics.fragmentation import MEASURES, average_fragmentation
from analysim.metrics.integers import NEVER, Integers, Record, exact_sum
from analysim.metrics.interval import Interval
from analysim.metrics.job_figures import Figure, count_moves, count_states, job_figures
from analysim.metrics.steps import Grid
from analysim.metrics.work import GPU_HOUR_US, Work, gpu_time_up
from analysim.tables import RunTables
from analysim.units import MICROSECONDS

Summary = dict[str, Any]
"""Figures by name; some names hold a further dictionary. Only what JSON knows, None where undefined."""


def summarise(tables: RunTables, measure: tuple[float, float] | None = None) -> Summary:
    """Compute the headline figures of a run.

    ``measure`` is the measured interval [from, to) in seconds on the trace's own clock, clipped to first
    submit .. last end; None is all of it, with every job. Every key and formula is in
    ``docs/reference/metrics.md``. Raises ``InvariantError`` when the tables do not belong together.
    """
    record = Record.of(tables)
    interval = Interval.of(record, measure)
    jobs = record.jobs
    chosen = np.flatnonzero(interval.jobs)
    with_gpus = chosen[jobs.gpus[chosen] > 0]
    work = Work.of(record, interval.from_us, interval.to_us)
    return {
        **count_states(jobs, chosen),
        "offered_load": _offered_load(record),
        **job_figures(jobs, with_gpus),
        "makespan_s": _makespan_s(record),
        "fill_up_s": _fill_up_s(record),
        "allocated_utilisation": work.held / work.up if work.up else None,
        "productive_utilisation": work.productive / work.up if work.up else None,
        "fragmentation": _fragmentation(record, interval),
        "fairness": measure_fairness(record, with_gpus),
        **count_moves(jobs, chosen),
        **_gpu_hours(work),
        "cpu_jobs": _cpu_jobs(record, chosen[jobs.gpus[chosen] == 0]),
        "measured": {"from_s": interval.from_us / MICROSECONDS, "to_s": interval.to_us / MICROSECONDS},
    }


def _offered_load(record: Record) -> float | None:
    jobs = record.jobs
    first, last = record.first_submit_us, int(jobs.submit_us.max(initial=NEVER))
    available = gpu_time_up(record, first, last)
    return exact_sum(jobs.gpus * jobs.duration_us) / available if available else None


def _makespan_s(record: Record) -> float | None:
    ended = bool((record.jobs.end_us != NEVER).any()) or len(record.rows.end_us) > 0
    return (record.last_end_us - record.first_submit_us) / MICROSECONDS if ended else None


def _fill_up_s(record: Record) -> float | None:
    """Time until as many GPUs are held as are on average between first and last submit; None where none are."""
    rows, first = record.rows, record.first_submit_us
    last = int(record.jobs.submit_us.max(initial=NEVER))
    held = exact_sum(rows.gpus * (np.clip(rows.end_us, first, last) - np.clip(rows.start_us, first, last)))
    if last <= first or not held:
        return None
    times, place = np.unique(np.concatenate((rows.start_us, rows.end_us)), return_inverse=True)
    changes = np.zeros(len(times), np.int64)
    np.add.at(changes, place, np.concatenate((rows.gpus, -rows.gpus)))
    reached = np.cumsum(changes) >= -(-held // (last - first))  # parts are whole: rounded up, nothing overflows
    return (int(times[reached.argmax()]) - first) / MICROSECONDS


def _fragmentation(record: Record, interval: Interval) -> dict[str, Figure]:
    if interval.to_us <= interval.from_us:
        return dict.fromkeys(MEASURES)
    grid = Grid.of(record, np.array([interval.from_us, interval.to_us], np.int64))
    averages = {name: float(values[0]) for name, values in average_fragmentation(record, grid).items()}
    return {name: None if np.isnan(value) else value for name, value in averages.items()}


def _gpu_hours(work: Work) -> Summary:
    hour = GPU_HOUR_US * work.parts
    causes = ("checkpoint", "restart", "hold", "redone", "speed")
    return {
        "gpu_hours_held": work.held / hour,
        "gpu_hours_productive": work.productive / hour,
        "gpu_hours_lost": work.lost / hour,
        "gpu_hours_lost_by": {cause: getattr(work, cause) / hour for cause in causes},
    }


def _cpu_jobs(record: Record, chosen: Integers) -> dict[str, Figure]:
    figures = {**count_states(record.jobs, chosen), **job_figures(record.jobs, chosen)}
    return {name: figures[name] for name in ("submitted", "completed", "mean_jct_s", "mean_wait_s")}


def compare_summaries(summaries: Sequence[Summary]) -> pd.DataFrame:
    """Put summaries side by side, each figure also against the first run.

    A row a summary, in the order given. Nested names are joined by a dot. Behind each figure stands
    ``<figure>_ratio``, the figure over that of the first row, NaN where either is undefined or the
    first is 0. What is no number (a run's or a policy's name) is carried over as it is.
    """
    flat = [_flatten(summary) for summary in summaries]
    names = list(dict.fromkeys(name for figures in flat for name in figures))
    columns: dict[str, list[Any]] = {}
    for name in names:
        values = [figures.get(name) for figures in flat]
        if not all(value is None or _is_number(value) for value in values):
            columns[name] = values
            continue
        columns[name] = [np.nan if value is None else value for value in values]
        columns[f"{name}_ratio"] = [_ratio(value, values[0]) for value in values]
    return pd.DataFrame(columns)


def _flatten(summary: Summary, prefix: str = "") -> Summary:
    figures: Summary = {}
    for name, value in summary.items():
        if isinstance(value, dict):
            figures |= _flatten(value, f"{prefix}{name}.")
        else:
            figures[prefix + name] = value
    return figures


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _ratio(value: float | None, first: float | None) -> float:
    return np.nan if value is None or not first else value / first
