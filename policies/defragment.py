"""First in, first out, with a defragmenter beside it that empties nodes or racks by moving their jobs together."""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from analysim.policy import (
    Blocked,
    Consolidation,
    Duration,
    IntoUsed,
    Job,
    Looks,
    MoveBudget,
    Options,
    Placement,
    Plan,
    Policy,
    move_price,
)


class DefragmentOptions(Options):
    """When jobs are moved, what a freed node is worth, and who never moves."""

    skip: bool = Field(default=False, description="whether later jobs may pass one that does not fit")
    every: Duration = Field(default="10m", validate_default=True, description="between two rounds; 0: on demand only")
    free: Literal["node", "rack"] = Field(default="node", description="what a round empties")
    worth_per_node: Duration = Field(
        default="10m", validate_default=True, description="GPU-time that a freed node is worth"
    )
    moves_per_hour: int | None = Field(default=60, ge=0, description="moves in any hour; none: no bound")
    rest: Duration = Field(default="30m", validate_default=True, description="before a moved job is moved again")
    fixed_priority: int | None = Field(default=None, description="jobs of this priority or a higher one never move")
    largest: int | None = Field(default=None, ge=0, description="jobs of more GPUs than this never move")
    candidates: int = Field(default=16, ge=0, description="nodes looked at for one waiting job; 0: rounds only")
    look_every: Duration = Field(default="2m", validate_default=True, description="between looks for waiting jobs")


class Compaction(Consolidation):
    """Moves by best fit into nodes in use, of jobs that the options let go, none to where it would be slower."""

    def __init__(self, plan: Plan, options: DefragmentOptions) -> None:
        super().__init__(plan)
        self._options = options
        self.used_nodes = IntoUsed(plan)
        self.used_racks = IntoUsed(plan, plan.capacity.topology.rack_masks)
        self.into = self.used_nodes
        self._moved_at: dict[int, int] = {}

    def may_move(self, job: Job) -> bool:
        """Tell whether a job may be moved: not if it started or moved in this pass, nor against the options."""
        options = self._options
        if self.began_now(job) or not self.plan.freeable(job):
            return False
        if options.largest is not None and job.gpus > options.largest:
            return False
        if options.fixed_priority is not None and job.priority >= options.fixed_priority:
            return False
        moved_at = self._moved_at.get(job.rank)
        return moved_at is None or self.plan.now >= moved_at + options.rest

    def destination(self, job: Job, avoid: Sequence[int]) -> Placement | Blocked:
        """Find the best fit among the nodes in use; none where the job would run slower than it does."""
        where = self.plan.fit(job, placer=self.into, avoid=avoid)
        if not isinstance(where, Blocked) and self.plan.speed(job, where) < self.plan.speed(job):
            return Blocked("fragmented")
        return where

    def nearest(self, job: Job, count: int) -> Iterator[tuple[int, int]]:
        """Yield the nearest nodes, looked up anew for each, as moves for the one before may have filled some."""
        tried: set[int] = set()
        while True:
            nodes = self.plan.nearest(job, count)
            found = next((each for each in nodes if each[0] not in tried), None)
            if found is None:
                return
            tried.add(found[0])
            yield found

    def to_leave(self, nodes: Sequence[int], holes: int, most: int) -> list[Job] | None:
        """List who must leave nodes for them to be empty, the largest first; None: it cannot be, or they are empty.

        ``holes`` are the free GPUs on all nodes in use, of which those on other nodes have to be enough; ``most``
        is how many jobs may move.
        """
        plan = self.plan
        free, sizes = plan.capacity.free, plan.capacity.topology.gpu_count
        there = sum(free[node].bit_count() for node in nodes)
        held = sum(sizes[node] for node in nodes) - there
        room = holes - there
        if not 0 < held <= room:
            return None
        jobs = {job.rank: job for node in nodes for job in plan.jobs_on(node)}
        if len(jobs) > most or sum(job.gpus for job in jobs.values()) > room:
            return None
        if sum(plan.gpus_on(job, node) for node in nodes for job in jobs.values()) < held:
            return None  # others are reserved, or on their way to being free
        if not all(self.may_move(job) for job in jobs.values()):
            return None
        return sorted(jobs.values(), key=lambda job: (-job.gpus, job.rank))

    def remember(self, jobs: Sequence[Job]) -> None:
        """Let moved jobs rest from now on; those that have rested are forgotten."""
        now, rest = self.plan.now, self._options.rest
        self._moved_at = {rank: at for rank, at in self._moved_at.items() if now < at + rest}
        self._moved_at.update((job.rank, now) for job in jobs)


