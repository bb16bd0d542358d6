"""First in, first out, with running jobs moved together when fragmentation is in the way."""

from collections.abc import Iterable
from itertools import combinations

from pydantic import Field

from analysim.policy import Blocked, Duration, Job, Options, Plan, Policy, RackFirst


class MigrateOptions(Options):
    """When a move is worth its cost, and how hard to look for one."""

    worth: float = Field(default=1.0, ge=0, description="GPU-time gained over GPU-time the moves cost")
    max_moves: int = Field(default=8, ge=1, description="jobs moved for one start")
    candidates: int = Field(default=16, ge=1, description="nodes considered for one start")
    look_every: Duration = Field(default="2m", validate_default=True, description="between two looks for moves")


class Migrate(Policy):
    """Fifo; a job that fits in total but in no one place gets room by moving the cheapest running jobs.

    A move is worth it when the GPU-time for which the waiting job has stood first with enough GPUs free in total
    (and so may well go on standing there) exceeds what the moved jobs lose. With ``span_penalty``, spread jobs are
    moved together when idle GPUs allow and what they would gain, running on as long as they have run, exceeds the
    cost of the move.
    """

    name = "migrate"
    attention = "news"
    source = "Xiao et al., 'Gandiva', OSDI 2018 (migration); KAI-Scheduler (consolidation)"
    Options = MigrateOptions

    def begin(self, plan: Plan) -> None:
        plan.wants_idle_passes = plan.span_matters
        self._together = RackFirst()
        self._stands: dict[str, tuple[Job, int]] = {}
        self._next_look = 0
        self._next_consolidation = 0

    def schedule(self, plan: Plan) -> None:
        stands: dict[str, tuple[Job, int]] = {}
        for job in plan.pending:
            answer = plan.start(job)
            if answer:
                continue
            if isinstance(answer, Blocked) and answer.reason == "fragmented":
                first, since = self._stands.get(job.partition, (job, plan.now))
                if first is not job:
                    since = plan.now
                if self._next_look <= plan.now and self._make_room(plan, job, plan.now - since):
                    continue
                stands[job.partition] = (job, since)
            plan.close(job.partition)
        self._stands = stands
        if stands and self.options.look_every and self._next_look <= plan.now:
            self._next_look = plan.now + self.options.look_every
            plan.wake_at(self._next_look)
        if plan.span_matters and self._next_consolidation <= plan.now:
            self._next_consolidation = plan.now + self.options.look_every
            self._consolidate(plan)

    def _make_room(self, plan: Plan, job: Job, stood: int) -> bool:
        """Free the pieces that cost least until the job starts; all is taken back if it does not, or does not pay."""
        budget = job.gpus * stood
        moved: list[Job] = []
        freed: list[int] = []
        with plan.trial() as trial:
            for node, missing in plan.nearest(job, self.options.candidates):
                chosen = self._cheapest(plan, node, missing)
                if chosen is None or not self._move_away(plan, chosen, [*freed, node]):
                    continue
                moved.extend(chosen)
                freed.append(node)
                if len(moved) > self.options.max_moves or self._price(plan, moved) > budget:
                    return False
                if plan.start(job):
                    trial.keep()
                    return True
        return False

    def _price(self, plan: Plan, jobs: Iterable[Job]) -> float:
        worth: float = self.options.worth
        return worth * sum(job.gpus * plan.move_cost(job) for job in jobs)

    def _cheapest(self, plan: Plan, node: int, missing: int) -> list[Job] | None:
        """Find the jobs whose move costs least among those that free so many GPUs on a node."""
        movable = [job for job in plan.jobs_on(node) if plan.freeable(job)]
        best: tuple[float, list[Job]] | None = None
        for count in range(1, min(len(movable), self.options.max_moves) + 1):
            for jobs in combinations(movable, count):
                if sum(plan.gpus_on(job, node) for job in jobs) >= missing:
                    price = self._price(plan, jobs)
                    if best is None or price < best[0]:
                        best = (price, list(jobs))
        return best[1] if best is not None else None

    def _move_away(self, plan: Plan, jobs: list[Job], avoid: list[int]) -> bool:
        """Move jobs to where they fit now; nothing is moved unless all are."""
        with plan.trial() as trial:
            for job in jobs:
                where = plan.fit(job, avoid=avoid)
                if not where or not plan.migrate(job, where):
                    return False
            trial.keep()
        return True

    def _consolidate(self, plan: Plan) -> None:
        """Move spread jobs together where what they gain, running on as long as they have run, pays the move."""
        for job in plan.running:
            if len(plan.placement(job) or ()) < 2 or not plan.freeable(job):
                continue
            where = plan.fit(job, placer=self._together)
            if isinstance(where, Blocked):
                continue
            gain = plan.progress(job) * (1 - plan.speed(job) / plan.speed(job, where))
            if gain > self.options.worth * plan.move_cost(job):
                plan.migrate(job, where)
