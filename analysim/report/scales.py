"""Axes in the units of people: time since the first submit, and durations on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from analysim.report.style import GREY
from analysim.tables import RunTables

SHORTEST_SHOWN_S = 1.0
"""Durations below this are drawn at this value on a logarithmic axis, whose tick then says so."""

THOUSANDS = FuncFormatter(lambda value, _: f"{value:,.10g}")
"""Tick labels with thousands separators."""

PERCENT = FuncFormatter(lambda value, _: f"{100 * value:.4g}%")
"""Tick labels of shares."""

_UNITS = (("s", 1.0), ("min", 60.0), ("h", 3_600.0), ("days", 86_400.0))
_DURATION_TICKS_S = (
    (1, "1 s"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3_600, "1 h"),
    (36_000, "10 h"),
    *((86_400 * 10**power, f"{10**power:,} d") for power in range(7)),
)
_TENFOLDS = ("10 s", "10 min", "10 h")
_UNIT_NAMES = {"s": "seconds", "min": "minutes", "h": "hours", "days": "days"}


def duration_unit(longest_s: float) -> tuple[str, float]:
    """Choose the unit for durations up to ``longest_s``: its short name and its seconds."""
    if longest_s <= 120:
        return _UNITS[0]
    if longest_s <= 2 * 3_600:
        return _UNITS[1]
    return _UNITS[2] if longest_s <= 3 * 86_400 else _UNITS[3]


def readable(value: float) -> str:
    """Write a number with three significant digits, whole from 100 on: ``0.0123``, ``4.50``, ``12,345``."""
    if not math.isfinite(value):
        return "n/a"
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.3g} M"
    if abs(value) >= 100 or value == 0:
        return f"{value:,.0f}"
    digits = min(2 - math.floor(math.log10(abs(value))), 6)
    return f"{value:.{digits}f}"


def size_text(size_class: str) -> str:
    """Write a class of GPU sizes: ``1 GPU``, ``2-4 GPUs``."""
    return f"{size_class} {'GPU' if size_class == '1' else 'GPUs'}"


@dataclass(frozen=True)
class TimeAxis:
    """Time since the first submit, in a unit that suits the run's span.

    ``origin_s`` and ``end_s`` are on the trace's clock.
    """

    origin_s: float
    end_s: float

    @property
    def span_s(self) -> float:
        """Length of the axis in seconds."""
        return self.end_s - self.origin_s

    @property
    def unit_s(self) -> float:
        """Seconds in the unit of the axis."""
        return duration_unit(self.span_s)[1]

    def of(self, times_s: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Turn seconds on the trace's clock into axis units."""
        return (np.asarray(times_s, dtype=float) - self.origin_s) / self.unit_s

    def label(self, axes: Axes, step_s: float = 0.0) -> None:
        """Set limits and label of the x axis; ``step_s`` is the interval that each step averages."""
        name = _UNIT_NAMES[duration_unit(self.span_s)[0]]
        text = f"time since first submit ({name})"
        if step_s > 0:
            step, seconds = duration_unit(step_s)
            text += f", each step a mean over {readable(step_s / seconds)} {step}"
        axes.set_xlabel(text)
        axes.set_xlim(0, max(self.span_s / self.unit_s, 1e-6))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(THOUSANDS)

    def mark_last_submit(self, axes: Axes, last_submit_s: float) -> Line2D | None:
        """Draw a line at the last submit and return it for the legend; what follows is the run-out.

        Nothing is drawn (None) where that is practically the end.
        """
        if self.end_s - last_submit_s < 0.02 * self.span_s:
            return None
        return axes.axvline(float(self.of(last_submit_s)), color=GREY, linewidth=0.9, linestyle=":")

    def measured(self, summary: Mapping[str, Any]) -> tuple[float, float]:
        """Return the measured interval of the headline figures, in seconds on the trace's clock."""
        measured = summary.get("measured") or {"from_s": self.origin_s, "to_s": self.end_s}
        return measured["from_s"], measured["to_s"]

    def shade_unmeasured(self, axes: Axes, summary: Mapping[str, Any]) -> Patch | None:
        """Hatch what lies outside the measured interval and return a patch for the legend.

        None where all of the run is measured.
        """
        low, high = self.measured(summary)
        look: dict[str, Any] = {
            "facecolor": "none",
            "edgecolor": "#BBBBBB",
            "hatch": "///",
            "linewidth": 0,
            "zorder": 0.5,
        }
        patch = None
        for start, end in ((self.origin_s, low), (high, self.end_s)):
            if end - start > 1e-3 * self.span_s:
                edges = self.of([start, end])
                patch = axes.axvspan(float(edges[0]), float(edges[1]), **look)
        return patch


