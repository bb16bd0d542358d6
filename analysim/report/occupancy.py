"""The occupancy map: which share of each node's GPUs was held, node by node over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator

from analysim.report.scales import PERCENT, TimeAxis, time_axis
from analysim.report.style import CM_PER_INCH, GREY, SMALLEST_FONT_PT, new_figure, shorten, write_instead
from analysim.tables import RunTables

MOST_ROWS = 256
"""Rows of the map; larger clusters show several nodes of a rack in one row."""

COLUMNS = 800
"""Equal intervals of time; each cell is an exact time average."""

DOWN = "#A6A6A6"
"""Colour of nodes that are down."""

_LOWEST_CM, _HIGHEST_CM = 1.8, 11.0
_POINTS_PER_CM = 72 / CM_PER_INCH

Grid = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class MapRows:
    """Which row of the map each GPU node is in, and the name of the rack in which each row lies."""

    row_of_node: dict[str, int]
    racks: list[str]
    nodes_per_row: int


def arrange_rows(capacity: pd.DataFrame) -> MapRows:
    """Put nodes with GPUs into at most ``MOST_ROWS`` rows, in topology order.

    If need be, several nodes of one rack share a row; with more racks than rows, rows span racks.
    """
    with_gpus = capacity[capacity["gpus"] > 0].drop_duplicates("node")
    first = capacity.drop_duplicates("node")
    nodes = first[first["node"].isin(with_gpus["node"])]
    names, racks = nodes["node"].tolist(), nodes["rack"].fillna("").astype(str).tolist()
    stretches = [0, *(i for i in range(1, len(racks)) if racks[i] != racks[i - 1]), len(racks)]
    size = max(math.ceil(len(names) / MOST_ROWS), 1)
    if len(stretches) - 1 > MOST_ROWS:
        stretches = [0, len(racks)]
    while sum(math.ceil((end - start) / size) for start, end in pairwise(stretches)) > MOST_ROWS:
        size += 1
    row_of_node: dict[str, int] = {}
    rack_of_row: list[str] = []
    for start, end in pairwise(stretches):
        for position in range(start, end):
            if (position - start) % size == 0:
                rack_of_row.append(racks[position])
            row_of_node[names[position]] = len(rack_of_row) - 1
    return MapRows(row_of_node, rack_of_row, size)


def occupancy_grid(tables: RunTables, rows: MapRows, axis: TimeAxis) -> Grid:
    """Average over each cell the share of the GPUs up that is held; NaN where none is up.

    Shape (rows, ``COLUMNS``); exact up to rounding: each row of ``segments`` and ``capacity`` counts for just
    the part of a cell that it covers.
    """
    shape = (len(rows.racks), COLUMNS)
    segments = tables.segments[tables.segments["gpus"] > 0]
    row = segments["node"].map(rows.row_of_node).to_numpy(dtype=np.int64)
    gpus = segments["gpus"].to_numpy(dtype=float)
    held = _integrate(shape, axis, row, segments["start_s"], gpus)
    held -= _integrate(shape, axis, row, segments["end_s"], gpus)
    capacity = tables.capacity[tables.capacity["node"].isin(list(rows.row_of_node))]
    row = capacity["node"].map(rows.row_of_node).to_numpy(dtype=np.int64)
    change = capacity.groupby("node", sort=False)["gpus"].diff().fillna(capacity["gpus"])
    up = _integrate(shape, axis, row, capacity["time_s"], change.to_numpy(dtype=float))
    share: Grid = np.divide(held, up, out=np.full(shape, np.nan), where=up > 1e-6)
    return np.clip(share, 0.0, 1.0)


def _integrate(shape: tuple[int, int], axis: TimeAxis, row: Any, times_s: Any, steps: Any) -> Grid:
    """Average over each cell the sum of ``steps``, each from its time on."""
    columns = shape[1]
    position = (np.asarray(times_s, dtype=float) - axis.origin_s) * (columns / axis.span_s)
    position = np.clip(position, 0, columns)
    cell = np.floor(position).astype(np.int64)
    passed = position - cell  # the part of the cell before the step
    flat = np.asarray(row) * (columns + 2) + cell
    length = shape[0] * (columns + 2)
    change = np.bincount(flat, steps * (1 - passed), length) + np.bincount(flat + 1, steps * passed, length)
    average: Grid = np.cumsum(change.reshape(shape[0], columns + 2), axis=1)[:, :columns]
    return average


def draw_occupancy(tables: RunTables, title: str, caption: str) -> Figure:
    """Draw nodes on y, time on x and the share of GPUs held as colour."""
    axis = time_axis(tables)
    rows = arrange_rows(tables.capacity)
    height_cm = min(max(len(rows.racks) * 0.12, _LOWEST_CM, 0.36 * _racks(rows)), _HIGHEST_CM)
    figure = new_figure(title, height_cm + 1.4, caption)
    axes = figure.add_subplot()
    if not rows.racks or axis.end_s <= axis.origin_s:
        write_instead(axes, "nothing ran on a node with GPUs")
        return figure
    grid = occupancy_grid(tables, rows, axis)
    image = axes.imshow(
        grid,
        extent=(0.0, float(axis.of(axis.end_s)), len(rows.racks), 0.0),
        aspect="auto",
        interpolation="none",
        cmap=colormaps["YlGnBu"].with_extremes(bad=DOWN),
        vmin=0.0,
        vmax=1.0,
    )
    axes.grid(visible=False)
    axis.label(axes)
    _label_racks(axes, rows, height_cm)
    bar = figure.colorbar(image, ax=axes, pad=0.015, fraction=0.05, aspect=max(height_cm / 0.4, 4))
    if bar.solids is not None:
        bar.solids.set_rasterized(True)  # 256 small polygons otherwise
    bar.locator = FixedLocator([0, 0.25, 0.5, 0.75, 1] if height_cm > 3 else [0, 1])
    bar.formatter = PERCENT
    bar.set_label("GPUs held" + (" (grey: node down)" if np.isnan(grid).any() and height_cm > 4 else ""))
    return figure


def _racks(rows: MapRows) -> int:
    return 1 + sum(a != b for a, b in pairwise(rows.racks))


def _label_racks(axes: Axes, rows: MapRows, height_cm: float) -> None:
    """Name the racks at their first rows, and draw lines between them where they are few enough."""
    firsts = [0, *(i for i in range(1, len(rows.racks)) if rows.racks[i] != rows.racks[i - 1])]
    ends = [*firsts[1:], len(rows.racks)]
    room = height_cm * _POINTS_PER_CM / (SMALLEST_FONT_PT * 1.25)  # labels that fit above one another
    every = math.ceil(len(firsts) / room)
    middles = [(start + end) / 2 for start, end in zip(firsts, ends, strict=True)][::every]
    names = [shorten(rows.racks[first], 14) for first in firsts][::every]
    axes.yaxis.set_major_locator(FixedLocator(middles))
    axes.yaxis.set_major_formatter(FixedFormatter(names))
    if len(firsts) <= room:
        for first in firsts[1:]:
            axes.axhline(first, color=GREY, linewidth=0.5)
    nodes = f"{rows.nodes_per_row} nodes a row" if rows.nodes_per_row > 1 else "one node a row"
    axes.set_ylabel(f"rack ({nodes})" if height_cm > 3 else "rack")
