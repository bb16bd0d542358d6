"""Shipped policies under watch: what each pass did to running jobs, and whom it need not have touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analysim.jobs import State
from analysim.policy import Consolidation, Job, Order, Placement, Plan, Policy
from tests.builders import SECOND, shipped
from tests.property.audit import audit

Held = dict[int, Placement | None]


def watched(name: str, options: Mapping[str, Any]) -> Policy:
    """A shipped policy whose every pass is checked; ``victims_seen`` and ``moves_seen`` count what there was to check."""
    base: Any = shipped(name)

    class Watched(base):  # type: ignore[misc]  # a class found at run time
        def begin(self, plan: Plan) -> None:
            self.victims_seen = self.moves_seen = 0
            super().begin(plan)
            _watch_rooms(self, plan)
            for value in vars(self).values():
                if isinstance(value, Consolidation):
                    _watch_moves(self, value)

        def schedule(self, plan: Plan) -> None:
            audit(plan)
            running, usage = held(plan), _usage(plan)
            super().schedule(plan)
            audit(plan)
            _check_quota(plan, usage)
            _check_gangs(plan)
            if name in ("migrate", "defragment"):
                assert all(rank in plan.books.running for rank in running), "a moved job is homeless"

    policy: Policy = Watched(options)
    return policy


class Stopper(Policy):
    """Who is more important stops who is less, at once: the most there is for ``room`` and ``reclaim`` to choose."""

    name = "stopper"
    important = Order(lambda job: -job.priority)
    newest = Order(lambda job: job.submit)

    def begin(self, plan: Plan) -> None:
        self.victims_seen = 0
        _watch_rooms(self, plan)

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending_by(self.important):
            if plan.start(job):
                continue
            victims = plan.room(job, by=self.important, above=-job.priority, settled=1)
            victims = victims or plan.room(job, by=self.newest, above=job.submit, settled=SECOND)
            victims = victims or plan.reclaim(job, by=self.newest, settled=SECOND)
            if victims:
                plan.replace(victims, job)


def held(plan: Plan) -> Held:
    """Who runs, and where."""
    return {rank: job.placement for rank, job in plan.books.running.items()}


# -- quotas and gangs --------------------------------------------------------------------------------------------


def _usage(plan: Plan) -> dict[Any, tuple[int, int]]:
    accounts = [account for leaf in plan.books.tree.all for account in (leaf.total, *leaf.by_type.values())]
    return {account: (account.usage, account.claimed) for account in accounts}


def _check_quota(plan: Plan, before: dict[Any, tuple[int, int]]) -> None:
    """Nothing grows beyond its bound; what is above it, as a bound was lowered, only shrinks."""
    if not plan.books.tree.bounded:
        return
    for account, (usage, claimed) in before.items():
        assert account.usage <= max(usage, account.cap), f"{account.partition.name} is above its quota"
        if account.reserving:
            assert account.claimed <= max(claimed, account.cap), f"{account.partition.name} promised what it has not"


def _check_gangs(plan: Plan) -> None:
    """Every running job holds its whole gang, on nodes that it may use."""
    for job in plan.books.running.values():
        placement = job.placement or ()
        assert sum(mask.bit_count() for _, mask in placement) == job.gpus, f"{job} has {placement}"
        assert job.option is not None and all(node < 0 or job.option.mask >> node & 1 for node, _ in placement), job
        if job.per_node:
            assert {mask.bit_count() for _, mask in placement} == {job.per_node}


# -- victims -----------------------------------------------------------------------------------------------------


def starts(plan: Plan, job: Job, victims: Iterable[Job]) -> bool:
    """Whether a waiting job starts when these make way; nothing is changed."""
    with plan.trial():
        return bool(plan.replace(victims, job))


def _watch_rooms(policy: Any, plan: Plan) -> None:
    room, reclaim = plan.room, plan.reclaim

    def check(job: Job, victims: list[Job] | None) -> list[Job] | None:
        if victims:
            policy.victims_seen += len(victims)
            assert not starts(plan, job, []), f"{job!r} fits, and yet {victims} were to go"
            for victim in victims:
                others = [other for other in victims if other is not victim]
                assert not starts(plan, job, others), f"{job!r} starts without stopping {victim!r}, of {victims}"
        return victims

    setattr(plan, "room", lambda job, *given, **named: check(job, room(job, *given, **named)))  # noqa: B010 - a spy
    setattr(plan, "reclaim", lambda job, *given, **named: check(job, reclaim(job, *given, **named)))  # noqa: B010


# -- moves -------------------------------------------------------------------------------------------------------


def _watch_moves(policy: Any, moves: Consolidation) -> None:
    plan = moves.plan
    make_room, move_away = moves.make_room, moves.move_away

    def watched_room(job: Job, *given: Any) -> bool:
        assert not starts(plan, job, []), f"{job!r} fits, and yet others were to move"
        before = held(plan)
        with plan.trial():
            make_room(job, *given)
            there = [(each, plan.placement(each)) for each in moves.moved]
        for move in there:
            others = [other for other in there if other is not move]
            assert not _starts_after(plan, job, others), f"{job!r} starts without moving {move[0]!r}, of {there}"
        started = make_room(job, *given)
        if not started:
            assert held(plan) == before and job.state is State.PENDING, "a job does not start, and others moved"
            return False
        assert job.state in (State.RUNNING, State.RESERVED)
        moved = {rank for rank, where in held(plan).items() if rank in before and before[rank] != where}
        assert moved == {each.rank for each in moves.moved}
        policy.moves_seen += len(moved)
        return True

    def watched_away(jobs: Iterable[Job], *given: Any) -> bool:
        before, jobs = held(plan), list(jobs)
        gone = move_away(jobs, *given)
        if gone:
            assert all(plan.placement(job) not in (None, before[job.rank]) for job in jobs)
        else:
            assert held(plan) == before, "one job found no place, and others moved"
        return gone

    setattr(moves, "make_room", watched_room)  # noqa: B010 - a spy
    setattr(moves, "move_away", watched_away)  # noqa: B010


def _starts_after(plan: Plan, job: Job, moves: list[tuple[Job, Placement | None]]) -> bool:
    """Whether a waiting job starts when only these move; nothing is changed."""
    with plan.trial():
        return all(bool(plan.migrate(each, where)) for each, where in moves) and bool(plan.start(job))
