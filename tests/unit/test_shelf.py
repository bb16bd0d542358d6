"""Finding policies, topologies and traces by path and by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from analysim import shelf
from analysim.errors import ShelfError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, with a bundled shelf that holds nothing but what a test puts there."""
    package = tmp_path / "installed" / "analysim"
    (package / "_bundled").mkdir(parents=True)
    for kind in ("policies", "topologies", "traces"):
        (package / "_bundled" / kind).mkdir()
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.setattr(shelf, "__file__", str(package / "shelf.py"))
    monkeypatch.chdir(working)
    return working


def bundled(here: Path, kind: str) -> Path:
    return here.parent / "installed" / "analysim" / "_bundled" / kind


def test_a_path_is_taken_as_it_is(here: Path) -> None:
    (here / "mine.csv").write_text("job_id\n")
    (here / "data").mkdir()
    (here / "data" / "export.txt").write_text("job_id\n")
    assert shelf.find("traces", "mine.csv") == Path("mine.csv")
    assert shelf.find("traces", "data/export.txt") == Path("data/export.txt")
    (here / "cluster_job_log").write_text("[]")
    assert shelf.find("traces", "cluster_job_log") == Path("cluster_job_log")


def test_a_name_is_found_here_and_on_the_bundled_shelf(here: Path) -> None:
    (here / "policies").mkdir()
    (here / "policies" / "mine.py").write_text("")
    (bundled(here, "policies") / "fifo.py").write_text("")
    assert shelf.find("policies", "mine") == Path("policies/mine.py")
    assert shelf.find("policies", "fifo") == bundled(here, "policies") / "fifo.py"
    assert shelf.find("policies", "fifo.py") == bundled(here, "policies") / "fifo.py"
    assert [name for name, _ in shelf.list_shelf("policies")] == ["fifo", "mine"]


def test_a_copy_counts_once(here: Path) -> None:
    (here / "topologies").mkdir()
    (here / "topologies" / "tiny.yaml").write_text("name: tiny\n")
    (bundled(here, "topologies") / "tiny.yaml").write_text("name: tiny\n")
    assert shelf.find("topologies", "tiny") == Path("topologies/tiny.yaml")
    assert shelf.list_shelf("topologies") == [("tiny", Path("topologies/tiny.yaml"))]


def test_one_name_with_two_contents_is_an_error_naming_both(here: Path) -> None:
    (here / "topologies").mkdir()
    (here / "topologies" / "tiny.yaml").write_text("name: mine\n")
    theirs = bundled(here, "topologies") / "tiny.yaml"
    theirs.write_text("name: tiny\n")
    with pytest.raises(ShelfError) as caught:
        shelf.find("topologies", "tiny")
    assert caught.value.message == (
        f"Topology 'tiny' means two different files: topologies/tiny.yaml and {theirs}."
    )
    assert caught.value.remedy == "Give the path of the one you mean, or rename yours."
    assert caught.value.exit_code == 2
    assert shelf.find("topologies", "./topologies/tiny.yaml") == Path("topologies/tiny.yaml")
    assert len(shelf.list_shelf("topologies")) == 2


def test_two_formats_of_one_name_in_one_folder_are_two_hits(here: Path) -> None:
    (bundled(here, "traces") / "prod.csv").write_text("job_id\n1\n")
    (bundled(here, "traces") / "prod.parquet").write_bytes(b"PAR1")
    with pytest.raises(ShelfError, match="means two different files"):
        shelf.find("traces", "prod")
    assert shelf.find("traces", "prod.csv").name == "prod.csv"


def test_a_checkouts_own_folder_counts_once_when_it_is_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "analysim").mkdir()
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "small.csv.gz").write_bytes(b"")
    monkeypatch.setattr(shelf, "__file__", str(tmp_path / "analysim" / "shelf.py"))
    monkeypatch.chdir(tmp_path)
    assert shelf.list_shelf("traces") == [("small", Path("traces/small.csv.gz"))]


def test_foreign_hidden_and_private_files_are_not_on_the_shelf(here: Path) -> None:
    for name in ("README.md", "_parts.py", "__init__.py", ".hidden.py", "notes.yaml"):
        (bundled(here, "policies") / name).write_text("")
    (bundled(here, "policies") / "folder.py").mkdir()
    assert shelf.list_shelf("policies") == []


@pytest.mark.parametrize(
    ("kind", "name", "message", "remedy"),
    [
        ("policies", "fifi", "No policy is called 'fifi', here or on the shelf.", "Did you mean 'fifo'?"),
        ("policies", "zzz", "No policy is called 'zzz', here or on the shelf.", "Known: fifo, srtf."),
        ("traces", "x", "No trace is called 'x', here or on the shelf.", "There are none to choose from."),
        (
            "traces",
            "x.csv",
            "No trace is called 'x.csv', here or on the shelf.",
            "There are none to choose from.",
        ),
        ("traces", "data/prd.csv", "data/prd.csv: no such trace file.", "Did you mean 'prod.csv'?"),
        ("traces", "gone/prod.csv", "gone/prod.csv: no such trace file.", "There is no folder gone."),
        ("traces", "./data", "./data is a folder, not a trace file.", "Name a file in it."),
    ],
)
def test_what_is_not_there_is_said_in_one_line(
    here: Path, kind: shelf.Kind, name: str, message: str, remedy: str
) -> None:
    for policy in ("fifo", "srtf"):
        (bundled(here, "policies") / f"{policy}.py").write_text(policy)
    (here / "data").mkdir()
    (here / "data" / "prod.csv").write_text("job_id\n")
    with pytest.raises(ShelfError) as caught:
        shelf.find(kind, name)
    assert (caught.value.message, caught.value.remedy) == (message, remedy)


def test_the_shelf_needs_no_heavy_library() -> None:
    code = "import sys, analysim.shelf; print(sorted({'pandas', 'pydantic', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
