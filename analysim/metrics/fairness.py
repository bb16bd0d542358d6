"""How evenly tenants were served."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysim.metrics.integers import COMPLETED, REJECTED, Integers, Jobs, Record, to_labels, to_microseconds
from analysim.metrics.job_figures import Figure, bounded_slowdown


def measure_fairness(record: Record, chosen: Integers) -> dict[str, Figure]:
    """Jain's index of tenants' mean bounded slowdown, and max over min of GPU-time received / asked.

    Over the ``chosen`` jobs (ranks); None with fewer than two tenants to compare, or when one
    of them received nothing. Source: Jain, Chiu and Hawe, DEC-TR-301, 1984.
    """
    tenant, names = pd.factorize(to_labels(record.jobs.table["tenant"]))
    return {
        "jain": _jain(record.jobs, chosen, tenant, len(names)),
        "max_over_min": _max_over_min(record, chosen, tenant, len(names)),
    }


def held_by_job(record: Record) -> Integers:
    """GPU-microseconds that each job held."""
    held = np.zeros(len(record.jobs), np.int64)
    np.add.at(held, record.rows.job, record.rows.gpus * record.rows.elapsed_us)
    return held


def _jain(jobs: Jobs, chosen: Integers, tenant: Integers, tenants: int) -> float | None:
    done = chosen[jobs.state[chosen] == COMPLETED]
    slowdown = bounded_slowdown(to_microseconds(jobs.table["jct_s"].iloc[done]), jobs.duration_us[done])
    count = np.bincount(tenant[done], minlength=tenants)
    total = np.bincount(tenant[done], slowdown, minlength=tenants)
    means = total[count > 0] / count[count > 0]
    if len(means) < 2:
        return None
    return float(means.sum() ** 2 / (len(means) * (means**2).sum()))


def _max_over_min(record: Record, chosen: Integers, tenant: Integers, tenants: int) -> float | None:
    jobs = record.jobs
    counted = chosen[jobs.state[chosen] != REJECTED]
    asked = np.zeros(tenants, np.int64)
    received = np.zeros(tenants, np.int64)
    np.add.at(asked, tenant[counted], (jobs.gpus * jobs.duration_us)[counted])
    np.add.at(received, tenant[counted], held_by_job(record)[counted])
    ratio = received[asked > 0] / asked[asked > 0]
    return float(ratio.max() / ratio.min()) if len(ratio) >= 2 and ratio.min() > 0 else None
