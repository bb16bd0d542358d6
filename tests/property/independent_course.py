"""The second code path for what varies over time: every node and job looked at, instant by instant."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from analysim.tables import RunTables
from tests.property.independent_run import (
    ACTIVE,
    JobBook,
    Machine,
    last_end,
    number,
    over,
    read_jobs,
    read_machines,
    work_weights,
)


def share_of(book: JobBook, machines: dict[str, Machine]) -> dict[tuple[str, int], tuple[int, int, int]]:
    """What a job asks of a node, for each (GPU type, size): GPUs, CPUs and memory."""
    wanted = book.given["gpu_type"]
    wanted = wanted.split("|") if wanted else None
    kinds = {(machine.gpu_type, machine.size) for machine in machines.values() if machine.size}
    eligible = [size for gpu_type, size in kinds if wanted is None or gpu_type in wanted]
    per_node = number(book.given["gpus_per_node"]) or 0
    cpu_each, memory_each = _per_gpu(book, machines)
    needs = {}
    for gpu_type, size in kinds:
        if per_node > 0:
            gpus = per_node
        elif eligible and book.gpus > max(eligible):
            gpus = min(max(size, min(eligible)), max(eligible))  # a full node, whatever it has
        else:
            gpus = book.gpus
        count = math.ceil(gpus)
        needs[gpu_type, size] = (gpus, count * cpu_each, count * memory_each)
    return needs


def _per_gpu(book: JobBook, machines: dict[str, Machine]) -> tuple[int, int]:
    modelled = [change for machine in machines.values() for change in machine.changes]
    cpus = number(book.given["cpus"], 1_000) or 0
    memory = number(book.given["memory_gb"], 1_024) or 0
    return (
        math.ceil(Fraction(cpus, math.ceil(book.gpus))) if any(change[2] is not None for change in modelled) else 0,
        math.ceil(Fraction(memory, math.ceil(book.gpus))) if any(change[3] is not None for change in modelled) else 0,
    )


def demand_mix(books: list[JobBook], machines: dict[str, Machine]) -> list[tuple[Any, int]]:
    """The most frequent shares, until 95 % of the jobs with GPUs are covered, with their numbers of jobs."""
    counts: Counter[Any] = Counter()
    total = 0
    for book in books:
        if book.gpus:
            needs = share_of(book, machines)
            counts[book.given["gpu_type"], tuple(sorted(needs.items()))] += 1
            total += 1
    mix, covered = [], 0
    for share, jobs in counts.most_common():  # equal counts in order of first appearance
        if covered * 100 >= 95 * total:
            break
        mix.append((share, jobs))
        covered += jobs
    return mix


@dataclass
class Moment:
    """What is so from ``start`` to ``stop``: free (GPUs, CPUs, memory) and held GPUs by node, and jobs.

    ``left`` is what is left of each GPU of a node of which a part is held.
    """

    start: int
    stop: int
    up: dict[str, int]
    free: dict[str, tuple[Fraction, int | None, int | None]]
    held: dict[str, Fraction]
    left: dict[str, list[Fraction]]
    pending: list[JobBook]
    running: list[JobBook]
    waiting: list[JobBook]
    productive: Fraction


def moments(books: list[JobBook], machines: dict[str, Machine], start: int, stop: int) -> Iterator[Moment]:
    """Walk from instant to instant between two times."""
    run_end = last_end(books)
    times = {start, stop}
    for book in books:
        times |= {book.submit, *({book.end} if book.end is not None else ())}
        for row in book.rows:
            times |= {row.start, row.end}
    times |= {when for machine in machines.values() for when, *_ in machine.changes}
    ordered = sorted(time for time in times if start <= time <= stop)
    for now, then in itertools.pairwise(ordered):
        yield _moment(books, machines, now, then, run_end)


def _moment(
    books: list[JobBook], machines: dict[str, Machine], now: int, then: int, run_end: int | None
) -> Moment:
    capacity = {name: machine.at(now) for name, machine in machines.items()}
    held = dict.fromkeys(machines, Fraction(0))
    parts: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    cpus = dict.fromkeys(machines, 0)
    memory = dict.fromkeys(machines, 0)
    pending: list[JobBook] = []
    running: list[JobBook] = []
    waiting: list[JobBook] = []
    productive = Fraction(0)
    for book in books:
        rows = [row for row in book.rows if row.start <= now < row.end]
        weight = work_weights(book)
        for row in rows:
            gpus = row.gpus * weight[row.start, row.end, row.kind]
            productive += gpus * row.progress / (row.end - row.start)
            if row.node in held:
                held[row.node] += row.gpus
                if 0 < row.gpus < 1:
                    parts[row.node, str(row.gpu_ids)] += row.gpus
                cpus[row.node] += row.cpus
                memory[row.node] += row.memory
        leaves = book.end if book.end is not None else run_end
        if not book.gpus or book.state == "rejected" or leaves is None or not book.submit <= now < leaves:
            continue
        if not rows:
            pending.append(book)
        (running if any(row.kind in ACTIVE for row in rows) else waiting).append(book)
    free = {
        name: (
            max(gpus - held[name], Fraction(0)),
            None if has_cpus is None else has_cpus - cpus[name],
            None if has_memory is None else has_memory - memory[name],
        )
        for name, (gpus, has_cpus, has_memory) in capacity.items()
    }
    up = {name: gpus for name, (gpus, *_) in capacity.items()}
    left = {name: [1 - part for (node, _), part in parts.items() if node == name and part < 1] for name in machines}
    return Moment(now, then, up, free, held, left, pending, running, waiting, productive)


def unusable(moment: Moment, machines: dict[str, Machine], mix: list[tuple[Any, int]]) -> Fraction:
    """Free GPUs that a random task of the mix cannot use on their node; parts of GPUs too small for it."""
    total = Fraction(0)
    jobs = sum(weight for _, weight in mix)
    for name, (gpus, cpus, memory) in moment.free.items():
        machine = machines[name]
        for (gpu_type, needs), weight in mix:
            if not machine.size:
                continue
            asked = dict(needs)[machine.gpu_type, machine.size]
            left = moment.left[name]
            fits = (
                (not gpu_type or machine.gpu_type in gpu_type.split("|"))
                and (asked[0] <= gpus - sum(left) or asked[0] <= max(left, default=0))
                and (cpus is None or asked[1] <= cpus)
                and (memory is None or asked[2] <= memory)
            )
            wasted = sum(part for part in left if part < min(asked[0], 1)) if fits else gpus
            total += Fraction(wasted * weight, jobs)
    return total


def stranded(moment: Moment, machines: dict[str, Machine]) -> Fraction:
    """Free GPUs on nodes too small for the earliest pending job of every partition with one."""
    heads: dict[str, JobBook] = {}
    for book in moment.pending:
        heads.setdefault(book.given.get("leaf", book.given["partition"]), book)
    shares = [share_of(book, machines) for book in heads.values()]
    total = Fraction(0)
    for name, (gpus, *_) in moment.free.items():
        machine = machines[name]
        if machine.size and shares and all(gpus < each[machine.gpu_type, machine.size][0] for each in shares):
            total += gpus
    return total


def largest_gang(moment: Moment, machines: dict[str, Machine]) -> Fraction:
    """The freest node, or full nodes of one kind with the freest other node of that kind."""
    kinds = defaultdict(list)
    for name, (gpus, *_) in moment.free.items():
        kinds[machines[name].gpu_type, machines[name].size].append(gpus - sum(moment.left[name]))
    best = Fraction(0)
    for (_, size), free in kinds.items():
        full = [gpus for gpus in free if gpus == size]
        rest = [gpus for gpus in free if gpus != size]
        best = max(best, *free, sum(full) + max(rest, default=Fraction(0)))
    return best


def excess_nodes(moment: Moment) -> int:
    """Nodes in use less the fewest, largest first, that would hold what is held."""
    used = sum(1 for gpus in moment.held.values() if gpus)
    left = sum(moment.held.values())
    fewest = 0
    for gpus in sorted(moment.up.values(), reverse=True):
        if left > 0:
            left -= gpus
            fewest += 1
    return used - fewest


def fragmentation(
    books: list[JobBook], machines: dict[str, Machine], start: int, stop: int
) -> dict[str, float | None]:
    """Average the four measures over an interval."""
    mix = demand_mix(books, machines)
    area: dict[str, Fraction] = defaultdict(Fraction)
    with_free = 0
    for moment in moments(books, machines, start, stop):
        width = moment.stop - moment.start
        area["stranded_gpus"] += width * stranded(moment, machines)
        area["excess_nodes"] += width * excess_nodes(moment)
        free = sum(gpus for gpus, *_ in moment.free.values())
        if free:
            with_free += width
            area["unusable_share"] += width * unusable(moment, machines, mix) / free if mix else 0
            area["largest_gang_share"] += Fraction(width * largest_gang(moment, machines), free)
    return {
        "unusable_share": over(area["unusable_share"], with_free) if mix else None,
        "stranded_gpus": over(area["stranded_gpus"], stop - start),
        "largest_gang_share": over(area["largest_gang_share"], with_free),
        "excess_nodes": over(area["excess_nodes"], stop - start),
    }


def course(tables: RunTables, edges: list[int]) -> list[dict[str, float | None]]:
    """What each interval between two edges of the timeline should hold."""
    books, machines = read_jobs(tables), read_machines(tables)
    result = []
    for start, stop in itertools.pairwise(edges):
        area: dict[str, Fraction] = defaultdict(Fraction)
        for moment in moments(books, machines, start, stop):
            width = moment.stop - moment.start
            area["gpus_up"] += width * sum(moment.up.values())
            area["gpus_held"] += width * sum(moment.held.values())
            area["gpus_productive"] += width * moment.productive
            area["jobs_running"] += width * len(moment.running)
            area["jobs_pending"] += width * len(moment.waiting)
            area["gpus_pending"] += width * sum(book.gpus for book in moment.waiting)
        averages = {name: over(value, stop - start) for name, value in area.items()}
        result.append(averages | fragmentation(books, machines, start, stop))
    return result
