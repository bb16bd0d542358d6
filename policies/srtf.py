"""Shortest remaining time first, preemptive, by the true durations."""

from pydantic import Field

from analysim.policy import Duration, Options, Order, Plan, Policy


class SrtfOptions(Options):
    """Hysteresis, so that overload does not churn: who may stop whom."""

    factor: float = Field(default=2.0, ge=1.0, description="a victim's remaining time over the preemptor's")
    minimum_run: Duration = Field(default="10m", validate_default=True, description="before a job may be stopped")


class Srtf(Policy):
    """Run the jobs with the shortest remaining time; stop those that end last to make room.

    An oracle to compare with. Hysteresis: a victim has run ``minimum_run`` and has ``factor`` times the
    remaining time of the job that takes its place, which it could not stop in turn.
    """

    name = "srtf"
    attention = "news"
    knowledge = "oracle"
    source = "Schrage, 'A proof of the optimality of the shortest remaining processing time discipline', 1968"
    Options = SrtfOptions

    shortest = Order(lambda job, plan: plan.remaining(job))
    latest = Order(lambda job, plan: plan.ends(job))

    def begin(self, plan: Plan) -> None:
        self._next_look = 0

    def schedule(self, plan: Plan) -> None:
        blocked = False
        for job in plan.pending_by(self.shortest):
            if plan.start(job):
                continue
            limit = plan.now + round(plan.remaining(job) * self.options.factor)
            victims = plan.room(job, by=self.latest, above=limit, settled=self.options.minimum_run)
            if not victims or not plan.replace(victims, job):
                blocked = True
        if blocked and self.options.minimum_run and self._next_look <= plan.now:
            self._next_look = plan.now + self.options.minimum_run  # by then somebody may be stopped
            plan.wake_at(self._next_look)
