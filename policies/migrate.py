"""First in, first out, with running jobs moved together when fragmentation is in the way."""

from pydantic import Field

from analysim.policy import Blocked, Duration, Looks, Moves, Options, Plan, Policy


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
        self._moves = Moves(plan, self.options.worth, self.options.max_moves, self.options.candidates)
        self._looks = Looks(self.options.look_every)
        self._next_consolidation = 0

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending:
            answer = plan.start(job)
            if answer:
                continue
            if isinstance(answer, Blocked) and answer.reason == "fragmented":
                stood = self._moves.stood(job)
                if self._looks.due(plan) and self._moves.start_by_moving(job, stood):
                    continue
            plan.close(job.partition)
        if self._moves.remember():
            self._looks.again(plan)
        if plan.span_matters and self._next_consolidation <= plan.now:
            self._next_consolidation = plan.now + self.options.look_every
            self._moves.bring_together()