def time_axis(tables: RunTables) -> TimeAxis:
    """Return the time axis of a run: from its first submit to its last end."""
    submits = tables.jobs["submit_time_s"]
    starts, ends = tables.timeline["start_s"], tables.timeline["end_s"]
    origin = submits.min() if len(submits) else starts.min() if len(starts) else 0.0
    last = max((column.max() for column in (submits, ends) if len(column)), default=origin)
    return TimeAxis(float(origin), float(max(last, origin)))


def use_duration_ticks(axes: Axes, shortest_s: float, longest_s: float, *, narrow: bool = False) -> None:
    """Make the x axis logarithmic, with ticks at 1 s, 1 min, 1 h, 1 d and tenfolds of them.

    On ``narrow`` axes the tenfolds below a day have no label where the range is wide. Curves must be clipped to
    ``SHORTEST_SHOWN_S``; where that cut something, its tick reads "≤1 s".
    """
    low, high = max(shortest_s, SHORTEST_SHOWN_S), max(longest_s, SHORTEST_SHOWN_S)
    values = np.array([value for value, _ in _DURATION_TICKS_S], dtype=float)
    if np.sum((values >= low) & (values <= high)) < 2:  # too narrow to be read: widen to the ticks around
        low = float(values[values <= low].max())
        high = float(values[(values > low) & (values >= high)].min())
    axes.set_xscale("log")
    axes.set_xlim(low / 1.15, high * 1.15)
    crowded = narrow and high > 1e4 * low
    names = {float(value): text for value, text in _DURATION_TICKS_S if not (crowded and text in _TENFOLDS)}
    if shortest_s < SHORTEST_SHOWN_S:
        names[SHORTEST_SHOWN_S] = "≤1 s"
    multiples = [(factor * value, after) for value, after in pairwise(values) for factor in range(2, 10)]
    minor = [value for value, after in multiples if value < after]
    axes.xaxis.set_major_locator(FixedLocator(list(values)))
    axes.xaxis.set_minor_locator(FixedLocator(minor))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: names.get(float(value), "")))
    axes.xaxis.set_minor_formatter(NullFormatter())


def coarsen(timeline: pd.DataFrame, column: str, steps: int) -> tuple[Any, Any]:
    """Average a timeline column over at most ``steps`` longer intervals, weighted by time.

    Returns (edges in seconds, values); intervals without any value stay NaN.
    """
    size = max(math.ceil(len(timeline) / steps), 1)
    firsts = np.arange(0, len(timeline), size)
    starts = timeline["start_s"].to_numpy(dtype=float)
    ends = timeline["end_s"].to_numpy(dtype=float)
    values = timeline[column].to_numpy(dtype=float)
    width = np.where(np.isnan(values), 0.0, ends - starts)
    total = np.add.reduceat(np.nan_to_num(values) * width, firsts)
    weight = np.add.reduceat(width, firsts)
    mean = np.divide(total, weight, out=np.full(len(firsts), np.nan), where=weight > 0)
    return np.append(starts[firsts], ends[-1]), mean
