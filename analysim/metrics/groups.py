"""The job figures apart by tenant, partition, size class and duration class."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysim.metrics.fairness import held_by_job
from analysim.metrics.integers import Integers, Record, exact_sum, to_labels
from analysim.metrics.interval import Interval
from analysim.metrics.job_figures import Figure, count_moves, count_states, job_figures
from analysim.metrics.work import GPU_HOUR_US
from analysim.tables import SIZE_CLASSES, RunTables
from analysim.units import MICROSECONDS

_MINUTE_US, _HOUR_US, _DAY_US = (seconds * MICROSECONDS for seconds in (60, 3_600, 86_400))
DURATION_CLASSES = (
    ("<1 min", _MINUTE_US),
    ("1-10 min", 10 * _MINUTE_US),
    ("10-60 min", _HOUR_US),
    ("1-24 h", _DAY_US),
    ("1-7 d", 7 * _DAY_US),
    ("7 d+", None),
)
"""Duration classes and the duration, in microseconds, from which the next one begins."""


def by_tenant(tables: RunTables, measure: tuple[float, float] | None = None) -> pd.DataFrame:
    """Figures of jobs with GPUs by tenant path, a row a tenant in order of name.

    ``measure`` as in ``summarise``; columns in ``docs/reference/metrics.md``; NaN where undefined.
    """
    return _by_column("tenant", tables, measure)


def by_partition(tables: RunTables, measure: tuple[float, float] | None = None) -> pd.DataFrame:
    """Figures of jobs with GPUs by leaf partition, a row a partition in order of name.

    ``measure`` as in ``summarise``; columns in ``docs/reference/metrics.md``; NaN where undefined.
    """
    return _by_column("partition", tables, measure)


def by_size(tables: RunTables, measure: tuple[float, float] | None = None) -> pd.DataFrame:
    """Figures by GPU-size class, a row for each of ``SIZE_CLASSES`` that occurs; CPU jobs are class 0.

    ``measure`` as in ``summarise``; columns in ``docs/reference/metrics.md``; NaN where undefined.
    """
    record = Record.of(tables)
    chosen = np.flatnonzero(Interval.of(record, measure).jobs)
    bounds = [most * record.parts for _, most in SIZE_CLASSES if most is not None]
    code = np.searchsorted(bounds, record.jobs.gpus, side="left")
    return _tabulate(record, chosen, "size_class", [name for name, _ in SIZE_CLASSES], code)


def by_duration(tables: RunTables, measure: tuple[float, float] | None = None) -> pd.DataFrame:
    """Figures of jobs with GPUs by duration class, a row for each of ``DURATION_CLASSES`` that occurs.

    ``measure`` as in ``summarise``; columns in ``docs/reference/metrics.md``; NaN where undefined.
    """
    record = Record.of(tables)
    chosen = np.flatnonzero(Interval.of(record, measure).jobs & (record.jobs.gpus > 0))
    bounds = [before for _, before in DURATION_CLASSES if before is not None]
    code = np.searchsorted(bounds, record.jobs.duration_us, side="right")
    return _tabulate(record, chosen, "duration_class", [name for name, _ in DURATION_CLASSES], code)


def _by_column(name: str, tables: RunTables, measure: tuple[float, float] | None) -> pd.DataFrame:
    record = Record.of(tables)
    chosen = np.flatnonzero(Interval.of(record, measure).jobs & (record.jobs.gpus > 0))
    code, names = pd.factorize(to_labels(tables.jobs[name]), sort=True)
    return _tabulate(record, chosen, name, [str(each) for each in names], code)


def _tabulate(record: Record, chosen: Integers, key: str, names: list[str], code: Integers) -> pd.DataFrame:
    """Make a row for each name with any chosen job; ``code`` gives each job's name."""
    held = held_by_job(record)
    productive = np.zeros(len(record.jobs), np.int64)
    work = record.rows.work_gpus(record.jobs) * record.rows.read("progress_s", MICROSECONDS)
    np.add.at(productive, record.rows.job, work)
    asked = record.jobs.gpus * record.jobs.duration_us
    grouped = chosen[np.argsort(code[chosen], kind="stable")]
    bounds = np.searchsorted(code[grouped], np.arange(len(names) + 1))
    rows = []
    for name, start, stop in zip(names, bounds[:-1], bounds[1:], strict=True):
        members = grouped[start:stop]
        if len(members):
            totals = [exact_sum(each[members]) for each in (asked, held, productive)]
            rows.append({key: name, **_group_figures(record, members), **_hours(totals, record.parts)})
    columns = [key, *_group_figures(record, chosen[:0]), *_hours([0, 0, 0], 1)]
    table = pd.DataFrame(rows, columns=columns)
    figures = [column for column in columns[1:] if table[column].dtype == object]
    return table.astype(dict.fromkeys(figures, np.float64))


def _group_figures(record: Record, members: Integers) -> dict[str, Figure]:
    return {
        **count_states(record.jobs, members),
        **job_figures(record.jobs, members),
        **count_moves(record.jobs, members),
    }


def _hours(work: list[int], parts: int) -> dict[str, Figure]:
    asked, held, productive = work
    hour = GPU_HOUR_US * parts
    return {
        "gpu_hours_asked": asked / hour,
        "gpu_hours_held": held / hour,
        "gpu_hours_productive": productive / hour,
        "received_over_asked": held / asked if asked else None,
    }
