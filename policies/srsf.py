"""Shortest remaining service first, preemptive, by the true durations."""

from analysim.policy import Job, Order, Plan, RemainingService, ShortestFirst


class Srsf(ShortestFirst):
    """Run the jobs with the least remaining time times GPUs; stop those that have the most left to make room.

    An oracle to compare with. Hysteresis: a victim has run ``minimum_run`` and has ``factor`` times the
    remaining service of the job that takes its place, which it could not stop in turn.
    """

    name = "srsf"
    knowledge = "oracle"
    source = "Gu et al., 'Tiresias: a GPU cluster manager for distributed deep learning', NSDI 2019 (2D-SRTF)"

    shortest = Order(lambda job, plan: plan.remaining(job) * job.gpus)
    most = Order(lambda job, plan: plan.policy.service.enter(job, plan))

    def begin(self, plan: Plan) -> None:
        super().begin(plan)
        self.service = RemainingService(least=self.options.minimum_run)

    def victims(self, plan: Plan, job: Job) -> list[Job] | None:
        service, settled = self.service, self.options.minimum_run
        limit = round(service.left(job, plan) * self.options.factor)
        service.settle(plan)
        highest = service.class_of(limit)
        found = plan.room(job, by=self.most, above=highest - 1, settled=settled)
        if found and any(service.left(victim, plan) <= limit for victim in found):
            found = plan.room(job, by=self.most, above=highest, settled=settled)
        return found
