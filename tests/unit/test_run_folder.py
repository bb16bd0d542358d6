"""The run folder: whole or not at all, never over another, and read back as it was written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysim.errors import RunFolderError
from analysim.run import folder as run_folder
from analysim.run.folder import (
    NewRunFolder,
    check_target,
    default_target,
    read_run,
    write_json,
    write_tables,
)
from analysim.tables import TABLE_NAMES, RunTables, TableFormat


def tables() -> RunTables:
    jobs = pd.DataFrame(
        {
            "job_id": pd.array(["007", "NA"], dtype="str"),
            "submit_time_s": [0.1, 1234567.654321],
            "first_start_time_s": [0.1, np.nan],
            "num_gpus": [8, 1],
            "tenant": pd.array(["", "a,b"], dtype="str"),
            "state": pd.Categorical(["completed", "rejected"]),
            "preemptible": [True, False],
        }
    )
    others = {name: pd.DataFrame({"time_s": [0.0], "name": ["x"]}) for name in TABLE_NAMES if name != "jobs"}
    return RunTables(jobs=jobs, **others)


def fill(partial: Path, table_format: TableFormat = "csv") -> None:
    stored = write_tables(tables(), partial, table_format)
    write_json({"schema_version": 1, "tables": stored}, partial / "run.json")


def finish(target: Path, **how: bool) -> Path:
    with NewRunFolder(target, **how) as new:
        new.write(fill)
        return new.finish()


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("table_format", ["csv", "parquet"])
def test_tables_read_back_as_written(tmp_path: Path, table_format: TableFormat) -> None:
    fill(tmp_path, table_format)
    _, read = read_run(tmp_path)
    expected = tables().jobs.assign(state=pd.array(["completed", "rejected"], dtype="str"))
    pd.testing.assert_frame_equal(read.jobs.astype({"state": "str"}), expected, check_exact=True)


def test_the_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    with NewRunFolder(tmp_path / "run") as new:
        new.write(fill)
        assert not (tmp_path / "run").exists()
        assert new.finish() == tmp_path / "run"
    assert names(tmp_path) == ["run"]
    assert len(read_run(tmp_path / "run")[1].jobs) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_nothing_remains_of_a_run_that_broke_off(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), NewRunFolder(tmp_path / "run") as new:
        new.write(fill)
        raise error
    assert names(tmp_path) == []


def test_nothing_remains_when_the_disk_is_full(tmp_path: Path) -> None:
    def full(partial: Path) -> None:
        fill(partial)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(RunFolderError, match="No space left on device") as caught,
        NewRunFolder(tmp_path / "run") as new,
    ):
        new.write(full)
    assert caught.value.exit_code == 1
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RunFolderError, match="Cannot write the run folder"),
        NewRunFolder(tmp_path / "file" / "run"),
    ):
        pytest.fail("the block must not run")


def test_a_second_run_into_the_same_folder_is_refused(tmp_path: Path) -> None:
    finish(tmp_path / "run")
    before = (tmp_path / "run" / "run.json").stat().st_ino
    with pytest.raises(RunFolderError, match=r"already exists\..*--force"):
        finish(tmp_path / "run")
    assert (tmp_path / "run" / "run.json").stat().st_ino == before
    finish(tmp_path / "run", force=True)
    assert (tmp_path / "run" / "run.json").stat().st_ino != before
    assert names(tmp_path) == ["run"]


def test_a_run_that_finished_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="already exists"), NewRunFolder(tmp_path / "run") as new:
        new.write(fill)
        finish(tmp_path / "run", force=True)
        new.finish()
    assert names(tmp_path) == ["run"]


def test_a_numbered_run_takes_the_next_free_name(tmp_path: Path) -> None:
    made = [finish(tmp_path / "run", numbered=True).name for _ in range(3)]
    assert made == ["run", "run-2", "run-3"]


def test_force_never_replaces_what_is_no_run_folder(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with pytest.raises(RunFolderError, match="not a run folder"):
        finish(tmp_path / "thesis", force=True)
    assert names(tmp_path / "thesis") == ["chapter1.tex"]


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    check_target(tmp_path / "run", force=False)
    assert finish(tmp_path / "run") == tmp_path / "run"


def test_the_old_run_comes_back_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(tmp_path / "run")
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name.endswith(".partial") and target.name == "run":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(RunFolderError, match="Input/output error"):
        finish(tmp_path / "run", force=True)
    assert names(tmp_path) == ["run"]
    assert len(read_run(tmp_path / "run")[1].jobs) == 2


def test_default_names_are_fit_for_folders(tmp_path: Path) -> None:
    (tmp_path / "my_trace-fifo").mkdir()
    assert default_target("my trace", "fifo", parent=tmp_path) == tmp_path / "my_trace-fifo-2"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "is not a finished run: it has no readable run.json"),
        ("{", "is not the record of a run"),
        ("[]", "has run-folder schema None; this version reads 1"),
        ('{"schema_version": 99}', "has run-folder schema 99; this version reads 1"),
    ],
)
def test_what_is_no_run_is_told_in_one_line(tmp_path: Path, content: str | None, line: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunFolderError) as caught:
        read_run(tmp_path)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_that_is_gone_is_told(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "segments.csv").unlink()
    with pytest.raises(RunFolderError, match=r"is damaged: .*segments\.csv"):
        read_run(tmp_path)


def test_timing_is_no_part_of_a_run(tmp_path: Path) -> None:
    assert run_folder.read_timing(tmp_path) == {}
