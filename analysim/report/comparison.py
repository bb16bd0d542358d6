"""Runs side by side: bars of the headline figures, curves over one another, and JCT by job size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from analysim.metrics import by_size, compare_summaries
from analysim.report.bars import (
    BAR_CM,
    Panel,
    count_panel,
    draw_panels,
    duration_panel,
    number_panel,
    share_panel,
)
from analysim.report.distributions import Curve
from analysim.report.measured import headline_jobs, measured_interval
from analysim.report.scales import PERCENT, THOUSANDS, TimeAxis, coarsen, size_text, time_axis
from analysim.report.style import BLACK, PALETTE, legend_above, line_style, new_figure, write_instead
from analysim.tables import RunTables
from analysim.units import format_ratio, format_seconds

MOST_STEPS = 250
"""Steps of one curve where curves of several runs lie over one another."""

_COLUMNS = 3
_PANELS: tuple[tuple[str, str, Callable[[str, Sequence[float]], Panel]], ...] = (
    ("mean_jct_s", "mean JCT", duration_panel),
    ("median_jct_s", "median JCT", duration_panel),
    ("p99_jct_s", "p99 JCT", duration_panel),
    ("mean_wait_s", "mean wait", duration_panel),
    ("mean_total_wait_s", "mean total wait", duration_panel),
    ("p99_wait_s", "p99 wait", duration_panel),
    ("mean_bounded_slowdown", "mean bounded slowdown", number_panel),
    ("fairness.jain", "Jain's fairness index", number_panel),
    ("makespan_s", "makespan", duration_panel),
    ("allocated_utilisation", "allocated utilisation", share_panel),
    ("productive_utilisation", "productive utilisation", share_panel),
    ("gpu_hours_lost", "GPU-hours lost", number_panel),
    ("fragmentation.unusable_share", "unusable share of free", share_panel),
    ("fragmentation.stranded_gpus", "stranded GPUs", number_panel),
    ("fragmentation.largest_gang_share", "largest gang / free GPUs", share_panel),
    ("fragmentation.excess_nodes", "excess nodes in use", number_panel),
    ("preemptions", "preemptions", count_panel),
    ("migrations", "migrations", count_panel),
)


@dataclass(frozen=True)
class ComparedRun:
    """One run among those compared: a short name of its own, its tables and its headline figures."""

    name: str
    tables: RunTables
    summary: Mapping[str, Any]


def draw_bars(runs: Sequence[ComparedRun], title: str, caption: str) -> Figure:
    """Draw the headline figures as small multiples: the value of each run, and its ratio to the first."""
    rows = [_PANELS[first : first + _COLUMNS] for first in range(0, len(_PANELS), _COLUMNS)]
    figure = new_figure(title, len(rows) * (BAR_CM * len(runs) + 0.75), caption)
    table = compare_summaries([dict(run.summary) for run in runs])
    colors = [PALETTE[i % len(PALETTE)] for i in range(len(runs))]
    for row, axes in zip(rows, figure.subplots(len(rows), _COLUMNS, sharey=True), strict=True):
        panels = [_compare(make(name, _numbers(table, column)), table, column) for column, name, make in row]
        draw_panels(axes, panels, [colors] * len(panels), [run.name for run in runs])
    return figure


def _compare(panel: Panel, table: pd.DataFrame, column: str) -> Panel:
    """Write behind each value its ratio to the first."""
    ratios = _numbers(table, f"{column}_ratio")
    texts = [f"{text}  {format_ratio(ratio)}".rstrip() for text, ratio in zip(panel.texts[1:], ratios[1:], strict=True)]
    return replace(panel, texts=[panel.texts[0], *texts])


def _numbers(table: pd.DataFrame, column: str) -> list[float]:
    if column not in table:
        return [math.nan] * len(table)
    return [float(value) for value in pd.to_numeric(table[column], errors="coerce")]


def run_curves(runs: Sequence[ComparedRun], column: str) -> list[Curve]:
    """Make the distribution of each run's headline jobs."""
    return [
        Curve(run.name, headline_jobs(run.tables, run.summary)[column].to_numpy(dtype=float), line_style(i))
        for i, run in enumerate(runs)
    ]


