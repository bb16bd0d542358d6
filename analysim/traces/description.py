"""A trace in figures: how much it is, whose, and how it arrives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.tables import SIZE_CLASSES
from analysim.traces.trace import Trace
from analysim.units import GPU_MILLI, MICROSECONDS

_HOUR_US = 3_600 * MICROSECONDS
_SIZE_CLASSES = SIZE_CLASSES[1:]  # jobs without GPUs are counted apart


def describe(trace: Trace) -> dict[str, Any]:
    """Sum a trace up in figures that JSON can hold; figures without a job to take them of are None.

    GPUs and durations are those of jobs with GPUs; ``rows`` = ``jobs`` + all of ``set_aside``; ``span_s`` is
    last minus first submission; ``peak_jobs_per_hour`` the most jobs in an hour counted from the first.
    """
    frame = trace.frame
    gpu_jobs = frame[frame["gpu_milli"] > 0]
    gpus = gpu_jobs["gpu_milli"].to_numpy() / GPU_MILLI
    durations_s = gpu_jobs["duration_us"].to_numpy() / MICROSECONDS
    return {
        "name": trace.name,
        "format": trace.format,
        "rows": trace.rows,
        "jobs": len(frame),
        "set_aside": dict(trace.set_aside),
        "cpu_jobs": len(frame) - len(gpu_jobs),
        "time_origin": trace.time_origin,
        **_describe_arrivals(frame["submit_us"].to_numpy()),
        "gpu_hours": float(gpus @ durations_s) / 3_600,
        "mean_gpus": _figure(np.mean, gpus),
        "median_gpus": _figure(np.median, gpus),
        "max_gpus": _figure(np.max, gpus),
        "mean_duration_s": _figure(np.mean, durations_s),
        "median_duration_s": _figure(np.median, durations_s),
        "max_duration_s": _figure(np.max, durations_s),
        "tenants": _count(frame["tenant"]),
        "users": _count(frame["user"]),
        "partitions": _count(frame["partition"]),
        "priorities": {
            str(key): int(value) for key, value in frame["priority"].value_counts().sort_index().items()
        },
        "nonpreemptible_share": _figure(np.mean, ~frame["preemptible"].to_numpy()),
        "sizes": _describe_sizes(gpus, durations_s),
    }


def offered_load(frame: pd.DataFrame, gpus: int) -> float:
    """Return sum(GPUs * duration) / (``gpus`` * (last - first submission)); NaN where that is undefined."""
    submit = frame["submit_us"]
    span_us = int(submit.max() - submit.min()) if len(frame) else 0
    if gpus <= 0 or span_us == 0:
        return math.nan
    asked = float(frame["gpu_milli"].to_numpy() / GPU_MILLI @ frame["duration_us"].to_numpy())
    return asked / (gpus * span_us)


def _describe_arrivals(submit_us: npt.NDArray[np.int64]) -> dict[str, float | int | None]:
    if submit_us.size == 0:
        return {"span_s": 0.0, "mean_jobs_per_hour": None, "peak_jobs_per_hour": None}
    since = submit_us - submit_us.min()
    span_us = int(since.max())
    return {
        "span_s": span_us / MICROSECONDS,
        "mean_jobs_per_hour": submit_us.size * _HOUR_US / span_us if span_us else None,
        "peak_jobs_per_hour": int(np.unique(since // _HOUR_US, return_counts=True)[1].max()),
    }


def _describe_sizes(
    gpus: npt.NDArray[np.float64], durations_s: npt.NDArray[np.float64]
) -> list[dict[str, Any]]:
    """Share of jobs and of GPU-time by size class, for the classes that occur."""
    bounds = [most for _, most in _SIZE_CLASSES if most is not None]
    size_class = np.searchsorted(bounds, gpus, side="left")
    jobs = np.bincount(size_class, minlength=len(_SIZE_CLASSES))
    work = np.bincount(size_class, gpus * durations_s, minlength=len(_SIZE_CLASSES))
    total = work.sum() or 1.0
    return [
        {"gpus": name, "jobs": int(jobs[index]), "jobs_share": float(jobs[index] / gpus.size),
         "gpu_time_share": float(work[index] / total)}
        for index, (name, _) in enumerate(_SIZE_CLASSES)
        if jobs[index]
    ]  # fmt: skip


def _count(names: pd.Series) -> int:
    return int(names[names != ""].nunique())


def _figure(statistic: Any, values: npt.NDArray[Any]) -> float | None:
    return float(statistic(values)) if values.size else None
