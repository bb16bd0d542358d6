"""What a user may get wrong: exit code 2 and one clear line on stderr, nothing on stdout, no folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_run import SIMULATE, TRACE, Command

HEADER = "job_id,submit_time,duration,num_gpus\n"


def one_line(result: object) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"job_id,submit_time,duration\n1,0,1\n", "num_gpus"),
        (HEADER.encode() + b"1,0,-5,1\n", "-5"),
        (HEADER.encode() + b"1,soon,5,1\n", "soon"),
        (HEADER.encode() + b"1,0,5,1\n1,1,5,1\n", "row 2"),
        (HEADER.encode() + b"1,0,5,two\n", "two"),
        (HEADER.replace(",", ";").encode() + b"1;0;5;1\n", ";"),
        (HEADER.encode() + b"caf\xe9,0,5,1\n", "UTF-8"),
    ],
)
def test_traces(analysim: Command, here: Path, content: bytes, words: str) -> None:
    (here / "bad.csv").write_bytes(content)
    line = one_line(analysim("simulate", "--trace", "bad.csv"))
    assert "bad.csv" in line
    assert words in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("name: c\nnode_types: {a: {gpus: 8}}\nracks: [{name: r, nodes: [{type: b, count: 1}]}]\n", "'b'"),
        ("name: c\nnodes: 3\n", "nodes"),
        ("name: [\n", "bad.yaml"),
    ],
)
def test_topologies(analysim: Command, here: Path, content: str, words: str) -> None:
    (here / "bad.yaml").write_text(content)
    line = one_line(analysim("simulate", "--trace", "prod.csv", "--topology", "bad.yaml"))
    assert "bad.yaml" in line
    assert words in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("trace: prod.csv\nsede: 4\n", "Did you mean 'seed'?"),
        ("trace: prod.csv\nload: -1\n", "load is -1; expected more than 0"),
        ("trace: prod.csv\nuntil: soon\n", "until"),
        ("trace: prod.csv\ncosts: {restart: 4}\n", "restart_s"),
        ("trace: prod.csv\ncosts: {size_gb: 4}\n", "size_gb is given without bandwidth_gb_per_s"),
        ("trace: prod.csv\ncosts: {bandwidth_gb_per_s: 4}\n", "bandwidth_gb_per_s is given without size_gb"),
        ("trace: prod.csv\ncosts: {checkpoint_interval_s: 0}\n", "checkpoint_interval_s is 0; leave it out"),
    ],
)
def test_run_configurations(analysim: Command, here: Path, content: str, words: str) -> None:
    (here / "run.yaml").write_text(content)
    line = one_line(analysim("simulate", "--config", "run.yaml"))
    assert "run.yaml" in line
    assert words in line


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--window", "7d"], "7d"),
        (["--window", "9d:7d"], "9d:7d"),
        (["--window", "9d:"], "9d:"),
        (["--measure", "a:b"], "a:b"),
        (["--load", "0"], "load is 0.0; expected more than 0"),
        (["--load", "1e-12"], "times beyond 285 years"),
        (["--seed", "-1"], "seed is -1; expected 0 or more"),
        (["--timezone", ""], "'' is not a time zone"),
        (["--until", "soon"], "until"),
        (["--placement", "pakc"], "Did you mean 'pack'?"),
        (["--estimates", "perfect"], "perfect"),
        (["--set", "policy.skipp=true"], "skipp"),
        (["--set", "skip=maybe"], "skip"),
        (["--set", "skip"], "key=value"),
        (["--set", "cost.restart_s=1"], "cost"),
        (["--column", "submit_time"], "--column 'submit_time' is no pair"),
        (["--column", "submit=arrival"], "submit"),
        (["--unknown-partition", "drop"], "unknown_partition"),
    ],
)
def test_flags(analysim: Command, here: Path, flags: list[str], words: str) -> None:
    assert words in one_line(analysim(*SIMULATE, *flags))
    assert not (here / "runs").exists()


def test_replay_needs_a_record(analysim: Command, here: Path) -> None:
    result = analysim(*SIMULATE, "--policy", "replay", "--quiet")
    assert "'replay' needs recorded starts and no job has one" in one_line(result)
    assert not (here / "runs").exists()


@pytest.mark.parametrize("flags", [["--nonsense"], ["--seed", "many"], ["--format", "xlsx"], ["surplus"]])
def test_usage_errors(analysim: Command, flags: list[str]) -> None:
    result = analysim(*SIMULATE, *flags)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error:" in result.stderr


def test_no_trace_at_all(analysim: Command) -> None:
    assert "--trace demo" in one_line(analysim("simulate"))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class Mine(Policy:\n", "mine.py"),
        ("import nothing_of_this_name\n", "nothing_of_this_name"),
        ("x = 1\n", "mine.py"),
    ],
)
def test_policy_files_that_do_not_load(analysim: Command, here: Path, source: str, words: str) -> None:
    (here / "mine.py").write_text(source)
    assert words in one_line(analysim(*SIMULATE, "--policy", "mine.py"))


POLICY = '''"""A policy that misbehaves."""
from analysim.policy import Plan, Policy


class Mine(Policy):
    name = "mine"

    def schedule(self, plan: Plan) -> None:
        {line}
'''


@pytest.mark.parametrize(
    ("source", "at"),
    [
        (POLICY.format(line="pass").replace("def schedule", "async def schedule"), "mine.py:8"),
        (POLICY.format(line="yield"), "mine.py:8"),
    ],
)
def test_policies_whose_schedule_would_not_run(analysim: Command, here: Path, source: str, at: str) -> None:
    (here / "mine.py").write_text(source)
    line = one_line(analysim(*SIMULATE, "--policy", "mine.py"))
    assert f"{at}: schedule is async or yields, so nothing in it would run." in line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 / 0", "division by zero"),
        ("return 42", "42"),
        ("plan.preempt(next(iter(plan.pending)))", "mine"),
        ("[job.duration for job in plan.pending]", "duration"),
    ],
)
def test_policies_that_fail_while_they_schedule(analysim: Command, here: Path, line: str, words: str) -> None:
    (here / "mine.py").write_text(POLICY.format(line=line))
    result = analysim(*SIMULATE, "--policy", "mine.py")
    assert (result.exit_code, result.stdout) == (1, "")
    (error,) = [each for each in result.stderr.splitlines() if each.startswith("error: ")]
    assert re.search(r"mine\.py:[89]\b", error)  # schedule is in line 8, what it does in line 9
    assert words in error
    assert not (here / "runs").exists()


def test_a_policy_that_loops_for_ever(analysim: Command, here: Path) -> None:
    (here / "mine.py").write_text(POLICY.format(line="while True: pass"))
    result = analysim(*SIMULATE, "--policy", "mine.py", "--set", "pass_seconds=0.2")
    assert result.exit_code == 1
    assert "mine" in result.stderr
    assert "pass_seconds" in result.stderr


def test_a_policy_that_starves_its_jobs_keeps_the_run(analysim: Command, here: Path) -> None:
    (here / "mine.py").write_text(POLICY.format(line="pass"))
    result = analysim(*SIMULATE, "--policy", "mine.py")
    assert result.exit_code == 1
    starved = [
        each for each in result.stderr.splitlines() if each.startswith("error: mine starves its jobs: ")
    ]
    assert len(starved) == 5  # demands of 1, 2, 4, 8 and 16 GPUs
    assert "unfinished" in (here / "runs/prod-mine/jobs.csv").read_text()


def test_debug_shows_the_traceback(analysim: Command) -> None:
    quiet, loud = analysim(*SIMULATE, "--load", "0"), analysim(*SIMULATE, "--load", "0", "--debug")
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in loud.stderr
    assert loud.stderr.splitlines()[-1] == quiet.stderr.rstrip("\n")


def test_an_unwritable_folder_is_told_before_the_run(analysim: Command, here: Path) -> None:
    (here / "file").write_text("")
    result = analysim(*SIMULATE, "--out", "file/run")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "error: Cannot write the run folder file/run: File exists. "
        "Nothing was left behind; free some space or choose another --out.\n"
    )


@pytest.mark.parametrize("out", [".", "..", "/", "", "runs/.."])
def test_a_folder_without_a_name_is_no_run_folder(analysim: Command, here: Path, out: str) -> None:
    line = one_line(analysim(*SIMULATE, "--out", out, "--force"))
    assert "A run folder needs a name" in line
    assert "Choose another --out" in line
    assert [each.name for each in here.iterdir()] == ["prod.csv"]


def test_a_full_disk_leaves_nothing(analysim: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("analysim.run.folder.write_table", full)
    result = analysim(*SIMULATE, "--out", "run")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "No space left on device" in result.stderr
    assert sorted(each.name for each in here.iterdir()) == ["prod.csv"]


def test_the_small_trace_is_sound(analysim: Command, here: Path) -> None:
    assert (here / "prod.csv").read_text() == TRACE
    assert analysim("trace", "validate", "prod.csv").exit_code == 0
