"""A simulation against what was recorded: waits as distributions, busy GPUs over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from analysim.metrics.agreement import Busy
from analysim.report.distributions import AXIS_NAMES, Curve, plot_curves
from analysim.report.scales import THOUSANDS, TimeAxis
from analysim.report.style import BLACK, BLUE, VERMILION, legend_above, new_figure, paper_style, save_figure

MOST_STEPS = 250
"""Steps of one curve over time, as two lie over one another."""

Seconds = np.ndarray[Any, np.dtype[np.float64]]


def draw_fidelity(
    label: str, waits_s: tuple[Seconds, Seconds], busy: Busy, gpus: int, title: str, out: Path, name: str, caption: str
) -> list[Path]:
    """Draw recorded and simulated waits and busy GPUs into ``out`` as ``name`` (PNG and SVG); return the paths.

    ``label`` names the policy in the legends, ``gpus`` are those of the cluster. Raises ``RunFolderError`` where a
    file cannot be written.
    """
    looks = ({"color": BLACK, "linewidth": 1.6}, {"color": VERMILION, "linewidth": 1.2})
    with paper_style():
        figure = new_figure(f"Recorded and simulated: {title}", 13.0, caption)
        upper, lower = figure.subplots(2, 1)
        named = zip(("recorded", label), waits_s, looks, strict=True)
        curves = [Curve(*each) for each in named if len(each[1])]
        if curves:
            plot_curves(upper, curves)
        upper.set_ylabel("share of compared jobs")
        upper.set_xlabel(AXIS_NAMES["wait_s"])
        span_us = int(busy.times_us[-1] - busy.times_us[0])
        if span_us:
            edges, recorded, simulated = busy.averages(min(MOST_STEPS, span_us))
            axis = TimeAxis(float(edges[0]), float(edges[-1]))
            area = lower.stairs(recorded, axis.of(edges), fill=True, color=BLUE, alpha=0.3, linewidth=0)
            line = lower.stairs(simulated, axis.of(edges), color=VERMILION, linewidth=1.0, baseline=None)
            top = lower.axhline(gpus, color=BLACK, linewidth=0.9, linestyle="--")
            axis.label(lower, float(edges[1] - edges[0]))
            lower.set_xlabel(lower.get_xlabel().replace("first submit", "first recorded start"))
            legend_above(lower, [area, line, top], ["recorded", label, f"{gpus:,} GPUs there are"])
        lower.set_ylim(bottom=0)
        lower.set_ylabel("busy GPUs")
        lower.yaxis.set_major_formatter(THOUSANDS)
        figure.align_ylabels()
        return save_figure(figure, out, name)
