"""Moving running jobs together: who leaves a node at the least cost, where they go, and how many may move.

What is shared by the policies that move jobs. A move is charged as the plan charges it: the job holds its GPUs
without progress while it saves and loads its state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from analysim.cluster.capacity import Capacity
from analysim.jobs import Job, Option, Placement
from analysim.plan.blocked import Blocked
from analysim.plan.plan import Plan
from analysim.policy.placement import Pack
from analysim.units import seconds

HOUR = seconds("1h")

Pays = Callable[[list[Job], int], bool]
"""Whether moving these jobs away from so many nodes is worth it."""


def move_price(plan: Plan, jobs: Iterable[Job]) -> int:
    """GPU-microseconds that it costs to move jobs: GPUs times the time to save and load, ``plan.move_cost``."""
    return sum(job.gpus * plan.move_cost(job) for job in jobs)


class Move(NamedTuple):
    """A running job, where it goes, the node that it leaves to make room, and whether it had no other."""

    job: Job
    where: Placement
    node: int
    alone: bool


class Consolidation:
    """Running jobs that are moved out of the way together, or not at all.

    A policy that knows better derives from it: ``may_move`` says who may move, ``destination`` where to, ``nearest``
    which nodes are looked at. ``moved`` are the jobs that ``make_room`` moved last.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.moved: list[Job] = []

    def may_move(self, job: Job) -> bool:
        """Tell whether a running job may be moved; here whom the plan lets go, but nobody twice in a pass.

        Who resumes in this pass after it was suspended can do that only on the GPUs it had: it stays there.
        """
        resumes = job.demand.pinned is not None
        return self.plan.freeable(job) and self.plan.books.touched.get(job) is None and not resumes

    def began_now(self, job: Job) -> bool:
        """Tell whether a running job started, or was moved, in this pass."""
        return job in self.plan.books.touched

    def destination(self, job: Job, avoid: Sequence[int]) -> Placement | Blocked:
        """Find where a job that must leave goes; here where the run's placement strategy puts it."""
        return self.plan.fit(job, avoid=avoid)

    def nearest(self, job: Job, count: int) -> Iterable[tuple[int, int]]:
        """Yield (node, GPUs it lacks) of up to ``count`` nodes to be looked at for a waiting job."""
        return self.plan.nearest(job, count)

    def make_room(self, job: Job, candidates: int, most: int, pays: Pays) -> bool:
        """Start a waiting job by moving up to ``most`` others; nobody moves if it does not start or it does not pay.

        Nodes that lack the fewest GPUs for a piece of its gang come first, on each the cheapest jobs are moved. Of
        the moves found, the last first, those are left out without which the job starts all the same.
        """
        self.moved = []
        with self.plan.trial() as trial:
            found = self._find_moves(job, candidates, most, pays)
            if found and all(move.alone and move.node == found[0].node for move in found):
                trial.keep()  # each is needed on the one node that was made free
                self.moved = _jobs(found)
                return True
        return bool(found) and self._make_fewest(job, found, pays)

    def _find_moves(self, job: Job, candidates: int, most: int, pays: Pays) -> list[Move]:
        """Make moves until a job starts; empty: there are none that pay, and what was moved has to be undone."""
        moves: list[Move] = []
        freed: list[int] = []
        for node, missing in self.nearest(job, candidates):
            chosen = self.cheapest(node, missing, most)
            if chosen is None:
                continue
            alone = [len(moved.placement or ()) == 1 for moved in chosen]
            if not self.move_away(chosen, [*freed, node]):
                continue
            for moved, one in zip(chosen, alone, strict=True):
                moves.append(Move(moved, moved.placement or (), node, one))
            freed.append(node)
            if len(moves) > most or not pays(_jobs(moves), len(freed)):
                return []
            if self.plan.start(job):
                return moves
        return []

    def _make_fewest(self, job: Job, found: Sequence[Move], pays: Pays) -> bool:
        """Make the moves that were found, but for those without which the job starts all the same."""
        moves = list(found)
        for move in reversed(found):
            rest = [other for other in moves if other is not move]
            if rest and self._make(job, rest, keep=False):
                moves = rest
        jobs = _jobs(moves)
        if len(moves) < len(found) and not pays(jobs, len({move.node for move in moves})):
            return False
        if self._make(job, moves, keep=True):
            self.moved = jobs
        return bool(self.moved)

    def _make(self, job: Job, moves: Sequence[Move], keep: bool) -> bool:
        """Make moves and start the job; all is taken back if that cannot be, or as ``keep`` says."""
        with self.plan.trial() as trial:
            if not all(self.plan.migrate(move.job, move.where) for move in moves):
                return False
            started = bool(self.plan.start(job))
            if started and keep:
                trial.keep()
        return started

    def cheapest(self, node: int, missing: int, most: int) -> list[Job] | None:
        """Find the up to ``most`` jobs whose move costs least among those that free so many GPUs on a node.

        Ties: the fewest jobs, then the earliest. None: there are no such jobs. The sets are built up job by job, the
        cheapest for each (number of jobs, GPUs freed), as in the textbook's knapsack.
        """
        plan = self.plan
        leaving: list[tuple[int, Job]] = []
        most_freed = 0
        for job in plan.jobs_on(node):
            held = plan.gpus_on(job, node)
            if held and self.may_move(job):
                leaving.append((held, job))
                most_freed += held
        if most_freed < missing:
            return None
        best: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {(0, 0): (0, ())}
        for position, (held, job) in enumerate(leaving):
            price = move_price(plan, (job,))
            for (count, freed), (so_far, chosen) in list(best.items()):
                if freed == missing or count == most:
                    continue
                state = (count + 1, min(freed + held, missing))
                found = (so_far + price, (*chosen, position))
                if state not in best or found < best[state]:
                    best[state] = found
        enough = [(price, count, chosen) for (count, freed), (price, chosen) in best.items() if freed == missing]
        return [leaving[position][1] for position in min(enough)[2]] if enough else None

    def move_away(self, jobs: Iterable[Job], avoid: Sequence[int]) -> bool:
        """Move jobs, in this order, to their destinations off the nodes of ``avoid``; none is moved unless all are."""
        with self.plan.trial() as trial:
            for job in jobs:
                where = self.destination(job, avoid)
                if not where or not self.plan.migrate(job, where):
                    return False
            trial.keep()
        return True


