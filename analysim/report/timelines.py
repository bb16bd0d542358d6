"""What the cluster did over time: utilisation, queue and fragmentation, as steps of exact time averages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysim.report.scales import PERCENT, THOUSANDS, TimeAxis, coarsen, readable, time_axis
from analysim.report.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    VERMILION,
    legend_above,
    new_figure,
    write_instead,
)
from analysim.tables import RunTables

MOST_STEPS = 500
"""Steps of one curve over time: more than about one a point is no longer seen at page width."""

FRAGMENTATION = {
    "unusable_share": ("unusable share of free GPUs", VERMILION),
    "stranded_gpus": ("stranded GPUs", BLUE),
    "largest_gang_share": ("largest gang / free GPUs", GREEN),
    "excess_nodes": ("excess nodes in use", PURPLE),
}
"""The four measures side by side: column -> (title, colour)."""


def draw_utilisation(tables: RunTables, summary: Mapping[str, Any], title: str, caption: str) -> Figure:
    """Draw GPUs up, held and doing useful work over time."""
    figure = new_figure(title, 6.4, caption)
    axes = figure.add_subplot()
    if _is_empty(tables, axes):
        return figure
    axis = time_axis(tables)
    edges, up = coarsen(tables.timeline, "gpus_up", MOST_STEPS)
    _, held = coarsen(tables.timeline, "gpus_held", MOST_STEPS)
    _, productive = coarsen(tables.timeline, "gpus_productive", MOST_STEPS)
    x = axis.of(edges)
    area = axes.stairs(held, x, fill=True, color=SKY_BLUE, alpha=0.55, linewidth=0)
    useful = axes.stairs(productive, x, color=BLUE, linewidth=0.9, baseline=None)
    top = axes.stairs(up, x, color=BLACK, linewidth=1.1, linestyle="--", baseline=None)
    axes.set_ylim(0, max(float(np.nanmax(up)), 1) * 1.08)
    axes.set_ylabel("GPUs")
    axes.yaxis.set_major_formatter(THOUSANDS)
    held_share = share_text(summary.get("allocated_utilisation"))
    useful_share = share_text(summary.get("productive_utilisation"))
    marks = _mark(axes, axis, tables, summary, edges)
    if summary.get("fill_up_s"):
        filled = float(tables.jobs["submit_time_s"].min()) + summary["fill_up_s"]
        marks["filled up"] = axes.axvline(float(axis.of(filled)), color=VERMILION, linewidth=0.9, linestyle=":")
    names = ["up", f"held{held_share}", f"useful work{useful_share}"]
    legend_above(axes, [top, area, useful, *marks.values()], [*names, *marks])
    return figure


def draw_queue(tables: RunTables, summary: Mapping[str, Any], title: str, caption: str) -> Figure:
    """Draw how many jobs wait, and how many GPUs they ask for, over time."""
    figure = new_figure(title, 8.0, caption)
    upper, lower = figure.subplots(2, 1, sharex=True)
    if _is_empty(tables, upper, lower):
        return figure
    axis = time_axis(tables)
    for axes, column, name, color in (
        (upper, "jobs_pending", "jobs waiting", BLUE),
        (lower, "gpus_pending", "GPUs they ask for", ORANGE),
    ):
        edges, values = coarsen(tables.timeline, column, MOST_STEPS)
        axes.stairs(values, axis.of(edges), fill=True, color=color, alpha=0.35, linewidth=0)
        axes.stairs(values, axis.of(edges), color=color, linewidth=0.9, baseline=None)
        axes.set_ylabel(name)
        axes.set_ylim(0, max(float(np.nanmax(values)) * 1.12, 1))
        axes.yaxis.set_major_formatter(THOUSANDS)
        marks = _mark(axes, axis, tables, summary, edges)
    upper.set_xlabel("")
    legend_above(upper, list(marks.values()), list(marks))
    figure.align_ylabels()
    return figure


def draw_fragmentation(tables: RunTables, summary: Mapping[str, Any], title: str, caption: str) -> Figure:
    """Draw the four measures of fragmentation over time, each in its own axes."""
    figure = new_figure(title, 9.6, caption)
    panels = figure.subplots(2, 2, sharex=True)
    if _is_empty(tables, *panels.flat):
        return figure
    axis = time_axis(tables)
    means, measured = summary.get("fragmentation") or {}, axis.of(axis.measured(summary))
    for axes, (column, (name, color)) in zip(panels.flat, FRAGMENTATION.items(), strict=True):
        edges, values = coarsen(tables.timeline, column, MOST_STEPS)
        axes.stairs(values, axis.of(edges), color=color, linewidth=0.8, baseline=None)
        mean = means.get(column)
        share = column.endswith("share")
        if mean is not None:
            axes.plot(measured, (mean, mean), color=BLACK, linewidth=0.8, linestyle="--")
            name += f" (mean {mean:.1%})" if share else f" (mean {readable(mean)})"
        axes.set_title(name)
        highest = np.nanmax(values, initial=0.0)
        axes.set_ylim(0, min(max(float(highest) * 1.1, 0.1), 1.02) if share else max(float(highest) * 1.1, 1))
        axes.yaxis.set_major_formatter(PERCENT if share else THOUSANDS)
        axis.label(axes)
        axis.shade_unmeasured(axes, summary)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    for axes in panels[0]:
        axes.set_xlabel("")
    return figure


def share_text(share: float | None) -> str:
    """Write a mean share for a legend, or nothing where it is undefined."""
    return "" if share is None else f" (mean {share:.1%})"


def _mark(
    axes: Axes, axis: TimeAxis, tables: RunTables, summary: Mapping[str, Any], edges: Any
) -> dict[str, Artist]:
    """Label the time axis, mark the last submit and what is not measured; legend name -> what was drawn."""
    axis.label(axes, float(edges[1] - edges[0]))
    marks = {
        "last submit": axis.mark_last_submit(axes, float(tables.jobs["submit_time_s"].max())),
        "not measured": axis.shade_unmeasured(axes, summary),
    }
    return {name: mark for name, mark in marks.items() if mark is not None}


def _is_empty(tables: RunTables, *panels: Axes) -> bool:
    if len(tables.timeline):
        return False
    for axes in panels:
        write_instead(axes, "nothing ran")
    return True
