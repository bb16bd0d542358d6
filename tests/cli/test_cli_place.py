"""``analysim place``: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from small_run import Command

WORDS = ("place", "--trace", "prod.csv", "--topology", "tiny", "--no-figures")


def test_a_table_a_folder_and_curves(analysim: Command, here: Path) -> None:
    result = analysim(*WORDS, "--placement", "first", "--placement", "fgd", "--seeds", 3, "--out", "out")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("prod on tiny (16 GPUs), mean of 3 seeds\n")
    lines = result.stdout.splitlines()
    assert lines[2].split()[-4:-1] == ["80%", "90%", "100%"]
    assert [line.split()[0] for line in lines if line.startswith(("first", "fgd"))] == ["first", "fgd"] * 2
    assert "fgd, seed 3: placed" in result.stderr and "wrote out" in result.stderr
    assert sorted(path.name for path in (here / "out").iterdir()) == ["curves.csv", "placing.json"]
    with (here / "out/curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "placement",
        "seed",
        "arrived_load_percent",
        "allocated_percent",
        "fragmented_percent_of_capacity",
        "fragmentation_ratio",
    ]
    assert {row["seed"] for row in rows} == {"1", "2", "3"}


def report(analysim: Command, *words: object) -> dict[str, Any]:
    result = analysim(*WORDS, "--json", "--quiet", *words)
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_json_is_what_the_folder_has(analysim: Command, here: Path) -> None:
    found = report(analysim, "--out", "out")
    assert [each["placement"] for each in found["results"]] == ["pack", "fgd"]
    assert found["results"][0]["seeds"] == [0]
    assert {name: found[name] for name in ("trace", "topology", "gpus", "load")} == {
        "trace": "prod",
        "topology": "tiny",
        "gpus": 16,
        "load": 1.3,
    }
    folder = found.pop("folder")
    assert folder == "out" and json.loads((here / "out/placing.json").read_text()) == found


def test_jobs_may_come_as_they_are(analysim: Command) -> None:
    """4, 8, 2, 1, 16 and 4 GPUs on 16: after 15 the next two do not fit, nor the last."""
    found = report(analysim, "--no-inflate", "--placement", "pack", "--out", "out")["results"][0]
    assert (found["jobs"], found["failed"]) == (6, 2)
    assert found["allocated_percent"]["100"] == pytest.approx(100 * 15 / 16)


def test_a_run_of_its_own_name_without_out(analysim: Command, here: Path) -> None:
    for _ in range(2):
        assert analysim(*WORDS, "--quiet").exit_code == 0
    assert sorted(path.name for path in (here / "runs").iterdir()) == ["place-prod", "place-prod-2"]


def test_a_folder_is_replaced_by_force_only(analysim: Command, here: Path) -> None:
    assert analysim(*WORDS, "--out", "out").exit_code == 0
    result = analysim(*WORDS, "--out", "out")
    assert (result.exit_code, result.stdout) == (1, "") and "--force" in result.stderr
    assert analysim(*WORDS, "--out", "out", "--force", "--placement", "spread").exit_code == 0
    assert json.loads((here / "out/placing.json").read_text())["results"][0]["placement"] == "spread"
    (here / "mine").mkdir()
    (here / "mine/precious.txt").write_text("mine")
    result = analysim(*WORDS, "--out", "mine", "--force")
    assert result.exit_code == 1 and "mine is not a folder with a placing.json" in result.stderr
    assert (here / "mine/precious.txt").read_text() == "mine"


def test_figures(analysim: Command, here: Path) -> None:
    words = [word for word in WORDS if word != "--no-figures"]
    assert analysim(*words, "--out", "out").exit_code == 0
    assert {path.name for path in (here / "out/figures").iterdir()} == {"placement.png", "placement.svg"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--placement", "fdg"), "There is no placement 'fdg'. Did you mean 'fgd'?"),
        (("--placement", "fgd", "--placement", "fgd"), "A placement is named twice."),
        (("--load", "0"), "The load is 0."),
        (("--load", "-2"), "The load is -2."),
        (("--load", "nan"), "The load is nan."),
        (("--load", "1e9"), "The load is 1e+09."),
        (("--seeds", "0"), "--seeds is 0."),
        (("--seed", "-1"), "The seed -1 is negative."),
        (("--seed", "1", "--seeds", "2"), "--seed and --seeds were both given."),
        (("--no-inflate", "--load", "1"), "--no-inflate takes the jobs as they are"),
        (("--trace", "none.csv"), "No trace is called 'none.csv'"),
        (("--topology", "none"), "No topology is called 'none'"),
        (("--topology", "./none.yaml"), "./none.yaml: no such topology file."),
    ],
)
def test_mistakes_are_told_in_one_line(
    analysim: Command, here: Path, words: tuple[str, ...], says: str
) -> None:
    result = analysim(*WORDS, *words, "--out", "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {says}") and result.stderr.count("\n") == 1, result.stderr
    assert not (here / "out").exists()


def test_a_load_at_which_nobody_comes_leaves_nothing(analysim: Command, here: Path) -> None:
    """One GPU of 16 is more than a load of 0.01."""
    result = analysim(*WORDS, "--quiet", "--load", "0.01", "--out", "out")
    says = "error: No job arrives at a load of 0.01 with seed 0: the first to come would pass it."
    assert (result.exit_code, result.stdout) == (2, "") and result.stderr.startswith(says)
    assert result.stderr.count("\n") == 1 and not list(here.glob("*out*"))


def test_a_trace_must_be_named(analysim: Command) -> None:
    result = analysim("place")
    assert (result.exit_code, result.stdout) == (2, "") and "No trace is named." in result.stderr


def test_simulate_takes_the_strategies_too(analysim: Command, here: Path) -> None:
    for name in ("fgd", "bestfit", "dotprod", "gpupacking", "gpuclustering"):
        words = ("--trace", "prod.csv", "--topology", "tiny", "--no-figures", "--quiet", "--json")
        result = analysim("simulate", *words, "--placement", name, "--check", "--out", name)
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["completed"] == 6
