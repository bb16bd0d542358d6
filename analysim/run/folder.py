"""The run folder: written under a temporary name, renamed when complete, read back as tables."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from analysim.errors import RunFolderError, UserError
from analysim.run.table_files import column_kinds, read_table, write_table
from analysim.tables import TABLE_NAMES, RunTables, TableFormat

SCHEMA_VERSION = 1
"""Version of the run-folder schema; raised when a reader of the old one would misread the new one."""

RUN_FILE, TIMING_FILE, POLICY_FILE, FIGURES = "run.json", "timing.json", "policy.py", "figures"
ACCOUNT_FILE = "account.csv"
"""What stands in a run folder beside its tables."""

FIDELITY_FILE, FIDELITY_FIGURE = "fidelity.json", "fidelity"
"""What ``analysim fidelity`` adds to a run folder: its report, and a figure of this name."""


class NewRunFolder:
    """A run folder in the making, as a context manager.

    Everything goes into ``partial``, a hidden sibling of ``target``; ``finish`` renames it. Left without
    ``finish``, by an error or Ctrl-C, the sibling is removed and nothing remains. With ``numbered`` the
    next free ``target-2``, ``target-3``... is taken when another run has taken the name meanwhile. ``marker`` is the
    file by which a folder is known to be one that ``force`` may replace.

    Raises ``RunFolderError`` when the target exists (unless ``force``) or cannot be written, ``UserError``
    when it has no name.
    """

    partial: Path

    def __init__(
        self, target: Path, *, force: bool = False, numbered: bool = False, marker: str = RUN_FILE
    ) -> None:
        self.target = target
        self.marker = marker
        self.force = force
        self.numbered = numbered
        self._parents: list[Path] = []

    def __enter__(self) -> Self:
        if not self.numbered:
            check_target(self.target, force=self.force, marker=self.marker)
        with _told(self.target):
            self._parents = make_parents(self.target)
            self.partial = _make_partial(self.target)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.partial, ignore_errors=True)
        remove_empty(self._parents)

    def write(self, fill: Callable[[Path], None]) -> None:
        """Let ``fill`` write files into the partial folder; what the disk refuses becomes one clear line."""
        with _told(self.target):
            fill(self.partial)

    def finish(self) -> Path:
        """Give the folder its final name and return it."""
        with _told(self.target):
            if self.force and self.target.exists():
                _replace(self.partial, self.target)
                return self.target
            for target in numbered_names(self.target) if self.numbered else (self.target,):
                try:
                    self.partial.rename(target)
                    return target
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                        raise
        raise _exists(self.target)


def make_parents(target: Path) -> list[Path]:
    """Make the folders above ``target`` and return those that were not there, the lowest first."""
    made = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    return made


def remove_empty(folders: list[Path]) -> None:
    """Remove those of ``folders`` that hold nothing, the lowest first."""
    with suppress(OSError):  # the first that holds something ends it
        for folder in folders:
            folder.rmdir()


def _make_partial(target: Path) -> Path:
    names = numbered_names(target.with_name(f".{target.name}.{os.getpid()}"))
    while True:
        name = next(names)
        partial = name.with_name(f"{name.name}.partial")
        try:
            partial.mkdir()
            return partial
        except FileExistsError:  # left by a process that was killed, or of another run of this one
            continue


@contextmanager
def _told(target: Path) -> Iterator[None]:
    """Turn an ``OSError`` into the one line that names the run folder."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"Cannot write the run folder {target}: {error.strerror or error}.",
            "Nothing was left behind; free some space or choose another --out.",
        ) from error


def check_target(target: Path, *, force: bool, marker: str = RUN_FILE) -> None:
    """Refuse a target that exists; with ``force`` refuse only what is no run folder.

    Raises ``RunFolderError``, and ``UserError`` for a target without a name of its own.
    """
    if target.name in ("", ".."):
        raise UserError(
            f"A run folder needs a name, and {str(target)!r} has none.", "Choose another --out, such as runs/mine."
        )
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not force:
        raise _exists(target)
    if not (target / marker).is_file():
        what = "a run folder" if marker == RUN_FILE else f"a folder with a {marker}"
        raise RunFolderError(
            f"{target} is not {what}, so --force does not replace it.", "Choose another --out."
        )


