"""The headline figures of small runs; every expected figure is worked out beside it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from analysim.errors import InvariantError
from analysim.metrics import compare_summaries, summarise
from analysim.metrics.integers import exact_sum
from tests.unit.metrics_tables import job, node, row, six_jobs, tables


def test_jobs_are_counted_by_state() -> None:
    summary = summarise(six_jobs())
    states = ("submitted", "completed", "killed", "cancelled", "rejected", "unfinished")
    assert [summary[state] for state in states] == [6, 4, 0, 1, 1, 0]
    assert summary["cpu_jobs"] == {"submitted": 1, "completed": 1, "mean_jct_s": 20.0, "mean_wait_s": 0.0}


def test_job_figures_are_of_completed_jobs_with_gpus() -> None:
    summary = summarise(six_jobs())
    # JCT of jobs 1, 3, 4: 100, 80, 110; wait 0, 0, 80; total wait 0, 10, 80.
    assert summary["mean_jct_s"] == pytest.approx(290 / 3)
    assert summary["median_jct_s"] == 100.0
    assert summary["p90_jct_s"] == 108.0  # place 0.9 * 2 = 1.8: 100 + 0.8 * 10
    assert summary["p99_jct_s"] == 109.8
    assert summary["mean_wait_s"] == pytest.approx(80 / 3)
    assert (summary["median_wait_s"], summary["p90_wait_s"], summary["p99_wait_s"]) == (0.0, 64.0, 78.4)
    assert summary["mean_total_wait_s"] == 30.0
    assert summary["mean_slowdown"] == pytest.approx((1 + 80 / 50 + 110 / 30) / 3)
    assert summary["makespan_s"] == 130.0
    assert (summary["preemptions"], summary["migrations"]) == (1, 0)


def test_gpu_time_is_accounted_for() -> None:
    summary = summarise(six_jobs())
    # Up: 8 GPUs * 130 s. Held: 4*100 + 2*(30+10+10+20) + 4*30 = 660. Lost: 2*10 checkpoint + 2*10 restart.
    assert summary["allocated_utilisation"] == 660 / 1040
    assert summary["productive_utilisation"] == 620 / 1040
    assert summary["gpu_hours_lost"] == 40 / 3600
    assert summary["gpu_hours_lost_by"] == {
        "checkpoint": 20 / 3600,
        "restart": 20 / 3600,
        "hold": 0.0,
        "redone": 0.0,
        "speed": 0.0,
    }
    # Asked: 4*100 + 2*50 + 4*30 + 16*10 + 1*60 = 840 GPU-s in the 40 s from first to last submit.
    assert summary["offered_load"] == 840 / (8 * 40)


def test_fragmentation_is_averaged_over_time() -> None:
    # Mix of the 5 jobs with GPUs: a full node of 4 (jobs 1, 4 and 5, which is wider than a node), 2 and 1.
    # While job 3 holds 2 of node b (70 s) its 2 free GPUs are of no use to 3 of 5 tasks; else node b is free.
    # They are stranded while job 4 (needs 4) is first of every queue: 20-40, 45-50 (job 6 needs 1 in between;
    # from 50 to 60 nothing is taken), 60-90.
    assert summarise(six_jobs())["fragmentation"] == {
        "unusable_share": pytest.approx(0.6 * 70 / 130),
        "stranded_gpus": pytest.approx(2 * (20 + 5 + 30) / 130),
        "largest_gang_share": 1.0,
        "excess_nodes": 0.0,
    }


def test_fairness_compares_tenants() -> None:
    # Mean bounded slowdown: red (1 + 1.6) / 2 = 1.3, blue 11 / 3; green completed nothing.
    # Received / asked: red (400 + 140) / (400 + 100 + 60), blue 120 / 120; green was rejected.
    blue = 11 / 3
    assert summarise(six_jobs())["fairness"] == {
        "jain": pytest.approx((1.3 + blue) ** 2 / (2 * (1.3**2 + blue**2))),
        "max_over_min": pytest.approx(1 / (540 / 560)),
    }


def test_measured_interval_clips_time_and_selects_jobs() -> None:
    summary = summarise(six_jobs(), measure=(10, 100))
    assert summary["measured"] == {"from_s": 10.0, "to_s": 100.0}
    assert (summary["submitted"], summary["completed"]) == (4, 2)  # jobs 3, 4, 5 and 6
    assert summary["mean_jct_s"] == 95.0  # job 4 counts although it ends later
    assert summary["allocated_utilisation"] == (4 * 90 + 2 * 70) / (8 * 90)
    # Job 1 makes 90 of its 100 s of progress inside, job 3 all its 50 s.
    assert summary["productive_utilisation"] == pytest.approx((4 * 90 + 2 * 50) / (8 * 90))
    assert summary["makespan_s"] == 130.0


def test_measured_interval_is_half_open_and_clipped_to_the_run() -> None:
    summary = summarise(six_jobs(), measure=(-50, 20))
    assert summary["submitted"] == 3  # job 4 comes at 20
    assert summary["measured"] == {"from_s": 0.0, "to_s": 20.0}
    after = summarise(six_jobs(), measure=(500, float("inf")))
    assert after["submitted"] == 0
    assert after["measured"] == {"from_s": 130.0, "to_s": 130.0}
    assert after["allocated_utilisation"] is None


def test_losses_to_holding_to_repeated_work_and_to_speed() -> None:
    # Held 5 s for the rest of its gang, then 10 s at speed 0.8 of which 6 s are kept, then 10 s at speed 1.
    jobs = [job(1, 0, 2, 16, start_s=5, end_s=25)]
    rows = [
        row(1, "a", 2, 0, 5, "hold"),
        row(1, "a", 2, 5, 15, speed=0.8, progress_s=6),
        row(1, "a", 2, 15, 25),
    ]
    summary = summarise(tables([node("a", 4)], jobs, rows))
    hours = {name: value * 3600 for name, value in summary["gpu_hours_lost_by"].items()}
    assert hours == pytest.approx({"checkpoint": 0, "restart": 0, "hold": 10, "redone": 4, "speed": 4})
    assert summary["gpu_hours_lost"] * 3600 == pytest.approx(2 * 25 - 2 * 16)


def test_the_last_microsecond_of_a_fast_stint_is_not_repeated_work() -> None:
    # 1 us of work at speed 2.2: the stint lasts 1 us and would make 2 us of progress; 1 was left.
    jobs = [job(1, 0, 1, 1e-6, start_s=0, end_s=1e-6)]
    rows = [row(1, "a", 1, 0, 1e-6, speed=2.2, progress_s=1e-6)]
    losses = summarise(tables([node("a", 1)], jobs, rows))["gpu_hours_lost_by"]
    assert (losses["redone"], losses["speed"]) == (0.0, 0.0)


def test_stint_of_a_year_at_another_speed_stays_exact() -> None:
    # 366 days at speed 0.5 make 183 days of progress, 100 of them kept; the microseconds times 500000 pass
    # 64 bits.
    days = 86_400.0
    jobs = [job(1, 0, 1, 200 * days, state="unfinished", start_s=0)]
    rows = [row(1, "a", 1, 0, 366 * days, speed=0.5, progress_s=100 * days)]
    losses = summarise(tables([node("a", 1)], jobs, rows))["gpu_hours_lost_by"]
    assert (losses["redone"], losses["speed"]) == (83 * 24.0, 183 * 24.0)


def test_sums_may_pass_64_bits() -> None:
    assert exact_sum(np.array([2**62, 2**62 + 1, 2**62, -3])) == 3 * 2**62 - 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "jobs",
    [
        [],
        [job(1, 0, 1, 10, state="rejected")],
        [job(1, 0, 1, 0, start_s=0, end_s=0)],
        [job(1, 0, 0, 5, state="unfinished")],
    ],
    ids=["no jobs", "only rejected", "no duration", "never started"],
)
def test_what_is_undefined_is_null(jobs: list[dict[str, object]]) -> None:
    summary = summarise(tables([node("a", 1)], jobs, []))
    assert summary["allocated_utilisation"] is None
    assert summary["offered_load"] is None
    assert summary["mean_slowdown"] is None
    assert set(summary["fragmentation"].values()) == {None}
    assert set(summary["fairness"].values()) == {None}
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_one_tenant_has_no_fairness() -> None:
    run = tables([node("a", 1)], [job(1, 0, 1, 10, start_s=0, end_s=10)], [row(1, "a", 1, 0, 10)])
    assert summarise(run)["fairness"] == {"jain": None, "max_over_min": None}


def test_a_run_that_was_cut_lasts_until_its_last_row() -> None:
    jobs = [job(1, 0, 1, 100, state="unfinished", start_s=0)]
    summary = summarise(tables([node("a", 2)], jobs, [row(1, "a", 1, 0, 40)]))
    assert summary["measured"] == {"from_s": 0.0, "to_s": 40.0}
    assert summary["allocated_utilisation"] == 0.5
    assert summary["mean_jct_s"] is None


def test_ids_may_be_text() -> None:
    run = six_jobs()
    run.jobs["job_id"] = "job-" + run.jobs["job_id"].astype(str)
    run.segments["job_id"] = "job-" + run.segments["job_id"].astype(str)
    assert summarise(run) == summarise(six_jobs())


def test_order_of_rows_does_not_matter() -> None:
    run = six_jobs()
    turned = dataclasses.replace(run, segments=run.segments.iloc[::-1].reset_index(drop=True))
    assert summarise(turned) == summarise(run)


@pytest.mark.parametrize(("column", "value"), [("job_id", 99), ("node", "c")])
def test_tables_of_different_runs_are_refused(column: str, value: int | str) -> None:
    run = six_jobs()
    run.segments.loc[5, column] = value
    with pytest.raises(InvariantError, match=f"{value}.*which jobs or capacity lack"):
        summarise(run)


def test_comparison_sets_each_figure_against_the_first_run() -> None:
    first = {"policy": "fifo", "mean_jct_s": 200.0, "fairness": {"jain": None}, "killed": 0}
    second = {"policy": "sjf", "mean_jct_s": 50.0, "fairness": {"jain": 0.5}, "killed": 3}
    table = compare_summaries([first, second])
    assert list(table.columns) == [
        "policy",
        "mean_jct_s",
        "mean_jct_s_ratio",
        "fairness.jain",
        "fairness.jain_ratio",
        "killed",
        "killed_ratio",
    ]
    assert list(table["policy"]) == ["fifo", "sjf"]
    assert list(table["mean_jct_s_ratio"]) == [1.0, 0.25]
    assert table[["fairness.jain_ratio", "killed_ratio"]].isna().all(axis=None)


def test_comparison_of_real_summaries_has_a_row_each() -> None:
    summary = summarise(six_jobs())
    table = compare_summaries([summary, summary])
    assert list(table["gpu_hours_lost_by.checkpoint_ratio"]) == [1.0, 1.0]
    assert pd.isna(table["gpu_hours_lost_by.hold_ratio"]).all()


def test_the_time_to_fill_up_of_centuries_on_many_gpus() -> None:
    """1,200 GPUs times 2**53 us are more than an int64 holds; on average 600 are held, from 100 s on."""
    end = 2.0**53 / 1e6
    jobs = [job(1, 0.0, 1, 1.0), job(2, 0.0, 1_200, 1.0), job(3, end, 1, 1.0)]
    rows = [row(1, "a", 1, 0.0, 100.0), row(2, "a", 1_200, 100.0, end / 2)]
    assert summarise(tables([node("a", 1_201)], jobs, rows))["fill_up_s"] == 100.0
