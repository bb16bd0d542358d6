"""``analysim policies``, ``topologies`` and ``trace``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_run import TRACE, Command

from analysim import shelf


def test_policies_are_listed_with_what_they_may_know(analysim: Command) -> None:
    rows = {line.split()[0]: line.split()[1] for line in analysim("policies", "list").stdout.splitlines()[2:]}
    assert rows["fifo"] == "none"
    assert (rows["sjf"], rows["easy"], rows["replay"]) == ("oracle", "estimate", "record")
    listed = json.loads(analysim("policies", "list", "--json").stdout)
    assert [row["name"] for row in listed] == sorted(rows)
    for row in listed:
        assert set(row) == {"name", "title", "knowledge", "source", "about", "options", "path"}
        assert row["title"].endswith(".") and row["source"], row["name"]
        assert " ".join(row["about"].split()).startswith(row["title"])
        for option in row["options"].values():
            assert set(option) == {"type", "default", "description"}
            assert option["type"] and option["description"], row["name"]
    options = {row["name"]: row["options"] for row in listed}
    assert {name: option["type"] for name, option in options["preempt"].items()} == {
        "thresholds": "list of duration",
        "minimum_run": "duration",
        "look_every": "duration",
        "promote": "number",
        "patience": "duration",
    }
    assert options["lottery"]["tickets"]["type"] == "equal or priority"
    assert (options["las"]["minimum_run"]["default"], options["migrate"]["max_moves"]["type"]) == (1800, "integer")


def test_a_broken_policy_is_listed_as_broken(analysim: Command, here: Path) -> None:
    (here / "policies").mkdir()
    (here / "policies/mine.py").write_text("(")
    result = analysim("policies", "list")
    assert result.exit_code == 0
    assert "cannot be loaded" in next(line for line in result.stdout.splitlines() if line.startswith("mine"))


def test_a_policy_is_shown_with_its_options(analysim: Command) -> None:
    text = analysim("policies", "show", "fifo").stdout
    assert text.startswith("fifo (knowledge: none)\n")
    assert "skip" in text
    facts = json.loads(analysim("policies", "show", "fifo", "--json").stdout)
    assert (facts["title"], facts["source"]) != ("", "")
    assert facts["title"] in text and facts["source"] in text
    skip = {"type": "boolean", "default": False, "description": "whether later jobs may pass one that does not fit"}
    assert facts["options"] == {"skip": skip}


def test_a_new_policy_runs_as_it_is(analysim: Command, here: Path) -> None:
    made = analysim("policies", "new", "my_idea")
    assert (made.exit_code, made.stdout) == (0, "policies/my_idea.py\n")
    words = ("simulate", "--trace", "prod.csv", "--topology", "tiny", "--no-figures", "--json", "--policy")
    mine, fifo = (json.loads(analysim(*words, policy).stdout) for policy in ("my_idea", "fifo"))
    assert mine["policy"] == "my_idea"
    assert mine["mean_jct_s"] == fifo["mean_jct_s"]  # the template is first come, first served


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fifo", "already"),
        ("My-Idea", "no name for a policy"),
        ("class", "no name for a policy"),
        ("../x", "no name"),
    ],
)
def test_names_for_policies(analysim: Command, here: Path, name: str, words: str) -> None:
    result = analysim("policies", "new", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert not (here / "policies").exists()


def test_a_name_with_two_meanings_is_refused(analysim: Command, here: Path) -> None:
    (here / "policies").mkdir()
    (here / "policies/fifo.py").write_text(shelf.find("policies", "fifo").read_text() + "\n# mine\n")
    result = analysim("simulate", "--trace", "prod.csv", "--policy", "fifo")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "means two different files: policies/fifo.py and " in result.stderr


def test_topologies_on_the_shelf_are_valid(analysim: Command) -> None:
    rows = json.loads(analysim("topologies", "list", "--json").stdout)
    names = [row["name"] for row in rows]
    assert {
        "tiny",
        "gpu-1152",
        "helios-venus",
        "helios-venus-vc",
        "venus-640",
        "philly",
        "philly-640",
    } <= set(names)
    result = analysim("topologies", "validate", *names)
    assert result.exit_code == 0
    assert result.stdout.count(": valid, ") == len(names)


def test_a_topology_is_drawn(analysim: Command) -> None:
    assert analysim("topologies", "show", "tiny").stdout.startswith("tiny: 4 nodes, 16 GPUs (16 V100)\n")
    assert json.loads(analysim("topologies", "show", "tiny", "--json").stdout)["racks"] == 2


def test_every_broken_topology_is_told(analysim: Command, here: Path) -> None:
    (here / "a.yaml").write_text("name: a\n")
    result = analysim("topologies", "validate", "a.yaml", "tiny", "nowhere")
    assert result.exit_code == 2
    assert result.stdout == "tiny: valid, 4 nodes, 16 GPUs\n"
    assert [line.split()[0] for line in result.stderr.splitlines()] == ["error:", "error:"]


def test_an_inferred_cluster_is_found_beside_the_trace(analysim: Command, here: Path) -> None:
    printed = analysim("topologies", "infer", "prod.csv").stdout
    assert analysim("topologies", "infer", "prod.csv", "-o", "prod.topology.yaml").exit_code == 0
    assert (here / "prod.topology.yaml").read_text() == printed
    again = analysim("topologies", "infer", "prod.csv", "-o", "prod.topology.yaml")
    assert (again.exit_code, "already" in again.stderr) == (2, True)
    unchanged = analysim("simulate", "--trace", "prod.csv", "--no-figures").stderr
    assert "note: correct it in prod.topology.yaml, then delete the line `inferred` there" in unchanged
    assert "topologies infer" not in unchanged
    (here / "prod.topology.yaml").write_text(
        printed.replace("count: 2", "count: 5").replace("inferred: ", "source: ")
    )
    run = analysim("simulate", "--trace", "prod.csv", "--no-figures")
    assert "5 nodes, 40 GPUs" in run.stderr
    assert "inferred, not yours" not in run.stderr


def test_describe_has_the_keys_that_others_rely_on(analysim: Command) -> None:
    facts = json.loads(analysim("trace", "describe", "prod.csv", "--json").stdout)
    expected = {
        "format": "csv",
        "rows": 6,
        "jobs": 6,
        "set_aside": {},
        "gpu_hours": pytest.approx(2690 / 3600),
        "mean_gpus": pytest.approx(35 / 6),
        "median_duration_s": 55.0,
        "span_s": 600.0,
        "tenants": 2,
    }
    assert {key: facts[key] for key in expected} == expected
    assert "median_duration_s" in analysim("trace", "describe", "prod.csv").stdout


def test_validate_counts_all_problems_by_kind(analysim: Command, here: Path) -> None:
    (here / "bad.csv").write_text(TRACE + "6,soon,5,1,red\n7,1,-4,1,red\n8,1,-4,1,red\n")
    result = analysim("trace", "validate", "bad.csv")
    assert result.exit_code == 2
    counts = [int(line.split()[0]) for line in result.stdout.splitlines()]
    assert sorted(counts) == [1, 1, 2]
    problems = json.loads(analysim("trace", "validate", "bad.csv", "--json").stdout)
    assert sorted(problem["count"] for problem in problems) == [1, 1, 2]
    assert analysim("trace", "validate", "prod.csv").stdout == "prod.csv: no problems\n"


def test_generated_traces_depend_on_the_seed_alone(analysim: Command, here: Path) -> None:
    words = ("trace", "generate", "--profile", "helios", "--jobs", "200", "--gpus", "64", "--load", "0.9")
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert analysim(*words, "--seed", seed, "-o", f"{name}.csv").exit_code == 0
    a, b, c = ((here / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c
    assert json.loads(analysim("trace", "describe", "a.csv", "--json").stdout)["jobs"] == 200
    refused = analysim(*words, "-o", "a.csv")
    assert (refused.exit_code, "already" in refused.stderr) == (2, True)
    assert analysim(*words, "--set", "sizes={1: 1}", "-o", "ones.csv").exit_code == 0
    assert json.loads(analysim("trace", "describe", "ones.csv", "--json").stdout)["max_gpus"] == 1


def test_the_version_is_told() -> None:
    from analysim import __version__

    told = subprocess.run(
        [sys.executable, "-m", "analysim", "--version"], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"analysim {__version__}\n"
