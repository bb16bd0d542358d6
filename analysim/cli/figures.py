"""Headline figures as tables of text: of one run, and of several against the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from analysim.cli.talk import print_table

if TYPE_CHECKING:
    import pandas as pd

    from analysim.study.runs import Run

NOTHING = "-"
"""What stands for a figure that is not defined."""


def show_time(seconds: float) -> str:
    """Write seconds in the unit that suits them: ``45.2 s``, ``34.1 min``, ``3.34 h``, ``12.5 d``."""
    for most, unit, length in ((120, "s", 1), (7_200, "min", 60), (172_800, "h", 3_600)):
        if abs(seconds) < most:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 86_400:,.1f} d"


def show_share(share: float) -> str:
    """Write a share as per cent."""
    return f"{share:.1%}"


def show_number(number: float) -> str:
    """Write a number with three digits, or all of them before the point."""
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


Show = Callable[[float], str]

JOB_FIGURES: tuple[tuple[str, str, Show], ...] = (
    ("submitted", "jobs submitted", show_number),
    ("completed", "completed", show_number),
    ("killed", "killed", show_number),
    ("cancelled", "cancelled", show_number),
    ("rejected", "rejected", show_number),
    ("unfinished", "unfinished", show_number),
    ("offered_load", "offered load", show_number),
)
RESULT_FIGURES: tuple[tuple[str, str, Show], ...] = (
    ("mean_jct_s", "mean JCT", show_time),
    ("median_jct_s", "median JCT", show_time),
    ("p90_jct_s", "p90 JCT", show_time),
    ("p99_jct_s", "p99 JCT", show_time),
    ("mean_wait_s", "mean wait", show_time),
    ("median_wait_s", "median wait", show_time),
    ("p90_wait_s", "p90 wait", show_time),
    ("p99_wait_s", "p99 wait", show_time),
    ("mean_total_wait_s", "mean total wait", show_time),
    ("mean_slowdown", "mean slowdown", show_number),
    ("mean_bounded_slowdown", "mean bounded slowdown", show_number),
    ("makespan_s", "makespan", show_time),
    ("allocated_utilisation", "allocated utilisation", show_share),
    ("productive_utilisation", "productive utilisation", show_share),
    ("fragmentation.unusable_share", "free GPUs unusable", show_share),
    ("fragmentation.stranded_gpus", "stranded GPUs", show_number),
    ("fragmentation.largest_gang_share", "largest gang / free GPUs", show_share),
    ("fragmentation.excess_nodes", "excess nodes in use", show_number),
    ("fairness.jain", "fairness (Jain)", show_number),
    ("fairness.max_over_min", "fairness (max / min)", show_number),
    ("preemptions", "preemptions", show_number),
    ("migrations", "migrations", show_number),
    ("gpu_hours_lost", "GPU-hours lost", show_number),
)
PAIRED_FIGURES: tuple[tuple[str, str, Show], ...] = (
    ("paired.faster", "jobs faster than first", show_share),
    ("paired.slower", "jobs slower than first", show_share),
    ("paired.median_ratio", "median JCT ratio of a job", show_number),
)


def print_summary(run: Run) -> None:
    """Write the headline figures of one run to stdout."""
    summary = run.summary
    rows = [["policy", run.label], ["trace", summary["trace"]], ["topology", _topology(summary)]]
    for path, title, show in (*JOB_FIGURES, *RESULT_FIGURES):
        rows.append([title, _shown(_at(summary, path), show)])
    print_table(rows, header=False)


def _topology(summary: dict[str, Any]) -> str:
    return f"{summary['topology']} (inferred)" if summary["inferred"] else str(summary["topology"])


def _at(summary: dict[str, Any], path: str) -> Any:
    value: Any = summary
    for name in path.split("."):
        value = value.get(name) if value else None
    return value


def _shown(value: float | None, show: Show) -> str:
    return NOTHING if value is None or math.isnan(value) else show(value)


def print_comparison(labels: Sequence[str], runs: Sequence[Run], table: pd.DataFrame) -> None:
    """Write a comparison to stdout, a column a run; behind a figure stands its ratio to the first run's."""
    topologies = [_topology(run.summary) for run in runs]
    rows = [["policy (knowledge)", *labels]]
    if len(set(topologies)) > 1:
        rows.append(["topology", *topologies])
    print(f"{runs[0].summary['trace']} on {', '.join(dict.fromkeys(topologies))}; × is against {labels[0]}\n")
    for path, title, show in (*JOB_FIGURES, *RESULT_FIGURES, *PAIRED_FIGURES):
        if path not in table:
            continue
        rows.append([title, *_cells(table, path, show)])
    print_table(rows)


def _cells(table: pd.DataFrame, column: str, show: Show) -> list[str]:
    texts = [_shown(float(value), show) for value in table[column]]
    if f"{column}_ratio" not in table:
        return texts
    ratios = [float(value) for value in table[f"{column}_ratio"]]
    return [texts[0], *(_with_ratio(*pair) for pair in zip(texts[1:], ratios[1:], strict=True))]


def _with_ratio(text: str, ratio: float) -> str:
    return f"{text} {'' if math.isnan(ratio) else f'×{ratio:.3g}':>6}"


def print_sizes(tables: dict[str, pd.DataFrame]) -> None:
    """Write the mean JCT of each GPU-size class to stdout, a column a run, with ratios to the first run's."""
    first = next(iter(tables.values()))
    rows = [["mean JCT by GPUs", "jobs", *tables]]
    for size, jobs in zip(first["size_class"], first["submitted"], strict=True):
        means = [
            float(table.set_index("size_class")["mean_jct_s"].get(size, math.nan))
            for table in tables.values()
        ]
        texts = [_shown(mean, show_time) for mean in means]
        ratios = [mean / means[0] if means[0] else math.nan for mean in means]
        cells = [_with_ratio(*pair) for pair in zip(texts[1:], ratios[1:], strict=True)]
        rows.append([size, f"{int(jobs):,}", texts[0], *cells])
    print_table(rows)
