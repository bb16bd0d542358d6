"""Preemption without knowledge of durations: priorities, attained service, and reclaim of quota."""

from bisect import bisect_right
from heapq import heappop, heappush

from pydantic import Field

from analysim.policy import Duration, Job, Options, Order, Plan, Policy


class PreemptOptions(Options):
    """Levels of attained service, and what keeps preemption from thrashing and from starving anybody."""

    thresholds: tuple[Duration, ...] = Field(
        default=("1h", "10h"), validate_default=True, description="GPU-time at which a job sinks one level"
    )
    minimum_run: Duration = Field(default="30m", validate_default=True, description="before a job may be stopped")
    look_every: Duration = Field(default="10m", validate_default=True, description="between looks while jobs wait")
    promote: float = Field(default=8.0, gt=0, description="wait over service at which a job rises to the top")
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
        self._forgiven: dict[int, int] = {}
        self._sinking: list[tuple[int, int, int, Job]] = []
        self._rising: list[tuple[int, int, int, Job]] = []
        self._next_look = 0
        self._thresholds = self.options.thresholds
        self._entry_level = bisect_right(self._thresholds, 0)

    def rank(self, job: Job, plan: Plan) -> tuple[int, int, int]:
        """Class and level of a job: tier of its partition, priority, level; smaller goes first."""
        level = self._entry_level if job.stint == 0 else bisect_right(self._thresholds, self._service(job, plan))
        return (-job.tier, -job.priority, level)

    def _service(self, job: Job, plan: Plan) -> int:
        return plan.attained(job) - self._forgiven.get(job.rank, 0)

    def schedule(self, plan: Plan) -> None:
        self._move_levels(plan)
        blocked = False
        for job in plan.pending_by(self.order):
            if plan.start(job) or self._make_room(plan, job):
                self._expect_to_sink(job, plan)
                continue
            blocked = True
            if plan.waited(job) >= self.options.patience:
                plan.close(job.partition)
        for job in plan.requeued:
            wait = round(self.options.promote * self._service(job, plan) / max(job.gpus, 1))
            heappush(self._rising, (plan.now + wait, job.rank, job.stint, job))
        if blocked and self.options.look_every and self._next_look <= plan.now:
            self._next_look = plan.now + self.options.look_every  # by then somebody may have settled, sunk or risen
            plan.wake_at(self._next_look)

    def _make_room(self, plan: Plan, job: Job) -> bool:
        settled = self.options.minimum_run
        victims = plan.room(job, by=self.order, above=self.rank(job, plan), settled=settled)
        if not victims:
            victims = plan.reclaim(job, by=self.order, settled=settled)
        return bool(victims and plan.replace(victims, job))

    def _expect_to_sink(self, job: Job, plan: Plan) -> None:
        service = self._service(job, plan)
        level = bisect_right(self._thresholds, service)
        if level < len(self._thresholds) and job.gpus:
            run = -(-(self._thresholds[level] - service) // job.gpus)
            heappush(self._sinking, (plan.now + run, job.rank, job.stint, job))

    def _move_levels(self, plan: Plan) -> None:
        """Sink running jobs that have had their service, raise stopped ones that waited long enough."""
        while self._sinking and self._sinking[0][0] <= plan.now:
            _, _, stint, job = heappop(self._sinking)
            if job.stint == stint + 1 and plan.placement(job) is not None:
                plan.rekey(job)
                self._expect_to_sink(job, plan)
        while self._rising and self._rising[0][0] <= plan.now:
            _, _, stint, job = heappop(self._rising)
            if job.stint == stint and plan.placement(job) is None:
                self._forgiven[job.rank] = plan.attained(job)
                plan.rekey(job)
