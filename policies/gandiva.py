"""Time slicing: more jobs than GPUs take turns of a quantum, suspended and resumed; moves where they pay."""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from pydantic import Field

from analysim.policy import Blocked, Duration, Job, Moves, Options, Order, Placement, Plan, Policy


class GandivaOptions(Options):
    """How long a turn is, how many end at once, how many jobs share a GPU, and when a move is worth its cost."""

    quantum: Duration = Field(default="1m", gt=0, validate_default=True, description="a turn, where somebody waits")
    swaps: int = Field(default=2, ge=1, description="turns given at one instant: bounds the work in overload")
    share: int | None = Field(default=None, ge=1, description="jobs that take turns on one GPU; none: no bound")
    mode: Literal["suspend", "checkpoint"] = Field(default="suspend", description="how a turn ends")
    worth: float = Field(default=1.0, ge=0, description="GPU-time gained over GPU-time the moves cost")
    max_moves: int = Field(default=8, ge=1, description="jobs moved for one start")
    candidates: int = Field(default=16, ge=1, description="nodes, or suspended jobs, considered for moves at a time")
    look_every: Duration = Field(default="2m", validate_default=True, description="between two looks for moves")


class Gandiva(Policy):
    """Round robin: who waited longest goes first and stops jobs that have had their quantum.

    A stopped job is suspended on its GPUs, which it then shares with whoever took them. A newcomer shares the GPUs
    that the fewest share. Running jobs are moved to defragment, to come together, and to vacated GPUs, so that
    those they shared with run on: where that pays.
    """

    name = "gandiva"
    attention = "news"
    source = "Xiao et al., 'Gandiva: Introspective Cluster Scheduling for Deep Learning', OSDI 2018"
    Options = GandivaOptions

    rotation = Order(lambda job, plan: (job.rank in plan.policy.parked, plan.now - plan.waited(job)))
    load = Order(lambda job, plan: (-plan.policy.sharers(job, plan), -plan.now))

    def begin(self, plan: Plan) -> None:
        plan.wants_idle_passes = plan.span_matters
        options = self.options
        self._moves = Moves(plan, options.worth, options.max_moves, options.candidates)
        self.parked: dict[int, tuple[Job, Placement, int]] = {}
        self._parked_on: dict[int, dict[int, int]] = {}
        self._waiting: dict[int, dict[int, int]] = {}  # suspended jobs by node and GPU
        self._turns: deque[tuple[int, int, Job]] = deque()
        self._turn_of: dict[int, int] = {}
        self._serial = 0
        self._refused: dict[int, int] = {}
        self._given_at = -options.quantum
        self._round_ends = 0
        self._armed = -1
        self._next_look = 0
        self._looking = False

    def schedule(self, plan: Plan) -> None:
        self._looking = self._next_look <= plan.now
        turns = self._turns_to_give(plan)
        for job in self._in_turn(plan, turns):
            answer = plan.start(job)
            if answer or self._defragment(plan, job, answer):
                self._begin_turn(plan, job)
            elif turns and self._give_turn(plan, job):
                turns -= 1
                self._given_at = plan.now
        if self._looking:
            self._next_look = plan.now + self.options.look_every
            if plan.span_matters:
                self._moves.bring_together()
        if self._moves.remember() and self._next_look > plan.now:
            plan.wake_at(self._next_look)
        if plan.pending:
            self._expect_turn(plan)

    def sharers(self, job: Job, plan: Plan) -> int:
        """How many take turns on the GPU of a running job that the most share, itself counted."""
        most = 0
        for node, mask in plan.placement(job) or ():
            waiting = self._waiting.get(node)
            while waiting and mask:
                bit = mask & -mask
                mask ^= bit
                most = max(most, waiting.get(bit, 0))
        return most + 1

    # -- turns -------------------------------------------------------------------------------------------

    def _turns_to_give(self, plan: Plan) -> int:
        """How many turns may end now: when one is over, a quantum after the last were, and once in each round.

        A round is a quantum; in it also those are heard who wait for jobs that never have a whole quantum.
        """
        ends = self._first_end(plan)
        if ends is not None and plan.now < min(self._round_ends, max(ends, self._given_at + self.options.quantum)):
            return 0
        self._round_ends = plan.now + self.options.quantum
        return 0 if ends is None else int(self.options.swaps)

    def _first_end(self, plan: Plan) -> int | None:
        """When the oldest turn of a running job is over; None: nobody runs who may be stopped."""
        turns = self._turns
        while turns:
            began, serial, job = turns[0]
            if self._turn_of.get(job.rank) == serial:
                if plan.placement(job) is not None or job.state.value == "reserved":
                    return began + int(self.options.quantum)
                del self._turn_of[job.rank]
            turns.popleft()
        return None

    def _in_turn(self, plan: Plan, turns: int) -> Iterator[Job]:
        """Yield who may start or take a turn, longest waiting first: newcomers, and suspended jobs at their GPUs."""
        ranks = dict.fromkeys([*islice(self.parked, turns), *self._resumable(plan)])
        for rank in list(ranks):
            job = self.parked[rank][0]
            if job.state.value != "pending":  # it was withdrawn
                self._unpark(job)
                del ranks[rank]
        stopped = sorted((self.parked[rank][2], rank, self.parked[rank][0]) for rank in ranks)
        place = 0
        for job in plan.pending_by(self.rotation):
            if job.rank in self.parked:
                break  # newcomers stand before all suspended jobs in the index, which is not walked to its end
            since = plan.now - plan.waited(job)
            while place < len(stopped) and stopped[place] < (since, job.rank):
                yield stopped[place][2]
                place += 1
            yield job
        for _, _, job in stopped[place:]:
            yield job

    def _resumable(self, plan: Plan) -> list[int]:
        """List the suspended jobs whose GPUs are all free."""
        free = plan.capacity.free
        found = []
        for node, masks in self._parked_on.items():
            here = free[node]
            if here:
                for rank, mask in masks.items():
                    if mask & here == mask and all(each & free[other] == each for other, each in self.parked[rank][1]):
                        found.append(rank)
        return found

    def _give_turn(self, plan: Plan, job: Job) -> bool:
        """Stop jobs that have had their quantum for one whose turn it is; where it was refused so long, any jobs."""
        if self._looking and job.rank in self.parked and self._make_way(plan, job):
            return True
        most = self.options.share if self.options.share is not None and job.rank not in self.parked else 1 << 60
        victims = plan.room(job, by=self.load, above=(-most, 0), settled=self.options.quantum)
        if not victims:
            since = self._refused.setdefault(job.rank, plan.now)
            if plan.now - since < self.options.quantum:
                return False
            victims = plan.room(job, by=self.load, above=(-most, 0), settled=1)
        self._refused.pop(job.rank, None)
        if victims and self._swap(plan, victims, job):
            return True
        if job.rank in self.parked:
            self.parked[job.rank] = self.parked.pop(job.rank)  # nobody there may be stopped: the next may try
        return False

    def _swap(self, plan: Plan, victims: list[Job], job: Job) -> bool:
        """Stop the victims and start a job; nothing is stopped if it cannot start then."""
        with plan.trial() as trial:
            for victim in victims:
                where = plan.placement(victim) or ()
                plan.preempt(victim, self.options.mode)
                if self.options.mode == "suspend":
                    self._park(plan, victim, where)
            started = bool(plan.start(job))
            if started:
                trial.keep()
        if started:
            self._begin_turn(plan, job)
        else:
            for victim in victims:
                self._unpark(victim)
        return started

    def _begin_turn(self, plan: Plan, job: Job) -> None:
        self._unpark(job)
        self._refused.pop(job.rank, None)
        self._moves.spared.add(job.rank)
        if job.preemptible and job.gpus:
            self._serial += 1
            self._turn_of[job.rank] = self._serial
            self._turns.append((plan.now, self._serial, job))

    def _park(self, plan: Plan, job: Job, where: Placement) -> None:
        self.parked[job.rank] = (job, where, plan.now)
        for node, mask in where:
            self._parked_on.setdefault(node, {})[job.rank] = mask
            self._count(node, mask, 1)

    def _unpark(self, job: Job) -> None:
        found = self.parked.pop(job.rank, None)
        for node, mask in found[1] if found is not None else ():
            del self._parked_on[node][job.rank]
            if not self._parked_on[node]:
                del self._parked_on[node]
            self._count(node, mask, -1)

    def _count(self, node: int, mask: int, more: int) -> None:
        waiting = self._waiting.setdefault(node, {})
        while mask:
            bit = mask & -mask
            mask ^= bit
            waiting[bit] = waiting.get(bit, 0) + more

    def _expect_turn(self, plan: Plan) -> None:
        """Wake up when the next turns may be given."""
        ends = self._first_end(plan)
        if ends is None:
            return
        over = max(ends, self._given_at + self.options.quantum)
        when = min(over, self._round_ends) if over > plan.now else self._round_ends
        if when != self._armed:
            self._armed = when
            plan.wake_at(when)

    # -- moves -------------------------------------------------------------------------------------------

    def _defragment(self, plan: Plan, job: Job, answer: Placement | Blocked) -> bool:
        """Move running jobs so that the first newcomer of a partition starts, which fits in total but in no place."""
        if not isinstance(answer, Blocked) or answer.reason != "fragmented" or job.rank in self.parked:
            return False
        if self._moves.stands(job.partition):
            return False
        stood = self._moves.stood(job)
        return self._looking and self._moves.start_by_moving(job, stood)

    def _make_way(self, plan: Plan, job: Job) -> bool:
        """Move the one job that shares GPUs with a suspended one to vacated GPUs: then both run."""
        where = self.parked[job.rank][1]
        held = {
            other.rank: other
            for node, mask in where
            for other in plan.jobs_on(node)
            if overlap(plan, other, node, mask)
        }
        if len(held) != 1 or not any(plan.capacity.free):
            return False
        (other,) = held.values()
        shared = min(plan.progress(job), plan.progress(other)) * job.gpus  # as long as both ran they may go on sharing
        if not self._moves.may_move(other) or shared <= self._moves.price([other]):
            return False
        with plan.trial() as trial:
            place = plan.fit(other)
            if place and plan.migrate(other, place) and plan.start(job):
                trial.keep()
                self._begin_turn(plan, job)
                self._moves.spared.add(other.rank)
                return True
        return False


def overlap(plan: Plan, job: Job, node: int, mask: int) -> bool:
    """Tell whether a running job holds any of these GPUs of a node."""
    return any(where == node and held & mask for where, held in plan.placement(job) or ())
