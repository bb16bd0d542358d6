"""Steps of a timetable, and the figures of a job, for the exact logs of jobs' lives."""

from __future__ import annotations

from typing import Any

from analysim.policy import Job, Plan
from tests.builders import Outcome, flat_cluster, job, trace


def start_all(plan: Plan) -> None:
    for waiting in plan.pending:
        plan.start(waiting)


def named(plan: Plan, name: str) -> Job:
    """A live job by its id."""
    return next(each for each in [*plan.running, *plan.pending] if each.id == name)


def stop(name: str, mode: str = "checkpoint") -> Any:
    """Preempt a job by its id."""
    return lambda plan: plan.preempt(named(plan, name), mode)


def start(name: str, where: Any = None) -> Any:
    """Start a job by its id."""
    return lambda plan: plan.start(named(plan, name), where)


def figures(outcome: Outcome, name: str) -> list[float]:
    """End, total wait, time held, preemptions and migrations of a job."""
    columns = ["end_time_s", "total_wait_s", "held_s", "preemptions", "migrations"]
    return [float(value) for value in outcome.jobs.loc[name, columns]]


ONE = trace(job("a", 0, 100, 2))
NODE = flat_cluster(1, 4)
