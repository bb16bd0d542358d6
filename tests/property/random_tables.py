"""Consistent tables of random runs: gangs, holds, checkpoints, kills, migrations, speeds, failing nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pandas as pd

from analysim.tables import RunTables

Gang = dict[str, list[int]]
"""GPU indices by node."""

NAN = float("nan")
NODE_TYPES = (("a", "A100", 8), ("t", "T4", 4), ("v", "V100", 2), ("c", "", 0))
SEGMENT_COLUMNS = (
    "job_id",
    "start_s",
    "end_s",
    "node",
    "gpus",
    "gpu_ids",
    "kind",
    "speed",
    "progress_s",
    "cpus",
    "memory_gb",
)
CAPACITY_COLUMNS = ("time_s", "node", "node_type", "gpu_type", "rack", "pod", "gpus", "cpus", "memory_gb")


@dataclass
class Node:
    """A machine of the random cluster."""

    name: str
    node_type: str
    gpu_type: str
    size: int
    cpus: float
    memory_gb: float
    free: set[int] = field(default_factory=set)
    up: bool = True


@dataclass
class Life:
    """A job on its way through a random run. ``phase`` is what it does with ``gang`` since ``since``."""

    job_id: Any
    submit: int
    duration: int
    gpus: int
    given: dict[str, Any]
    state: str = ""
    phase: str = "pending"
    since: int = 0
    until: int | None = None
    gang: Gang = field(default_factory=dict)
    target: Gang = field(default_factory=dict)
    speed: int = 1_000_000
    done: int = 0
    first_start: int | None = None
    end: int | None = None
    active: int = 0
    preemptions: int = 0
    migrations: int = 0


def random_tables(seed: int, jobs: int | None = None) -> RunTables:
    """Play a random run; the same seed gives the same tables."""
    return _Play(Random(seed), jobs).tables()


class _Play:
    def __init__(self, random: Random, jobs: int | None) -> None:
        self.random = random
        self.unit = random.choice((1, 333_333, 1_000_000, 60_000_000))
        self.origin = random.choice((0, 1_600_000_000_000_000))
        self.partitioned = random.random() < 0.7
        self.segments: list[tuple[Any, ...]] = []
        self.capacity: list[tuple[Any, ...]] = []
        self.nodes = self._make_nodes()
        count = random.randint(0, 25) if jobs is None else jobs
        arrivals = sorted(random.randint(0, 3 * count) for _ in range(count))
        self.lives = [self._make_job(number, at) for number, at in enumerate(arrivals)]
        self.now = self.lives[0].submit if self.lives else 0
        for node in self.nodes:
            self._note_capacity(node)
        self._run(random.randint(0, 4 * count) if random.random() < 0.3 else 40 * count + 400)

    def _make_nodes(self) -> list[Node]:
        random = self.random
        with_cpus = random.random() < 0.5
        nodes = []
        for number in range(random.randint(1, 5)):
            kind, gpu_type, size = random.choice(NODE_TYPES)
            cpus = float(4 * max(size, 2)) if with_cpus and kind != "t" else NAN
            memory = float(16 * max(size, 2)) if with_cpus and kind != "v" else NAN
            nodes.append(Node(f"n{number}", kind, gpu_type, size, cpus, memory, set(range(size))))
        return nodes

    def _make_job(self, number: int, at: int) -> Life:
        random = self.random
        gpus = random.choice((0, 1, 1, 1, 2, 2, 3, 4, 8, 8, 12, 16))
        given = {
            "leaf": random.choice(("p", "q", "root")) if self.partitioned else "root",
            "tenant": random.choice(("red", "blue/x", "blue/y")),
            "partition": random.choice(("p", "q", "")),
            "gpus_per_node": random.choice((0, 0, 0, gpus, 1)) if gpus else 0,
            "gpu_type": random.choice(("", "", "", "A100", "T4|V100")),
            "cpus": random.choice((0.0, float(gpus), 2.5 * gpus, 7.0)),
            "memory_gb": random.choice((0.0, 4.0 * gpus, 100.0)),
        }
        duration = random.choice((0, 1, 3, 7, 20)) * self.unit
        return Life(number, self.origin + at * self.unit, duration, gpus, given)

    # ---- the play

    def _run(self, rounds: int) -> None:
        for _ in range(rounds if self.lives else 0):
            self._finish_phases()
            for life in self.lives:
                if not life.state and life.submit <= self.now:
                    self._decide(life)
            self._toggle_a_node()
            if all(life.state for life in self.lives):
                break
            coming = [life.until for life in self.lives if life.until is not None]
            coming += [life.submit for life in self.lives if life.submit > self.now]
            step = self.now + self.random.randint(1, 3) * self.unit
            self.now = max(self.now, min([*coming, step]))
        for life in self.lives:
            if not life.state:
                self._leave_phase(life, kept=1.0)
                life.state = "unfinished"

    def _finish_phases(self) -> None:
        for life in self.lives:
            while life.until is not None and life.until <= self.now:
                self._finish_phase(life)

    def _finish_phase(self, life: Life) -> None:
        phase = life.phase
        self._leave_phase(life, kept=1.0)
        if phase == "run":
            self._end(life, "completed")
        elif phase == "checkpoint" and life.target:
            self._release(life.gang)
            life.gang, life.target = life.target, {}
            self._enter(life, "restart", self.random.randint(0, 2))
        elif phase in ("checkpoint", "suspend"):
            self._release(life.gang)
            life.gang = {}
        else:
            self._start_running(life)

    def _decide(self, life: Life) -> None:
        draw = self.random.random()
        if life.phase == "pending":
            if draw < 0.04:
                self._end(life, "cancelled")
            elif draw < 0.6:
                self._try_to_start(life)
            elif self.now == life.submit and draw < 0.65 and life.first_start is None:
                life.state = "rejected"
        elif life.phase == "restart" and draw < 0.1:
            self._leave_phase(life, kept=0.0)
            self._requeue(life)
        elif life.phase == "run" and draw < 0.3:
            self._stop(life, int(draw * 20))

    def _stop(self, life: Life, how: int) -> None:
        if how == 0:
            self._leave_phase(life, kept=1.0)
            life.preemptions += 1
            self._enter(life, "checkpoint", self.random.randint(0, 3))
        elif how == 1:
            self._leave_phase(life, kept=self.random.choice((0.0, 0.5)))
            self._requeue(life)
        elif how == 2:
            self._leave_phase(life, kept=1.0)
            life.preemptions += 1
            self._release(life.gang)
            life.gang = {}
            self._enter(life, "suspend", self.random.randint(1, 3))
        elif how == 3:
            self._leave_phase(life, kept=0.5)
            self._end(life, "killed")
        elif target := self._find_gang(life):
            self._leave_phase(life, kept=1.0)
            life.migrations += 1
            life.target = target
            self._enter(life, "checkpoint", self.random.randint(0, 3))

    def _requeue(self, life: Life) -> None:
        life.preemptions += 1
        self._release(life.gang)
        life.gang = {}

    def _try_to_start(self, life: Life) -> None:
        gang = self._find_gang(life) if life.gpus else {"": []}
        if gang is None:
            return
        life.gang = gang
        if self.random.random() < 0.2:
            self._enter(life, "hold", self.random.randint(1, 3))
        elif life.first_start is not None:
            self._enter(life, "restart", self.random.randint(0, 2))
        else:
            self._start_running(life)

    def _start_running(self, life: Life) -> None:
        life.speed = self.random.choice((1_000_000, 1_000_000, 2_200_000, 333_333))
        left = life.duration - life.done
        self._enter(life, "run", -(-left * 1_000_000 // life.speed), scaled=True)

    # ---- phases, rows and GPUs

    def _enter(self, life: Life, phase: str, length: int, scaled: bool = False) -> None:
        life.phase, life.since = phase, self.now
        life.until = self.now + (length if scaled else length * self.unit)
        if phase in ("run", "restart") and life.first_start is None:
            life.first_start = self.now

    def _leave_phase(self, life: Life, kept: float) -> None:
        """Write the rows of what the job did until now."""
        if life.phase == "pending":
            return
        elapsed = self.now - life.since
        progress = 0
        if life.phase == "run":
            saved = elapsed if kept == 1 else int(elapsed * kept)
            progress = min(saved * life.speed // 1_000_000, life.duration - life.done)
            life.done += progress
        if life.phase in ("run", "restart", "checkpoint"):
            life.active += elapsed
        self._write(life, life.phase, life.gang, progress)
        self._write(life, "hold", life.target, 0)
        life.phase, life.until = "pending", None

    def _write(self, life: Life, kind: str, gang: Gang, progress: int) -> None:
        if kind == "suspend":
            gang = {self.nodes[0].name: []}
        for node, indices in gang.items():
            share = len(indices) / life.gpus if life.gpus else 0.0
            self.segments.append(
                (
                    life.job_id,
                    life.since / 1e6,
                    self.now / 1e6,
                    node,
                    len(indices),
                    ",".join(map(str, indices)),
                    kind,
                    life.speed / 1e6 if kind == "run" else 0.0,
                    progress / 1e6,
                    round(life.given["cpus"] * share, 3),
                    round(life.given["memory_gb"] * share * 1024) / 1024,
                )
            )

    def _end(self, life: Life, state: str) -> None:
        self._release(life.gang)
        life.gang = {}
        life.state, life.end = state, self.now

    def _find_gang(self, life: Life) -> Gang | None:
        """Take any free GPUs, of any nodes: the tables must make sense, not the placement."""
        free = [(node, index) for node in self.nodes if node.up for index in sorted(node.free)]
        if not life.gpus or len(free) < life.gpus:
            return None
        chosen = self.random.sample(free, life.gpus) if self.random.random() < 0.3 else free[: life.gpus]
        gang: Gang = {}
        for node, index in sorted(chosen, key=lambda each: (each[0].name, each[1])):
            gang.setdefault(node.name, []).append(index)
            node.free.discard(index)
        return gang

    def _release(self, gang: Gang) -> None:
        for node in self.nodes:
            node.free |= set(gang.get(node.name, ()))

    def _toggle_a_node(self) -> None:
        node = self.random.choice(self.nodes)
        idle = len(node.free) == node.size
        if self.random.random() < (0.05 if node.up else 0.3) and idle and self.now > self.lives[0].submit:
            node.up = not node.up
            self._note_capacity(node)

    def _note_capacity(self, node: Node) -> None:
        self.capacity.append(
            (
                self.now / 1e6,
                node.name,
                node.node_type,
                node.gpu_type,
                "r0",
                "",
                node.size if node.up else 0,
                node.cpus,
                node.memory_gb,
            )
        )

    # ---- tables

    def tables(self) -> RunTables:
        """Write the tables as a run would."""
        jobs = pd.DataFrame([_job_row(life) for life in self.lives], columns=list(_job_row(_EXAMPLE)))
        segments = pd.DataFrame(self.segments, columns=SEGMENT_COLUMNS).sort_values("end_s", kind="stable")
        capacity = pd.DataFrame(self.capacity, columns=CAPACITY_COLUMNS)
        empty = pd.DataFrame()
        return RunTables(jobs, segments, capacity, empty, empty, jobs[jobs["state"] == "rejected"], empty)


def _job_row(life: Life) -> dict[str, Any]:
    ran = life.state in ("completed", "killed") and life.end is not None
    jct = life.end - life.submit if ran and life.end is not None else None

    def seconds(value: int | None) -> float:
        return NAN if value is None else value / 1e6

    return {
        "job_id": life.job_id,
        "submit_time_s": seconds(life.submit),
        "first_start_time_s": seconds(life.first_start),
        "end_time_s": seconds(life.end),
        "num_gpus": life.gpus,
        "state": life.state,
        "wait_s": seconds(None if life.first_start is None else life.first_start - life.submit),
        "total_wait_s": seconds(None if jct is None else jct - life.active),
        "jct_s": seconds(jct),
        "preemptions": life.preemptions,
        "migrations": life.migrations,
        "held_s": seconds(None if jct is None else life.active),
        "duration_s": seconds(life.duration),
        **life.given,
    }


_EXAMPLE = Life(
    0,
    0,
    0,
    0,
    dict.fromkeys(("leaf", "tenant", "partition", "gpus_per_node", "gpu_type", "cpus", "memory_gb")),
)
