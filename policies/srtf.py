"""Shortest remaining time first, preemptive, by the true durations."""

from analysim.policy import Job, Order, Plan, ShortestFirst


class Srtf(ShortestFirst):
    """Run the jobs with the shortest remaining time; stop those that end last to make room.

    An oracle to compare with. Hysteresis: a victim has run ``minimum_run`` and has ``factor`` times the
    remaining time of the job that takes its place, which it could not stop in turn.
    """

    name = "srtf"
    knowledge = "oracle"
    source = (
        "Schrage, 'A proof of the optimality of the shortest remaining processing time discipline', "
        "Operations Research 16, 1968"
    )

    shortest = Order(lambda job, plan: plan.remaining(job))
    latest = Order(lambda job, plan: plan.ends(job))

    def victims(self, plan: Plan, job: Job) -> list[Job] | None:
        limit = plan.now + round(plan.remaining(job) * self.options.factor)
        return plan.room(job, by=self.latest, above=limit, settled=self.options.minimum_run)
