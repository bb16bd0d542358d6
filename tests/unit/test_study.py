"""The Python face: simulate, compare, and runs that are saved and read."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import analysim
from analysim.config.cluster import ClusterConfig
from analysim.errors import ConfigError, UserError
from analysim.policy import Plan, Policy
from analysim.study import pair_jobs

CLUSTER = ClusterConfig.model_validate(
    {
        "name": "four",
        "node_types": {"n": {"gpus": 4, "gpu_type": "A100"}},
        "racks": [{"name": "r", "nodes": [{"type": "n", "count": 1}]}],
    }
)


class LastFirst(Policy):
    """Start the latest job first; to have another policy than those on the shelf."""

    name = "last_first"

    def schedule(self, plan: Plan) -> None:
        for job in reversed(list(plan.pending)):
            plan.start(job)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three jobs of 4 GPUs on a cluster of 4: 100 s, 10 s and 50 s long, all but together."""
    path = tmp_path / "three.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\n1,0,100,4\n2,1,10,4\n3,2,50,4\n")
    return path


def test_a_run_in_memory(trace: Path) -> None:
    run = analysim.simulate(trace, topology=CLUSTER)
    assert run.folder is None
    assert list(run.jobs["end_time_s"]) == [100, 110, 160]
    assert run.summary["mean_jct_s"] == pytest.approx((100 + 109 + 158) / 3)
    assert run.summary["policy"] == "fifo"
    assert run.config.placement == "pack"
    assert run.segments["progress_s"].sum() == 160
    assert not run.timeline.empty


def test_classes_and_fields(trace: Path) -> None:
    run = analysim.simulate(trace, policy=LastFirst, topology=CLUSTER, until="2m", seed=3)
    assert list(run.jobs["first_start_time_s"].fillna(-1)) == [0, -1, 100]
    assert run.summary["unfinished"] == 2
    assert run.config.seed == 3


@pytest.mark.parametrize("wrong", [{"sede": 1}, {"load": -1}, {"until": "soon"}, {"options": {"nope": 1}}])
def test_mistakes_are_told(trace: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        analysim.simulate(trace, topology=CLUSTER, **wrong)


@pytest.mark.slow
def test_a_saved_run_reads_back(trace: Path, tmp_path: Path) -> None:
    run = analysim.simulate(trace, topology=CLUSTER)
    saved = run.save(tmp_path / "run", figures=False)
    read = analysim.Run.read(tmp_path / "run")
    assert saved.folder == read.folder == tmp_path / "run"
    assert read.summary == run.summary
    assert read.config == run.config
    pd.testing.assert_frame_equal(read.jobs, run.jobs, check_dtype=False, check_categorical=False)
    assert analysim.simulate(trace, topology=CLUSTER, out=tmp_path / "two").folder == tmp_path / "two"


@pytest.mark.slow
def test_figures_of_a_run_in_memory(trace: Path, tmp_path: Path) -> None:
    paths = analysim.simulate(trace, topology=CLUSTER).plot(tmp_path / "drawn")
    assert paths
    assert all(path.stat().st_size > 1_000 for path in paths)


def test_compare_pairs_the_jobs(trace: Path) -> None:
    fifo, other = analysim.simulate(trace, topology=CLUSTER), analysim.simulate(trace, LastFirst, CLUSTER)
    # fifo ends at 100, 110, 160; last first at 100, 160, 150: one job slower, one faster, one the same
    assert pair_jobs(fifo, other) == {
        "faster": pytest.approx(1 / 3),
        "slower": pytest.approx(1 / 3),
        "median_ratio": 1.0,
    }
    table = analysim.compare([fifo, other])
    assert list(table["run"]) == ["fifo (none)", "last_first (none)"]
    assert table.loc[1, "mean_jct_s_ratio"] == pytest.approx((100 + 159 + 148) / (100 + 109 + 158))


def test_compare_refuses_runs_of_other_jobs(trace: Path) -> None:
    whole = analysim.simulate(trace, topology=CLUSTER)
    part = analysim.simulate(trace, topology=CLUSTER, window=":2s")
    with pytest.raises(UserError, match="their window differs"):
        analysim.compare([whole, part])
    with pytest.raises(UserError, match="no runs"):
        analysim.compare([])


def test_the_public_face() -> None:
    assert analysim.__all__ == ["Run", "__version__", "compare", "simulate"]
    assert set(analysim.__all__) <= set(dir(analysim))
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        analysim.simulat  # noqa: B018
