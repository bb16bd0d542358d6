"""The timeline of a small run; every expected figure is worked out beside it."""

from __future__ import annotations

import pytest

from analysim.metrics import make_timeline, summarise
from tests.unit.metrics_tables import job, node, row, six_jobs, tables


def test_each_interval_holds_time_averages() -> None:
    timeline = make_timeline(six_jobs(), intervals=13)  # 10 s each
    assert list(timeline["start_s"]) == [10.0 * number for number in range(13)]
    assert list(timeline["end_s"])[-1] == 130.0
    assert set(timeline["gpus_up"]) == {8.0}
    # Job 3 holds 2 GPUs from 10 to 50 and from 60 to 90 beside the 4 of jobs 1 and 4.
    assert list(timeline["gpus_held"]) == [4, 6, 6, 6, 6, 4, 6, 6, 6, 4, 4, 4, 4]
    assert list(timeline["gpus_productive"]) == [4, 6, 6, 6, 4, 4, 4, 6, 6, 4, 4, 4, 4]
    assert list(timeline["jobs_running"]) == [1, 2, 2, 2, 2, 1, 2, 2, 2, 1, 1, 1, 1]
    # Job 4 waits from 20 to 100, job 3 from 50 to 60, job 6 from 40 to 45; the CPU job is left out.
    assert list(timeline["jobs_pending"]) == [0, 0, 1, 1, 1.5, 2, 1, 1, 1, 1, 0, 0, 0]
    assert list(timeline["gpus_pending"]) == [0, 0, 4, 4, 4.5, 6, 4, 4, 4, 4, 0, 0, 0]
    assert list(timeline["unusable_share"]) == [0, 0.6, 0.6, 0.6, 0.6, 0, 0.6, 0.6, 0.6, 0, 0, 0, 0]
    assert list(timeline["stranded_gpus"]) == [0, 0, 2, 2, 1, 0, 2, 2, 2, 0, 0, 0, 0]
    assert set(timeline["largest_gang_share"]) == {1.0}
    assert set(timeline["excess_nodes"]) == {0.0}


def test_integral_of_the_timeline_is_the_summary() -> None:
    run = six_jobs()
    summary = summarise(run)
    timeline = make_timeline(run, intervals=7)  # intervals that cut through everything
    width = timeline["end_s"] - timeline["start_s"]
    assert width.sum() == pytest.approx(130)
    held = (timeline["gpus_held"] * width).sum() / (timeline["gpus_up"] * width).sum()
    assert held == pytest.approx(summary["allocated_utilisation"], rel=1e-12)
    stranded = (timeline["stranded_gpus"] * width).sum() / 130
    assert stranded == pytest.approx(summary["fragmentation"]["stranded_gpus"], rel=1e-12)
    # Little's law: jobs waiting, integrated, are the total waits 10 of job 3, 80 of job 4 and 5 of job 6.
    assert (timeline["jobs_pending"] * width).sum() == pytest.approx(10 + 80 + 5)


def test_reserved_and_suspended_jobs_wait() -> None:
    jobs = [job(1, 0, 2, 20, start_s=10, end_s=40, total_wait_s=20)]
    rows = [
        row(1, "a", 1, 0, 10, "hold"),
        row(1, "a", 2, 10, 20),
        row(1, "a", 0, 20, 30, "suspend"),
        row(1, "a", 2, 30, 40),
    ]
    timeline = make_timeline(tables([node("a", 2)], jobs, rows), intervals=4)
    assert list(timeline["gpus_held"]) == [1, 2, 0, 2]
    assert list(timeline["jobs_running"]) == [0, 1, 0, 1]
    assert list(timeline["jobs_pending"]) == [1, 0, 1, 0]
    assert list(timeline["gpus_productive"]) == [0, 2, 0, 2]


def test_capacity_changes_are_averaged() -> None:
    nodes = [node("a", 4), node("a", 0, time_s=10.0), node("a", 4, time_s=15.0)]
    jobs = [job(1, 0, 1, 5, start_s=0, end_s=5), job(2, 0, 1, 5, start_s=15, end_s=20)]
    timeline = make_timeline(tables(nodes, jobs, [row(1, "a", 1, 0, 5), row(2, "a", 1, 15, 20)]), intervals=2)
    assert list(timeline["gpus_up"]) == [4.0, 2.0]
    assert timeline["largest_gang_share"].tolist() == [
        1.0,
        1.0,
    ]  # free for 5 of the last 10 s, all of it a gang


def test_there_is_at_most_one_interval_a_microsecond() -> None:
    jobs = [job(1, 0, 1, 3e-6, start_s=0, end_s=3e-6)]
    timeline = make_timeline(tables([node("a", 1)], jobs, [row(1, "a", 1, 0, 3e-6)]))
    assert len(timeline) == 3
    assert timeline["unusable_share"].isna().all()  # nothing is free at any time


@pytest.mark.filterwarnings("error")
def test_run_without_length_has_no_intervals() -> None:
    timeline = make_timeline(tables([node("a", 1)], [job(1, 0, 1, 5, state="rejected")], []))
    assert len(timeline) == 0
    assert {"gpus_up", "jobs_pending", "excess_nodes"} <= set(timeline.columns)
