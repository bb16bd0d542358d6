"""What a job was before a change, and how two placements of it differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysim.jobs import Demand, Job, Placement


class Snapshot:
    """All of a job's own state, so that it can be put back exactly."""

    __slots__ = (
        "barred",
        "demand",
        "done",
        "ends",
        "entries",
        "hold_from",
        "hold_until",
        "mode",
        "option",
        "placement",
        "run_from",
        "shared",
        "speed",
        "state",
    )

    def __init__(self, job: Job) -> None:
        self.state = job.state
        self.barred = job.barred
        self.placement = job.placement
        self.option = job.option
        self.shared = job.shared
        self.demand = job.demand
        self.done = job._done
        self.speed = job.speed
        self.hold_from = job.hold_from
        self.hold_until = job.hold_until
        self.run_from = job.run_from
        self.ends = job.ends
        self.mode = ""
        self.entries: list[tuple[Any, int, Job]] = []

    def holds(self, job: Job) -> bool:
        """Tell whether the job is still, or again, in the stint it was in."""
        return job.state is self.state and job.hold_from == self.hold_from and job.placement == self.placement

    def write_to(self, job: Job) -> None:
        """Give the job back everything but its GPUs."""
        job.state = self.state
        job.barred = self.barred
        job.placement = self.placement
        job.option = self.option
        job.shared = self.shared
        job.demand = self.demand
        job._done = self.done
        job.speed = self.speed
        job.hold_from = self.hold_from
        job.hold_until = self.hold_until
        job.run_from = self.run_from
        job.ends = self.ends


def marks_of(demand: Demand) -> Callable[[], None]:
    """Remember the marks of failure of a demand; what is returned puts them back."""
    family = demand.family
    marks = (demand.token, demand.blocked, demand.blocked_epoch)
    family_marks = family.marks()

    def restore() -> None:
        demand.token, demand.blocked, demand.blocked_epoch = marks
        family.restore(family_marks)

    return restore


def split(old: Placement, new: Placement) -> tuple[Placement, Placement, Placement]:
    """Divide a move into (shared, given up, newly taken) placements."""
    return _common(old, new), _only(old, new), _only(new, old)


def _common(one: Placement, other: Placement) -> Placement:
    """GPUs of both placements; a job without GPUs is on a node with none of them."""
    there = dict(other)
    return tuple((node, mask & there[node]) for node, mask in one if node in there and (mask & there[node] or not mask))


def _only(one: Placement, other: Placement) -> Placement:
    """GPUs of one placement that are not in the other."""
    there = dict(other)
    left = ((node, mask & ~there.get(node, 0), node in there) for node, mask in one)
    return tuple((node, mask) for node, mask, shared in left if mask or not shared)
