"""First in, first out."""

from pydantic import Field

from analysim.policy import Options, Plan, Policy


class FifoOptions(Options):
    """Whether the order is strict."""

    skip: bool = Field(default=False, description="whether later jobs may pass one that does not fit")


class Fifo(Policy):
    """Start jobs in arrival order; a job that does not fit closes its own partition for this pass."""

    name = "fifo"
    attention = "room"
    source = "Slurm's sched/builtin: strict order in each partition; with skip, 'fit job first' of Tiresias' simulator"
    Options = FifoOptions

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending:
            if not plan.start(job) and not self.options.skip:
                plan.close(job.partition)