class Defragment(Policy):
    """Fifo; running jobs are moved together so that nodes or racks become empty, or a fragmented job starts.

    In rounds, the nodes (racks) whose jobs cost least to move are emptied into others that are in use; at any time,
    room is made for the first job that fits in total but in no one place. All jobs of a move are placed again or none
    moves, and what the moves cost is at most what the freed nodes are worth.
    """

    name = "defragment"
    attention = "news"
    source = "KAI-Scheduler (consolidation); Kubernetes descheduler (HighNodeUtilization)"
    Options = DefragmentOptions

    def begin(self, plan: Plan) -> None:
        plan.wants_idle_passes = self.options.every > 0
        self._moves = Compaction(plan, self.options)
        self._budget = MoveBudget(self.options.moves_per_hour)
        self._groups = self._groups_of(plan)
        self._next_round: int | None = None
        self._looks = Looks(self.options.look_every)

    def _groups_of(self, plan: Plan) -> list[list[int]]:
        """List what a round may empty: nodes with GPUs, one by one or by rack."""
        topology = plan.capacity.topology
        nodes = [node for node in range(topology.size) if topology.gpu_count[node]]
        if self.options.free == "node":
            return [[node] for node in nodes]
        racks: dict[int, list[int]] = {}
        for node in nodes:
            racks.setdefault(topology.rack_of[node], []).append(node)
        return list(racks.values())

    def schedule(self, plan: Plan) -> None:
        due = self._next_round is not None and self._next_round <= plan.now
        if due:
            self._empty_groups(plan)
        if self._start(plan):
            self._looks.again(plan)
        if self.options.every and (due or self._next_round is None):
            in_use = self._moves.used_nodes.used()
            self._next_round = plan.now + self.options.every if in_use else None
            if self._next_round is not None:
                plan.wake_at(self._next_round)

    def _empty_groups(self, plan: Plan) -> None:
        """Empty nodes (racks), those first that cost least, as long as it pays and the budget lasts."""
        moves = self._moves
        moves.into = moves.used_nodes if self.options.free == "node" else moves.used_racks
        holes, left = moves.into.holes(), self._budget.left(plan.now)
        priced = []
        for number, nodes in enumerate(self._groups):
            jobs = moves.to_leave(nodes, holes, left)
            if jobs is not None:
                priced.append((move_price(plan, jobs), number))
        for price, number in sorted(priced):
            nodes = self._groups[number]
            if price > len(nodes) * self.options.worth_per_node:
                continue
            jobs = moves.to_leave(nodes, holes, left)  # asked again: who moved before may have come here
            if jobs is not None and moves.move_away(jobs, nodes):
                self._charge(plan, jobs)
                holes, left = moves.into.holes(), self._budget.left(plan.now)

    def _charge(self, plan: Plan, jobs: Sequence[Job]) -> None:
        self._budget.spend(plan.now, len(jobs))
        self._moves.remember(jobs)

    def _start(self, plan: Plan) -> bool:
        """Start jobs as fifo does and make room for fragmented ones; tell whether that failed for any.

        One failure is enough for a partition and a pass.
        """
        skip = self.options.skip
        looking = self.options.candidates > 0 and self._looks.due(plan)
        failed: set[str] = set()
        for job in plan.pending:
            answer = plan.start(job)
            if not isinstance(answer, Blocked):
                continue
            if looking and answer.reason == "fragmented" and job.partition not in failed:
                if self._make_room(plan, job):
                    continue
                failed.add(job.partition)
            if not skip:
                plan.close(job.partition)
        return bool(failed)

    def _make_room(self, plan: Plan, job: Job) -> bool:
        """Start a job by moves that cost no more than the nodes on which they make room are worth."""
        worth = self.options.worth_per_node
        self._moves.into = self._moves.used_nodes
        left = self._budget.left(plan.now)
        if not left or not self._moves.make_room(
            job, self.options.candidates, left, lambda moved, nodes: move_price(plan, moved) <= nodes * worth
        ):
            return False
        self._charge(plan, self._moves.moved)
        return True
