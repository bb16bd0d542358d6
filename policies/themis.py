"""Finish-time fairness: GPUs are leased, and auctioned among the jobs that sharing has set back most."""

from collections import deque
from math import ceil, log1p

from pydantic import Field

from analysim.policy import Duration, Job, Options, Order, Plan, Policy

Bid = tuple[int, float]
"""Place in an auction, the smaller the better: (0, -gain per GPU) of those who take part, (1, -rho) of the rest."""

LEASED: Bid = (-1, 0.0)
"""Of a running job that has not been asked: nobody outbids it."""


class ThemisOptions(Options):
    """How long GPUs are leased, how many take part in an auction, and how many are asked."""

    lease: Duration = Field(default="20m", gt=0, validate_default=True, description="for which a job keeps its GPUs")
    fairness: float = Field(default=0.8, ge=0, le=1, description="f: the worst off 1 - f take part in an auction")
    asked: int = Field(default=1_000, ge=1, description="waiting jobs asked for a new bid in one auction")


class Themis(Policy):
    """Keep the largest rho small: time in the shared cluster over time alone on a 1/N share of it.

    Each job is an app of its own. Leases end together; then running and waiting jobs bid. Of the 1 - f with the
    largest rho, those go first that gain most from the next lease per GPU; the others follow by rho. Who is outbid
    saves its state and waits; GPUs that nobody wants more stay where they are.
    """

    name = "themis"
    knowledge = "estimate"
    source = "Mahajan et al., 'Themis: Fair and Efficient GPU Cluster Scheduling', NSDI 2020"
    Options = ThemisOptions

    auction = Order(lambda job, plan: plan.policy.bid(job, plan))

    def begin(self, plan: Plan) -> None:
        self._gpus = max(1, plan.partition("root").capacity)
        self._bids: dict[int, Bid] = {}
        self._line: deque[tuple[Job, int]] = deque()
        self._began = self._next_auction = plan.now

    def schedule(self, plan: Plan) -> None:
        self._line.extend((job, job.stint) for job in (*plan.arrived, *plan.requeued))
        auction = self._next_auction <= plan.now
        if auction:
            self._next_auction = plan.now + self.options.lease - (plan.now - self._began) % self.options.lease
            self._ask(plan)
        for job in plan.pending_by(self.auction):
            if not plan.start(job) and auction:
                victims = plan.room(job, by=self.auction, above=self.bid(job, plan))
                if victims:
                    plan.replace(victims, job)
        if plan.pending:
            plan.wake_at(self._next_auction)

    def bid(self, job: Job, plan: Plan) -> Bid:
        """What a job bid in the last auction; one that came since then takes no part yet."""
        bid = self._bids.get(job.rank)
        if bid is not None:
            return bid
        return LEASED if plan.placement(job) is not None else (1, -self.rho(job, plan))

    def rho(self, job: Job, plan: Plan) -> float:
        """Time in the cluster, were the job to run from now on, over time alone on a 1/N share of its GPUs.

        A share smaller than the gang serves it for a part of the time. N are the jobs in the cluster now.
        """
        sharing = len(plan.pending) + len(plan.running)
        alone = plan.estimate(job) * max(1.0, sharing * job.gpus / self._gpus)
        return self._stay(job, plan) / max(alone, 1.0)

    def _stay(self, job: Job, plan: Plan) -> int:
        return plan.now - job.submit + plan.remaining(job)

    def _ask(self, plan: Plan) -> None:
        """Read the bids of the running jobs, and of waiting ones, those first that were asked longest ago."""
        asked = list(plan.running)
        waiting: list[tuple[Job, int]] = []
        while self._line and len(waiting) < self.options.asked:
            job, stint = self._line.popleft()
            if job.stint == stint and job.state.value == "pending":
                waiting.append((job, stint))
        self._line.extend(waiting)
        asked.extend(job for job, _ in waiting)
        worst = sorted(((-self.rho(job, plan), job.rank, job) for job in asked), key=lambda each: each[:2])
        taking_part = max(1, ceil((1 - self.options.fairness) * len(worst) - 1e-9))
        self._bids = {}
        for place, (minus_rho, rank, job) in enumerate(worst):
            self._bids[rank] = (0, -self._gain(job, plan)) if place < taking_part else (1, minus_rho)
            plan.rekey(job)

    def _gain(self, job: Job, plan: Plan) -> float:
        """Logarithm of how much smaller rho ends with the next lease than without it, per GPU."""
        return log1p(self.options.lease / max(1, self._stay(job, plan))) / max(1, job.gpus)
