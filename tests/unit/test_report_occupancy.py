"""The occupancy map: exact averages in its cells, and bounded rows that respect racks."""

from __future__ import annotations

import numpy as np
import pytest
from report_tables import CAPACITY_COLUMNS, Row, fill, make_tables, node_names, simulate

from analysim.report.occupancy import COLUMNS, MOST_ROWS, arrange_rows, occupancy_grid
from analysim.report.scales import TimeAxis, time_axis


def capacity_of(nodes: int, in_rack: int = 8) -> list[Row]:
    return [{"node": node, "rack": rack} for node, rack in node_names(nodes, in_rack)]


def test_cells_hold_the_held_share_averaged_over_their_time() -> None:
    tables = make_tables(
        [{"submit_time_s": 100.0, "end_time_s": 900.0}],
        [
            {"start_s": 100.0, "end_s": 100.25, "node": "n0", "gpus": 4.0},
            {"start_s": 100.5, "end_s": 103.5, "node": "n0", "gpus": 2.0},
            {"start_s": 899.0, "end_s": 900.0, "node": "n1", "gpus": 8.0},
        ],
        [{"time_s": 100.0, "node": "n0"}, {"time_s": 100.0, "node": "n1"}],
    )
    grid = occupancy_grid(tables, arrange_rows(tables.capacity), TimeAxis(100.0, 900.0))  # cells of 1 s
    assert grid[0, :5] == pytest.approx([(4 * 0.25 + 2 * 0.5) / 8, 2 / 8, 2 / 8, 2 * 0.5 / 8, 0])
    assert grid[1, -2:] == pytest.approx([0, 1])
    assert grid.sum() * 8 == pytest.approx(4 * 0.25 + 2 * 3 + 8)


def test_map_and_segments_hold_the_same_gpu_time() -> None:
    tables = simulate(500, 300, ["a"])
    axis = time_axis(tables)
    rows = arrange_rows(tables.capacity)
    nodes_in_row = np.bincount(list(rows.row_of_node.values()))
    grid = occupancy_grid(tables, rows, axis)
    cell_s = axis.span_s / COLUMNS
    segments = tables.segments
    held_s = ((segments["end_s"] - segments["start_s"]) * segments["gpus"]).sum()
    assert (grid.sum(axis=1) * nodes_in_row * 8).sum() * cell_s == pytest.approx(held_s, rel=1e-9)


def test_share_is_of_the_gpus_up_and_unknown_while_none_is() -> None:
    tables = make_tables(
        [{"submit_time_s": 0.0, "end_time_s": 800.0}],
        [{"start_s": 0.0, "end_s": 200.0, "node": "n0", "gpus": 4.0}],
        [
            {"time_s": 0.0, "node": "n0"},
            {"time_s": 300.0, "node": "n0", "gpus": 0.0},
            {"time_s": 500.0, "node": "n0", "gpus": 4.0},
        ],
    )
    (row,) = occupancy_grid(tables, arrange_rows(tables.capacity), TimeAxis(0.0, 800.0))
    assert row[:200] == pytest.approx(0.5)
    assert row[200:300] == pytest.approx(0.0)
    assert np.isnan(row[300:500]).all()
    assert row[500:] == pytest.approx(0.0)


@pytest.mark.parametrize(("nodes", "in_rack"), [(1, 8), (256, 8), (257, 8), (1_000, 8), (3_000, 7), (900, 1)])
def test_rows_are_bounded_in_order_and_of_one_rack(nodes: int, in_rack: int) -> None:
    rows = arrange_rows(fill(capacity_of(nodes, in_rack), CAPACITY_COLUMNS))
    order = list(rows.row_of_node.values())
    assert len(rows.racks) <= MOST_ROWS
    assert order == sorted(order)
    assert set(order) == set(range(len(rows.racks)))
    if -(-nodes // in_rack) <= MOST_ROWS:
        assert all(
            rows.racks[row] == rack for row, (_, rack) in zip(order, node_names(nodes, in_rack), strict=True)
        )


def test_nodes_without_gpus_have_no_row() -> None:
    capacity = fill([{"node": "cpu", "gpus": 0.0}, {"node": "gpu"}], CAPACITY_COLUMNS)
    assert arrange_rows(capacity).row_of_node == {"gpu": 0}
