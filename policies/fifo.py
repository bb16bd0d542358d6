"""First in, first out."""

from analysim.policy import Options, Plan, Policy


class FifoOptions(Options):
    """``skip``: whether later jobs may pass one that does not fit."""

    skip: bool = False


class Fifo(Policy):
    """Start jobs in arrival order; a job that does not fit closes its own partition for this pass."""

    name = "fifo"
    attention = "room"
    Options = FifoOptions

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending:
            if not plan.start(job) and not self.options.skip:
                plan.close(job.partition)
