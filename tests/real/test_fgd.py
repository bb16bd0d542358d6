"""The placement experiment of FGD (ATC 2023) against its published results.

The figures and their tolerances: ``../shared/reference/fgd/README.md``; ours are computed by ``scripts/reproduce_fgd.py``.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysim.policy.scored import Fgd
from analysim.study import placing
from tests.builders import ROOT, shared_file

SCRIPT = ROOT / "scripts/reproduce_fgd.py"
FEW = 4
"""Seeds where all of them would take long; the tolerance grows with it."""

ORDER = ["Random", "DotProd", ("GpuClustering", "GpuPacking"), "BestFit", "FGD"]


@cache
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reproduce_fgd", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def files(workload: str) -> tuple[Path, Path]:
    folder = "traces/openb"
    return (
        shared_file(f"{folder}/openb_pod_list_{workload}.csv"),
        shared_file(f"{folder}/openb_node_list_gpu_node.csv"),
    )


@cache
def compared(workload: str, seeds: int) -> pd.DataFrame:
    """Means over the seeds 1, 2... beside the published ones over ten."""
    expected = pd.read_csv(shared_file("reference/fgd/expected.csv"))
    curves = script().curves_for(script().experiment_of(*files(workload)), seeds=seeds)
    return script().compare(curves, expected[expected["workload"] == workload], seeds)  # type: ignore[no-any-return]


def too_far(table: pd.DataFrame) -> list[str]:
    """Policies whose allocation at 100 or 130 % is further off than chance explains."""
    final = table[(table["metric"] == "allocated_percent") & table["load"].isin([100, 130])]
    assert len(final) == 12
    far = final[final["difference"].abs() > final["tolerance"]]
    return [f"{row.policy} at {row.load}: {row.ours:.2f} for {row.published:.2f}" for row in far.itertuples()]


@pytest.mark.slow
def test_allocation_is_as_published() -> None:
    assert too_far(compared("default", FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("load", [100, 130])
def test_policies_rank_as_published(load: int) -> None:
    table = compared("default", FEW)
    at = table[(table["metric"] == "allocated_percent") & (table["load"] == load)].set_index("policy")["ours"]
    ranks = [[at[name] for name in ([each] if isinstance(each, str) else each)] for each in ORDER]
    for lower, higher in pairwise(ranks):
        assert max(lower) < min(higher)


@pytest.mark.slow
def test_fragmentation_is_as_published_at_every_load() -> None:
    table = compared("default", FEW)
    fragmented = table[table["metric"] == "fragmented_percent_of_capacity"]
    assert len(fragmented) == 6 * 15
    far = fragmented[fragmented["difference"].abs() > 1]
    assert far.empty, far.to_string()


@pytest.mark.theory
@pytest.mark.parametrize("workload", ["default", "gpushare40", "gpuspec33", "multigpu20"])
def test_every_workload_with_all_seeds(workload: str) -> None:
    table = compared(workload, script().SEEDS)
    assert too_far(table) == []
    fragmented = table[table["metric"] == "fragmented_percent_of_capacity"]
    assert (fragmented["difference"].abs() <= 1).all()


@pytest.mark.slow
def test_ties_at_random_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ties drawn anew for each pod FGD holds some five points less: 89.8 % by the reference's README."""

    class Drawing(Fgd):
        def place_across(self, capacity: Any, job: Any, options: Any, avoided: int = 0) -> Any:
            order = np.random.default_rng(job.rank).permutation(capacity.topology.size)
            self._order = order
            self._flags.clear()
            return super().place_across(capacity, job, options, avoided)

    monkeypatch.setattr(placing, "PLACERS", {"drawing": Drawing})
    course = script().experiment_of(*files("default")).run("drawing", 1)
    assert 89 < course.allocated[-1] * 100 / course.capacity < 91


@pytest.mark.slow
def test_the_script_prints_json_from_any_directory(tmp_path: Path) -> None:
    pods, nodes = files("multigpu20")  # a file of five columns, above the load: some pods are left out
    words = [sys.executable, str(SCRIPT), "--pods", str(pods), "--nodes", str(nodes), "--policy", "bestfit"]
    words += ["--seed", "3", "--json"]
    done = subprocess.run(words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert set(result) == {"allocated_percent", "fragmented_percent_of_capacity", "pods", "failed", "seconds"}
    assert list(result["allocated_percent"]) == ["80", "90", "100", "130"]
    assert result["allocated_percent"]["130"] > 90 > result["allocated_percent"]["80"]
    assert 0 < result["failed"] < result["pods"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "error: --pods and --nodes are needed."),
        (("--pods", "none.csv", "--nodes", "none.csv"), "error: none.csv: no such file."),
        (("--all", "--expected", "none.csv"), "error: none.csv: no such file."),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert script().main(words) == 2
    assert capsys.readouterr().err.startswith(says)
