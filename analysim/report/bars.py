"""Horizontal bars with their values written behind them, and the figure of the tenants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysim.metrics import by_tenant
from analysim.report.measured import measured_interval
from analysim.report.scales import duration_unit, readable
from analysim.report.style import (
    BLUE,
    CM_PER_INCH,
    GREEN,
    GREY,
    PAGE_WIDTH_CM,
    VERMILION,
    new_figure,
    short_names,
    write_instead,
)
from analysim.tables import RunTables

MOST_TENANTS = 12
"""Tenants with bars of their own; the rest are folded into one."""

BAR_CM = 0.38
"""Height of one bar and its gap: a line of text at the smallest font."""

_LETTER_PT = 5.0  # about the width of a letter of the smallest font, wide ones included


@dataclass(frozen=True)
class Panel:
    """One set of bars: a title with the unit, a value a bar (NaN: undefined) and what to write behind it."""

    title: str
    values: Sequence[float]
    texts: Sequence[str]


def duration_panel(name: str, values_s: Sequence[float]) -> Panel:
    """Make a panel of durations in the unit that suits the longest."""
    longest = max((value for value in values_s if not math.isnan(value)), default=0.0)
    unit, seconds = duration_unit(longest)
    values = [value / seconds for value in values_s]
    return Panel(f"{name} ({unit})", values, [readable(value) for value in values])


def number_panel(name: str, values: Sequence[float]) -> Panel:
    """Make a panel of plain numbers; a unit, if any, is part of the name."""
    return Panel(name, values, [readable(value) for value in values])


def count_panel(name: str, values: Sequence[float]) -> Panel:
    """Make a panel of whole numbers."""
    return Panel(name, values, [f"{value:,.0f}" if abs(value) < 1e6 else readable(value) for value in values])


def share_panel(name: str, values: Sequence[float]) -> Panel:
    """Make a panel of shares, in percent."""
    return Panel(name, values, ["n/a" if math.isnan(value) else f"{value:.1%}" for value in values])


def draw_panels(
    row: Sequence[Axes], panels: Sequence[Panel], colors: Sequence[Sequence[str]], names: Sequence[str]
) -> None:
    """Draw panels side by side, their bars named on the left, with room kept for what is behind the bars."""
    page_pt = PAGE_WIDTH_CM / CM_PER_INCH * 72
    width_pt = (page_pt - _LETTER_PT * max(map(len, names))) / len(row) - 12
    for axes, panel, color in zip(row, panels, colors, strict=True):
        _draw_panel(axes, panel, color, width_pt)
    row[0].set_yticks(range(len(names)), names)


def _draw_panel(axes: Axes, panel: Panel, colors: Sequence[str], width_pt: float) -> None:
    """Draw the bars from the top down; the axis of values is left out, as each value is written out."""
    values = np.nan_to_num(np.asarray(panel.values, dtype=float))
    places = np.arange(len(values))
    largest = max(float(values.max(initial=0.0)), 1e-12)
    axes.barh(places, values, height=0.72, color=list(colors))
    for place, value, text in zip(places, values, panel.texts, strict=True):
        axes.annotate(text, (value, place), xytext=(3, 0), textcoords="offset points", va="center")
    behind_pt = _LETTER_PT * max(map(len, panel.texts)) + 3
    axes.set_xlim(0, largest / max(1 - behind_pt / width_pt, 0.1))
    axes.set_ylim(len(values) - 0.45, -0.55)
    axes.set_title(panel.title)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)
    axes.grid(visible=False)


def draw_tenants(tables: RunTables, summary: Mapping[str, Any], title: str, caption: str) -> Figure:
    """Draw mean JCT, mean bounded slowdown and GPU-hours of each tenant, those with most GPU-hours first."""
    table = rank_tenants(tables, summary)
    figure = new_figure(title, BAR_CM * max(len(table), 2) + 0.9, caption)
    if not len(table):
        write_instead(figure.add_subplot(), "no job with GPUs")
        return figure
    panels = (
        duration_panel("mean JCT", table["mean_jct_s"].tolist()),
        number_panel("mean bounded slowdown", table["mean_bounded_slowdown"].tolist()),
        count_panel("GPU-hours held", table["gpu_hours_held"].tolist()),
    )
    colors = [[GREY if folded else color for folded in table["folded"]] for color in (BLUE, VERMILION, GREEN)]
    axes = figure.subplots(1, len(panels), sharey=True)
    draw_panels(axes, panels, colors, short_names(table["tenant"].tolist()))
    return figure


def rank_tenants(tables: RunTables, summary: Mapping[str, Any]) -> pd.DataFrame:
    """Tabulate tenants, those with most GPU-hours first.

    All but the ``MOST_TENANTS`` that asked for most GPU-hours are folded into a last row. Columns as
    ``analysim.metrics.by_tenant``, and ``folded`` (bool).
    """
    jobs = tables.jobs
    tenant = jobs["tenant"].fillna("").astype(str)
    asked = (jobs["num_gpus"] * jobs["duration_s"])[jobs["num_gpus"] > 0].groupby(tenant).sum()
    ranked = asked.sort_values(ascending=False, kind="stable").index
    others = ranked[MOST_TENANTS:] if len(ranked) > MOST_TENANTS + 1 else ranked[:0]
    name = f"({len(others)} other tenants)"
    jobs = jobs.assign(tenant=tenant.where(~tenant.isin(others), name))
    table = by_tenant(replace(tables, jobs=jobs), measured_interval(tables, summary))
    table["folded"] = table["tenant"] == name
    order = ["folded", "gpu_hours_held"]
    return table.sort_values(order, ascending=[True, False], kind="stable", ignore_index=True)
