"""Figures apart by tenant, partition and class."""

from __future__ import annotations

import pytest

from analysim.metrics import by_duration, by_partition, by_size, by_tenant
from tests.unit.metrics_tables import job, node, row, six_jobs, tables


def test_by_tenant_covers_jobs_with_gpus() -> None:
    table = by_tenant(six_jobs()).set_index("tenant")
    assert list(table.index) == ["blue", "green", "red"]
    assert list(table["submitted"]) == [1, 1, 3]  # the CPU job of red is left out
    assert list(table["rejected"]) == [0, 1, 0]
    assert table.loc["red", "mean_jct_s"] == 90.0
    assert table.loc["red", "preemptions"] == 1
    assert table.loc["red", "gpu_hours_asked"] == 560 / 3600
    assert table.loc["red", "gpu_hours_held"] == 540 / 3600
    assert table.loc["red", "gpu_hours_productive"] == 500 / 3600
    assert table.loc["red", "received_over_asked"] == 540 / 560
    assert table.loc[["green"], ["mean_jct_s", "p99_wait_s", "mean_slowdown"]].isna().all(axis=None)


def test_by_partition_respects_the_measured_interval() -> None:
    table = by_partition(six_jobs(), measure=(20, 41)).set_index("partition")
    assert list(table.index) == ["p", "q"]
    assert list(table["submitted"]) == [2, 1]
    assert list(table["cancelled"]) == [0, 1]
    assert table.loc["p", "mean_wait_s"] == 80.0


def test_by_size_sets_cpu_jobs_apart() -> None:
    table = by_size(six_jobs())
    assert list(table["size_class"]) == ["0", "1", "2-4", "9-64"]
    assert list(table["submitted"]) == [1, 1, 3, 1]
    assert table["mean_jct_s"].iloc[0] == 20.0


@pytest.mark.parametrize(
    ("gpus", "name"),
    [(1, "1"), (2, "2-4"), (4, "2-4"), (5, "5-8"), (8, "5-8"), (9, "9-64"), (65, "65-512"), (513, "513+")],
)
def test_size_classes_end_where_they_say(gpus: int, name: str) -> None:
    run = tables([node("a", 1)], [job(1, 0, gpus, 5, state="rejected")], [])
    assert list(by_size(run)["size_class"]) == [name]


@pytest.mark.parametrize(
    ("duration_s", "name"),
    [
        (0, "<1 min"),
        (59.999999, "<1 min"),
        (60, "1-10 min"),
        (600, "10-60 min"),
        (3600, "1-24 h"),
        (86_400, "1-7 d"),
        (604_800, "7 d+"),
    ],
)
def test_duration_classes_begin_where_they_say(duration_s: float, name: str) -> None:
    run = tables([node("a", 1)], [job(1, 0, 1, duration_s, state="unfinished")], [])
    assert list(by_duration(run)["duration_class"]) == [name]


def test_groups_of_nothing_have_columns_and_no_rows() -> None:
    run = tables([node("a", 1)], [], [])
    for table in (by_tenant(run), by_partition(run), by_size(run), by_duration(run)):
        assert len(table) == 0
        assert {"submitted", "mean_jct_s", "gpu_hours_held"} <= set(table.columns)


def test_gang_on_two_nodes_is_one_job() -> None:
    jobs = [job(1, 0, 8, 10, start_s=0, end_s=10)]
    run = tables([node("a", 4), node("b", 4)], jobs, [row(1, "a", 4, 0, 10), row(1, "b", 4, 0, 10)])
    table = by_size(run)
    assert list(table["gpu_hours_held"]) == [80 / 3600]
    assert list(table["received_over_asked"]) == [1.0]
