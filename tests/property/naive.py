"""A second simulator, slow and plain: first or shortest job first, first fit, quotas read off the rules.

No index, no journal, no passing over: at every instant each waiting job is tried in order, each quota is summed
from the running jobs. Nothing here is shared with the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analysim.config.cluster import ClusterConfig, Partition, Quota


@dataclass
class Machine:
    """A node: which of its GPUs, and how many CPUs (thousandths) and megabytes, are free."""

    rack: str
    kind: str
    gpu_type: str
    size: int
    cpus: float
    memory: float
    free: set[int] = field(default_factory=set)


@dataclass
class Division:
    """A partition with its bounds now."""

    name: str
    parent: Division | None
    config: Partition | None
    bounds: Quota
    nodes: list[int]
    children: list[Division] = field(default_factory=list)

    def path(self) -> Iterator[Division]:
        """This partition and those above it."""
        yield self
        if self.parent is not None:
            yield from self.parent.path()


@dataclass
class Task:
    """A job; ``share`` are CPUs and memory for each GPU (for all of it, where it has none)."""

    row: Any
    gpus: int
    share: tuple[int, int]
    division: Division
    held: list[tuple[int, set[int]]] = field(default_factory=list)
    gpu_type: str = ""
    start: int = -1
    end: int = -1


class Naive:
    """One run. ``finished`` are (job id, first start, end) of all jobs that started."""

    def __init__(self, rows: pd.DataFrame, cluster: ClusterConfig, shortest: bool, skip: bool) -> None:
        self.shortest = shortest
        self.skip = skip
        self.machines = list(_machines(cluster))
        self.types = list(dict.fromkeys(each.gpu_type for each in self.machines if each.size))
        self.modelled = any(each.cpus < math.inf or each.memory < math.inf for each in self.machines)
        everything = list(range(len(self.machines)))
        self.root = Division("root", None, None, Quota(), everything)
        self.divisions = [self.root]
        self._divide(cluster.partitions, self.root)
        self.now = 0
        self.first = int(rows["submit_us"].min())
        self.coming = [self._task(row) for row in rows.itertuples()]
        self.waiting: list[Task] = []
        self.running: list[Task] = []
        self.finished: list[tuple[Any, int, int]] = []

    def _divide(self, partitions: list[Partition], parent: Division) -> None:
        for config in partitions:
            nodes = parent.nodes
            if config.nodes is not None:
                nodes = [node for node in self.root.nodes if self.machines[node].rack == config.nodes]
            division = Division(config.name, parent, config, config, nodes)
            parent.children.append(division)
            self.divisions.append(division)
            self._divide(config.children, division)

    def _task(self, row: Any) -> Task:
        named = {division.name: division for division in self.divisions}
        gpus = row.gpu_milli // 1000
        whole = max(gpus, 1)
        share = (-(-row.cpu_milli // whole), -(-row.memory_mb // whole)) if self.modelled else (0, 0)
        return Task(row, gpus, share, named.get(row.partition, self.root))

    # -- time ------------------------------------------------------------------------------------------------------

    def run(self) -> list[tuple[Any, int, int]]:
        """Go from instant to instant; a job without duration gets a round of its own."""
        while True:
            times = [task.end for task in self.running] + [task.row.submit_us for task in self.coming[:1]]
            times += [self.first + change.time for _, change in self._changes() if self.first + change.time > self.now]
            times += [task.row.cancel_us for task in self.waiting if task.row.cancel_us > self.now]
            if not times or not (self.running or self.coming or self.waiting):
                return sorted(self.finished)
            self.now = min(times)
            self._instant()

    def _changes(self) -> Iterator[tuple[Division, Any]]:
        for division in self.divisions:
            for change in division.config.changes if division.config else ():
                yield division, change

    def _instant(self) -> None:
        for task in [task for task in self.running if task.end == self.now]:
            self.running.remove(task)
            for node, gpus in task.held:
                machine = self.machines[node]
                machine.free |= gpus
                self._use(machine, task, len(gpus), 1)
            self.finished.append((task.row.job_id, task.start, task.end))
        for division, change in self._changes():
            if self.first + change.time == self.now:
                division.bounds = change
        while self.coming and self.coming[0].row.submit_us == self.now:
            self.waiting.append(self.coming.pop(0))
        self.waiting = [task for task in self.waiting if not task.row.submit_us <= task.row.cancel_us <= self.now]
        self._pass()
        if any(task.end == self.now for task in self.running):
            self._instant()

    def _pass(self) -> None:
        closed: set[str] = set()
        key = (lambda task: task.row.duration_us) if self.shortest else (lambda task: 0)
        for task in sorted(self.waiting, key=lambda task: (key(task), task.row.submit_us, task.row.job_id)):
            if task.division.name not in closed and not self._start(task) and not self.skip:
                closed.update(each.name for each in self.divisions if task.division in each.path())

    # -- places ----------------------------------------------------------------------------------------------------

    def _start(self, task: Task) -> bool:
        wanted = task.row.gpu_type.split("|") if task.row.gpu_type else self.types
        for kind in wanted if task.gpus else [""]:
            if not self._legal(task, kind):
                continue
            held = self._place(task, kind)
            if held is not None:
                for node, count in held:
                    machine = self.machines[node]
                    gpus = set(sorted(machine.free)[:count])
                    machine.free -= gpus
                    self._use(machine, task, count, -1)
                    task.held.append((node, gpus))
                task.gpu_type, task.start, task.end = kind, self.now, self.now + task.row.duration_us
                self.waiting.remove(task)
                self.running.append(task)
                return True
        return False

    def _use(self, machine: Machine, task: Task, gpus: int, sign: int) -> None:
        share = gpus if task.gpus else 1
        machine.cpus += sign * share * task.share[0]
        machine.memory += sign * share * task.share[1]

    def _hosts(self, node: int, task: Task, gpus: int) -> bool:
        machine = self.machines[node]
        share = gpus if task.gpus else 1
        enough = share * task.share[0] <= machine.cpus and share * task.share[1] <= machine.memory
        return len(machine.free) >= gpus and enough

    def _place(self, task: Task, kind: str) -> list[tuple[int, int]] | None:
        nodes = [node for node in task.division.nodes if not task.gpus or self.machines[node].gpu_type == kind]
        if not task.gpus:
            if not any(task.share):
                return []
            return next(([(node, 0)] for node in nodes if self._hosts(node, task, 0)), None)
        sizes = sorted({self.machines[node].size for node in nodes}, reverse=True)
        each = task.row.gpus_per_node
        if each:
            found = [node for node in nodes if self._hosts(node, task, each)][: task.gpus // each]
            return [(node, each) for node in found] if len(found) == task.gpus // each else None
        if sizes and task.gpus <= sizes[0]:
            return next(([(node, task.gpus)] for node in nodes if self._hosts(node, task, task.gpus)), None)
        for size in sizes:
            full, rest = divmod(task.gpus, size)
            alike = [node for node in nodes if self.machines[node].size == size]
            whole = [node for node in alike if self._hosts(node, task, size)][:full]
            others = [node for node in alike if node not in whole and self._hosts(node, task, rest)]
            if len(whole) == full and (not rest or others):
                return [(node, size) for node in whole] + ([(others[0], rest)] if rest else [])
        return None

    # -- quotas ----------------------------------------------------------------------------------------------------

    def _legal(self, task: Task, kind: str) -> bool:
        scopes = [None, *([kind] if kind else [])]
        return all(self._within(task, scope) for scope in scopes) and self._within_limits(task)

    def _bound(self, division: Division, name: str, scope: str | None) -> float | None:
        amount = getattr(division.bounds, name)
        if isinstance(amount, dict):
            return amount.get(scope) if scope is not None else None
        return amount if scope is None else None

    def _may_use(self, division: Division, scope: str | None) -> float:
        if division is self.root:
            return sum(each.size for each in self.machines if scope in (None, each.gpu_type))
        guarantee, limit, borrow = (self._bound(division, name, scope) for name in ("guarantee", "limit", "borrow"))
        reach = math.inf if borrow is None else (guarantee or 0) + borrow
        return min(math.inf if limit is None else limit, reach)

    def _usage(self, division: Division, scope: str | None, extra: Task) -> int:
        tasks = [task for task in self.running if scope in (None, task.gpu_type)]
        return sum(task.gpus for task in [*tasks, extra] if division in task.division.path())

    def _within(self, task: Task, scope: str | None) -> bool:
        for division in task.division.path():
            usage = self._usage(division, scope, task)
            if usage > self._may_use(division, scope):
                return False
            guarantee = self._bound(division, "guarantee", scope)
            soft = task.row.preemptible or (division.config is not None and division.config.borrow_nonpreemptible)
            stated = "guarantee" in division.bounds.model_fields_set and guarantee is not None
            if not soft and stated and usage > (guarantee or 0):
                return False
            if self._claimed(division, scope, task) > self._may_use(division, scope):
                return False
        return True

    def _claimed(self, division: Division, scope: str | None, task: Task) -> float:
        """What the children use or keep for themselves, and what jobs of this partition's own use."""
        own = self._usage(division, scope, task) - sum(self._usage(each, scope, task) for each in division.children)
        claims = own + 0.0
        for child in division.children:
            lend = self._bound(child, "lend", scope)
            kept = 0 if lend is None else max(0, (self._bound(child, "guarantee", scope) or 0) - lend)
            claims += max(self._usage(child, scope, task), kept)
        return claims

    def _within_limits(self, task: Task) -> bool:
        for division in task.division.path():
            limits = division.config.limits if division.config is not None else None
            for kind in ("user", "tenant"):
                limit = getattr(limits, kind, None)
                if limit is None:
                    continue
                name = getattr(task.row, kind)
                peers = [each for each in self.running if division in each.division.path()]
                peers = [each for each in peers if getattr(each.row, kind) == name]
                if limit.gpus is not None and sum(each.gpus for each in peers) + task.gpus > limit.gpus:
                    return False
                if limit.jobs is not None and len(peers) + 1 > limit.jobs:
                    return False
        return True


def _machines(cluster: ClusterConfig) -> Iterator[Machine]:
    for rack in cluster.racks:
        for group in rack.nodes:
            kind = cluster.node_types[group.type]
            for _ in range(group.count or 0):
                cpus = math.inf if kind.cpus is None else kind.cpus * 1000
                memory = math.inf if kind.memory_gb is None else kind.memory_gb * 1024
                free = set(range(kind.gpus))
                yield Machine(rack.name, group.type, kind.gpu_type or "", kind.gpus, cpus, memory, free)
