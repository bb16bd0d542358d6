"""What policies have in common that run the shortest first and stop the longest to make room."""

from __future__ import annotations

from abc import abstractmethod
from math import isqrt
from typing import ClassVar

from pydantic import Field

from analysim.jobs import Job
from analysim.plan.orders import Order
from analysim.plan.plan import Plan
from analysim.policy.agenda import Agenda, Looks
from analysim.policy.base import Duration, Options, Policy


class ShortestOptions(Options):
    """Hysteresis, so that overload does not churn: who may stop whom."""

    factor: float = Field(
        default=2.0, ge=1.0, le=1e12, description="what a victim has left over what the preemptor has"
    )
    minimum_run: Duration = Field(default="10m", validate_default=True, description="before a job may be stopped")


class ShortestFirst(Policy):
    """Base: start in the order ``shortest``; who does not fit takes the place of ``victims``, if there are any."""

    attention = "news"
    Options = ShortestOptions
    shortest: ClassVar[Order]

    def begin(self, plan: Plan) -> None:
        self._looks = Looks(self.options.minimum_run)

    @abstractmethod
    def victims(self, plan: Plan, job: Job) -> list[Job] | None:
        """Choose running jobs whose leaving makes room for a waiting one; None where there are none to choose."""

    def schedule(self, plan: Plan) -> None:
        blocked = False
        for job in plan.pending_by(self.shortest):
            if plan.start(job):
                continue
            victims = self.victims(plan, job)
            if not victims or not plan.replace(victims, job):
                blocked = True
        if blocked:
            self._looks.again(plan)


class RemainingService:
    """Running jobs in classes of the service they have left: remaining time times GPUs, in GPU-microseconds.

    What a job has left falls with its GPUs, so two jobs of different size change places as time passes, and no key
    that is read once orders them. They are kept in classes, two for each doubling; what has ``least`` or less left is
    one class. A job that fell into a lower class is entered there by ``settle``, when a pass asks.
    """

    def __init__(self, least: int) -> None:
        self._falling = Agenda()
        self._least = max(least, 1)

    @staticmethod
    def left(job: Job, plan: Plan) -> int:
        """Service that a job has left, by what the policy may know of durations."""
        return plan.remaining(job) * job.gpus

    def class_of(self, service: int) -> int:
        """Class c holds the services s with 2^(c - 1) <= s^2 < 2^c; the lowest also what is less."""
        return (max(service, self._least) ** 2).bit_length()

    def enter(self, job: Job, plan: Plan) -> int:
        """Key of an order of running jobs: the class of a job; when it falls out of it is noted."""
        service = self.left(job, plan)
        found = self.class_of(service)
        if found > self.class_of(0):
            least = isqrt((1 << found - 1) - 1) + 1  # the smallest service in the class
            left_then = (least - 1) // job.gpus
            speed = plan.speed(job)
            self._falling.note(plan.ends(job) - (left_then if speed == 1.0 else int(left_then / speed)), job)
        return found

    def settle(self, plan: Plan) -> None:
        """Read the keys again of the running jobs that have fallen into a lower class since the last look."""
        for job in self._falling.due(plan.now, running=True):
            plan.rekey(job)
