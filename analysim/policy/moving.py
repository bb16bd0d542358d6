"""Moves of running jobs that pay: to make room where fragmentation keeps a job out, and to bring spread jobs together.

Gandiva moves jobs to defragment and to vacated better places (Xiao et al., "Gandiva", OSDI 2018), KAI-Scheduler
consolidates; what a move must be worth is our rule, in GPU-time on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from analysim.jobs import Job
from analysim.plan.blocked import Blocked
from analysim.plan.plan import Plan
from analysim.policy.placement import RackFirst


class Moves:
    """Looks for moves: at most ``max_moves`` for one start, on ``candidates`` nodes; gaining ``worth`` times the cost.

    ``spared`` are ranks of jobs that are not moved in this pass, as those that it started.
    """

    def __init__(self, worth: float, max_moves: int, candidates: int) -> None:
        self.worth = worth
        self.max_moves = max_moves
        self.candidates = candidates
        self.spared: set[int] = set()
        self._together = RackFirst()
        self._stands: dict[str, tuple[Job, int]] = {}
        self._stood: dict[str, tuple[Job, int]] = {}

    def stood(self, plan: Plan, job: Job) -> int:
        """Microseconds for which a job has been the first of its partition that fragmentation keeps out.

        Asked of it in every pass; ``remember`` ends a pass.
        """
        first, since = self._stood.get(job.partition, (job, plan.now))
        if first is not job:
            since = plan.now
        self._stands[job.partition] = (job, since)
        return plan.now - since

    def remember(self, plan: Plan) -> bool:
        """End a pass: who was not asked about in it stands there no longer. Tells whether anybody does."""
        self._stood = {name: found for name, found in self._stands.items() if plan.placement(found[0]) is None}
        self._stands = {}
        self.spared.clear()
        return bool(self._stood)

    def stands(self, partition: str) -> bool:
        """Tell whether a job of a partition was asked about in this pass."""
        return partition in self._stands

    def movable(self, plan: Plan, job: Job) -> bool:
        """Tell whether a running job may be moved in this pass."""
        return plan.freeable(job) and job.rank not in self.spared

    def price(self, plan: Plan, jobs: Iterable[Job]) -> float:
        """GPU-microseconds that a move of these jobs must gain: ``worth`` times what saving and loading costs."""
        return self.worth * sum(job.gpus * plan.move_cost(job) for job in jobs)

    def make_room(self, plan: Plan, job: Job, stood_us: int) -> bool:
        """Free the pieces that cost least until the job starts; all is taken back if it does not, or does not pay.

        It pays where the job's GPUs times ``stood_us``, for which it has stood there with enough GPUs free in total
        (and so may well go on standing there), exceed the price.
        """
        budget = job.gpus * stood_us
        moved: list[Job] = []
        freed: list[int] = []
        with plan.trial() as trial:
            for node, missing in plan.nearest(job, self.candidates):
                chosen = self._cheapest(plan, node, missing)
                if chosen is None or not self._move_away(plan, chosen, [*freed, node]):
                    continue
                moved.extend(chosen)
                freed.append(node)
                if len(moved) > self.max_moves or self.price(plan, moved) > budget:
                    return False
                if plan.start(job):
                    trial.keep()
                    return True
        return False

    def _cheapest(self, plan: Plan, node: int, missing: int) -> list[Job] | None:
        """Find the jobs whose move costs least among those that free so many GPUs on a node."""
        movable = [job for job in plan.jobs_on(node) if self.movable(plan, job)]
        best: tuple[float, list[Job]] | None = None
        for count in range(1, min(len(movable), self.max_moves) + 1):
            for jobs in combinations(movable, count):
                if sum(plan.gpus_on(job, node) for job in jobs) >= missing:
                    price = self.price(plan, jobs)
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

    def bring_together(self, plan: Plan) -> None:
        """Move spread jobs together where what they gain, running on as long as they have run, pays the move."""
        for job in plan.running:
            if len(plan.placement(job) or ()) < 2 or not self.movable(plan, job):
                continue
            where = plan.fit(job, placer=self._together)
            if isinstance(where, Blocked):
                continue
            gain = plan.progress(job) * (1 - plan.speed(job) / plan.speed(job, where))
            if gain > self.worth * plan.move_cost(job):
                plan.migrate(job, where)
