"""The measured part of a run: what the headline figures, and so the distributions and bars, are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysim.tables import RunTables


def measured_interval(tables: RunTables, summary: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the measured interval [from, to) in seconds on the trace's clock, None for the whole run."""
    measured = summary.get("measured") or {}
    low, high = measured.get("from_s"), measured.get("to_s")
    if low is None or high is None or not len(tables.jobs):
        return None
    times = tables.jobs[["submit_time_s", "end_time_s"]].to_numpy(dtype=float)
    whole = low <= np.nanmin(times[:, 0]) and high >= np.nanmax(times)
    return None if whole else (float(low), float(high))


def headline_jobs(tables: RunTables, summary: Mapping[str, Any]) -> pd.DataFrame:
    """Select the jobs of the headline figures: completed, with GPUs, submitted in the measured interval."""
    jobs = tables.jobs
    chosen = (jobs["state"] == "completed") & (jobs["num_gpus"] > 0)
    interval = measured_interval(tables, summary)
    if interval is not None:
        chosen &= (jobs["submit_time_s"] >= interval[0]) & (jobs["submit_time_s"] < interval[1])
    return jobs[chosen]
