"""Preemption without knowledge of durations: priorities, attained service, and reclaim of quota."""

from pydantic import Field

from analysim.policy import Duration, Job, Levels, Looks, Options, Order, Plan, Policy, Thresholds


class PreemptOptions(Options):
    """Levels of attained service, and what keeps preemption from thrashing and from starving anybody."""

    thresholds: Thresholds = Field(
        default=("1h", "10h"), validate_default=True, description="GPU-time at which a job sinks one level"
    )
    minimum_run: Duration = Field(default="30m", validate_default=True, description="before a job may be stopped")
    look_every: Duration = Field(default="10m", validate_default=True, description="between looks while jobs wait")
    promote: float = Field(
        default=8.0, gt=0, le=1e12, description="wait over service at which a job rises to the top"
    )
    patience: Duration = Field(default="1d", validate_default=True, description="wait after which nobody passes a job")


class Preempt(Policy):
    """Priority classes first; inside a class, multi-level least attained GPU-service; quota owners reclaim.

    A job sinks one level at each threshold of GPU-time it has had; inside a level arrival order holds. A waiting
    job may stop jobs of a lower class, or of a lower level of its class, that have run ``minimum_run``: the
    lowest and latest first, no more than needed; it then owns their GPUs while they save their state. A stopped
    job that waits ``promote`` times its service rises to the top level. Nobody passes a job that waited ``patience``.
    """

    name = "preempt"
    attention = "news"
    source = "Gu et al., 'Tiresias', NSDI 2019 (discretised levels); KAI-Scheduler and Kueue (reclaim)"
    Options = PreemptOptions

    order = Order(lambda job, plan: plan.policy.rank(job, plan))

    def begin(self, plan: Plan) -> None:
        self._levels = Levels(self.options.thresholds, self.options.promote)
        self._looks = Looks(self.options.look_every)

    def rank(self, job: Job, plan: Plan) -> tuple[int, int, int]:
        """Class and level of a job: tier of its partition, priority, level; smaller goes first."""
        return (-job.tier, -job.priority, self._levels.level(job, plan))

    def schedule(self, plan: Plan) -> None:
        levels = self._levels
        for job in levels.sink(plan):
            levels.expect_to_sink(job, plan)  # the next level, or the same one: it loaded its state for a while
        levels.rise(plan)
        blocked = False
        for job in plan.pending_by(self.order):
            if plan.start(job) or self._make_room(plan, job):
                levels.expect_to_sink(job, plan)
                continue
            blocked = True
            if plan.waited(job) >= self.options.patience:
                plan.close(job.partition)
        for job in plan.requeued:
            levels.expect_to_rise(job, plan)
        if blocked:
            self._looks.again(plan)

    def _make_room(self, plan: Plan, job: Job) -> bool:
        settled = self.options.minimum_run
        victims = plan.room(job, by=self.order, above=self.rank(job, plan), settled=settled)
        if not victims:
            victims = plan.reclaim(job, by=self.order, settled=settled)
        return bool(victims and plan.replace(victims, job))
