"""Conservative backfilling: whoever waits is promised a start, and nobody goes first who would delay one of them."""

from pydantic import Field, PositiveInt

from analysim.policy import BackfillOptions, Plan, Policy


class ConservativeOptions(BackfillOptions):
    """``depth`` beside the options of all backfilling."""

    depth: PositiveInt | None = Field(
        default=100, description="jobs of a partition that hold a reservation, the first to arrive; none: all"
    )


class Conservative(Policy):
    """Promise each waiting job, in the order of arrival, the earliest start that delays none promised before.

    The promise is of nodes, from a time on, for as long as the user estimates. It is kept: it moves forward when
    a job ends early. Jobs beyond ``depth`` start as soon as they fit beside all that is promised.
    """

    name = "conservative"
    knowledge = "estimate"
    source = (
        "Mu'alem and Feitelson, 'Utilization, predictability, workloads, and user runtime estimates in scheduling "
        "the IBM SP2 with backfilling', TPDS 12(6), 2001; Slurm's backfill plugin (slurm.conf, SchedulerParameters)"
    )
    Options = ConservativeOptions

    def schedule(self, plan: Plan) -> None:
        options = self.options
        calendar = plan.calendar(options.resolution, options.window)
        walk = plan.candidates(limit=lambda demand: calendar.limit(demand, options.depth))
        for number, job in enumerate(walk, start=1):
            promise = options.depth is None or calendar.reserved_in(job.partition) < options.depth
            placed = calendar.reserve(job) if promise else calendar.start(job)
            if not placed and calendar.promised(job) is None:
                walk.within(job, plan.needed(job) - 1)
            if number == options.test:
                return
