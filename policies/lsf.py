"""Fewest GPUs first."""

from pydantic import Field

from analysim.policy import Options, Order, Plan, Policy


class LsfOptions(Options):
    """Whether the order is strict."""

    skip: bool = Field(default=False, description="whether larger jobs may pass one that does not fit")


class Lsf(Policy):
    """Start the waiting job with the fewest GPUs first, equal ones in arrival order; never stop one."""

    name = "lsf"
    attention = "room"
    source = (
        "the smallest-job-first baseline ('sjf', by GPUs asked for) of the simulator of Gu et al., 'Tiresias', "
        "NSDI 2019; Majumdar, Eager and Bunt, 'Scheduling in multiprogrammed parallel systems', SIGMETRICS 1988"
    )
    Options = LsfOptions

    smallest = Order(lambda job: job.gpus)

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending_by(self.smallest):
            if not plan.start(job) and not self.options.skip:
                plan.close(job.partition)
