"""Shortest job first, by the true durations."""

from pydantic import Field

from analysim.policy import Options, Order, Plan, Policy


class SjfOptions(Options):
    """Whether the order is strict."""

    skip: bool = Field(default=False, description="whether longer jobs may pass one that does not fit")


class Sjf(Policy):
    """Start the shortest waiting job first, never stop one; an oracle to compare with."""

    name = "sjf"
    attention = "room"
    knowledge = "oracle"
    source = "Smith, 'Various optimizers for single-stage production', Naval Research Logistics Quarterly 3, 1956"
    Options = SjfOptions

    shortest = Order(lambda job: job.duration)

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending_by(self.shortest):
            if not plan.start(job) and not self.options.skip:
                plan.close(job.partition)
