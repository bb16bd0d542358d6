"""A second code path for every metric: plain Python integers and fractions, straight from the semantics.

It shares nothing with ``analysim.metrics``. The ``check_`` functions tell what must hold in every run.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from analysim.tables import STATES, RunTables
from tests.property.independent_course import fragmentation
from tests.property.independent_run import (
    JobBook,
    Machine,
    Row,
    gpu_time_up,
    gpus_of,
    last_end,
    over,
    read_jobs,
    read_machines,
    stint_gpus,
    us,
    work_weights,
)

LOSSES = ("checkpoint", "restart", "hold", "redone", "speed")
HOUR_US = 3_600_000_000


def recompute(tables: RunTables, measure: tuple[float, float] | None = None) -> dict[str, Any]:
    """Recompute every key of ``analysim.metrics.summarise``."""
    books, machines = read_jobs(tables), read_machines(tables)
    end = last_end(books)
    first = min((book.submit for book in books), default=0)
    start, stop, chosen = first, first if end is None else max(first, end), books
    if measure is not None:
        chosen = [book for book in books if measure[0] <= book.submit / 1e6 < measure[1]]
        low, high = (round(min(max(edge, start / 1e6), stop / 1e6) * 1e6) for edge in measure)
        start, stop = low, max(low, high)
    with_gpus = [book for book in chosen if book.gpus]
    cpu_jobs = [book for book in chosen if not book.gpus]
    cpu_figures = _states(cpu_jobs) | _figures(cpu_jobs)
    return {
        **_states(chosen),
        "offered_load": _offered_load(books, machines),
        **_figures(with_gpus),
        "makespan_s": None if end is None else (max(first, end) - first) / 1e6,
        "fill_up_s": _fill_up(tables, books),
        **_work(books, machines, start, stop),
        "fragmentation": fragmentation(books, machines, start, stop),
        "fairness": {"jain": _jain(with_gpus), "max_over_min": _max_over_min(with_gpus)},
        "preemptions": sum(int(book.given["preemptions"]) for book in chosen),
        "migrations": sum(int(book.given["migrations"]) for book in chosen),
        "resizes": sum(int(book.given.get("resizes", 0)) for book in chosen),
        **_deadlines(chosen),
        "cpu_jobs": {
            name: cpu_figures[name] for name in ("submitted", "completed", "mean_jct_s", "mean_wait_s")
        },
        "measured": {"from_s": start / 1e6, "to_s": stop / 1e6},
    }


def _deadlines(books: list[JobBook]) -> dict[str, Any]:
    due = [(book, us(book.given["deadline_s"])) for book in books if us(book.given.get("deadline_s")) is not None]
    if not due:
        return {}
    met = sum(book.state == "completed" and book.end is not None and book.end <= when for book, when in due)
    return {"deadlines": len(due), "deadlines_met": met}


def _states(books: list[JobBook]) -> dict[str, Any]:
    counts = Counter(book.state for book in books)
    return {"submitted": len(books), **{state: counts[state] for state in STATES}}


def _offered_load(books: list[JobBook], machines: dict[str, Machine]) -> float | None:
    if not books:
        return None
    submits = [book.submit for book in books]
    available = gpu_time_up(machines, min(submits), max(submits))
    return over(sum(book.gpus * book.duration for book in books), available)


def _fill_up(tables: RunTables, books: list[JobBook]) -> float | None:
    submits = [book.submit for book in books]
    if not books or min(submits) == max(submits):
        return None
    first, last = min(submits), max(submits)
    rows = [
        (round(row.start_s * 1e6), round(row.end_s * 1e6), gpus_of(row.gpus))
        for row in tables.segments.itertuples()
    ]
    held = sum(gpus * (min(max(end, first), last) - min(max(start, first), last)) for start, end, gpus in rows)
    if not held:
        return None
    for moment in sorted({edge for start, end, _ in rows for edge in (start, end)}):
        busy = sum(gpus for start, end, gpus in rows if start <= moment < end)
        if Fraction(held, last - first) <= busy:
            return (moment - first) / 1e6
    return None


def _figures(books: list[JobBook]) -> dict[str, Any]:
    done = [book for book in books if book.state == "completed"]
    figures: dict[str, Any] = {}
    for name, values in (
        ("jct_s", [book.jct for book in done]),
        ("wait_s", [book.wait for book in done]),
    ):
        ordered = sorted(value for value in values if value is not None)
        figures[f"mean_{name}"] = over(sum(ordered), len(ordered) * 1_000_000)
        for label, part in (("median", (1, 2)), ("p90", (9, 10)), ("p99", (99, 100))):
            figures[f"{label}_{name}"] = _quantile(ordered, Fraction(*part))
    total_waits = [book.total_wait or 0 for book in done]
    figures["mean_total_wait_s"] = over(sum(total_waits), len(done) * 1_000_000)
    slowdowns = [Fraction(book.jct or 0, book.duration) for book in done if book.duration]
    figures["mean_slowdown"] = _average(slowdowns)
    figures["mean_bounded_slowdown"] = _average([bounded(book) for book in done])
    return figures


def _average(values: list[Fraction]) -> float | None:
    return math.fsum(float(value) for value in values) / len(values) if values else None


def _quantile(ordered: list[int], part: Fraction) -> float | None:
    if not ordered:
        return None
    place = (len(ordered) - 1) * part
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    value = ordered[below] + (ordered[above] - ordered[below]) * (place - below)
    return float(value / 1_000_000)


def bounded(book: JobBook) -> Fraction:
    return max(Fraction(1), Fraction(book.jct or 0, max(book.duration, 10_000_000)))


def _work(books: list[JobBook], machines: dict[str, Machine], start: int, stop: int) -> dict[str, Any]:
    held: Fraction = Fraction(0)
    productive: Fraction = Fraction(0)
    lost = dict.fromkeys(LOSSES, Fraction(0))
    for book in books:
        weight = work_weights(book)
        for row, gross in with_gross(book):
            inside = max(min(row.end, stop) - max(row.start, start), 0)
            if not inside:
                continue
            part = Fraction(inside, row.end - row.start)
            gpus = row.gpus * weight[row.start, row.end, row.kind]
            held += row.gpus * inside
            productive += gpus * row.progress * part
            if row.kind == "run":
                lost["redone"] += gpus * (gross - row.progress) * part
                lost["speed"] += row.gpus * inside - gpus * gross * part
            elif row.kind in lost:
                lost[row.kind] += row.gpus * inside
    up = gpu_time_up(machines, start, stop)
    return {
        "allocated_utilisation": over(held, up),
        "productive_utilisation": over(productive, up),
        "gpu_hours_held": over(held, HOUR_US),
        "gpu_hours_productive": over(productive, HOUR_US),
        "gpu_hours_lost": over(held - productive, HOUR_US),
        "gpu_hours_lost_by": {name: over(value, HOUR_US) for name, value in lost.items()},
    }


def check_sizes(tables: RunTables) -> list[str]:
    """A job runs on a number of GPUs that it may have, at the speed of its curve there; a line for each fault."""
    faults = []
    for book in read_jobs(tables):
        asked = book.gpus
        least, most = (int(book.given[name]) or asked for name in ("min_gpus", "max_gpus"))
        each = int(book.given["gpus_per_node"])
        for (start, end, kind), gpus in stint_gpus(book).items():
            if kind not in ("run", "restart") or end == start:
                continue
            if not least <= gpus <= most or (each and asked >= 1 and gpus % each):
                faults.append(f"job {book.given['job_id']}: {gpus} GPUs from {start} us, asked {least} to {most}")
    return faults


def check_curves(tables: RunTables) -> list[str]:
    """On GPUs of one type, a job runs as fast as its curve says for the GPUs it has; a line for each fault."""
    faults = []
    for book in read_jobs(tables):
        gpus = stint_gpus(book)
        for row in book.rows:
            if row.kind != "run" or not book.gpus:
                continue
            curve = str(book.given["throughput"])
            expected = throughput(curve, gpus[row.start, row.end, "run"]) / throughput(curve, book.gpus)
            if abs(row.speed - expected * 1_000_000) > 1:
                faults.append(f"job {book.given['job_id']}: speed {row.speed}, its curve says {float(expected)}")
    return faults


def throughput(curve: str, gpus: int) -> Fraction:
    """Throughput on so many GPUs: linear, Amdahl's law, or a table with straight lines between its points."""
    if curve.startswith("amdahl:"):
        parallel = Fraction(curve.removeprefix("amdahl:"))
        return 1 / (1 - parallel + parallel / gpus)
    if "=" not in curve:
        return Fraction(gpus)
    points = [(int(count), Fraction(speed)) for count, speed in (part.split("=") for part in curve.split())]
    for (low, slow), (high, fast) in itertools.pairwise(points):
        if low <= gpus <= high:
            return slow + (fast - slow) * Fraction(gpus - low, high - low)
    return points[0][1]


