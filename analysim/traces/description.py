"""A trace in figures: how much it is, whose, how it arrives, and what became of the rows of its file."""

from __future__ import annotations

import math
from datetime import tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.tables import SIZE_CLASSES
from analysim.traces.arrivals import describe_rate, describe_rhythm
from analysim.traces.demand import demand_steps, describe_demand
from analysim.traces.settling import EARLY_START, NO_SUBMISSION
from analysim.traces.trace import Trace
from analysim.units import GPU_MILLI, MICROSECONDS

Floats = npt.NDArray[np.float64]

_SIZE_CLASSES = SIZE_CLASSES[1:]  # jobs without GPUs are counted apart
_QUANTILES = (10, 25, 50, 75, 90, 95, 99)
_TOP_TENANTS = 10
_MOST_RANGES = 100


def describe(trace: Trace, *, timezone: tzinfo | None = None, cluster_gpus: int | None = None) -> dict[str, Any]:
    """Sum a trace up in figures that JSON can hold; figures without a job to take them of are None.

    GPUs and durations are those of jobs with GPUs; ``rows`` = ``jobs`` + all of ``set_aside``; ``span_s`` is
    last minus first submission; ``peak_jobs_per_hour`` the most jobs in an hour counted from the first. Hours
    of the day are those of ``timezone``; demand is compared with ``cluster_gpus``. Where the trace ``lacks``
    GPUs, their figures are None and durations are those of all jobs.
    """
    frame = trace.frame
    gpus, durations_s = _measures(trace)
    told = not trace.lacks
    work = gpus * durations_s
    return {
        "name": trace.name,
        "format": trace.format,
        "rows": trace.rows,
        "jobs": len(frame),
        "set_aside": dict(trace.set_aside),
        "repaired": trace.account.repairs(),
        "lacks": trace.lacks,
        "cpu_jobs": len(frame) - len(gpus) if told else None,
        "time_origin": trace.time_origin,
        **describe_rate(frame["submit_us"].to_numpy()),
        "gpu_hours": float(work.sum()) / 3_600 if told else None,
        **_averages("gpus", gpus if told else gpus[:0]),
        **_averages("duration_s", durations_s),
        **{f"{name}s": _count(frame[name]) for name in ("tenant", "user", "partition")},
        "priorities": {str(key): int(value) for key, value in frame["priority"].value_counts().sort_index().items()},
        "nonpreemptible_share": _figure(np.mean, ~frame["preemptible"].to_numpy()),
        "sizes": _describe_sizes(gpus, work) if told else None,
        "durations": {
            "by_jobs": _quantiles(durations_s, np.ones(durations_s.size)),
            "by_gpu_time": _quantiles(durations_s, work) if told else None,
        },
        "arrivals": describe_rhythm(trace, timezone),
        "demand": describe_demand(frame, cluster_gpus) if told else None,
        "waits": _describe_waits(_waits(trace)),
        "statuses": _tally(frame["status"]),
        "top_tenants": _describe_tenants(trace),
    }


def describe_rows(trace: Trace) -> dict[str, Any]:
    """Tell which rows of the file were set aside and repaired: (first, last) by reason, ``more`` ranges uncounted."""
    table = trace.account.table()
    return {
        f"{what.replace(' ', '_')}_rows": {
            str(reason): {
                "ranges": ranges[["first_row", "last_row"]].head(_MOST_RANGES).to_numpy().tolist(),
                "more": max(len(ranges) - _MOST_RANGES, 0),
            }
            for reason, ranges in table[table["what"] == what].groupby("reason", sort=False)
        }
        for what in ("set aside", "repaired")
    }


def trace_arrays(trace: Trace) -> dict[str, Floats]:
    """Give what a page of figures draws: durations and GPUs of jobs, steps of the demand, recorded waits."""
    gpus, durations_s = _measures(trace)
    times, levels = demand_steps(trace.frame)
    return {
        "gpus": gpus,
        "duration_s": durations_s,
        "demand_time_s": times / MICROSECONDS,
        "demand_gpus": levels.astype(np.float64),
        "wait_s": _waits(trace),
    }


def offered_load(frame: pd.DataFrame, gpus: int) -> float:
    """Return sum(GPUs * duration) / (``gpus`` * (last - first submission)); NaN where that is undefined."""
    submit = frame["submit_us"]
    span_us = int(submit.max() - submit.min()) if len(frame) else 0
    if gpus <= 0 or span_us == 0:
        return math.nan
    asked = float(frame["gpu_milli"].to_numpy() / GPU_MILLI @ frame["duration_us"].to_numpy())
    return asked / (gpus * span_us)


