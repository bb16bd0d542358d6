"""A command line in a directory of its own, with a small trace in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_run import TRACE, Command
from typer.testing import CliRunner

from analysim.cli.application import build


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory but for ``prod.csv``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prod.csv").write_text(TRACE)
    return tmp_path


@pytest.fixture
def analysim(here: Path) -> Command:
    """Run a command line in ``here``."""
    application = build()
    return lambda *words: CliRunner().invoke(application, [str(word) for word in words], prog_name="analysim")
