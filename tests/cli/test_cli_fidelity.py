"""``analysim fidelity``: what it compares, what a replay finds, what it writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_run import Command

from analysim.study.runs import Run

RECORDED = """\
job_id,submit_time,start_time,duration,num_gpus,estimated_duration,partition
1,0,0,100,8,100,a
2,10,10,50,8,60,b
3,20,100,400,8,400,a
4,30,100,10,6,20,b
5,40,,60,2,60,b
6,600,620,30,4,30,a
"""
WORDS = ("fidelity", "--trace", "recorded.csv", "--topology", "tiny", "--quiet")
KEYS = {
    *("policy", "knowledge", "trace", "topology", "jobs", "without_start", "wait_quantiles_s", "mean_wait_s", "ks"),
    *("rejected", "started_before_submission", "without_recorded_start"),
    *("wasserstein_s", "gpus", "busy_gpus", "busy_gpus_mae", "busy_share_mae", "partitions", "replay", "warnings"),
}
"""What programs outside rely on."""


@pytest.fixture(autouse=True)
def recorded(here: Path) -> None:
    (here / "recorded.csv").write_text(RECORDED)


def report(analysim: Command, *words: str) -> dict[str, Any]:
    """What ``--json`` prints."""
    result = analysim(*WORDS, "--json", *words)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_policy_is_compared_with_the_record(analysim: Command) -> None:
    found = report(analysim, "--policy", "easy")
    assert set(found) == KEYS
    assert (found["policy"], found["trace"], found["topology"], found["jobs"]) == ("easy", "recorded", "tiny", 5)
    assert found["wait_quantiles_s"]["recorded"] == {
        "p10": 0.0,
        "p25": 0.0,
        "p50": 20.0,
        "p75": 70.0,
        "p90": 76.0,
        "p99": 79.6,
    }
    assert found["mean_wait_s"]["recorded"] == pytest.approx((80 + 70 + 20) / 5)
    assert found["replay"] is None and found["partitions"] == [] and found["warnings"] == []
    assert (found["without_recorded_start"], found["started_before_submission"], found["rejected"]) == (1, 0, 0)


def test_a_replay_of_what_fits_differs_in_nothing(analysim: Command) -> None:
    found = report(analysim, "--policy", "replay")
    assert (found["ks"], found["wasserstein_s"], found["busy_gpus_mae"]) == (0, 0, 0)
    assert found["replay"]["late"] == 0 and found["replay"]["first_late"] == []
    assert found["replay"]["peak"] == {"gpus": 16, "busy": 16, "time_s": 10.0, "share_of_time_above": 0.0}


def test_a_replay_on_too_small_a_cluster_says_who_was_late_and_why(analysim: Command, here: Path) -> None:
    (here / "small.yaml").write_text(
        "name: small\nnode_types: {n: {gpus: 4}}\n"
        "racks: [{name: r, nodes: [{type: n, count: 3}]}]\n"
        "partitions: [{name: a, limit: 8}, {name: b, limit: 4}]\n"
    )
    found = report(analysim, "--policy", "replay", "--topology", "small.yaml", "--placement", "any")
    assert found["without_start"] == 2  # jobs 2 and 4 can never run in partition b
    assert found["rejected"] == found["replay"]["never_started"] == 2
    assert [each["rejected"] for each in found["partitions"]] == [0, 2]
    assert found["replay"]["peak"]["busy"] == 16
    assert found["replay"]["partitions_over"] == [
        {"partition": "root", "gpus": 12, "peak": 16, "time_s": 10.0},
        {"partition": "b", "gpus": 4, "peak": 8, "time_s": 10.0},
    ]
    assert [each["partition"] for each in found["partitions"]] == ["a", "b"]
    assert found["partitions"][0]["ks"] == 0 and found["partitions"][1]["ks"] is None
    assert "2 jobs with a recorded start have none in the simulation" in found["warnings"][0]


def test_jobs_that_are_left_out_are_counted(analysim: Command, here: Path) -> None:
    """Job 3 is wider than the cluster: its GPUs are busy on neither side."""
    rows = "1,0,0,100,4\n2,10,,50,8\n3,20,20,50,99\n4,30,25,10,4\n"
    (here / "recorded.csv").write_text(f"job_id,submit_time,start_time,duration,num_gpus\n{rows}")
    found = report(analysim, "--policy", "replay")
    assert (found["jobs"], found["without_recorded_start"], found["started_before_submission"]) == (1, 1, 1)
    assert (found["without_start"], found["rejected"]) == (1, 1)
    assert found["busy_gpus"] == {"recorded": 4.4, "simulated": 4.4}
    assert found["warnings"] == [
        "1 jobs with a recorded start have none in the simulation, 1 of them rejected: busy GPUs leave these out"
    ]
    lines = analysim(*WORDS, "--policy", "replay").stdout.splitlines()
    assert [line.removeprefix("jobs left out: ").rsplit(maxsplit=1) for line in lines if "left out" in line] == [
        ["no recorded start", "1"],
        ["recorded start before submission", "1"],
        ["no start in the simulation", "1"],
        ["of these rejected, not among recorded busy GPUs either", "1"],
    ]


def test_late_jobs_are_listed_with_time_delay_and_reason(analysim: Command, here: Path) -> None:
    (here / "recorded.csv").write_text("job_id,submit_time,start_time,duration,num_gpus\na,0,5,100,12\nb,0,25,10,8\n")
    found = report(analysim, "--policy", "replay")
    assert found["replay"]["by_reason"] == {"no free GPUs": 1}
    assert found["replay"]["first_late"] == [
        {"job_id": "b", "num_gpus": 8, "recorded_start_s": 25.0, "delay_s": 80.0, "reason": "no free GPUs"}
    ]
    assert found["replay"]["peak"]["share_of_time_above"] == pytest.approx(0.1)
    text = analysim(*WORDS, "--policy", "replay").stdout
    assert "1 of 2 jobs could not start when they did: they start later by 80 s in the mean\n  1: no free GPUs" in text
    assert "most GPUs busy at one time by the record: 20 of 16, more than there are in 10.00% of the time" in text
    assert "b                   8            25 s   80 s  no free GPUs" in text


def test_nodes_that_held_more_than_they_have_are_named(analysim: Command, here: Path) -> None:
    node = "rack0-n00"
    rows = f"1,0,0,10,3,{node}\n2,0,5,10,3,{node}\n3,0,20,10,4,{node}\n4,0,0,1,8,far[1-2]\n"
    (here / "recorded.csv").write_text(f"job_id,submit_time,start_time,duration,num_gpus,node\n{rows}")
    found = report(analysim, "--policy", "replay")["replay"]
    assert found["nodes"] == {"known": 1, "over": 1, "worst": [{"node": node, "gpus": 4, "peak": 6}]}
    assert found["on_other_nodes"] == 1 and found["late"] == 0


def test_long_waits_on_an_idle_cluster_are_warned_of(analysim: Command, here: Path) -> None:
    rows = "1,0,3600,100,1\n2,0,1800,100,1\n3,9000,9000,10,1\n"
    (here / "recorded.csv").write_text(f"job_id,submit_time,start_time,duration,num_gpus\n{rows}")
    result = analysim(*(word for word in WORDS if word != "--quiet"))
    assert "warning: recorded waits are long (median 30 min, mean 30 min) while the simulated cluster is" in result.stderr
    assert len(report(analysim)["warnings"]) == 1


@pytest.mark.slow
def test_nothing_is_written_without_out_and_a_run_folder_with_it(analysim: Command, here: Path) -> None:
    before = set(here.iterdir())
    printed = report(analysim, "--policy", "easy")
    assert set(here.iterdir()) == before
    assert report(analysim, "--policy", "easy", "--out", "runs/one") == printed
    assert json.loads((here / "runs/one/fidelity.json").read_text()) == printed
    assert {path.name for path in (here / "runs/one/figures").iterdir()} >= {"fidelity.png", "fidelity.svg", "jct_cdf.png"}
    assert Run.read(here / "runs/one").policy == "easy"
    assert analysim("rerun", "runs/one", "--quiet").exit_code == 0
    assert analysim(*WORDS, "--out", "runs/one").exit_code == 1
    assert analysim(*WORDS, "--out", "runs/one", "--force", "--no-figures").exit_code == 0
    assert not (here / "runs/one/figures").exists()


def test_the_table_shows_partitions(analysim: Command, here: Path) -> None:
    (here / "parts.yaml").write_text(
        "name: parts\nnode_types: {n: {gpus: 8}}\nracks: [{name: r, nodes: [{type: n, count: 2}]}]\n"
        "partitions: [{name: a, nodes: r-n00}, {name: b, nodes: r-n01}]\n"
    )
    lines = analysim(*WORDS, "--topology", "parts.yaml").stdout.splitlines()
    assert lines[0] == "fifo (none), recorded on parts"
    assert [line.split()[:2] for line in lines[-2:]] == [["a", "3"], ["b", "2"]]


@pytest.mark.parametrize(
    ("text", "words", "code", "says"),
    [
        ("job_id,submit_time,duration,num_gpus\n1,0,5,1\n", (), 2, "has no recorded starts of jobs with GPUs"),
        (RECORDED, ("--set", "load=0.5"), 2, "load changes them"),
        (RECORDED, ("--policy", "nobody"), 2, "nobody"),
        ("", (), 2, "recorded.csv"),
        (RECORDED, ("--window", "5d:6d"), 2, "No job"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    analysim: Command, here: Path, text: str, words: tuple[str, ...], code: int, says: str
) -> None:
    (here / "recorded.csv").write_text(text)
    result = analysim(*WORDS, *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr and result.stderr.count("\n") == 1
