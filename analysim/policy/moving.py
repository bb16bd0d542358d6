"""Moves of running jobs that pay: to make room where fragmentation keeps a job out, and to bring spread jobs together.

Gandiva moves jobs to defragment and to vacated better places (Xiao et al., "Gandiva", OSDI 2018), KAI-Scheduler
consolidates; what a move must be worth is our rule, in GPU-time on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable

from analysim.jobs import Job
from analysim.plan.blocked import Blocked
from analysim.plan.plan import Plan
from analysim.policy.consolidation import Consolidation, move_price
from analysim.policy.placement import RackFirst


class Moves(Consolidation):
    """Looks for moves: at most ``max_moves`` for one start, on ``candidates`` nodes; gaining ``worth`` times the cost.

    ``spared`` are ranks of jobs that are not moved in this pass to make room.
    """

    def __init__(self, plan: Plan, worth: float, max_moves: int, candidates: int) -> None:
        super().__init__(plan)
        self.worth = worth
        self.max_moves = max_moves
        self.candidates = candidates
        self.spared: set[int] = set()
        self._together = RackFirst()
        self._stands: dict[str, tuple[Job, int]] = {}
        self._stood: dict[str, tuple[Job, int]] = {}

    def may_move(self, job: Job) -> bool:
        """Tell whether a running job may be moved in this pass to make room."""
        return job.rank not in self.spared and super().may_move(job)

    def stood(self, job: Job) -> int:
        """Microseconds for which a job has been the first of its partition that fragmentation keeps out.

        Asked of it in every pass; ``remember`` ends a pass.
        """
        now = self.plan.now
        first, since = self._stood.get(job.partition, (job, now))
        if first is not job:
            since = now
        self._stands[job.partition] = (job, since)
        return now - since

    def remember(self) -> bool:
        """End a pass: who was not asked about in it stands there no longer. Tells whether anybody does."""
        self._stood = {name: found for name, found in self._stands.items() if self.plan.placement(found[0]) is None}
        self._stands = {}
        self.spared.clear()
        return bool(self._stood)

    def stands(self, partition: str) -> bool:
        """Tell whether a job of a partition was asked about in this pass."""
        return partition in self._stands

    def price(self, jobs: Iterable[Job]) -> float:
        """GPU-microseconds that a move of these jobs must gain: ``worth`` times what saving and loading costs."""
        return self.worth * move_price(self.plan, jobs)

    def start_by_moving(self, job: Job, stood_us: int) -> bool:
        """Start a waiting job by moving others, as ``make_room``, if that pays.

        It pays where the job's GPUs times ``stood_us``, for which it has stood there with enough GPUs free in total
        (and so may well go on standing there), are at least the price.
        """
        budget = job.gpus * stood_us
        return self.make_room(job, self.candidates, self.max_moves, lambda moved, _: self.price(moved) <= budget)

    def bring_together(self) -> None:
        """Move spread jobs together where what they gain, running on as long as they have run, pays the move.

        The gain, in time, has to exceed ``worth`` times the time that the move takes. Who is ``spared`` may move.
        """
        plan = self.plan
        for job in plan.running:
            if len(plan.placement(job) or ()) < 2 or not super().may_move(job):
                continue
            where = plan.fit(job, placer=self._together)
            if isinstance(where, Blocked):
                continue
            gain = plan.progress(job) * (1 - plan.speed(job) / plan.speed(job, where))
            if gain > self.worth * plan.move_cost(job):
                plan.migrate(job, where)
