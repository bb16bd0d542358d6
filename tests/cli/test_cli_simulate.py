"""``analysim simulate``: streams, exit codes, the run folder, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from small_run import SIMULATE, TRACE, Command

from analysim import shelf
from analysim.study.runs import Run, caption

JSON_KEYS = {
    "run",
    "policy",
    "trace",
    "topology",
    "submitted",
    "completed",
    "killed",
    "cancelled",
    "rejected",
    "unfinished",
    "offered_load",
    "mean_jct_s",
    "median_jct_s",
    "p90_jct_s",
    "p99_jct_s",
    "mean_wait_s",
    "p99_wait_s",
    "mean_bounded_slowdown",
    "makespan_s",
    "allocated_utilisation",
    "productive_utilisation",
    "fragmentation",
    "fairness",
    "preemptions",
    "migrations",
    "gpu_hours_lost",
    "engine_seconds",
    "peak_memory_mb",
}
"""What programs outside rely on."""

RUN_FILES = {
    "capacity.csv",
    "decisions.csv",
    "jobs.csv",
    "notes.csv",
    "policy.py",
    "rejected.csv",
    "run.json",
    "segments.csv",
    "timeline.csv",
    "timing.json",
}


@pytest.mark.slow
def test_the_shortest_command_line_works_as_it_stands(analysim: Command, here: Path) -> None:
    result = analysim("simulate", "--trace", "prod.csv", "--policy", "fifo")
    assert result.exit_code == 0, result.stderr
    folder = here / "runs" / "prod-fifo"
    assert {each.name for each in folder.iterdir()} == {*RUN_FILES, "figures"}
    assert len(list((folder / "figures").glob("*.png"))) == len(list((folder / "figures").glob("*.svg"))) > 5
    assert "mean JCT" in result.stdout
    assert "mean JCT" not in result.stderr


def test_it_says_what_it_understood_before_it_starts(analysim: Command) -> None:
    lines = analysim(*SIMULATE).stderr.splitlines()
    assert lines[0] == "trace    prod.csv: 6 GPU jobs submitted over 10 min, 2 tenants"
    assert lines[1].startswith("cluster  tiny: 4 nodes, 16 GPUs (16 V100)")
    # 4*100 + 8*50 + 2*400 + 10 + 16*60 + 4*30 = 2690 GPU-seconds of 16 * 600
    assert lines[2] == "load     the jobs ask for 0.28 of the GPU-time there is between first and last submit"
    assert lines[3] == "warning: the cluster idles (load 0.28): jobs will hardly wait under any policy"


def test_a_trace_that_swamps_its_cluster_is_said(analysim: Command) -> None:
    assert "warning: the trace swamps its cluster (load 1.50)" in analysim(*SIMULATE, "--load", "1.5").stderr


def test_an_inferred_cluster_is_said_everywhere(analysim: Command, here: Path) -> None:
    result = analysim("simulate", "--trace", "prod.csv", "--no-figures")
    assert "note: the cluster is inferred" in result.stderr
    assert "analysim topologies infer prod.csv -o prod.topology.yaml" in result.stderr
    assert "prod-inferred (inferred)" in result.stdout
    record = json.loads((here / "runs/prod-fifo/run.json").read_text())
    assert "just large enough" in record["topology"]["inferred"]
    assert "Cluster prod-inferred is inferred: " in caption(Run.read(here / "runs/prod-fifo"))


def test_json_has_the_keys_that_others_rely_on(analysim: Command, here: Path) -> None:
    result = analysim(*SIMULATE, "--json")
    summary = json.loads(result.stdout)
    assert set(summary) >= JSON_KEYS
    assert summary["run"] == "runs/prod-fifo"
    assert (summary["policy"], summary["trace"], summary["topology"]) == ("fifo", "prod", "tiny")
    assert set(summary["fragmentation"]) == {
        "unusable_share",
        "stranded_gpus",
        "largest_gang_share",
        "excess_nodes",
    }
    states = ("completed", "killed", "cancelled", "rejected", "unfinished")
    assert summary["submitted"] == sum(summary[state] for state in states) == 6


def test_quiet_leaves_stderr_empty(analysim: Command) -> None:
    result = analysim(*SIMULATE, "--quiet")
    assert result.stderr == ""
    assert result.stdout


def test_runs_without_a_name_never_overwrite_each_other(analysim: Command, here: Path) -> None:
    for _ in range(3):
        assert analysim(*SIMULATE).exit_code == 0
    assert sorted(each.name for each in (here / "runs").iterdir()) == [
        "prod-fifo",
        "prod-fifo-2",
        "prod-fifo-3",
    ]


def test_two_runs_into_one_folder_are_refused_unless_forced(analysim: Command, here: Path) -> None:
    assert analysim(*SIMULATE, "--out", "mine").exit_code == 0
    refused = analysim(*SIMULATE, "--out", "mine")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == "error: mine already exists. Choose another --out, or replace it with --force.\n"
    assert analysim(*SIMULATE, "--out", "mine", "--force").exit_code == 0
    assert sorted(each.name for each in here.iterdir()) == ["mine", "prod.csv"]


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes_wherever_it_is_written(analysim: Command, here: Path) -> None:
    analysim("simulate", "--trace", "prod.csv", "--topology", "tiny", "--out", "one")
    analysim("simulate", "--trace", "prod.csv", "--topology", "tiny", "--out", "two/deep", "--quiet")
    for path in sorted((here / "one").rglob("*.*")):
        if path.name != "timing.json":
            assert path.read_bytes() == (here / "two/deep" / path.relative_to(here / "one")).read_bytes(), (
                path.name
            )
    record = (here / "one" / "run.json").read_text()
    assert not [folder for folder in (here, shelf.find("topologies", "tiny").parent) if str(folder) in record]


def test_parquet_tables(analysim: Command, here: Path) -> None:
    assert analysim(*SIMULATE, "--format", "parquet", "--out", "p").exit_code == 0
    analysim(*SIMULATE, "--out", "c")
    columns = ["submit_time_s", "end_time_s", "jct_s"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(here / "p/jobs.parquet")[columns],
        pd.read_csv(here / "c/jobs.csv")[columns],
        check_dtype=False,
    )


def test_flags_win_over_the_file_and_settings_over_both(analysim: Command, here: Path) -> None:
    (here / "run.yaml").write_text(
        "trace: prod.csv\ntopology: tiny\nseed: 1\nload: 0.5\ncosts: {restart_s: 90}\n"
    )
    flags = ("--config", "run.yaml", "--seed", "2", "--set", "costs.checkpoint_s=1m", "--no-figures")
    assert analysim("simulate", *flags, "--out", "r").exit_code == 0
    config = json.loads((here / "r/run.json").read_text())["config"]
    assert (config["seed"], config["load"]) == (2, 0.5)
    assert (config["costs"]["restart_s"], config["costs"]["checkpoint_s"]) == (90, 60)


def test_windows_and_measured_intervals(analysim: Command, here: Path) -> None:
    window = json.loads(analysim(*SIMULATE, "--window", "15s:2m", "--json").stdout)
    assert window["submitted"] == 3
    measured = json.loads(analysim(*SIMULATE, "--measure", "15s:2m", "--json").stdout)
    assert measured["submitted"] == 3
    assert measured["measured"] == {"from_s": 15.0, "to_s": 120.0}


def test_until_leaves_jobs_unfinished(analysim: Command) -> None:
    summary = json.loads(analysim(*SIMULATE, "--until", "5m", "--json").stdout)
    assert summary["unfinished"] == 3  # job 3 runs until 420 s, job 5 waits for it, job 6 comes at 600 s


def test_columns_may_have_other_names(analysim: Command, here: Path) -> None:
    (here / "own.csv").write_text(TRACE.replace("submit_time", "arrival").replace("num_gpus", "gpu count"))
    names = ("--column", "submit_time=arrival", "--column", "num_gpus=gpu count")
    result = analysim("simulate", "--trace", "own.csv", *names, "--no-figures", "--json")
    assert json.loads(result.stdout)["completed"] == 6
    columns = "--column submit_time=arrival --column 'num_gpus=gpu count'"
    assert f"analysim topologies infer own.csv {columns} -o own.topology.yaml" in result.stderr


def test_rejected_jobs_are_counted_with_their_reason(analysim: Command, here: Path) -> None:
    (here / "large.csv").write_text(TRACE + "7,700,10,64,red\n8,700,10,99,red\n")
    result = analysim("simulate", "--trace", "large.csv", "--topology", "tiny", "--no-figures", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["rejected"] == 2
    assert "of 8 jobs rejected: " in result.stderr
    assert len(pd.read_csv(here / "runs/large-fifo/rejected.csv")) == 2


def test_check_audits_the_engine(analysim: Command) -> None:
    assert analysim(*SIMULATE, "--check").exit_code == 0


@pytest.mark.parametrize("flag", ["--policy", "--trace", "--topology"])
def test_unknown_names_are_answered_with_the_nearest(analysim: Command, here: Path, flag: str) -> None:
    wrong = {"--policy": "fifi", "--trace": "dmo", "--topology": "tini"}[flag]
    nearest = {"--policy": "fifo", "--trace": "demo", "--topology": "tiny"}[flag]
    words = {"--trace": "prod.csv", "--topology": "tiny", "--policy": "fifo", flag: wrong}
    result = analysim("simulate", *[word for pair in words.items() for word in pair])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert f"Did you mean {nearest!r}?" in result.stderr
    assert not (here / "runs").exists()
