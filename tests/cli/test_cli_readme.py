"""Every command and every program of the README works as it is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from small_run import Command

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
def test_commands(analysim: Command, here: Path) -> None:
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) > 8
    for program, *words in commands:
        assert program == "analysim"
        result = analysim(*words)
        assert result.exit_code == 0, (words, result.stderr)
        assert result.stdout or "wrote" in result.stderr, words


def test_the_policy_is_the_one_that_new_writes(analysim: Command, here: Path) -> None:
    policy = next(block for block in blocks("python") if "class MyPolicy" in block)
    analysim("policies", "new", "my_policy")
    written = (here / "policies/my_policy.py").read_text()
    assert re.sub(r"\s+# .*", "", policy).split() == written.split('"""', 2)[2].split()


def test_python(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = next(block for block in blocks("python") if "analysim.simulate" in block)
    exec(compile(program, "README.md", "exec"), {})
    assert "jct_s" in capsys.readouterr().out


def test_links_lead_somewhere() -> None:
    root = Path(__file__).parents[2]
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 5
    assert [link for link in links if not link.startswith("https://") and not (root / link).exists()] == []
