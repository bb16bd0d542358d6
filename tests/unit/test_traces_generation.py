"""Synthetic traces: their figures, their randomness, and the files written from them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from analysim.errors import AnalysimError, ConfigError, MissingExtraError, UserError
from analysim.traces import PROFILES, describe, generate, offered_load, read_trace, write_trace
from analysim.traces.profiles import Profile
from analysim.traces.schema import FRAME_COLUMNS
from analysim.traces.trace import Trace

ROOT = Path(__file__).parents[2]
HOUR_US = 3_600_000_000

PUBLISHED = {
    # Jobs with GPUs; the sources are named in docs/reference/generated-traces.md.
    "philly": {
        "jobs": 112_956,
        "mean_gpus": 1.928,
        "median_gpus": 1.0,
        "max_duration_s": 4_240_676.0,
        "mean_duration_s": 18_006.055,
        "median_duration_s": 874.0,
        "gpu_seconds": 6_894_707_654 / 112_956,
    },
    "helios": {
        "jobs": 1_580_464,
        "mean_gpus": 3.716,
        "median_gpus": 1.0,
        "max_duration_s": 4_320_009.0,
        "mean_duration_s": 6_651.681,
        "median_duration_s": 206.0,
        "gpu_seconds": 77_998_239_787 / 1_580_464,
    },
}


def expect(profile: Profile) -> dict[str, float]:
    """Figures of a profile of lognormal parts in closed form, durations cut at the longest."""
    longest = profile.longest_s
    sizes, shares = np.array(list(profile.sizes)), np.array(list(profile.sizes.values()))
    parts = profile.durations
    median = np.array([part.scale_s for part in parts]) * sizes[:, None] ** profile.size_exponent
    sigma = np.array([part.sigma for part in parts])
    weight = np.outer(shares, [part.share for part in parts])
    weight /= weight.sum()
    cut = (np.log(longest) - np.log(median)) / sigma
    mean = median * np.exp(sigma**2 / 2) * norm.cdf(cut - sigma) + longest * norm.sf(cut)
    return {
        "mean_gpus": float(shares @ sizes / shares.sum()),
        "mean_duration_s": float((weight * mean).sum()),
        "gpu_seconds": float((weight * mean * sizes[:, None]).sum()),
        "median_duration_s": brentq(
            lambda time: (weight * norm.cdf(np.log(time / median) / sigma)).sum() - 0.5, 1, longest
        ),
    }


@pytest.mark.parametrize("profile", PUBLISHED)
def test_profile_expects_what_is_published(profile: str) -> None:
    assert PROFILES[profile].jobs == PUBLISHED[profile]["jobs"]
    expected = expect(PROFILES[profile])
    for name, value in expected.items():
        assert value == pytest.approx(PUBLISHED[profile][name], rel=5e-4), name
    assert documented_column(profile, 1) == {
        name: f"{value:,.{3 if name == 'mean_gpus' else 0}f}" for name, value in expected.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("profile", PUBLISHED)
def test_sample_of_a_profile_agrees_with_what_is_published(profile: str) -> None:
    """Of a million jobs; GPU-seconds a job have a standard error of 3 % (bursts repeat sizes)."""
    told = describe(Trace(generate(profile, jobs=1_000_000, seed=2), profile, profile, "csv"))
    told["gpu_seconds"] = told["gpu_hours"] * 3_600 / 1_000_000
    published = PUBLISHED[profile]
    assert (told["median_gpus"], told["max_duration_s"]) == (1.0, published["max_duration_s"])
    for name, tolerance in (
        ("mean_gpus", 0.01),
        ("median_duration_s", 0.01),
        ("mean_duration_s", 0.03),
        ("gpu_seconds", 0.06),
    ):
        assert told[name] == pytest.approx(published[name], rel=tolerance), name
        assert documented_column(profile, 2)[name] == f"{told[name]:,.{3 if name == 'mean_gpus' else 0}f}"


def documented_column(profile: str, offset: int) -> dict[str, str]:
    """Return published (0), fitted (1) or sampled (2) figures as the documentation has them."""
    names = {
        "mean GPUs": "mean_gpus",
        "mean run time, s": "mean_duration_s",
        "median run time, s": "median_duration_s",
        "GPU-seconds a job": "gpu_seconds",
    }
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs/reference/generated-traces.md").read_text().splitlines()
    ]
    position = {"philly": 1, "helios": 4}[profile] + offset
    return {names[row[0]]: row[position] for row in rows if row[0] in names}


def test_same_arguments_same_jobs_other_seed_other_jobs() -> None:
    first, again, other = (generate("philly", jobs=500, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert (first["duration_us"] != other["duration_us"]).any()


def test_each_purpose_has_its_own_stream() -> None:
    plain = generate("philly", jobs=500, seed=1)
    priorities = generate("philly", jobs=500, seed=1, options={"priorities": {0: 1, 5: 1}})
    assert set(priorities["priority"]) == {0, 5}
    pd.testing.assert_frame_equal(plain.drop(columns="priority"), priorities.drop(columns="priority"))


def test_frame_is_canonical() -> None:
    frame = generate("demo", jobs=50)
    assert tuple(frame.columns) == FRAME_COLUMNS
    assert frame["job_id"].tolist() == list(range(1, 51))
    assert frame["submit_us"].iloc[0] == 0
    assert frame["submit_us"].is_monotonic_increasing
    assert (frame["duration_us"] >= 1_000_000).all()


@pytest.mark.parametrize("profile", ["philly", "helios", "poisson"])
def test_load_is_met(profile: str) -> None:
    frame = generate(profile, jobs=3_000, gpus=512, load=0.9, seed=5)
    assert offered_load(frame, 512) == pytest.approx(0.9, rel=1e-4)
    assert frame["gpu_milli"].max() <= 512_000


def test_sizes_above_the_cluster_are_left_out() -> None:
    assert generate("helios", jobs=5_000, gpus=8)["gpu_milli"].max() == 8_000


def test_span_is_met() -> None:
    frame = generate("philly", jobs=200, span="30d")
    assert frame["submit_us"].max() == 30 * 24 * HOUR_US


def test_poisson_profile_is_poisson() -> None:
    """Gaps and durations are exponential: mean and deviation agree within four standard errors of 40,000."""
    frame = generate("poisson", jobs=40_000, seed=7, options={"jobs_per_hour": 30})
    gaps = np.diff(frame["submit_us"]) / HOUR_US
    durations = frame["duration_us"] / HOUR_US
    for values, mean in ((gaps, 1 / 30), (durations, 1.0)):
        assert values.mean() == pytest.approx(mean, rel=0.02)
        assert values.std() == pytest.approx(mean, rel=0.03)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.02
    assert set(frame["gpu_milli"]) == {1_000}


def test_arrivals_swing_by_day_and_rest_at_weekends() -> None:
    frame = generate("poisson", jobs=60_000, options={"daily_swing": 0.8, "busiest_hour": 12, "weekend": 0.5})
    hours = frame["submit_us"] // HOUR_US
    by_hour = np.bincount(hours % 24, minlength=24)
    assert by_hour[11:13].sum() / by_hour[[0, 23]].sum() == pytest.approx(1.8 / 0.2, rel=0.15)
    whole_weeks = hours < hours.max() // 168 * 168
    by_day = np.bincount(hours[whole_weeks] // 24 % 7, minlength=7)
    assert by_day[5:].mean() / by_day[:5].mean() == pytest.approx(0.5, rel=0.05)
    assert len(frame) * HOUR_US / frame["submit_us"].max() == pytest.approx(60, rel=0.02)


def test_jobs_of_a_burst_are_alike_and_close() -> None:
    frame = generate(
        "demo", jobs=4_000, options={"burst_share": 0.9, "burst_gap_s": 1, "priorities": {0: 1, 1: 1}}
    )
    alike = (
        frame[["tenant", "user", "gpu_milli", "priority"]].shift()
        == frame[["tenant", "user", "gpu_milli", "priority"]]
    ).all(axis=1)
    gaps = frame["submit_us"].diff()
    assert alike.mean() > 0.8
    assert gaps[alike].median() <= 2_000_000


def test_demo_has_what_it_promises() -> None:
    frame = generate("demo", seed=1)
    assert len(frame) == 10_000
    assert offered_load(frame, 1_152) == pytest.approx(0.95, rel=1e-3)
    work = frame["gpu_milli"] / 1_000 * frame["duration_us"]
    by_day = work.groupby(frame["submit_us"] // (24 * HOUR_US)).sum() / (1_152 * 24 * HOUR_US)
    assert (by_day > 1.0).sum() >= 4, "a queue on most working days"
    assert set(frame["priority"]) == {0, 1, 2}
    assert (~frame["preemptible"]).mean() == pytest.approx(0.2, abs=0.02)
    assert frame["tenant"].nunique() == 6
    assert set(frame["tenant"].str.split("/").str[0]) == {"research", "products", "campus"}
    assert frame.groupby("tenant")["partition"].nunique().eq(1).all()


@pytest.mark.parametrize(
    ("arguments", "error", "line"),
    [
        ({"profile": "phily"}, UserError, "There is no trace profile 'phily'. Did you mean 'philly'?"),
        (
            {"load": 0.9},
            UserError,
            "A load needs a cluster to be a load of. Give the number of its GPUs too (--gpus).",
        ),
        ({"seed": -1}, UserError, "The seed -1 is negative. Give a whole number, 0 or more."),
        (
            {"gpus": 4, "options": {"sizes": {8: 1}}},
            UserError,
            "No job size of the profile fits 4 GPUs. Give smaller sizes.",
        ),
        (
            {"options": {"priorities": {0: 0}}},
            UserError,
            "The shares of a mix are all zero. Give at least one of them a positive share.",
        ),
        ({"jobs": 0}, ConfigError, "profile philly: jobs is 0; expected more than 0."),
        (
            {"options": {"prioritys": {}}},
            ConfigError,
            "profile philly: unknown key 'prioritys'. Did you mean 'priorities'?",
        ),
        ({"span": "soon"}, UserError, "'soon' is not a duration."),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, object], error: type[Exception], line: str) -> None:
    with pytest.raises(error) as caught:
        generate(**{"profile": "philly", "jobs": 10, **arguments})  # type: ignore[arg-type]
    assert str(caught.value).startswith(line)


@pytest.mark.parametrize("name", ["made.csv", "made.csv.gz", "made.parquet"])
def test_written_trace_reads_back(name: str, tmp_path: Path) -> None:
    frame = generate("demo", jobs=300)
    numbers = np.arange(300)
    frame = frame.assign(
        cancel_us=np.where(numbers % 3 == 0, frame["submit_us"] + 500_001, -1),
        estimate_us=np.where(numbers % 2 == 0, frame["duration_us"] * 2, -1),
        cpu_milli=numbers * 500,
        memory_mb=numbers,
        gpu_type=np.where(numbers % 2 == 0, "A100|H100", ""),
        recorded_node=np.where(numbers % 5 == 0, 'n1,"n2"', ""),
        checkpoint_us=30_000_000,
    )
    write_trace(frame, tmp_path / name)
    trace = read_trace(tmp_path / name)
    pd.testing.assert_frame_equal(trace.frame, frame.astype({"gpu_type": "str", "recorded_node": "str"}))
    assert (trace.rows, trace.notes) == (300, [])


def test_text_ids_read_back(tmp_path: Path) -> None:
    frame = generate("poisson", jobs=3).assign(job_id=["007", "1", "x"])
    write_trace(frame, tmp_path / "made.csv")
    assert read_trace(tmp_path / "made.csv").frame["job_id"].tolist() == ["007", "1", "x"]


@pytest.mark.parametrize("name", ["made.csv", "made.csv.gz", "made.parquet"])
def test_same_trace_same_bytes_and_nothing_else(name: str, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write_trace(generate("tiny"), tmp_path / folder / name)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert [path.name for path in (tmp_path / "one").iterdir()] == [name]


def test_written_csv_is_readable_and_short(tmp_path: Path) -> None:
    frame = generate("poisson", jobs=2, options={"resolution_s": 0.5, "shortest_s": 0.5})
    write_trace(frame, tmp_path / "made.csv")
    lines = (tmp_path / "made.csv").read_text().splitlines()
    assert lines[0] == "job_id,submit_time,duration,num_gpus,user"
    assert lines[1].startswith("1,0,") or lines[1].startswith("1,0.0,")


def test_write_elsewhere_than_a_known_format(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"End the name in \.csv, \.csv\.gz or \.parquet\.$"):
        write_trace(generate("tiny"), tmp_path / "made.xlsx")


def test_write_into_no_folder(tmp_path: Path) -> None:
    target = tmp_path / "gone" / "made.csv"
    with pytest.raises(AnalysimError) as caught:
        write_trace(generate("tiny"), target)
    assert str(caught.value) == (
        f"{target} cannot be written: No such file or directory. Check the folder, its rights and its space."
    )
    assert caught.value.exit_code == 1


def test_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "made.csv"
    target.write_text("old")

    def refuse(path: Path, data: bytes) -> None:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(AnalysimError, match="No space left on device"):
        write_trace(generate("tiny"), target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_write_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise ImportError("Missing optional dependency 'pyarrow'")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'analysim\[parquet\]'"):
        write_trace(generate("tiny"), tmp_path / "made.parquet")


@pytest.mark.parametrize(("name", "jobs"), [("tiny.csv", 20), ("demo.csv.gz", 10_000)])
def test_shipped_trace_is_what_its_command_makes(name: str, jobs: int, tmp_path: Path) -> None:
    path = ROOT / "traces" / name
    shipped = read_trace(path)
    assert shipped.notes == []
    assert shipped.rows == jobs
    assert path.stat().st_size < 1_000_000
    write_trace(generate(shipped.name, seed=1), tmp_path / name)
    pd.testing.assert_frame_equal(shipped.frame, read_trace(tmp_path / name).frame)


def test_shipped_traces_are_documented() -> None:
    text = (ROOT / "traces" / "README.md").read_text()
    for path in (ROOT / "traces").iterdir():
        assert path.name == "README.md" or path.name in text
    opened = gzip.decompress((ROOT / "traces" / "demo.csv.gz").read_bytes())
    assert opened.startswith(
        b"job_id,submit_time,duration,num_gpus,tenant,user,partition,priority,preemptible\n"
    )
