"""Windows, loads and estimates of a trace, and its description."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from analysim.errors import UserError
from analysim.traces import (
    Account,
    Trace,
    describe,
    fill_estimates,
    generate,
    offered_load,
    parse_window,
    scale_to_load,
    window,
)
from analysim.traces.trace import make_frame

DAY_US = 86_400_000_000


def make_trace(**columns: object) -> Trace:
    values = {name: np.asarray(values) for name, values in columns.items()}
    rows = len(values["submit_us"])
    frame = make_frame({"job_id": np.arange(rows), "gpu_milli": np.full(rows, 1_000), **values}, rows)
    return Trace(frame, "made", "made.csv", "csv", account=Account(rows=rows))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0d:30d", (0, 30 * DAY_US)),
        ("1h:", (3_600_000_000, None)),
        (":90", (0, 90_000_000)),
        (":", (0, None)),
    ],
)
def test_parse_window(text: str, expected: tuple[int, int | None]) -> None:
    assert parse_window(text) == expected


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("30d", "Write from:to, the earlier time first."),
        ("3d:2d", "Write from:to, the earlier time first."),
        ("2d:2d", "Write from:to, the earlier time first."),
        ("-1d:2d", "Write from:to, as in 7d:30d."),
        ("monday:2d", "Write from:to, as in 7d:30d."),
    ],
)
def test_parse_window_refuses(text: str, remedy: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_window(text)
    assert (caught.value.message, caught.value.remedy) == (f"The window {text!r} is not an interval.", remedy)


def test_window_is_half_open_and_since_the_first_submission() -> None:
    trace = make_trace(submit_us=[5 * DAY_US, 6 * DAY_US, 7 * DAY_US - 1, 7 * DAY_US])
    kept = window(trace, "1d:2d")
    assert kept.frame["job_id"].tolist() == [1, 2]
    assert kept.frame["submit_us"].tolist() == [6 * DAY_US, 7 * DAY_US - 1]
    assert kept.frame.index.tolist() == [0, 1]
    assert kept.set_aside == {"submitted outside 1d:2d": 2}
    assert len(trace.frame) == 4, "the trace itself stays whole"


def test_window_of_all_sets_nothing_aside() -> None:
    trace = make_trace(submit_us=[0, 1])
    assert window(trace, "0d:1d").set_aside == {}


def test_window_without_jobs() -> None:
    with pytest.raises(UserError) as caught:
        window(make_trace(submit_us=[0, 3 * DAY_US]), "1d:2d")
    assert str(caught.value) == (
        "No job of made.csv is submitted in the window 1d:2d. Its submissions span 3.0 days."
    )


def test_offered_load_by_hand() -> None:
    """8 GPUs * 10 s + 1 GPU * 20 s = 100 GPU-seconds on 5 GPUs in 40 s: 0.5."""
    frame = make_trace(
        submit_us=[1_000_000, 41_000_000], duration_us=[10_000_000, 20_000_000], gpu_milli=[8_000, 1_000]
    ).frame
    assert offered_load(frame, 5) == 0.5


@pytest.mark.parametrize(("submits", "gpus"), [([7], 4), ([7, 7], 4), ([0, 7], 0), ([], 4)])
def test_offered_load_that_is_undefined(submits: list[int], gpus: int) -> None:
    frame = make_trace(submit_us=np.array(submits, np.int64), duration_us=np.array(submits, np.int64)).frame
    assert math.isnan(offered_load(frame, gpus))


def test_scaling_moves_arrivals_withdrawals_and_records_alike() -> None:
    trace = make_trace(
        submit_us=[1_000_000, 3_000_000, 11_000_000],
        duration_us=[5_000_000] * 3,
        cancel_us=[-1, 4_000_000, 11_500_000],
        recorded_start_us=[1_000_000, 3_100_000, -1],
    )
    scaled = scale_to_load(trace, 2 * offered_load(trace.frame, 4), 4).frame
    assert scaled["submit_us"].tolist() == [1_000_000, 2_000_000, 6_000_000]
    assert scaled["cancel_us"].tolist() == [-1, 3_000_000, 6_500_000]
    assert scaled["recorded_start_us"].tolist() == [1_000_000, 2_100_000, -1]
    assert scaled["duration_us"].tolist() == [5_000_000] * 3


@pytest.mark.parametrize("load", [0.1, 0.8, 1.2, 7.0])
def test_scaled_load_holds(load: float) -> None:
    frame = generate("philly", jobs=2_000, seed=4)
    trace = Trace(frame, "made", "made", "csv")
    scaled = scale_to_load(trace, load, 640).frame
    assert offered_load(scaled, 640) == pytest.approx(load, rel=1e-9)
    assert scaled["submit_us"].is_monotonic_increasing
    assert scaled["job_id"].tolist() == frame["job_id"].tolist()


def test_submissions_that_meet_stand_in_the_order_of_ids() -> None:
    trace = make_trace(job_id=[2, 1, 3], submit_us=[0, 1, 1_000], duration_us=[1_000] * 3)
    assert scale_to_load(trace, 10.0, 1).frame["job_id"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("load", [0.0, -1.0, math.inf, math.nan])
def test_scaling_to_no_load(load: float) -> None:
    with pytest.raises(UserError, match="is not a positive number"):
        scale_to_load(make_trace(submit_us=[0, 1], duration_us=[1, 1]), load, 4)


def test_scaling_a_trace_without_load() -> None:
    with pytest.raises(UserError, match=r"^made\.csv offers no load that could be scaled\."):
        scale_to_load(make_trace(submit_us=[5, 5], duration_us=[1, 1]), 0.9, 4)


def test_exact_and_factor_estimates_fill_what_is_absent() -> None:
    frame = make_trace(submit_us=[0, 1], duration_us=[10, 21], estimate_us=[7, -1]).frame
    assert fill_estimates(frame, "exact", 0)["estimate_us"].tolist() == [7, 21]
    assert fill_estimates(frame, "factor:1.5", 0)["estimate_us"].tolist() == [7, 32]
    assert frame["estimate_us"].tolist() == [7, -1]


def test_lognormal_estimates_have_the_spread_asked_for() -> None:
    frame = make_trace(submit_us=np.arange(20_000), duration_us=np.full(20_000, 10**12)).frame
    logarithm = np.log(fill_estimates(frame, "lognormal:0.5", 1)["estimate_us"] / 10**12)
    # Standard errors of mean and deviation of 20,000 normal numbers: 0.0035 and 0.0025.
    assert abs(logarithm.mean()) < 0.015
    assert abs(logarithm.std() - 0.5) < 0.01


def test_lognormal_estimates_follow_the_job_and_the_seed() -> None:
    frame = make_trace(job_id=["a", "b", "c", "d"], submit_us=[0, 1, 2, 3], duration_us=[10**9] * 4).frame
    first = fill_estimates(frame, "lognormal:1", 5).set_index("job_id")["estimate_us"]
    order = [2, 0, 3, 1]
    again = fill_estimates(frame.iloc[order], "lognormal:1", 5).set_index("job_id")["estimate_us"]
    pd.testing.assert_series_equal(first.sort_index(), again.sort_index())
    assert first.nunique() == 4
    other = fill_estimates(frame, "lognormal:1", 6)["estimate_us"]
    assert (other.to_numpy() != first.to_numpy()).all()


@pytest.mark.parametrize(
    "rule", ["", "perfect", "exact:2", "factor", "factor:0", "factor:x", "lognormal:-1", "lognormal:inf"]
)
def test_rules_for_estimates_that_are_none(rule: str) -> None:
    with pytest.raises(UserError) as caught:
        fill_estimates(make_trace(submit_us=[0]).frame, rule, 0)
    assert caught.value.remedy == "Write exact, factor:F (factor:1.5) or lognormal:S (lognormal:0.5)."


def test_description_by_hand() -> None:
    trace = make_trace(
        submit_us=[0, 1_800_000_000, 1_900_000_000, 7_200_000_000],
        duration_us=[3_600_000_000, 7_200_000_000, 60_000_000, 1_800_000_000],
        gpu_milli=[1_000, 8_000, 0, 3_000],
        tenant=["a", "b", "", "a"],
        user=["u", "v", "w", "u"],
        priority=[0, 2, 0, 0],
        preemptible=[True, False, True, True],
    )
    trace.account.put_aside("no end", [3, 5])
    trace.account.rows = 6
    told = describe(trace)
    assert json.loads(json.dumps(told)) == told
    by_hand = {
        "name": "made",
        "format": "csv",
        "rows": 6,
        "jobs": 4,
        "set_aside": {"no end": 2},
        "cpu_jobs": 1,
        "time_origin": None,
        "span_s": 7_200.0,
        "mean_jobs_per_hour": 2.0,
        "peak_jobs_per_hour": 3,
        "gpu_hours": 1 + 16 + 1.5,
        "mean_gpus": 4.0,
        "median_gpus": 3.0,
        "max_gpus": 8.0,
        "mean_duration_s": 4_200.0,
        "median_duration_s": 3_600.0,
        "max_duration_s": 7_200.0,
        "tenants": 2,
        "users": 3,
        "partitions": 0,
        "priorities": {"0": 3, "2": 1},
        "nonpreemptible_share": 0.25,
        "sizes": [
            {"gpus": "1", "jobs": 1, "jobs_share": 1 / 3, "gpu_time_share": 1 / 18.5},
            {"gpus": "2-4", "jobs": 1, "jobs_share": 1 / 3, "gpu_time_share": 1.5 / 18.5},
            {"gpus": "5-8", "jobs": 1, "jobs_share": 1 / 3, "gpu_time_share": 16 / 18.5},
        ],
    }
    assert {key: told[key] for key in by_hand} == by_hand


def test_description_of_cpu_jobs_alone() -> None:
    told = describe(make_trace(submit_us=[3], gpu_milli=[0], duration_us=[5]))
    assert (told["jobs"], told["cpu_jobs"], told["gpu_hours"]) == (1, 1, 0.0)
    assert (told["mean_gpus"], told["median_duration_s"], told["mean_jobs_per_hour"]) == (None, None, None)
    assert told["sizes"] == []


def test_times_beyond_what_a_trace_may_have_are_refused() -> None:
    long = make_trace(submit_us=[0, 10], duration_us=[1 << 52, 1])
    late = make_trace(submit_us=[0, 10_000], duration_us=[10_000, 1], cancel_us=[-1, 1 << 53])
    for trace, load in ((long, 1e-3), (late, 1e-1), (late, 1e-300), (late, 5e-324)):
        with pytest.raises(UserError, match="makes times beyond 285 years"):
            scale_to_load(trace, load, 1)
    assert scale_to_load(late, 2.0, 1).frame["submit_us"].tolist() == [0, 5_000]
