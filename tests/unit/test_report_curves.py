"""What the curves, bars and axes of the figures show, read back from the artists."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from report_tables import make_tables, one_job, simulate

from analysim.metrics import by_tenant, summarise
from analysim.report.bars import MOST_TENANTS, rank_tenants
from analysim.report.comparison import ComparedRun, draw_bars, draw_size_classes
from analysim.report.distributions import MOST_POINTS, Curve, draw_distribution
from analysim.report.measured import headline_jobs, measured_interval
from analysim.report.scales import TimeAxis, coarsen, readable, time_axis
from analysim.report.style import line_style, paper_style, short_names
from analysim.report.timelines import draw_utilisation
from analysim.tables import RunTables


def distribution(values_s: list[float] | np.ndarray) -> Figure:
    with paper_style():
        return draw_distribution([Curve("all", np.asarray(values_s, dtype=float), {})], "wait_s", "", "")


def test_few_values_are_drawn_as_their_exact_steps_with_zero_clipped_to_a_second() -> None:
    axes = distribution([40.0, 0.0, 0.0, 7_200.0]).axes[0]
    (line,) = axes.lines
    assert line.get_drawstyle() == "steps-post"
    assert line.get_xydata().tolist() == [[1, 0], [1, 0.25], [1, 0.5], [40, 0.75], [7_200, 1]]
    assert axes.xaxis.get_major_formatter()(1.0, 0) == "≤1 s"
    assert axes.xaxis.get_major_formatter()(3_600.0, 0) == "1 h"


def test_many_values_are_thinned_with_both_ends_kept_and_the_shares_right() -> None:
    values = np.random.default_rng(0).exponential(1_000, 50_000) + 2
    x, y = distribution(values).axes[0].lines[0].get_data()
    assert len(x) <= MOST_POINTS + 1
    assert (x[0], x[-1], y[0], y[-1]) == (values.min(), values.max(), 0, 1)
    ordered = np.sort(values)
    assert y[1:] == pytest.approx(np.searchsorted(ordered, x[1:], side="right") / len(values))
    assert distribution(values).axes[0].xaxis.get_major_formatter()(1.0, 0) == "1 s"


def test_an_axis_of_durations_always_has_two_ticks() -> None:
    for values in ([0.0], [3_600.0], [65.0, 70.0], [5e7], [2e8]):
        axes = distribution(values).axes[0]
        low, high = axes.get_xlim()
        assert sum(low <= tick <= high for tick in axes.get_xticks()) >= 2
        assert low < max(values[0], 1) < high


def test_headline_jobs_are_completed_gpu_jobs_submitted_in_the_measured_interval() -> None:
    ends = {"end_time_s": 50.0}
    tables = make_tables(
        [
            {"job_id": 0, "submit_time_s": 0.0, **ends},
            {"job_id": 1, "submit_time_s": 10.0, **ends},
            {"job_id": 2, "submit_time_s": 15.0, "num_gpus": 0.0, **ends},
            {"job_id": 3, "submit_time_s": 16.0, "state": "killed", **ends},
            {"job_id": 4, "submit_time_s": 20.0, **ends},
        ],
        [],
        [{"node": "n0"}],
    )
    measured = {"measured": {"from_s": 10.0, "to_s": 20.0}}
    assert headline_jobs(tables, measured)["job_id"].tolist() == [1]
    assert headline_jobs(tables, summarise(tables))["job_id"].tolist() == [0, 1, 4]
    assert measured_interval(tables, summarise(tables)) is None
    assert headline_jobs(tables, summarise(tables, (10.0, 20.0)))["job_id"].tolist() == [1]


def test_coarser_steps_keep_the_integral_and_skip_what_is_unknown() -> None:
    timeline = pd.DataFrame(
        {"start_s": [0.0, 1, 3, 6, 7], "end_s": [1.0, 3, 6, 7, 9], "x": [4.0, 1, np.nan, 5, np.nan]}
    )
    edges, values = coarsen(timeline, "x", 3)
    assert edges.tolist() == [0, 3, 7, 9]
    assert values[:2].tolist() == [2.0, 5.0]
    assert np.isnan(values[2])


def test_time_axis_starts_at_the_first_submit_in_units_that_suit() -> None:
    axis = time_axis(one_job())
    assert (axis.origin_s, axis.end_s) == (5.0, 3605.0)
    assert axis.of([5.0, 65.0]).tolist() == [0.0, 1.0]
    units = {100.0: 1, 7_000.0: 60, 2 * 86_400.0: 3_600, 30 * 86_400.0: 86_400}
    for span_s, unit_s in units.items():
        assert TimeAxis(0.0, span_s).unit_s == unit_s


def test_utilisation_shows_the_timeline() -> None:
    tables = simulate(40, 2, ["a"])
    with paper_style():
        figure = draw_utilisation(tables, summarise(tables), "", "")
    held, useful, up = (patch.get_data() for patch in figure.axes[0].patches)
    spans = np.diff(held.edges) * time_axis(tables).unit_s
    timeline = tables.timeline
    for drawn, column in ((held, "gpus_held"), (useful, "gpus_productive"), (up, "gpus_up")):
        exact = (timeline[column] * (timeline["end_s"] - timeline["start_s"])).sum()
        assert (drawn.values * spans).sum() == pytest.approx(exact)


def test_small_tenants_are_folded_into_one_row_that_loses_nothing() -> None:
    tables = simulate(600, 10, [f"team-{i:03d}" for i in range(100)])
    summary = summarise(tables)
    table, exact = rank_tenants(tables, summary), by_tenant(tables)
    assert len(table) == MOST_TENANTS + 1
    assert table["tenant"].iloc[-1] == f"({100 - MOST_TENANTS} other tenants)"
    assert table["gpu_hours_held"].sum() == pytest.approx(exact["gpu_hours_held"].sum())
    weighted = (exact["mean_jct_s"] * exact["completed"]).sum()
    assert (table["mean_jct_s"] * table["completed"]).sum() == pytest.approx(weighted)
    assert table["gpu_hours_held"].iloc[:-1].is_monotonic_decreasing


def test_thirteen_tenants_all_have_their_own_bars() -> None:
    tables = simulate(130, 10, [f"team-{i}" for i in range(MOST_TENANTS + 1)])
    assert not rank_tenants(tables, summarise(tables))["folded"].any()


def compared(name: str, tables: RunTables) -> ComparedRun:
    return ComparedRun(name, tables, summarise(tables))


def twice_as_slow(tables: RunTables) -> RunTables:
    return replace(tables, jobs=tables.jobs.assign(jct_s=tables.jobs["jct_s"] * 2))


def test_bars_write_the_value_and_the_ratio_to_the_first_run() -> None:
    tables = one_job()
    with paper_style():
        figure = draw_bars([compared("fifo", tables), compared("slow", twice_as_slow(tables))], "", "")
    first = figure.axes[0]
    assert first.get_title(loc="left") == "mean JCT (min)"
    assert [bar.get_width() for bar in first.patches] == [60.0, 120.0]
    assert [text.get_text() for text in first.texts] == ["60.0", "120  \N{MULTIPLICATION SIGN}2"]


def test_size_classes_show_ratios_to_the_first_run() -> None:
    tables = simulate(100, 4, ["a"])
    with paper_style():
        figure = draw_size_classes(
            [compared("fifo", tables), compared("slow", twice_as_slow(tables))], "", ""
        )
    for axes in figure.axes:
        tops = [bar.get_y() + bar.get_height() for bar in axes.patches]
        assert tops == pytest.approx([2.0] * 3)
        labels = [label.get_text().split("\n")[0] for label in axes.get_xticklabels()]
        assert labels == ["1 GPU", "2-4 GPUs", "5-8 GPUs"]


def test_numbers_are_written_for_people() -> None:
    numbers = {0.0: "0", 0.01234: "0.0123", 4.5: "4.50", 99.94: "99.9", 12_345.6: "12,346", 3.21e6: "3.21 M"}
    assert {value: readable(value) for value in numbers} == numbers
    assert readable(float("nan")) == "n/a"


def test_names_are_shortened_and_stay_apart() -> None:
    names = short_names(["fifo", "", "x" * 40 + "1" * 9, "x" * 40 + "y" + "1" * 9, "a\tb\n"])
    assert names[0] == "fifo"
    assert names[1] == "(none)"
    assert names[4] == "a b"
    assert all(len(name) <= 24 for name in names)
    assert len(set(names)) == len(names)


def test_curves_differ_in_colour_or_dashes_far_beyond_the_palette() -> None:
    looks = [line_style(position) for position in range(35)]
    assert len({str(look) for look in looks}) == 35
    for one, other in pairwise(looks):
        assert one["color"] != other["color"]
        assert one["linestyle"] != other["linestyle"]
