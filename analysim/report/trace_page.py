"""One page of figures about a trace: sizes, durations, arrivals, demand, and the waits it recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysim.errors import UserError
from analysim.report.scales import PERCENT, SHORTEST_SHOWN_S, THOUSANDS, TimeAxis, use_duration_ticks
from analysim.report.style import (
    BLUE,
    ORANGE,
    SKY_BLUE,
    VERMILION,
    legend_above,
    new_figure,
    paper_style,
    save_page,
    shorten,
    write_instead,
)

Floats = npt.NDArray[np.float64]

_STEPS = 400
"""Intervals over which the demand is averaged."""

_MOST_POINTS = 2_000
_ROW_CM = 5.2
_KINDS = (".png", ".svg")


def check_name(path: Path) -> None:
    """Raise ``UserError`` for a name that says neither PNG nor SVG."""
    if path.suffix.lower() not in _KINDS:
        raise UserError(f"{path}: figures are PNG or SVG.", "End the name in .png or .svg.")


def draw_trace(facts: Mapping[str, Any], arrays: Mapping[str, Floats], path: Path) -> None:
    """Draw a trace as one page, PNG or SVG by the name of ``path``, over what may be there.

    ``facts`` are those of ``trace describe``; ``arrays`` hold ``gpus`` and ``duration_s`` of the jobs with GPUs,
    the demand as steps (``demand_time_s``, ``demand_gpus``), and ``wait_s``. Raises ``UserError`` for another
    suffix, ``AnalysimError`` where the file cannot be written.
    """
    check_name(path)
    with paper_style():
        save_page(_page(facts, arrays), path)


def _page(facts: Mapping[str, Any], arrays: Mapping[str, Floats]) -> Figure:
    waits = arrays["wait_s"]
    ratios = [1.0, 1.0, 1.0] + ([1.0] if waits.size else [])
    figure = new_figure(f"Trace: {shorten(facts['name'], 60)}", _ROW_CM * len(ratios), _caption(facts))
    grid = figure.add_gridspec(len(ratios), 2, height_ratios=ratios)
    _draw_sizes(figure.add_subplot(grid[0, 0]), facts)
    _draw_durations(figure.add_subplot(grid[0, 1]), arrays, bool(facts["lacks"]))
    _draw_hours(figure.add_subplot(grid[1, 0]), facts["arrivals"])
    _draw_weekdays(figure.add_subplot(grid[1, 1]), facts["arrivals"])
    _draw_demand(figure.add_subplot(grid[2, :]), facts, arrays)
    if waits.size:
        _draw_waits(figure.add_subplot(grid[3, :]), waits)
    return figure


def _caption(facts: Mapping[str, Any]) -> str:
    rows = f"{facts['rows']:,} rows = {facts['jobs']:,} jobs + {sum(facts['set_aside'].values()):,} set aside"
    lacks = facts["lacks"]
    gpus = f"GPUs are not told; missing: {lacks}." if lacks else "Sizes and run times: jobs with GPUs."
    return (
        f"Read as {facts['format']}: {rows}. {gpus}\n"
        f"Hours and days: {facts['arrivals']['clock']}. Demand: every job runs from its submission on."
    )


def _draw_sizes(axes: Axes, facts: Mapping[str, Any]) -> None:
    axes.set_title("GPUs of a job", pad=16)
    sizes = facts["sizes"]
    if not sizes:
        write_instead(axes, "GPUs are not told" if facts["lacks"] else "no job with GPUs")
        return
    places = np.arange(len(sizes))
    looks = (("jobs_share", "jobs", BLUE, -0.2), ("gpu_time_share", "GPU-time", ORANGE, 0.2))
    bars = [
        axes.bar(places + shift, [row[key] for row in sizes], width=0.38, color=color, label=label)
        for key, label, color, shift in looks
    ]
    axes.set_xticks(places, [row["gpus"] for row in sizes])
    axes.set_xlabel("GPUs")
    axes.set_ylabel("share")
    axes.yaxis.set_major_formatter(PERCENT)
    axes.grid(visible=False, axis="x")
    legend_above(axes, bars, ["jobs", "GPU-time"])


def _draw_durations(axes: Axes, arrays: Mapping[str, Floats], lacks: bool) -> None:
    axes.set_title("Run time", pad=16)
    durations, work = arrays["duration_s"], arrays["duration_s"] * arrays["gpus"]
    if not durations.size:
        write_instead(axes, "no job with GPUs")
        return
    curves = [("jobs", np.ones(durations.size), BLUE, "-")]
    curves += [("GPU-time", work, VERMILION, "--")] if not lacks and work.sum() > 0 else []
    lines = [
        axes.plot(*_distribution(durations, weights), color=color, linestyle=dashes, drawstyle="steps-post")[0]
        for _, weights, color, dashes in curves
    ]
    _finish_distribution(axes, durations, "share that runs no longer", "run time, log axis", narrow=True)
    legend_above(axes, lines, [name for name, *_ in curves])


def _draw_waits(axes: Axes, waits: Floats) -> None:
    axes.set_title(f"Recorded wait of the {waits.size:,} jobs with a recorded start")
    axes.plot(*_distribution(waits, np.ones(waits.size)), color=BLUE, drawstyle="steps-post")
    _finish_distribution(axes, waits, "share that waits no longer", "recorded wait until the start, log axis")


def _distribution(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return a distribution function as at most ``_MOST_POINTS`` points, equally spaced in what it reaches."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    wanted = np.linspace(0, reached[-1], min(values.size, _MOST_POINTS))
    chosen = np.unique(np.minimum(np.searchsorted(reached, wanted), values.size - 1))
    shown = np.maximum(values[order][chosen], SHORTEST_SHOWN_S)
    return np.append(shown[0], shown), np.append(0.0, reached[chosen] / reached[-1])


def _finish_distribution(axes: Axes, values: Floats, share: str, label: str, narrow: bool = False) -> None:
    use_duration_ticks(axes, float(values.min()), float(values.max()), narrow=narrow)
    axes.set_ylim(0, 1.01)
    axes.yaxis.set_major_formatter(PERCENT)
    axes.set_ylabel(share)
    axes.set_xlabel(label)


def _draw_hours(axes: Axes, arrivals: Mapping[str, Any]) -> None:
    axes.set_title(f"Submissions by hour of day{_since(arrivals)}")
    axes.bar(np.arange(24) + 0.5, arrivals["by_hour"], width=0.86, color=BLUE)
    axes.set_xticks(range(0, 25, 4))
    axes.set_xlim(0, 24)
    axes.set_xlabel("hour")
    _count_axis(axes)


def _draw_weekdays(axes: Axes, arrivals: Mapping[str, Any]) -> None:
    axes.set_title(f"Submissions by weekday{_since(arrivals)}")
    names = list(arrivals["by_weekday"])
    axes.bar(range(7), list(arrivals["by_weekday"].values()), width=0.8, color=BLUE)
    axes.set_xticks(range(7), [name.removeprefix("day ") for name in names])
    axes.set_xlabel("day")
    _count_axis(axes)


def _since(arrivals: Mapping[str, Any]) -> str:
    return "" if "Mon" in arrivals["by_weekday"] else ", from time 0"


def _count_axis(axes: Axes) -> None:
    axes.set_ylabel("jobs")
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.grid(visible=False, axis="x")


def _draw_demand(axes: Axes, facts: Mapping[str, Any], arrays: Mapping[str, Floats]) -> None:
    axes.set_title("Demand: GPUs held if no job waited", pad=16)
    times, levels = arrays["demand_time_s"], arrays["demand_gpus"]
    if not times.size:
        nothing = "no job runs any time" if facts["sizes"] else "no job with GPUs"
        write_instead(axes, "GPUs are not told" if facts["lacks"] else nothing)
        return
    axis = TimeAxis(float(times[0]), float(times[-1]))
    edges, means, peaks = _intervals(times, levels)
    band = axes.stairs(peaks, axis.of(edges), baseline=means, fill=True, color=SKY_BLUE, linewidth=0)
    line = axes.stairs(means, axis.of(edges), color=BLUE, linewidth=1.1, baseline=None)
    shown: dict[str, Any] = {"mean": line, "up to peak": band}
    capacity = facts["demand"].get("cluster_gpus") if facts["demand"] else None
    if capacity is not None:
        shown[f"cluster: {capacity:,} GPUs"] = axes.axhline(capacity, color=VERMILION, linestyle="--")
    mark = axis.mark_last_submit(axes, float(times[0]) + facts["span_s"])
    if mark is not None:
        shown["last submission"] = mark
    axis.label(axes, float(edges[1] - edges[0]))
    axes.set_ylim(0, 1.05 * max(float(peaks.max()), capacity or 0))
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.set_ylabel("GPUs")
    legend_above(axes, list(shown.values()), list(shown))


def _intervals(times: Floats, levels: Floats) -> tuple[Floats, Floats, Floats]:
    """Return edges of equal intervals, and the mean and the largest demand in each."""
    edges = np.linspace(times[0], times[-1], _STEPS + 1)
    held = np.append(0.0, np.cumsum(levels[:-1] * np.diff(times)))
    means = np.diff(np.interp(edges, times, held)) / np.diff(edges)
    # What holds at an edge counts for the interval after it, and what begins within it.
    at_edges = levels[np.searchsorted(times, edges[:-1], side="right") - 1]
    all_times = np.concatenate([edges[:-1], times[:-1]])
    order = np.argsort(all_times, kind="stable")
    both = np.concatenate([at_edges, levels[:-1]])[order]
    firsts = np.searchsorted(all_times[order], edges[:-1], side="left")
    return edges, means, np.maximum(np.maximum.reduceat(both, firsts), means)
