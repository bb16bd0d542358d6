"""Placement alone: GPUs allocated and fragmented against the load that has arrived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysim.report.style import GREY, legend_above, line_style, new_figure, paper_style, save_figure, short_names

FIGURE = "placement"
"""Name of the figure's files."""

_ALLOCATED, _FRAGMENTED = "allocated_percent", "fragmented_percent_of_capacity"
_VISIBLE = 1.0
"""Per cent of the cluster by which allocation falls behind arrivals when that is first seen."""

_WHOLE = FuncFormatter(lambda value, _: f"{value:.4g}%")


def draw_placing(curves: pd.DataFrame, title: str, out: Path, caption: str) -> list[Path]:
    """Draw the curves of placements into ``out`` (PNG and SVG) and return the paths.

    ``curves`` has a row for each placement, seed and whole per cent of arrived load. A line is the mean over seeds,
    its band the standard deviation to each side. Raises ``RunFolderError`` where a file cannot be written.
    """
    placements = list(dict.fromkeys(curves["placement"]))
    with paper_style():
        figure = new_figure(f"Placement: {title}", 13.5, caption)
        upper, lower = figure.subplots(2, 1)
        lines = _draw(upper, curves, _ALLOCATED, placements)
        _draw(lower, curves, _FRAGMENTED, placements)
        start, last = _departure(curves), float(curves["arrived_load_percent"].max())
        bound = upper.plot((0, min(last, 100)), (0, min(last, 100)), color=GREY, linewidth=0.9, linestyle=":")[0]
        seen = curves[curves["arrived_load_percent"] >= start][_ALLOCATED]
        upper.set_xlim(start, last)
        upper.set_ylim(float(seen.min()) - 1, min(max(float(seen.max()) + 3, start + 1), 101))
        upper.set_ylabel("GPUs allocated")
        upper.set_xlabel("arrived load (GPUs asked for / GPUs of the cluster), where placements begin to differ")
        lower.set_xlim(0, last)
        lower.set_ylim(bottom=0)
        lower.set_ylabel("GPUs free and fragmented")
        lower.set_xlabel("arrived load (GPUs asked for / GPUs of the cluster)")
        for axes in (upper, lower):
            axes.xaxis.set_major_formatter(_WHOLE)
            axes.yaxis.set_major_formatter(_WHOLE)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        legend_above(upper, [*lines, bound], [*short_names(placements), "all that arrived"])
        figure.align_ylabels()
        return save_figure(figure, out, FIGURE)


def _draw(axes: Axes, curves: pd.DataFrame, column: str, placements: list[str]) -> list[Line2D]:
    lines = []
    for position, placement in enumerate(placements):
        by_load = curves[curves["placement"] == placement].groupby("arrived_load_percent")[column]
        mean, spread = by_load.mean(), by_load.std(ddof=1).fillna(0)
        look: dict[str, Any] = line_style(position)
        low, high = (mean - spread).to_numpy(), (mean + spread).to_numpy()
        axes.fill_between(mean.index.to_numpy(), low, high, color=look["color"], alpha=0.18, linewidth=0)
        lines.append(axes.plot(mean.index.to_numpy(), mean.to_numpy(), **look)[0])
    return lines


def _departure(curves: pd.DataFrame) -> float:
    """The load, rounded down to tens and with some room, from which on not all that arrives is allocated."""
    behind = curves["arrived_load_percent"].clip(upper=100) - curves[_ALLOCATED] > _VISIBLE
    loads = curves.loc[behind, "arrived_load_percent"]
    last = float(curves["arrived_load_percent"].max())
    if not len(loads):
        return 0.0
    return max(0.0, min(float(loads.min() // 10 * 10), last - 10))