def draw_over_time(
    runs: Sequence[ComparedRun], columns: Mapping[str, str], shares: bool, title: str, caption: str
) -> Figure:
    """Draw columns of the timelines of all runs over one another, each column in axes of its own.

    ``columns``: column -> label of the y axis. With ``shares``, values are divided by the GPUs up.
    """
    figure = new_figure(title, 4.4 * len(columns) + 1.2, caption)
    panels = figure.subplots(len(columns), 1, sharex=True, squeeze=False)[:, 0]
    drawn = [(run, line_style(i)) for i, run in enumerate(runs) if len(run.tables.timeline)]
    if not drawn:
        for axes in panels:
            write_instead(axes, "nothing ran")
        return figure
    span_s = max(time_axis(run.tables).span_s for run, _ in drawn)
    for axes, (column, label) in zip(panels, columns.items(), strict=True):
        lines = [_draw_line(axes, run, column, shares, span_s, look) for run, look in drawn]
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(PERCENT if shares else THOUSANDS)
        TimeAxis(0.0, span_s).label(axes)
    for axes in panels[:-1]:
        axes.set_xlabel("")
    legend_above(panels[0], lines, [run.name for run, _ in drawn])
    figure.align_ylabels()
    return figure


def _draw_line(
    axes: Axes, run: ComparedRun, column: str, shares: bool, span_s: float, look: Mapping[str, Any]
) -> StepPatch:
    origin_s = time_axis(run.tables).origin_s
    edges, values = coarsen(run.tables.timeline, column, MOST_STEPS)
    if shares:
        _, up = coarsen(run.tables.timeline, "gpus_up", MOST_STEPS)
        values = np.divide(values, up, out=np.full(len(up), np.nan), where=up > 0)
    x = TimeAxis(origin_s, origin_s + span_s).of(edges)
    return axes.stairs(values, x, baseline=None, linewidth=1.1, **look)


def draw_size_classes(runs: Sequence[ComparedRun], title: str, caption: str) -> Figure:
    """Draw mean and median JCT by job-size class as ratios to the first run, on a logarithmic axis."""
    figure = new_figure(title, 11.6, caption)
    panels = figure.subplots(2, 1)
    tables = [_size_table(run) for run in runs]
    if len(runs) < 2 or not len(tables[0]):
        for axes in panels:
            write_instead(
                axes, "one run only" if len(runs) < 2 else f"no completed GPU jobs under {runs[0].name}"
            )
        return figure
    for axes, (column, name) in zip(
        panels, (("mean_jct_s", "mean"), ("median_jct_s", "median")), strict=True
    ):
        bars = _draw_ratios(axes, tables, column)
        axes.set_ylabel(f"ratio of {name} JCTs")
        classes = zip(tables[0].index, tables[0][column], strict=True)
        labels = [f"{size_text(size)}\n({format_seconds(value)})" for size, value in classes]
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlabel(f"job size, in brackets the {name} JCT under {runs[0].name}")
    legend_above(panels[0], bars, [run.name for run in runs[1:]])
    return figure


def _size_table(run: ComparedRun) -> pd.DataFrame:
    """Figures of the GPU-size classes with completed jobs, by class."""
    table = by_size(run.tables, measured_interval(run.tables, run.summary)).set_index("size_class")
    return table[(table["completed"] > 0) & (table.index != "0")]


def _draw_ratios(axes: Axes, tables: Sequence[pd.DataFrame], column: str) -> list[BarContainer]:
    first = tables[0][column]
    ratios = [table[column].reindex(first.index).to_numpy(dtype=float) / first.to_numpy() for table in tables]
    width = 0.8 / max(len(tables) - 1, 1)
    places = np.arange(len(first)) - 0.4 + width / 2
    bars = []
    for i, ratio in enumerate(ratios[1:], 1):
        shown = np.where(ratio > 0, ratio, np.nan)
        color = PALETTE[i % len(PALETTE)]
        bars.append(axes.bar(places + (i - 1) * width, shown - 1, width * 0.92, bottom=1.0, color=color))
    axes.axhline(1.0, color=BLACK, linewidth=0.8)
    _use_ratio_axis(axes, np.concatenate(ratios))
    axes.grid(visible=False, axis="x")
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(first) - 0.5)
    return bars


def _use_ratio_axis(axes: Axes, ratios: Any) -> None:
    """Make the y axis logarithmic around 1, with ticks that suit the range."""
    finite = ratios[np.isfinite(ratios) & (ratios > 0)]
    low, high = min(float(finite.min()), 0.97), max(float(finite.max()), 1.03)
    margin = (high / low) ** 0.08
    axes.set_yscale("log")
    axes.set_ylim(low / margin, high * margin)
    wide = [
        step * 10.0**power for power in range(-4, 6) for step in ((1, 2, 5) if high / low < 100 else (1,))
    ]
    narrow = MaxNLocator(6, steps=[1, 2, 5, 10])
    axes.yaxis.set_major_locator(FixedLocator(wide) if high / low > 6 else narrow)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_ratio(value)))
