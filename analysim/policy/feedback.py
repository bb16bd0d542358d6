"""Multi-level feedback queues: what policies share that go by the service a job has had, in levels."""

from __future__ import annotations

from pydantic import Field

from analysim.jobs import Job, State
from analysim.plan.orders import Order
from analysim.plan.plan import Plan
from analysim.policy.agenda import Looks
from analysim.policy.base import Duration, Options, Policy
from analysim.policy.levels import Levels, Thresholds
from analysim.units import FOREVER


class FeedbackOptions(Options):
    """Levels of attained service, and what keeps preemption from thrashing and from starving anybody."""

    thresholds: Thresholds = Field(
        default=("3250s", "7200s"), validate_default=True, description="GPU-time at which a job sinks one level"
    )
    promote: float = Field(
        default=32.0, ge=0, le=1e12, description="wait over time run at which a stopped job counts as new; 0: never"
    )
    minimum_run: Duration = Field(default="30m", validate_default=True, description="before a job may be stopped")
    strict: bool = Field(default=False, description="who started first may stop who started later on its own level")


class Feedback(Policy):
    """Base: levels in the order of their ``place``, first started first inside one; who does not fit stops lower ones.

    There is a pass at each instant at which a running job sinks or a stopped one rises while another waits.
    """

    attention = "news"
    Options = FeedbackOptions

    order = Order(lambda job, plan: plan.policy.rank(job, plan))
    running = Order(lambda job, plan: plan.policy.enter(job, plan))

    def begin(self, plan: Plan) -> None:
        self._levels = Levels(self.options.thresholds, self.options.promote)
        self._looks = Looks(self.options.minimum_run)
        self._waited: dict[int, int] = {}

    def place(self, level: int) -> int:
        """Place of a level in the order; smaller goes first."""
        return level

    def bound(self, level: int) -> int:
        """Place beyond which a job of this level may stop others."""
        return level

    def rank(self, job: Job, plan: Plan) -> tuple[int, int]:
        """Place of a job's level, and when it first started; later than everything where it has not."""
        started = job.first_start if job.first_start >= 0 else FOREVER
        return (self.place(self._levels.level(job, plan)), started)

    def enter(self, job: Job, plan: Plan) -> tuple[int, int]:
        """Key of a running job, read when it begins, when it has run ``minimum_run``, and each time it sinks later.

        Until then it stops for nobody, so how low it stands does not matter. When the next comes is noted.
        """
        settled = job.run_from + self.options.minimum_run
        if plan.now < settled:
            self._levels.sinking.note(settled, job)
        else:
            self._levels.expect_to_sink(job, plan, plan.speed(job))
        place, started = self.rank(job, plan)
        return (place, min(started, plan.now))  # at its first start it starts now

    def schedule(self, plan: Plan) -> None:
        for job in plan.requeued:
            self._expect_to_rise(job, plan)
        self._sink_and_rise(plan)
        blocked = False
        for job in plan.pending_by(self.order):
            if not plan.start(job):
                blocked = True  # it waits, or who was stopped for it
                if not self._make_room(plan, job):
                    continue
            if job.stint:
                self._waited[job.rank] = self._waited.get(job.rank, 0) + plan.waited(job)
        if blocked:
            self._looks.again(plan)
            self._wake(plan)

    def _make_room(self, plan: Plan, job: Job) -> bool:
        place, started = self.rank(job, plan)
        bound = self.bound(self._levels.level(job, plan))
        limit = (bound, started if self.options.strict and bound == place else FOREVER)
        victims = plan.room(job, by=self.running, above=limit, settled=self.options.minimum_run)
        if not victims or not plan.replace(victims, job):
            return False
        for victim in victims:
            wait = self._levels.rises_in(victim, plan)
            if victim.state is State.PENDING and wait is not None:  # at no cost: it is heard of at the next pass only
                plan.wake_at(plan.now + max(wait - self._waited.get(victim.rank, 0), 1))
        return True

    def _sink_and_rise(self, plan: Plan) -> None:
        self._levels.sink(plan)
        for job in self._levels.rise(plan):
            self._waited[job.rank] = -plan.waited(job)  # what it has waited until now is paid for

    def _expect_to_rise(self, job: Job, plan: Plan) -> None:
        if self._levels.level(job, plan) > 0:
            self._levels.expect_to_rise(job, plan, self._waited.get(job.rank, 0) + plan.waited(job))

    def _wake(self, plan: Plan) -> None:
        """Look when the next job sinks or rises."""
        instants = (self._levels.sinking.first(running=True), self._levels.rising.first(running=False))
        for when in instants:
            if when is not None:
                plan.wake_at(max(when, plan.now + 1))
