"""The tables of Alibaba's PAI trace: without a row of names, packed or not, side by side in a folder."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO

from analysim.errors import TraceError
from analysim.traces.readers.format import Sample, take_sample
from analysim.traces.readers.tables import Kind, Table, open_csv, read_table
from analysim.traces.streams import open_bytes, read_head

STATUSES = ("Terminated", "Waiting", "Running", "Interrupted", "Failed")
"""How a job, task or instance ended; of several in one job, the later one in this order is the job's."""

_SUFFIXES = (".csv", ".csv.gz", ".tar.gz")
_ROWS = 20
_MEMBER = re.compile(r"pai_(job|task|instance)_table\.csv")
_TAR = "ustar"


@dataclass(frozen=True)
class _Layout:
    """Names of a table's columns in order, and which of them hold the status and numbers."""

    names: tuple[str, ...]
    status: int
    numbers: tuple[int, ...]


_LAYOUTS = {
    "job": _Layout(("job_name", "inst_id", "user", "status", "start_time", "end_time"), 3, (4, 5)),
    "task": _Layout(
        (
            "job_name", "task_name", "inst_num", "status", "start_time", "end_time",
            "plan_cpu", "plan_mem", "plan_gpu", "gpu_type",
        ),
        3,
        (2, 4, 5, 6, 7, 8),
    ),
    "instance": _Layout(
        (
            "job_name", "task_name", "inst_name", "worker_name", "inst_id", "status",
            "start_time", "end_time", "machine",
        ),
        5,
        (6, 7),
    ),
}  # fmt: skip
_TAG_NAMES = ("inst_id", "user", "gpu_type_spec", "group", "workload")


def find_kind(sample: Sample) -> str:
    """Tell which table a file begins as: ``job``, ``task``, ``instance``, or nothing for another file."""
    if _TAR in sample.text[:512]:
        member = _MEMBER.search(sample.text[:8_192])
        return member[1] if member else ""
    rows = [line.split(",") for line in sample.lines[:_ROWS] if line.strip()]
    for kind, layout in _LAYOUTS.items():
        data = rows[1:] if rows[:1] == [list(layout.names)] else rows
        if data and all(_fits(row, layout) for row in data):
            return kind
    return ""


def _fits(row: list[str], layout: _Layout) -> bool:
    return (
        len(row) == len(layout.names)
        and row[0] != ""
        and row[layout.status] in STATUSES
        and all(_is_number(row[position]) for position in layout.numbers)
    )


def _is_number(text: str) -> bool:
    try:
        float(text or "0")
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Folder:
    """The file that was named, which table it is, and the other tables beside it."""

    named: Path
    kind: str

    @classmethod
    def of(cls, path: Path) -> Folder:
        """Find out which table a file is. Raises ``TraceError`` if it is none of them."""
        kind = find_kind(take_sample(path))
        if not kind:
            raise TraceError(
                f"{path} is no job, task or instance table of PAI: its rows have other fields.",
                "Name pai_job_table.csv, pai_task_table.csv or pai_instance_table.csv.",
            )
        return cls(path, kind)

    def find(self, kind: str) -> Path | None:
        """Return the file of a table, ``pai_<kind>_table`` with .csv, .csv.gz or .tar.gz, if it is there."""
        if kind == self.kind:
            return self.named
        candidates = [self.named.parent / f"pai_{kind}_table{suffix}" for suffix in _SUFFIXES]
        return next((each for each in candidates if each.is_file()), None)

    def read(self, kind: str, columns: dict[str, Kind]) -> Table | None:
        """Read columns of a table, None where its file is not there. Raises ``TraceError``."""
        path = self.find(kind)
        if path is None:
            return None
        names = _TAG_NAMES if kind == "group_tag" else _LAYOUTS[kind].names
        return read_table(path, columns, names=names, opened=_open)


def _open(path: Path) -> AbstractContextManager[TextIO]:
    head, _ = read_head(path, 512)
    return _open_packed(path) if _TAR.encode() in head[256:] else open_csv(path)


@contextmanager
def _open_packed(path: Path) -> Iterator[TextIO]:
    """Open the table in a tar archive; it is read from its beginning on, without going back."""
    with open_bytes(path) as data:
        try:
            with tarfile.open(fileobj=data, mode="r:") as archive:
                yield io.TextIOWrapper(_first_table(archive, path), encoding="utf-8-sig", newline="")
        except tarfile.TarError as error:
            raise TraceError(f"{path}: the tar archive is damaged ({error}).", "Download it again.") from error
        except UnicodeDecodeError as error:
            what = f"{path} holds a table that is not UTF-8: {error.reason}."
            raise TraceError(what, "Download it again.") from error


def _first_table(archive: tarfile.TarFile, path: Path) -> IO[bytes]:
    for member in archive:
        name = Path(member.name).name
        if member.isfile() and name.endswith(".csv") and not name.startswith("."):
            file = archive.extractfile(member)
            if file is not None:
                return file
    raise TraceError(f"{path} holds no table.", "Name pai_job_table.tar.gz, pai_task_table.tar.gz or the like.")