def _measures(trace: Trace) -> tuple[Floats, Floats]:
    """Return GPUs and durations of the jobs with GPUs, of all where the file does not tell GPUs."""
    frame = trace.frame
    jobs = frame if trace.lacks else frame[frame["gpu_milli"] > 0]
    return jobs["gpu_milli"].to_numpy() / GPU_MILLI, jobs["duration_us"].to_numpy() / MICROSECONDS


def _describe_sizes(gpus: Floats, work: Floats) -> list[dict[str, Any]]:
    """Share of jobs and of GPU-time by size class, for the classes that occur."""
    bounds = [most for _, most in _SIZE_CLASSES if most is not None]
    size_class = np.searchsorted(bounds, gpus, side="left")
    jobs = np.bincount(size_class, minlength=len(_SIZE_CLASSES))
    hours = np.bincount(size_class, work, minlength=len(_SIZE_CLASSES))
    total = hours.sum() or 1.0
    return [
        {"gpus": name, "jobs": int(jobs[index]), "jobs_share": float(jobs[index] / gpus.size),
         "gpu_time_share": float(hours[index] / total)}
        for index, (name, _) in enumerate(_SIZE_CLASSES)
        if jobs[index]
    ]  # fmt: skip


def _quantiles(values: Floats, weights: Floats) -> dict[str, float] | None:
    """Return the values at or below which so many per cent of the weight are."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    if values.size == 0 or reached[-1] <= 0:
        return None
    places = np.searchsorted(reached, np.array(_QUANTILES) / 100 * reached[-1], side="left")
    found = values[order][np.minimum(places, values.size - 1)]
    return {f"p{quantile}_s": float(value) for quantile, value in zip(_QUANTILES, found, strict=True)}


def _waits(trace: Trace) -> Floats:
    """Recorded waits in seconds, of jobs whose submission and later start are both recorded."""
    start, submit = (trace.frame[name].to_numpy() for name in ("recorded_start_us", "submit_us"))
    known = (start >= 0) & (start >= submit)
    waits = np.sort(start[known] - submit[known])
    # Where the submission was made of the start, the wait is 0 and means nothing.
    book = trace.account.repaired
    made = [rows for reason, rows in book.items() if reason in (NO_SUBMISSION, EARLY_START)]
    aside = np.concatenate([np.empty(0, np.int64), *trace.account.set_aside.values()])
    unknown = sum(int((~np.isin(rows, aside)).sum()) for rows in made)
    zeros = int(np.searchsorted(waits, 0, side="right"))
    return np.asarray(waits[min(unknown, zeros) :] / MICROSECONDS)


def _describe_waits(waits_s: Floats) -> dict[str, Any] | None:
    if waits_s.size == 0:
        return None
    median, p90, p99 = np.quantile(waits_s, (0.5, 0.9, 0.99)).tolist()
    return {"jobs": waits_s.size, "mean_s": float(waits_s.mean()), "median_s": median, "p90_s": p90, "p99_s": p99}


def _describe_tenants(trace: Trace) -> list[dict[str, Any]]:
    """Tabulate the tenants with most GPU-time (most jobs, where GPUs are not told)."""
    frame = trace.frame
    work = frame["gpu_milli"].to_numpy() / GPU_MILLI * frame["duration_us"].to_numpy() / MICROSECONDS / 3_600
    groups = pd.Series(work).groupby(frame["tenant"].to_numpy())
    table = pd.DataFrame({"hours": groups.sum(), "jobs": groups.size()})
    table = table[table.index != ""].sort_values(["hours", "jobs"], ascending=False, kind="stable")
    total = float(work.sum()) or 1.0
    top = table.head(_TOP_TENANTS)
    return [
        {
            "tenant": str(tenant),
            "jobs": jobs,
            "jobs_share": jobs / len(frame),
            "gpu_hours": None if trace.lacks else hours,
            "gpu_time_share": None if trace.lacks else hours / total,
        }
        for tenant, jobs, hours in zip(top.index, top["jobs"].tolist(), top["hours"].tolist(), strict=True)
    ]


def _tally(words: pd.Series) -> dict[str, int]:
    counts = words[words != ""].value_counts(sort=True)
    return {str(word): int(count) for word, count in counts.items()}


def _count(names: pd.Series) -> int:
    return int(names[names != ""].nunique())


def _averages(name: str, values: Floats) -> dict[str, float | None]:
    return {f"{each}_{name}": _figure(getattr(np, each), values) for each in ("mean", "median", "max")}


def _figure(statistic: Any, values: npt.NDArray[Any]) -> float | None:
    return float(statistic(values)) if values.size else None
