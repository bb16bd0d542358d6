"""``analysim compare``, ``plot`` and ``rerun``: runs side by side, drawn, and made again."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from small_run import SIMULATE, TRACE, Command

COMPARE = ("compare", "--trace", "prod.csv", "--topology", "tiny", "--policy", "fifo", "--policy", "sjf")


@pytest.mark.slow
def test_policies_on_one_trace(analysim: Command, here: Path) -> None:
    result = analysim(*COMPARE)
    assert result.exit_code == 0, result.stderr
    folder = here / "runs/compare-prod"
    assert {each.name for each in folder.iterdir()} == {
        "comparison.csv",
        "comparison_by_size.csv",
        "figures",
        "fifo",
        "sjf",
    }
    assert (folder / "figures/comparison.png").is_file()
    assert (folder / "sjf/run.json").is_file()
    table = pd.read_csv(folder / "comparison.csv")
    assert list(table["policy"]) == ["fifo", "sjf"]
    assert table.loc[0, "mean_jct_s_ratio"] == 1
    assert "prod on tiny; × is against fifo (none)" in result.stdout
    assert "sjf (oracle)" in result.stdout
    for title in (
        "median wait",
        "p99 JCT",
        "makespan",
        "free GPUs unusable",
        "mean JCT by GPUs",
        "9-64",
    ):
        assert title in result.stdout


def test_figures_are_against_the_first(analysim: Command) -> None:
    runs = json.loads(analysim(*COMPARE, "--no-figures", "--json", "--quiet").stdout)
    assert [run["policy"] for run in runs] == ["fifo", "sjf"]
    assert runs[0]["paired"] == {"faster": 0.0, "slower": 0.0, "median_ratio": 1.0}
    assert runs[1]["run"] == "runs/compare-prod/sjf"


BROKEN = '''"""A policy that fails."""
from analysim.policy import Plan, Policy


class Broken(Policy):
    name = "broken"

    def schedule(self, plan: Plan) -> None:
        1 / 0
'''


def test_runs_finished_before_a_failure_are_kept_and_named(analysim: Command, here: Path) -> None:
    (here / "broken.py").write_text(BROKEN)
    result = analysim(*COMPARE, "--policy", "broken.py", "--no-figures", "--out", "all")
    assert (result.exit_code, result.stdout) == (1, "")
    line = result.stderr.splitlines()[-1]
    assert "division by zero" in line
    assert line.endswith("Finished before and kept: all/fifo, all/sjf.")
    assert sorted(each.name for each in (here / "all").iterdir()) == ["fifo", "sjf"]
    assert analysim("compare", "all/fifo", "all/sjf", "--no-figures").exit_code == 0


def test_the_first_policy_that_fails_leaves_nothing(analysim: Command, here: Path) -> None:
    (here / "broken.py").write_text(BROKEN)
    result = analysim("compare", "--trace", "prod.csv", "--policy", "broken.py", "--policy", "fifo", "--out", "all")
    assert result.exit_code == 1
    assert "kept" not in result.stderr
    assert not (here / "all").exists()


@pytest.mark.slow
def test_finished_runs(analysim: Command, here: Path) -> None:
    analysim(*COMPARE, "--no-figures", "--out", "both")
    by_policy = analysim(*COMPARE, "--no-figures", "--out", "again", "--quiet").stdout
    by_folder = analysim("compare", "both/fifo", "both/sjf", "--no-figures", "--quiet").stdout
    assert by_folder == by_policy
    files = [here / folder / "comparison.csv" for folder in ("runs/compare-prod", "again", "both")]
    assert len({file.read_bytes() for file in files}) == 1


def test_runs_of_other_jobs_are_refused(analysim: Command, here: Path) -> None:
    (here / "other.csv").write_text(TRACE.replace("6,600", "6,601"))
    analysim(*SIMULATE, "--out", "one")
    analysim("simulate", "--trace", "other.csv", "--topology", "tiny", "--no-figures", "--out", "two")
    analysim(*SIMULATE, "--load", "0.9", "--out", "three")
    for other, difference in (("two", "trace"), ("three", "load")):
        result = analysim("compare", "one", other)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"their {difference} differs" in result.stderr


def test_one_policy_with_two_placements(analysim: Command) -> None:
    analysim(*SIMULATE, "--out", "tight", "--placement", "pack")
    analysim(*SIMULATE, "--out", "wide", "--placement", "spread")
    header = analysim("compare", "tight", "wide", "--no-figures").stdout.splitlines()[2]
    assert header.split() == ["policy", "(knowledge)", "tight", "(none)", "wide", "(none)"]


def test_an_option_goes_to_the_policies_that_have_it(analysim: Command, here: Path) -> None:
    source = (
        "from analysim.policy import Options, Plan, Policy\n\n\nclass Mine(Policy):\n"
        "    name = 'mine'\n\n    class Options(Options):\n        patience: int = 1\n\n"
        "    def schedule(self, plan: Plan) -> None:\n"
        "        for job in plan.pending:\n            plan.start(job)\n"
    )
    (here / "mine.py").write_text(source)
    words = (
        "compare",
        "--trace",
        "prod.csv",
        "--topology",
        "tiny",
        "--policy",
        "fifo",
        "--policy",
        "mine.py",
    )
    assert analysim(*words, "--set", "policy.patience=7", "--no-figures", "--out", "out").exit_code == 0
    assert json.loads((here / "out/mine/run.json").read_text())["policy"]["options"] == {"patience": 7}
    refused = analysim(*words, "--set", "policy.patients=7")
    assert refused.exit_code == 2
    assert "patients" in refused.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "either finished run folders or policies"),
        (("--trace", "prod.csv"), "either finished run folders or policies"),
        (("--trace", "prod.csv", "--policy", "fifo", "--policy", "fifo"), "one name"),
        (("--policy", "fifo"), "No trace is named"),
        (("prod.csv",), "not a finished run"),
        (("--trace", "prod.csv", "--policy", "fifo", "--policy", "nope"), "'nope'"),
    ],
)
def test_mistakes(analysim: Command, here: Path, words: tuple[str, ...], line: str) -> None:
    result = analysim("compare", *words)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert line in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (here / "runs").exists()


@pytest.mark.slow
def test_an_existing_comparison_is_not_touched_unless_forced(analysim: Command, here: Path) -> None:
    assert analysim(*COMPARE, "--no-figures", "--out", "mine").exit_code == 0
    refused = analysim(*COMPARE, "--no-figures", "--out", "mine")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "mine already exists" in refused.stderr
    assert analysim(*COMPARE, "--no-figures", "--out", "mine", "--force").exit_code == 0


def test_a_comparison_that_fails_keeps_the_runs_that_are_whole(analysim: Command, here: Path) -> None:
    failing = "from analysim.policy import Policy\n\n\nclass Mine(Policy):\n    name = 'mine'\n\n"
    (here / "mine.py").write_text(failing + "    def schedule(self, plan):\n        1 / 0\n")
    first = ("compare", "--trace", "prod.csv", "--topology", "tiny", "--policy")
    assert analysim(*first, "mine.py", "--policy", "fifo").exit_code == 1
    assert not (here / "runs").exists()
    assert analysim(*first, "fifo", "--policy", "mine.py", "--no-figures").exit_code == 1
    assert [each.name for each in (here / "runs/compare-prod").iterdir()] == ["fifo"]


@pytest.mark.slow
def test_plot_draws_finished_runs(analysim: Command, here: Path) -> None:
    analysim(*SIMULATE, "--out", "one")
    analysim(*SIMULATE, "--out", "two")
    result = analysim("plot", "one")
    assert result.exit_code == 0
    assert all((here / line).is_file() for line in result.stdout.splitlines())
    assert (here / "one/figures/jct_cdf.png").is_file()
    analysim("plot", "two", "--out", "drawn")
    assert (here / "drawn/jct_cdf.svg").read_bytes() == (here / "one/figures/jct_cdf.svg").read_bytes()


def test_plot_writes_a_timeline_for_perfetto(analysim: Command, here: Path) -> None:
    analysim(*SIMULATE, "--out", "one")
    result = analysim("plot", "one", "--chrome-trace", "one.json")
    assert (result.exit_code, result.stdout) == (0, "one.json\n")
    events = json.loads((here / "one.json").read_text())["traceEvents"]
    gpus = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
    assert len(gpus) == 16  # job 5 holds them all
    two = analysim("plot", "one", "one", "--chrome-trace", "two.json")
    assert (two.exit_code, two.stdout) == (2, "")


def test_plot_needs_a_run(analysim: Command) -> None:
    result = analysim("plot", "nowhere")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: nowhere is not a finished run: it has no readable run.json.\n"


@pytest.mark.slow
def test_rerun_gives_the_same_bytes(analysim: Command, here: Path) -> None:
    analysim(*SIMULATE[:-1], "--out", "one", "--load", "1.1", "--until", "10m", "--set", "policy.skip=true")
    result = analysim("rerun", "one")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "identical  jobs.csv" in lines
    assert "identical  figures/queue.png" in lines
    assert not any("DIFFERENT" in line for line in lines)
    assert (here / "one-rerun/segments.csv").read_bytes() == (here / "one/segments.csv").read_bytes()


def test_rerun_from_inside_the_folder(analysim: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysim(*SIMULATE, "--out", "one", "--quiet")
    monkeypatch.chdir(here / "one")
    assert analysim("rerun", ".", "--quiet").exit_code == 0
    assert (here / "one-rerun/run.json").is_file()


def test_rerun_needs_neither_the_policy_file_nor_the_topology_file(analysim: Command, here: Path) -> None:
    analysim("policies", "new", "mine")
    analysim("topologies", "infer", "prod.csv", "-o", "own.yaml")
    analysim(
        "simulate",
        "--trace",
        "prod.csv",
        "--policy",
        "mine",
        "--topology",
        "own.yaml",
        "--no-figures",
        "--out",
        "one",
    )
    (here / "policies/mine.py").write_text("raise RuntimeError\n")
    (here / "own.yaml").unlink()
    assert analysim("rerun", "one", "--quiet").exit_code == 0


@pytest.mark.slow
def test_rerun_of_a_policy_without_a_name_and_of_a_class_in_a_module(
    analysim: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "    def schedule(self, plan):\n        for job in plan.pending:\n            plan.start(job)\n"
    head = "from analysim.policy import Policy\n"
    (here / "nameless.py").write_text(f"{head}class Nameless(Policy):\n{body}")
    (here / "two_policies.py").write_text(f"{head}class One(Policy):\n{body}class Two(Policy):\n{body}")
    monkeypatch.syspath_prepend(here)
    for policy in ("nameless.py", "two_policies:Two"):
        assert analysim(*SIMULATE, "--policy", policy, "--out", "one", "--force").exit_code == 0
        assert analysim("rerun", "one", "--quiet").exit_code == 0


def test_rerun_finds_its_trace_from_elsewhere(
    analysim: Command, here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysim(*SIMULATE, "--out", "one")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    result = analysim("rerun", here / "one", "--out", "two", "--json")
    assert json.loads(result.stdout)["identical"] is True
    assert Path("two/run.json").is_file()


def test_rerun_tells_what_differs(analysim: Command, here: Path) -> None:
    analysim(*SIMULATE, "--out", "one")
    (here / "one/jobs.csv").write_text((here / "one/jobs.csv").read_text().replace("red", "rad"))
    result = analysim("rerun", "one")
    assert result.exit_code == 1
    assert "DIFFERENT  jobs.csv" in result.stdout.splitlines()
    assert "error: one-rerun differs from one" in result.stderr


def test_rerun_refuses_other_inputs(analysim: Command, here: Path) -> None:
    analysim(*SIMULATE, "--out", "one")
    (here / "one/policy.py").write_text("changed\n")
    policy = analysim("rerun", "one")
    assert (policy.exit_code, "policy.py is not the policy" in policy.stderr) == (1, True)
    analysim(*SIMULATE, "--out", "two")
    (here / "prod.csv").write_text(TRACE + "7,700,1,1,red\n")
    changed = analysim("rerun", "two")
    assert (changed.exit_code, "prod.csv has changed since the run two" in changed.stderr) == (1, True)
    (here / "prod.csv").unlink()
    gone = analysim("rerun", "two")
    assert (gone.exit_code, "The trace prod.csv of the run two is not there" in gone.stderr) == (1, True)
    assert not list(here.glob("*-rerun"))