def with_gross(book: JobBook) -> Iterator[tuple[Row, int]]:
    """Each row with its progress before losses: elapsed times speed, less what only rounded up its end."""
    for row in book.rows:
        elapsed = row.end - row.start
        least, most = ((time * row.speed) // 1_000_000 for time in (elapsed - 1, elapsed))
        yield row, row.progress if least < row.progress <= most else most


def _jain(books: list[JobBook]) -> float | None:
    tenants = defaultdict(list)
    for book in books:
        if book.state == "completed":
            tenants[book.given["tenant"]].append(bounded(book))
    means = [math.fsum(map(float, values)) / len(values) for values in tenants.values()]
    if len(means) < 2:
        return None
    return math.fsum(means) ** 2 / (len(means) * math.fsum(mean**2 for mean in means))


def _max_over_min(books: list[JobBook]) -> float | None:
    asked: Counter[str] = Counter()
    received: Counter[str] = Counter()
    for book in books:
        if book.state != "rejected":
            asked[book.given["tenant"]] += book.gpus * book.duration
            received[book.given["tenant"]] += sum(row.gpus * (row.end - row.start) for row in book.rows)
    ratios = [Fraction(received[tenant], asked[tenant]) for tenant in asked if asked[tenant]]
    return over(max(ratios), min(ratios)) if len(ratios) >= 2 else None


def check_jobs(tables: RunTables) -> list[str]:
    """Compare the derived columns of ``jobs`` with ``segments``; a line for each fault."""
    faults = []
    for book in read_jobs(tables):
        derived = {
            "first_start_time_s": book.first_start,
            "end_time_s": book.end,
            "wait_s": book.wait,
            "jct_s": book.jct,
            "held_s": book.held if book.jct is not None else None,
            "total_wait_s": book.total_wait,
        }
        for name, value in derived.items():
            written = us(book.given[name])
            # What an unfinished or cancelled job held or waited so far is the ledger's own business.
            if value is not None and written != value:
                faults.append(f"job {book.given['job_id']}: {name} is {written} us, segments give {value} us")
        if book.first_start is not None and book.first_start < book.submit:
            faults.append(f"job {book.given['job_id']} starts before it is submitted")
        if book.end is not None and book.end < max(book.submit, book.first_start or book.submit):
            faults.append(f"job {book.given['job_id']} ends before it starts")
        backwards = [row for row in book.rows if not book.submit <= row.start <= row.end]
        faults += [
            f"job {book.given['job_id']} has a row from {row.start} to {row.end} us, submitted at {book.submit} us"
            for row in backwards
        ]
    return faults


def check_state_sum(tables: RunTables) -> list[str]:
    """Every submitted job ends in exactly one state, rejected ones hold nothing; a line for each fault."""
    books = read_jobs(tables)
    counts = Counter(book.state for book in books)
    faults = [f"{state!r} is no state" for state in counts if state not in STATES]
    if sum(counts[state] for state in STATES) != len(tables.jobs):
        faults.append(f"{len(tables.jobs)} jobs submitted, states sum to {counts}")
    if counts["rejected"] != len(tables.rejected):
        faults.append(f"{counts['rejected']} jobs rejected, {len(tables.rejected)} listed")
    for book in books:
        if book.state == "rejected" and book.rows:
            faults.append(f"job {book.given['job_id']} was rejected and has rows")
    return faults


def gpu_indices(text: str) -> list[int]:
    """Read ``0-3,6``."""
    indices: list[int] = []
    for part in text.split(",") if isinstance(text, str) and text else ():
        first, _, last = part.partition("-")
        indices += range(int(first), int(last or first) + 1)
    return indices


def check_no_gpu_held_twice(tables: RunTables) -> list[str]:
    """No GPU is held by two rows at once or outside its node; a line for each fault."""
    machines = read_machines(tables)
    faults = []
    spans = defaultdict(list)
    shared = defaultdict(list)
    for book in read_jobs(tables):
        for row in book.rows:
            if row.kind == "suspend" or not row.gpus or row.start == row.end:
                continue
            indices = gpu_indices(row.gpu_ids)
            if len(set(indices)) != math.ceil(row.gpus) or max(indices) >= machines[row.node].size:
                faults.append(f"{row.gpu_ids!r} are not {row.gpus} GPUs of {row.node}")
            for index in indices:
                if row.gpus < 1:
                    shared[row.node, index].append((row.start, row.end, row.gpus))
                else:
                    spans[row.node, index].append((row.start, row.end, book.given["job_id"]))
    for (node, index), parts in shared.items():
        whole = [(start, end, Fraction(1)) for start, end, _ in spans[node, index]]
        for start, _, _ in parts + whole:
            if sum(part for begin, end, part in parts + whole if begin <= start < end) > 1:
                faults.append(f"GPU {index} of {node} is held more than once over at {start} us")
    for (node, index), taken in spans.items():
        taken.sort(key=lambda span: span[:2])
        for (_, end, job), (start, _, other) in itertools.pairwise(taken):
            if start < end:
                faults.append(f"GPU {index} of {node} is held by jobs {job} and {other} at {start} us")
    return faults


def check_work_done(tables: RunTables) -> list[str]:
    """Completed jobs did exactly the work they asked for, all others no more; a line for each fault."""
    faults = []
    for book in read_jobs(tables):
        stints = {(row.start, row.end, row.kind, row.progress) for row in book.rows}
        done = sum(progress for *_, progress in stints)
        if len(stints) != len({(start, end, kind) for start, end, kind, _ in stints}):
            faults.append(f"job {book.given['job_id']}: the nodes of a gang disagree about its progress")
        if book.state == "completed" and done != book.duration:
            faults.append(f"job {book.given['job_id']} did {done} us of {book.duration} us and completed")
        if done > book.duration or any(row.progress > gross for row, gross in with_gross(book)):
            faults.append(f"job {book.given['job_id']} did more work than it had time or need for")
        if any(row.progress and row.kind != "run" for row in book.rows):
            faults.append(f"job {book.given['job_id']} made progress while it was not running")
    return faults
