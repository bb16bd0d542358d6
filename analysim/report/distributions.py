"""Distribution functions of job completion time and wait, on a logarithmic axis of durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysim.report.scales import PERCENT, SHORTEST_SHOWN_S, size_text, use_duration_ticks
from analysim.report.style import BLACK, legend_above, line_style, new_figure, write_instead
from analysim.tables import SIZE_CLASSES
from analysim.units import format_seconds

MOST_POINTS = 2_000
"""Points of one curve: a step each up to here, equally spaced quantiles beyond."""

AXIS_NAMES = {"jct_s": "job completion time (JCT), log axis", "wait_s": "wait until first start, log axis"}


@dataclass(frozen=True)
class Curve:
    """One distribution: its legend name, its values in seconds (no NaN) and how the line looks."""

    name: str
    values_s: np.ndarray[Any, np.dtype[np.float64]]
    look: Mapping[str, Any]


def size_curves(jobs: pd.DataFrame, column: str) -> list[Curve]:
    """Make the curve of all jobs, and one for each class of GPU sizes where there is more than one."""
    values = jobs[column].to_numpy(dtype=float)
    curves = [Curve("all", values, {"color": BLACK, "linewidth": 2.0})]
    bounds = [most for _, most in SIZE_CLASSES if most is not None]
    sizes = np.searchsorted(bounds, jobs["num_gpus"].to_numpy(dtype=float), side="left")
    classes = np.unique(sizes)
    if len(classes) > 1:
        curves += [
            Curve(
                size_text(SIZE_CLASSES[number][0]),
                values[sizes == number],
                {**line_style(i), "linewidth": 1.1},
            )
            for i, number in enumerate(classes)
        ]
    return curves


def draw_distribution(curves: Sequence[Curve], column: str, title: str, caption: str) -> Figure:
    """Draw distribution functions over ``AXIS_NAMES[column]``, a legend line with median and p99 for each."""
    figure = new_figure(title, 7.2 + 0.4 * len(curves), caption)
    axes = figure.add_subplot()
    curves = [curve for curve in curves if len(curve.values_s)]
    if not curves:
        write_instead(axes, "no completed GPU jobs")
        return figure
    plot_curves(axes, curves)
    axes.set_ylabel("share of completed GPU jobs")
    axes.set_xlabel(AXIS_NAMES[column])
    return figure


def plot_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    """Plot distribution functions, none of them empty, with their legend above."""
    lines = [axes.plot(*_steps(curve.values_s), drawstyle="steps-post", **curve.look)[0] for curve in curves]
    shortest = min(float(curve.values_s.min()) for curve in curves)
    longest = max(float(curve.values_s.max()) for curve in curves)
    use_duration_ticks(axes, shortest, longest)
    axes.set_ylim(0, 1.005)
    axes.yaxis.set_major_formatter(PERCENT)
    legend_above(axes, lines, [_legend_line(curve) for curve in curves])


def _steps(values_s: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Any, Any]:
    ordered = np.maximum(np.sort(values_s), SHORTEST_SHOWN_S)
    count = len(ordered)
    chosen = np.unique(np.rint(np.linspace(0, count - 1, min(count, MOST_POINTS))).astype(int))
    return np.append(ordered[0], ordered[chosen]), np.append(0.0, (chosen + 1) / count)


def _legend_line(curve: Curve) -> str:
    median, p99 = np.quantile(curve.values_s, (0.5, 0.99))
    count = len(curve.values_s)
    return (
        f"{curve.name}: {count:,} {'job' if count == 1 else 'jobs'}, "
        f"median {format_seconds(float(median))}, p99 {format_seconds(float(p99))}"
    )
