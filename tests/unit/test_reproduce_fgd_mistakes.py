"""What ``scripts/reproduce_fgd.py`` says to a file of results that it cannot use."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.builders import ROOT


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is no CSV"),
        (b"\x7fELF\xd0\x00\n", "is no CSV"),
        (b"a,b\n1,2\n", "has no column 'workload'"),
    ],
)
def test_results_that_are_none_are_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, says: str
) -> None:
    spec = importlib.util.spec_from_file_location("reproduce_fgd_mistakes", ROOT / "scripts/reproduce_fgd.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (tmp_path / "expected.csv").write_bytes(content)
    assert script.main(["--all", "--expected", str(tmp_path / "expected.csv")]) == 2
    told = capsys.readouterr()
    assert told.out == "" and says in told.err and told.err.count("\n") == 1
