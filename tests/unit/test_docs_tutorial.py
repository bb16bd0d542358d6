"""The tutorial works as it is written: every block runs, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.docs_pages import ROOT, run_page, tidy

pytestmark = pytest.mark.slow

TUTORIAL = ROOT / "docs/tutorial/first-policy.md"


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    outputs = list(run_page(TUTORIAL, tmp_path))
    assert len(outputs) > 5
    for said in outputs:
        assert tidy(said.printed) == tidy(said.block.text)
    assert (tmp_path / "timeline.json").is_file()
    assert (tmp_path / "runs/second/figures/occupancy.png").is_file()
