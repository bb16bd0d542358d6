"""Levels of attained service: where a job stands, when it sinks, and when one that waited long rises again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil
from typing import Annotated

from pydantic import AfterValidator

from analysim.jobs import Job
from analysim.plan.plan import Plan
from analysim.policy.agenda import Agenda
from analysim.policy.base import Duration


def _growing(thresholds: tuple[int, ...]) -> tuple[int, ...]:
    if list(thresholds) != sorted(thresholds):
        raise ValueError("thresholds grow from one to the next; write the smaller first, as in [1h, 10h]")
    return thresholds


Thresholds = Annotated[tuple[Duration, ...], AfterValidator(_growing)]
"""An option: GPU-times at which a job sinks one level, the smaller first."""


class Levels:
    """Levels of attained GPU-service, 0 the highest: a job sinks one at each of ``thresholds`` (GPU-microseconds).

    A stopped job that has waited ``promote`` times the time it has run counts as new: what it has had is forgiven
    (Tiresias' PROMOTEKNOB; 0: never). ``sinking`` and ``rising`` are the instants at which that happens.
    """

    def __init__(self, thresholds: Sequence[int], promote: float) -> None:
        self._forgiven: dict[int, int] = {}
        self._promote = promote
        self.rising = Agenda()
        self.sinking = Agenda()
        self.set_thresholds(thresholds)

    def set_thresholds(self, thresholds: Sequence[int]) -> None:
        """Cut the levels at these services from now on; keys that depend on them are to be read again."""
        self._thresholds = thresholds
        self._entry_level = bisect_right(thresholds, 0)
        self.sinking.clear()

    def level(self, job: Job, plan: Plan) -> int:
        """Level of a job now."""
        if job.stint == 0:
            return self._entry_level
        return bisect_right(self._thresholds, self.service(job, plan))

    def service(self, job: Job, plan: Plan) -> int:
        """Service that a job has had since it last counted as new."""
        return plan.attained(job) - self._forgiven.get(job.rank, 0)

    def expect_to_sink(self, job: Job, plan: Plan, speed: float = 1.0) -> None:
        """Note when a job that runs from now on, at a speed, sinks."""
        service = self.service(job, plan)
        level = bisect_right(self._thresholds, service)
        if level < len(self._thresholds) and job.gpus:
            run = -(-(self._thresholds[level] - service) // job.gpus)
            self.sinking.note(plan.now + (run if speed == 1.0 else ceil(run / speed)), job)

    def sink(self, plan: Plan) -> list[Job]:
        """Read the keys again of the running jobs whose instant to sink has come, and return them."""
        sunk = self.sinking.due(plan.now, running=True)
        for job in sunk:
            plan.rekey(job)
        return sunk

    def rises_in(self, job: Job, plan: Plan) -> int | None:
        """How long a stopped job has to wait until it counts as new; None: for ever."""
        return round(self._promote * self.service(job, plan) / max(job.gpus, 1)) if self._promote else None

    def expect_to_rise(self, job: Job, plan: Plan, waited: int = 0) -> None:
        """Note when a job that waits now, and has waited so long already, counts as new."""
        wait = self.rises_in(job, plan)
        if wait is not None:
            self.rising.note(plan.now + max(wait - waited, 0), job)

    def rise(self, plan: Plan) -> list[Job]:
        """Forgive the waiting jobs whose instant to rise has come, read their keys again, and return them."""
        risen = self.rising.due(plan.now, running=False)
        for job in risen:
            self._forgiven[job.rank] = plan.attained(job)
            plan.rekey(job)
        return risen
