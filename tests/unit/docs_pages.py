"""Pages of the documentation as programs: their blocks run in order, and print what the page says.

A fenced block is, by the words behind the fence: ``python``, run, all blocks of a page in one namespace;
``python NAME``, ``yaml NAME``, ``csv NAME``, a file of that name; ``sh``, commands of ours, ``sh 2`` when they are
to fail with that exit code; ``text``, what the block before it prints on stdout (on stderr too where it fails).
``python docs_pages.py PAGE...`` writes what is printed now into pages.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from analysim.cli.application import build

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HOME = "/home/you/lab"
"""What a page calls the folder it runs in."""

_FENCE = re.compile(r"^```(\S+) ?(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the word behind it, and where its text stands in the page."""

    language: str
    word: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Said:
    """What a page says that a block prints, and what it prints."""

    block: Block
    printed: str


def blocks(page: Path) -> list[Block]:
    """Fenced blocks of a page that name a language."""
    text = page.read_text("utf-8")
    return [Block(m[1], m[2], m[3], m.start(3), m.end(3)) for m in _FENCE.finditer(text)]


def run_page(page: Path, folder: Path) -> Iterator[Said]:
    """Run the blocks of a page in a folder; yield each output beside what the page says it is."""
    names: dict[str, Any] = {"__name__": "page"}
    printed = ""
    with chdir(folder):
        for block in blocks(page):
            if block.language == "text":
                yield Said(block, printed.replace(str(folder), HOME))
            elif block.language == "sh":
                printed = "".join(_command(line, int(block.word or 0)) for line in _lines(block.text))
            elif block.word:
                file = Path(block.word)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, "utf-8")
            elif block.language == "python":
                printed = _program(block, page, names)


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def _command(line: str, exit_code: int) -> str:
    program, *words = shlex.split(line, comments=True)
    assert program == "analysim", f"{line!r} is no command of ours"
    result = CliRunner().invoke(build(), words, prog_name="analysim")
    assert result.exit_code == exit_code, f"{line!r} left with {result.exit_code}: {result.stderr}"
    return str(result.stdout + result.stderr if exit_code else result.stdout)


def _program(block: Block, page: Path, names: dict[str, Any]) -> str:
    line = page.read_text("utf-8").count("\n", 0, block.start)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        exec(compile("\n" * line + block.text, str(page), "exec"), names)
    return out.getvalue()


def tidy(text: str) -> str:
    """Text without blanks at the ends of lines and of itself."""
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def rewrite(page: Path) -> None:
    """Put what the blocks print now into a page."""
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for said in reversed(list(run_page(page, Path(folder)))):
            text = text[: said.block.start] + tidy(said.printed) + "\n" + text[said.block.end :]
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "110"
    for name in sys.argv[1:]:
        rewrite(Path(name).resolve())