def _exists(target: Path) -> RunFolderError:
    return RunFolderError(f"{target} already exists.", "Choose another --out, or replace it with --force.")


def _replace(partial: Path, target: Path) -> None:
    aside = partial.with_suffix(".replaced")
    target.rename(aside)
    try:
        partial.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def default_target(*words: str, parent: Path = Path("runs")) -> Path:
    """Name a new folder ``runs/<words joined by ->``, with ``-2``, ``-3``... while that is taken."""
    name = "-".join(file_name(word) for word in words)
    return next(target for target in numbered_names(parent / name) if not target.exists())


def file_name(word: str) -> str:
    """Make a name fit for a folder of its own."""
    return re.sub(r"[^\w.-]+", "_", word)


def numbered_names(target: Path) -> Iterator[Path]:
    """Yield ``target``, then ``target-2``, ``target-3`` and so on."""
    yield target
    yield from (target.with_name(f"{target.name}-{number}") for number in count(2))


def write_json(value: Any, path: Path) -> None:
    """Write JSON for people and programs, to the same bytes each time; NaN is a mistake.

    Keys keep their order: that of the node types of a cluster has a meaning.
    """
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def write_tables(tables: RunTables, folder: Path, table_format: TableFormat) -> dict[str, Any]:
    """Write all tables into ``folder``; returns what ``run.json`` says about them."""
    columns: dict[str, dict[str, str]] = {}
    for name in TABLE_NAMES:
        frame = getattr(tables, name).infer_objects()
        write_table(frame, folder, name, table_format)
        columns[name] = column_kinds(frame)
    return {"format": table_format, "columns": columns}


def read_run(folder: Path | str) -> tuple[dict[str, Any], RunTables]:
    """Read a finished run: what its ``run.json`` says, and its tables.

    Raises ``RunFolderError`` when the folder is not a finished run of this schema.
    """
    folder = Path(folder)
    record = read_record(folder)
    stored = record["tables"]
    try:
        tables = {
            name: read_table(folder, name, stored["format"], stored["columns"][name]) for name in TABLE_NAMES
        }
    except (OSError, ValueError, KeyError) as error:
        raise RunFolderError(
            f"{folder} is damaged: {error}.", "Run it again with `analysim rerun`."
        ) from error
    return record, RunTables(**tables)


def read_record(folder: Path) -> dict[str, Any]:
    """Read ``run.json`` of a finished run; raises ``RunFolderError`` where there is none."""
    path = folder / RUN_FILE
    try:
        record = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise RunFolderError(f"{folder} is not a finished run: it has no readable {RUN_FILE}.") from error
    except ValueError as error:
        raise RunFolderError(f"{path} is not the record of a run: {error}.") from error
    version = record.get("schema_version") if isinstance(record, dict) else None
    if version != SCHEMA_VERSION:
        raise RunFolderError(
            f"{path} has run-folder schema {version!r}; this version reads {SCHEMA_VERSION}.",
            "Make the run again with this version.",
        )
    return dict(record)


def read_timing(folder: Path) -> dict[str, Any]:
    """Read ``timing.json`` of a run; empty where it is missing, as no result depends on it."""
    try:
        return dict(json.loads((folder / TIMING_FILE).read_text("utf-8")))
    except (OSError, ValueError):
        return {}


def read_account(folder: Path) -> pd.DataFrame | None:
    """Read what became of the trace's rows; None where all of them are jobs as they stand."""
    path = folder / ACCOUNT_FILE
    return pd.read_csv(path) if path.is_file() else None


def read_policy_source(folder: Path) -> bytes:
    """Read the copy of the policy that the run was made with.

    Raises ``RunFolderError`` where it is missing.
    """
    try:
        return (folder / POLICY_FILE).read_bytes()
    except OSError as error:
        raise RunFolderError(
            f"{folder} is damaged: it has no {POLICY_FILE}.", "Make the run again."
        ) from error
