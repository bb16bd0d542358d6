"""Headline figures as tables of text: of one run, and of several against the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from analysim.cli.talk import print_table
from analysim.units import format_number, format_ratio, format_seconds

if TYPE_CHECKING:
    import pandas as pd

    from analysim.study.runs import Run

NOTHING = "-"
"""What stands for a figure that is not defined."""


def show_share(share: float) -> str:
    """Write a share as per cent."""
    return f"{share:.1%}"


Show = Callable[[float], str]

JOB_FIGURES: tuple[tuple[str, str, Show], ...] = (
    ("submitted", "jobs submitted", format_number),
    ("completed", "completed", format_number),
    ("killed", "killed", format_number),
    ("cancelled", "cancelled", format_number),
    ("rejected", "rejected", format_number),
    ("unfinished", "unfinished", format_number),
    ("offered_load", "offered load", format_number),
)
RESULT_FIGURES: tuple[tuple[str, str, Show], ...] = (
    ("mean_jct_s", "mean JCT", format_seconds),
    ("median_jct_s", "median JCT", format_seconds),
    ("p90_jct_s", "p90 JCT", format_seconds),
    ("p99_jct_s", "p99 JCT", format_seconds),
    ("mean_wait_s", "mean wait", format_seconds),
    ("median_wait_s", "median wait", format_seconds),
    ("p90_wait_s", "p90 wait", format_seconds),
    ("p99_wait_s", "p99 wait", format_seconds),
    ("mean_total_wait_s", "mean total wait", format_seconds),
    ("mean_slowdown", "mean slowdown", format_number),
    ("mean_bounded_slowdown", "mean bounded slowdown", format_number),
    ("makespan_s", "makespan", format_seconds),
    ("fill_up_s", "filled up after", format_seconds),
    ("allocated_utilisation", "allocated utilisation", show_share),
    ("productive_utilisation", "productive utilisation", show_share),
    ("fragmentation.unusable_share", "free GPUs unusable", show_share),
    ("fragmentation.stranded_gpus", "stranded GPUs", format_number),
    ("fragmentation.largest_gang_share", "largest gang / free GPUs", show_share),
    ("fragmentation.excess_nodes", "excess nodes in use", format_number),
    ("fairness.jain", "fairness (Jain)", format_number),
    ("fairness.max_over_min", "fairness (max / min)", format_number),
    ("preemptions", "preemptions", format_number),
    ("migrations", "migrations", format_number),
    ("resizes", "resizes", format_number),
    ("deadlines", "jobs with a deadline", format_number),
    ("deadlines_met", "deadlines met", format_number),
    ("gpu_hours_lost", "GPU-hours lost", format_number),
)
SHOWN_IF_ANY = ("resizes", "deadlines", "deadlines_met")
"""Figures that are left out where they are 0 throughout."""
PAIRED_FIGURES: tuple[tuple[str, str, Show], ...] = (
    ("paired.faster", "jobs faster than first", show_share),
    ("paired.slower", "jobs slower than first", show_share),
    ("paired.median_ratio", "median JCT ratio of a job", format_number),
)


def print_summary(run: Run) -> None:
    """Write the headline figures of one run to stdout."""
    summary = run.summary
    rows = [["policy (knowledge)", run.label], ["trace", summary["trace"]], ["topology", _topology(summary)]]
    for path, title, show in (*JOB_FIGURES, *RESULT_FIGURES):
        if path in SHOWN_IF_ANY and not _at(summary, path):
            continue
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
        if path not in table or (path in SHOWN_IF_ANY and not table[path].any()):
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
    return f"{text} {format_ratio(ratio):>6}"


def print_sizes(tables: dict[str, pd.DataFrame]) -> None:
    """Write the mean JCT of each GPU-size class to stdout, a column a run, with ratios to the first run's."""
    first = next(iter(tables.values()))
    rows = [["mean JCT by GPUs", "jobs", *tables]]
    for size, jobs in zip(first["size_class"], first["submitted"], strict=True):
        means = [
            float(table.set_index("size_class")["mean_jct_s"].get(size, math.nan))
            for table in tables.values()
        ]
        texts = [_shown(mean, format_seconds) for mean in means]
        ratios = [mean / means[0] if means[0] else math.nan for mean in means]
        cells = [_with_ratio(*pair) for pair in zip(texts[1:], ratios[1:], strict=True)]
        rows.append([size, f"{int(jobs):,}", texts[0], *cells])
    print_table(rows)
