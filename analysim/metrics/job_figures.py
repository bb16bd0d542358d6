"""Figures of a set of jobs: how many ended how, and how long they waited and took."""

from __future__ import annotations

import math

import numpy as np

from analysim.metrics.integers import (
    COMPLETED,
    Floats,
    Integers,
    Jobs,
    exact_sum,
    to_integers,
    to_microseconds,
)
from analysim.tables import STATES
from analysim.units import MICROSECONDS

Figure = int | float | None
"""A figure of a summary; None where it is not defined."""

BOUND_US = 10 * MICROSECONDS
"""Durations below this count as this in the bounded slowdown: Feitelson, "Metrics for Parallel Job
Scheduling and Their Convergence", JSSPP 2001."""


def count_states(jobs: Jobs, chosen: Integers) -> dict[str, Figure]:
    """Count some jobs (ranks): submitted, and how many ended in each state."""
    counts = np.bincount(jobs.state[chosen], minlength=len(STATES))
    return {
        "submitted": len(chosen),
        **{state: int(number) for state, number in zip(STATES, counts, strict=True)},
    }


def job_figures(jobs: Jobs, chosen: Integers) -> dict[str, Figure]:
    """JCT, waits and slowdowns of the completed ones among some jobs, in seconds; None without any."""
    done = chosen[jobs.state[chosen] == COMPLETED]
    jct = _column(jobs, "jct_s", done)
    wait = _column(jobs, "wait_s", done)
    duration = jobs.duration_us[done]
    return {
        **_distribution("jct_s", jct),
        **_distribution("wait_s", wait),
        "mean_total_wait_s": mean_s(_column(jobs, "total_wait_s", done)),
        "mean_slowdown": _mean(jct[duration > 0] / duration[duration > 0]),
        "mean_bounded_slowdown": _mean(bounded_slowdown(jct, duration)),
    }


def count_moves(jobs: Jobs, chosen: Integers) -> dict[str, Figure]:
    """Count the preemptions, migrations and resizes of some jobs, however they ended."""
    return {
        name: exact_sum(to_integers(jobs.table[name].iloc[chosen], 1, 0)) if name in jobs.table else 0
        for name in ("preemptions", "migrations", "resizes")
    }


def bounded_slowdown(jct_us: Integers, duration_us: Integers) -> Floats:
    """JCT / max(duration, 10 s), at least 1."""
    return np.maximum(jct_us / np.maximum(duration_us, BOUND_US), 1.0)


def quantile_s(ordered: Integers, percent: int) -> float | None:
    """Interpolate a quantile of ordered microseconds linearly; seconds, None when there are none."""
    if not len(ordered):
        return None
    below, hundredths = divmod((len(ordered) - 1) * percent, 100)
    low = int(ordered[below])
    high = int(ordered[min(below + 1, len(ordered) - 1)])
    return (low * (100 - hundredths) + high * hundredths) / (100 * MICROSECONDS)


def mean_s(values: Integers) -> float | None:
    """Average microseconds, in seconds; None when there are none."""
    return exact_sum(values) / (len(values) * MICROSECONDS) if len(values) else None


def _distribution(name: str, values: Integers) -> dict[str, Figure]:
    ordered = np.sort(values)
    return {
        f"mean_{name}": mean_s(values),
        f"median_{name}": quantile_s(ordered, 50),
        f"p90_{name}": quantile_s(ordered, 90),
        f"p99_{name}": quantile_s(ordered, 99),
    }


def _mean(values: Floats) -> float | None:
    return math.fsum(values) / len(values) if len(values) else None


def _column(jobs: Jobs, name: str, chosen: Integers) -> Integers:
    return to_microseconds(jobs.table[name].iloc[chosen])
