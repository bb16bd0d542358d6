"""How many GPUs a trace would hold at a time if no job ever waited: its demand, on a cluster without limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.units import GPU_MILLI, MICROSECONDS

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_HOUR_US = 3_600 * MICROSECONDS


def demand_steps(frame: pd.DataFrame) -> tuple[Integers, Integers | Floats]:
    """Return moments (microseconds) and the GPUs held from each of them to the next; 0 after the last.

    Each job runs from its submission for its duration. Jobs that end make room before others start.
    """
    held = frame[(frame["gpu_milli"] > 0) & (frame["duration_us"] > 0)]
    submit, milli = held["submit_us"].to_numpy(), held["gpu_milli"].to_numpy()
    times = np.concatenate([submit, submit + held["duration_us"].to_numpy()])
    order = np.argsort(times, kind="stable")
    times = times[order]
    levels = np.cumsum(np.concatenate([milli, -milli])[order])
    shared = bool((milli % GPU_MILLI).any())
    last = np.flatnonzero(np.diff(times, append=times[-1:] + 1)) if times.size else np.empty(0, np.int64)
    return times[last], levels[last] / GPU_MILLI if shared else levels[last] // GPU_MILLI


def describe_demand(frame: pd.DataFrame, cluster_gpus: int | None = None) -> dict[str, Any] | None:
    """Give mean and peak demand in GPUs, and what they are to a cluster of ``cluster_gpus``; None without GPU jobs.

    The mean is over the time from first to last submission, as the offered load is; ``hours_above`` counts all
    hours in which more GPUs are asked for than there are.
    """
    times, levels = demand_steps(frame)
    if times.size == 0:
        return None
    mean, peak = _mean_demand(frame), levels.max().item()
    facts: dict[str, Any] = {"mean_gpus": mean, "peak_gpus": peak}
    if cluster_gpus is not None:
        above = np.diff(times)[levels[:-1] > cluster_gpus].sum()
        facts["cluster_gpus"] = cluster_gpus
        facts["mean_share"] = mean / cluster_gpus if cluster_gpus and mean is not None else None
        facts["peak_share"] = peak / cluster_gpus if cluster_gpus else None
        facts["hours_above"] = float(above / _HOUR_US)
    return facts


def _mean_demand(frame: pd.DataFrame) -> float | None:
    submit = frame["submit_us"].to_numpy()
    first, last = int(submit.min()), int(submit.max())
    if first == last:
        return None
    within = np.minimum(submit + frame["duration_us"].to_numpy(), last) - submit
    return float(frame["gpu_milli"].to_numpy() / GPU_MILLI @ within) / (last - first)
