"""A run in plain Python integers, read from ``segments``, ``capacity`` and the given columns of ``jobs``.

Of the derived columns only ``state``, ``preemptions`` and ``migrations`` are read and, where ``segments``
cannot tell, a job's start and end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from analysim.tables import RunTables

ACTIVE = ("run", "restart", "checkpoint")


def us(seconds: Any) -> int | None:
    """Seconds as integer microseconds; None for NaN."""
    return None if seconds is None or seconds != seconds else round(float(seconds) * 1e6)


def number(value: Any, scale: int = 1) -> int | None:
    """A cell as an integer of so many parts; None for NaN."""
    return None if value is None or value != value else round(float(value) * scale)


def gpus_of(value: Any) -> Fraction:
    """A count of GPUs, or a share of one in thousandths."""
    return Fraction(round(float(value) * 1_000), 1_000)


def label(value: Any) -> str:
    """A name; empty for NaN."""
    return value if isinstance(value, str) else ""


@dataclass
class Row:
    """One row of ``segments``."""

    node: str
    start: int
    end: int
    gpus: Fraction
    gpu_ids: str
    kind: str
    speed: int
    progress: int
    cpus: int
    memory: int


@dataclass
class JobBook:
    """A job's given columns and its rows."""

    rank: int
    given: dict[str, Any]
    submit: int
    gpus: Fraction
    duration: int
    state: str
    end: int | None
    rows: list[Row] = field(default_factory=list)
    first_start: int | None = None
    held: int = 0

    @property
    def wait(self) -> int | None:
        """First start - submit."""
        return None if self.first_start is None else self.first_start - self.submit

    @property
    def jct(self) -> int | None:
        """End - submit, of jobs that completed or were killed."""
        ran = self.state in ("completed", "killed")
        return self.end - self.submit if ran and self.end is not None else None

    @property
    def total_wait(self) -> int | None:
        """JCT - time held."""
        return None if self.jct is None else self.jct - self.held


def read_jobs(tables: RunTables) -> list[JobBook]:
    """Read jobs in rank order and derive first start, end and time held from their rows."""
    books = []
    for rank, cells in enumerate(tables.jobs.to_dict("records")):
        given = {str(name): cell for name, cell in cells.items()}
        for name in ("tenant", "partition", "gpu_type"):
            given[name] = label(given[name])
        books.append(
            JobBook(
                rank,
                given,
                us(given["submit_time_s"]) or 0,
                gpus_of(given["num_gpus"]),
                us(given["duration_s"]) or 0,
                given["state"],
                us(given["end_time_s"]),
            )
        )
    by_id = {book.given["job_id"]: book for book in books}
    for cell in tables.segments.to_dict("records"):
        by_id[cell["job_id"]].rows.append(
            Row(
                cell["node"],
                us(cell["start_s"]) or 0,
                us(cell["end_s"]) or 0,
                gpus_of(cell["gpus"]),
                cell["gpu_ids"],
                cell["kind"],
                number(cell["speed"], 1_000_000) or 0,
                us(cell["progress_s"]) or 0,
                number(cell["cpus"], 1_000) or 0,
                number(cell["memory_gb"], 1_024) or 0,
            )
        )
    for book in books:
        _derive(book)
    return books


def _derive(book: JobBook) -> None:
    stints = {(row.start, row.end) for row in book.rows if row.kind in ACTIVE}
    if not stints:  # never started, or so short that nothing was written
        book.first_start = us(book.given["first_start_time_s"])
        return
    book.first_start = min(start for start, _ in stints)
    book.held = sum(end - start for start, end in stints)
    if book.state in ("completed", "killed"):
        book.end = max(row.end for row in book.rows)


def last_end(books: list[JobBook]) -> int | None:
    """When the last job ended or let go of a GPU that it held for any time."""
    ends = [book.end for book in books if book.end is not None]
    ends += [row.end for book in books for row in book.rows if row.end > row.start]
    return max(ends, default=None)


def stint_gpus(book: JobBook) -> dict[tuple[int, int, str], int]:
    """GPUs that a job held, over all nodes, in each interval and kind."""
    total: dict[tuple[int, int, str], int] = {}
    for row in book.rows:
        key = (row.start, row.end, row.kind)
        total[key] = total.get(key, 0) + row.gpus
    return total


def work_weights(book: JobBook) -> dict[tuple[int, int, str], Fraction]:
    """What a GPU held in each interval counts as work: all of them together as the GPUs that the job asks for."""
    runs_on = stint_gpus(book)
    return {key: Fraction(book.gpus, held) if held and key[2] == "run" else Fraction(1) for key, held in runs_on.items()}


@dataclass
class Machine:
    """A node: its GPU type, the most GPUs it ever has, and (time, GPUs, CPUs, memory) from each change on."""

    gpu_type: str
    size: int = 0
    changes: list[tuple[int, int, int | None, int | None]] = field(default_factory=list)

    def at(self, time: int) -> tuple[int, int | None, int | None]:
        """GPUs, CPUs and memory at a time."""
        now: tuple[int, int | None, int | None] = (0, 0, 0)
        for when, gpus, cpus, memory in self.changes:
            if when <= time:
                now = (gpus, cpus, memory)
        return now


def read_machines(tables: RunTables) -> dict[str, Machine]:
    """Read ``capacity``, nodes in topology order."""
    machines: dict[str, Machine] = {}
    for cell in tables.capacity.to_dict("records"):
        machine = machines.setdefault(cell["node"], Machine(label(cell["gpu_type"])))
        gpus = number(cell["gpus"]) or 0
        machine.size = max(machine.size, gpus)
        change = (
            us(cell["time_s"]) or 0,
            gpus,
            number(cell["cpus"], 1_000),
            number(cell["memory_gb"], 1_024),
        )
        machine.changes.append(change)
    return machines


def gpu_time_up(machines: dict[str, Machine], start: int, stop: int) -> int:
    """Integrate GPUs up."""
    total = 0
    for machine in machines.values():
        times = [when for when, *_ in machine.changes] + [stop]
        for (when, gpus, *_), until in zip(machine.changes, times[1:], strict=True):
            total += gpus * max(min(until, stop) - max(when, start), 0)
    return total


def over(part: Fraction | int, whole: Fraction | int) -> float | None:
    return float(Fraction(part) / Fraction(whole)) if whole else None
