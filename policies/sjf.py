"""Shortest job first, by the true durations."""

from analysim.policy import Options, Order, Plan, Policy


class SjfOptions(Options):
    """``skip``: whether longer jobs may pass one that does not fit."""

    skip: bool = False


class Sjf(Policy):
    """Start the shortest waiting job first, never stop one; an oracle to compare with."""

    name = "sjf"
    attention = "room"
    knowledge = "oracle"
    Options = SjfOptions

    shortest = Order(lambda job: job.duration)

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending_by(self.shortest):
            if not plan.start(job) and not self.options.skip:
                plan.close(job.partition)