def _jobs(moves: Iterable[Move]) -> list[Job]:
    return [move.job for move in moves]


class IntoUsed(Pack):
    """Best fit among the nodes in use: never a node that is empty, or will be when those who left it have saved.

    Where ``groups`` (bit masks of nodes, such as racks) are given, a node is spared only if its whole group is empty.
    """

    name = "into used"

    def __init__(self, plan: Plan, groups: Sequence[int] = ()) -> None:
        super().__init__()
        topology = plan.capacity.topology
        self._books = plan.books
        self._sizes = [
            (kind, size, nodes)
            for kind, mask in enumerate(topology.type_masks)
            for size, nodes in topology.sizes_in(mask)
        ]
        self._with_gpus = sum(nodes for _, _, nodes in self._sizes)
        self._groups = [group & self._with_gpus for group in groups if group & self._with_gpus]

    def place(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """As ``Pack`` on the nodes in use."""
        return super().place(capacity, job, option, mask & ~self.spared())

    def spared(self) -> int:
        """The empty nodes (nodes of empty groups), as a bit mask."""
        capacity = self._books.capacity
        empty = 0
        for kind, size, nodes in self._sizes:
            empty |= capacity.levels[kind][size] & nodes
        for node in self._being_left():
            empty |= 1 << node
        return sum(group for group in self._groups if group & empty == group) if self._groups else empty

    def _being_left(self) -> list[int]:
        """Nodes of which every GPU is free or on its way to being free, claimed by nobody."""
        coming: dict[int, int] = {}
        for release in self._books.releases.values():
            for node, mask in release.masks.items():
                if mask and not release.job.demand.sharing:
                    coming[node] = coming.get(node, 0) + mask.bit_count()
        free, sizes = self._books.capacity.free, self._books.topology.gpu_count
        return [node for node, count in coming.items() if free[node].bit_count() + count == sizes[node]]

    def used(self) -> int:
        """The nodes with GPUs that are not spared, as a bit mask."""
        return self._with_gpus & ~self.spared()

    def holes(self) -> int:
        """Free GPUs on the nodes that are not spared."""
        used, capacity = self.used(), self._books.capacity
        return sum(capacity.free_within(kind, used) for kind in range(len(capacity.levels)))


class MoveBudget:
    """How many moves may be made: at most ``per_hour`` in any hour (None: any number).

    A bucket of that many tokens; each that was spent comes back an hour later. (One that is refilled at a constant
    rate would let through almost twice as many in an hour that begins with a full bucket.)
    """

    def __init__(self, per_hour: int | None) -> None:
        self._per_hour = per_hour
        self._spent: deque[int] = deque()

    def left(self, now: int) -> int:
        """How many moves may be made at this instant."""
        if self._per_hour is None:
            return 1 << 30
        while self._spent and self._spent[0] + HOUR <= now:
            self._spent.popleft()
        return self._per_hour - len(self._spent)

    def spend(self, now: int, moves: int) -> None:
        """Take moves made now from the budget."""
        if self._per_hour is not None:
            self._spent.extend([now] * moves)
