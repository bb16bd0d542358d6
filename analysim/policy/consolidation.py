"""Moving running jobs together: who leaves a node at the least cost, where they go, and how many may move.

What is shared by the policies that move jobs. A move is charged as the plan charges it: the job holds its GPUs
without progress while it saves and loads its state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from analysim.cluster.capacity import Capacity
from analysim.jobs import Job, Option, Placement
from analysim.plan.blocked import Blocked
from analysim.plan.plan import Plan
from analysim.policy.placement import Pack, Placer
from analysim.units import seconds

HOUR = seconds("1h")

Pays = Callable[[list[Job], int], bool]
"""Whether moving these jobs away from so many nodes is worth it."""


def move_price(plan: Plan, jobs: Iterable[Job]) -> int:
    """GPU-microseconds that it costs to move jobs: GPUs times the time to save and load, ``plan.move_cost``."""
    return sum(job.gpus * plan.move_cost(job) for job in jobs)


Move = tuple[Job, Placement, int]
"""A running job, where it goes, and the node that it leaves to make room."""


class Consolidation:
    """Running jobs that are moved out of the way together, or not at all.

    A policy that knows better derives from it: ``may_move`` says who may move, ``destination`` where to, ``nearest``
    which nodes are looked at. ``moved`` are the jobs that ``make_room`` moved last.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.moved: list[Job] = []

    def may_move(self, job: Job) -> bool:
        """Tell whether a running job may be moved; here whom the plan lets go, but nobody twice in a pass."""
        return self.plan.freeable(job) and self.plan.books.touched.get(job) is None

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
        moves = found = self._find_moves(job, candidates, most, pays)
        for move in reversed(found):
            rest = [other for other in moves if other is not move]
            if rest and self._make(job, rest, keep=False):
                moves = rest
        jobs = [moved for moved, _, _ in moves]
        if len(moves) < len(found) and not pays(jobs, len({node for _, _, node in moves})):
            return False
        if not moves or not self._make(job, moves, keep=True):
            return False
        self.moved = jobs
        return True

    def _find_moves(self, job: Job, candidates: int, most: int, pays: Pays) -> list[Move]:
        """Find moves after which a job starts, as a what-if; empty: there are none that pay."""
        moves: list[Move] = []
        freed: list[int] = []
        with self.plan.trial():
            for node, missing in self.nearest(job, candidates):
                chosen = self.cheapest(node, missing, most)
                if chosen is None or not self.move_away(chosen, [*freed, node]):
                    continue
                moves.extend((moved, self.plan.placement(moved) or (), node) for moved in chosen)
                freed.append(node)
                if len(moves) > most or not pays([moved for moved, _, _ in moves], len(freed)):
                    return []
                if self.plan.start(job):
                    return moves
        return []

    def _make(self, job: Job, moves: Sequence[Move], keep: bool) -> bool:
        """Make moves and start the job; all is taken back if that cannot be, or as ``keep`` says."""
        with self.plan.trial() as trial:
            for moved, where, _ in moves:
                if not self.plan.migrate(moved, where):
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
        for job in plan.jobs_on(node):
            held = plan.gpus_on(job, node)
            if held and self.may_move(job):
                leaving.append((held, job))
        if sum(held for held, _ in leaving) < missing:
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


def move_together(plan: Plan, placer: Placer, worth: float) -> None:
    """Move spread jobs together where what they gain, running on as long as they have run, pays the move.

    The gain, in time, has to exceed ``worth`` times the time that the move takes.
    """
    for job in plan.running:
        if len(plan.placement(job) or ()) < 2 or not plan.freeable(job) or plan.books.touched.get(job) is not None:
            continue
        where = plan.fit(job, placer=placer)
        if isinstance(where, Blocked):
            continue
        gain = plan.progress(job) * (1 - plan.speed(job) / plan.speed(job, where))
        if gain > worth * plan.move_cost(job):
            plan.migrate(job, where)


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
                if mask:
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
