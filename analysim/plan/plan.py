"""The plan: all that a policy may read, and every decision it may take, checked at the call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import isfinite
from typing import Any, NoReturn

from analysim.cluster.capacity import Capacity
from analysim.cluster.partitions import Leaf
from analysim.errors import IllegalDecision, KnowledgeError
from analysim.jobs import Demand, Job, Placement, State
from analysim.plan import moves, record, search
from analysim.plan.backlog import Backlog, Candidates
from analysim.plan.blocked import Blocked
from analysim.plan.books import Books
from analysim.plan.calendar import Calendar
from analysim.plan.gathering import gpus_on
from analysim.plan.orders import Order
from analysim.plan.room import Room
from analysim.plan.search import Placer
from analysim.plan.shadow import Shadow
from analysim.plan.sizes import refuse_size
from analysim.plan.snapshot import Snapshot
from analysim.plan.trial import Trial
from analysim.plan.views import PartitionView, PendingView, RunningView, SubQueues
from analysim.speed import time_needed
from analysim.units import FOREVER, SPEED_ONE

PENDING = State.PENDING
RUNNING = State.RUNNING
_HOLDING = (RUNNING, State.RESERVED, State.CHECKPOINTING)
_LEVELS = {"none": 0, "history": 1, "estimate": 2, "oracle": 3, "record": 4}


def _needed(job: Job, plan: Plan) -> int:
    return plan.needed(job)


class Plan:
    """One scheduling pass. Times are integer microseconds, attained service is in GPU-microseconds.

    ``policy`` is the policy itself (for the keys of its orders), ``now`` the instant, ``pending`` the waiting
    jobs in (submit, id) order, ``woken`` those whose wake-up came,
    ``wants_idle_passes`` whether a pass comes when nothing waits (a policy may change it).
    Decisions take effect in the plan at once; an illegal one raises ``IllegalDecision`` in the author's line.
    """

    def __init__(self, books: Books, placer: Placer, policy: Any) -> None:
        self.books = books
        self.policy = policy
        self.now = 0
        self.woken: list[Job] = []
        self.stopped: list[Job] = []
        self.eventful = False
        self.wants_idle_passes = bool(policy.idle_passes)
        self._stopped_before: list[Job] = []
        self.wakes: list[tuple[int, Job | None]] = []
        self.noted: list[tuple[str, float]] = []
        self.reasons: list[tuple[Job, Blocked]] = []
        self.placer = placer
        self._completed: list[Job] = []
        self._policy: str = policy.name
        self._knowledge = _LEVELS[policy.knowledge]
        self.pending = PendingView(None, self)
        self._views: dict[Order | None, PendingView] = {None: self.pending}
        self._rooms: dict[tuple[Order, int], Room] = {}
        self._backlog: Backlog | None = None
        self._calendar: Calendar | None = None
        books.face = self

    # -- reading: jobs -----------------------------------------------------------------------------------

    def pending_by(self, order: Order | None, within: str | None = None) -> Any:
        """Waiting jobs in a declared order; ``within`` "shape", "tenant" or "partition" gives sub-queues."""
        if within is not None:
            return SubQueues(self, order, within)
        view = self._views.get(order)
        if view is None:
            self._check_order(order)
            view = self._views[order] = PendingView(order, self)
        return view

    @property
    def running(self) -> RunningView:
        """Running jobs in (submit, id) order; restarting ones are among them."""
        return self.running_by(None)

    def running_by(self, order: Order | None) -> RunningView:
        """Running jobs in a declared order; ``reversed`` goes from the last to the first."""
        self._check_order(order)
        return RunningView(self.books.running_index(order))

    def _check_order(self, order: Order | None) -> None:
        if order is not None and (not isinstance(order, Order) or not order.name):
            self.refuse(
                None,
                "an order must be declared once on the policy's class, as `shortest = Order(lambda job: ...)`; "
                "one made anew in each pass cannot be kept as an index",
            )

    @property
    def arrived(self) -> list[Job]:
        """Jobs that arrived since the last pass."""
        return [job for job in self.books.fresh if job.stint == 0]

    @property
    def requeued(self) -> list[Job]:
        """Jobs that wait again since the last pass: preempted, their state saved."""
        return self._stopped_before + [job for job in self.books.fresh if job.stint > 0]

    @property
    def completed(self) -> list[Job]:
        """Jobs completed since the last pass; needs knowledge of history."""
        self._need("history", "plan.completed")
        return self._completed

    def remaining(self, job: Job) -> int:
        """Work left: exact for an oracle, max(estimate - progress, 0) for estimates."""
        self._need("estimate", "plan.remaining")
        done = self.books.progress(job)
        if self._knowledge >= 3:
            return job._work - done
        return max(int(job.estimate) - done, 0)

    def ends(self, job: Job) -> int:
        """When a running job ends if left alone: true for an oracle, by the estimate otherwise; -1: not running."""
        self._need("estimate", "plan.ends")
        if job.state is not RUNNING:
            return -1
        if self._knowledge >= 3:
            return job.ends
        left = self.remaining(job)
        return max(self.now, job.run_from) + (left if job.demand.elastic is None else time_needed(left, job.speed))

    def needed(self, job: Job) -> int:
        """How long a waiting job would hold GPUs if it started: loading and the work left, as ``remaining`` has it."""
        costs = self.books.costs
        loading = costs.start_us if job.first_start < 0 else costs.restart_us(job)
        return loading + (self.remaining(job) if job._done or self._knowledge != 2 else int(job.estimate))

    def duration(self, job: Job) -> int:
        """Productive run time: of any job for an oracle, of completed jobs for history."""
        if self._knowledge < 3 and job.state is not State.COMPLETED:
            self._need("oracle", "plan.duration")
        self._need("history", "plan.duration")
        return job._work

    def estimate(self, job: Job) -> int:
        """The user's estimate of the productive run time; for an oracle without one, the truth."""
        self._need("estimate", "plan.estimate")
        return int(job.estimate)

    def recorded_start(self, job: Job) -> int | None:
        """When a job started in reality; None where the trace does not tell."""
        self._need("record", "plan.recorded_start")
        return record.start(job)

    def recorded_nodes(self, job: Job) -> list[int]:
        """Indexes of the nodes on which a job ran in reality; empty where the trace or the topology lacks any."""
        self._need("record", "plan.recorded_nodes")
        return record.nodes(job, self.books.topology)

    def _need(self, knowledge: str, what: str) -> None:
        if self._knowledge < _LEVELS[knowledge]:
            raise KnowledgeError(
                f"policy {self._policy!r}: {what} needs knowledge = {knowledge!r}, which its class does not declare."
            )

    def progress(self, job: Job) -> int:
        """Productive time a job has had."""
        return self.books.progress(job)

    def attained(self, job: Job) -> int:
        """Attained service: productive GPU-microseconds, an elastic job's at the GPUs it asks for."""
        return self.books.progress(job) * job.demand.asked

    def placement(self, job: Job) -> Placement | None:
        """Where a job runs: pairs of (node, mask of GPUs); None while it does not."""
        return job.placement if job.state is RUNNING else None

    def jobs_on(self, node: int | str) -> list[Job]:
        """Running jobs on a node (index or name), in (submit, id) order."""
        on_node = self.books.jobs_by_node()[self.node_index(node)]
        return [on_node[rank] for rank in sorted(on_node)]

    def node_index(self, node: int | str) -> int:
        """Index of a node by its name."""
        index = self.books.topology.index_of.get(node, -1) if isinstance(node, str) else node
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < self.books.topology.size:
            self.refuse(None, f"there is no node {node!r}")
        return index

    def nodes_mask(self, nodes: Iterable[int | str]) -> int:
        """A set of nodes as a bit mask."""
        mask = 0
        for node in nodes:
            mask |= 1 << self.node_index(node)
        return mask

    @property
    def capacity(self) -> Capacity:
        """What is free on each node; to be read only."""
        return self.books.capacity

    def partition(self, job: Job | str) -> PartitionView:
        """Quota, usage, borrowed and share of a job's partition (or of one by name)."""
        return PartitionView(self._leaf(job if isinstance(job, str) else job.demand.leaf.name), self)

    def _leaf(self, name: str) -> Leaf:
        leaf = self.books.tree.by_name.get(name)
        if leaf is None:
            self.refuse(None, f"there is no partition {name!r}")
        return leaf

    def waited(self, job: Job) -> int:
        """How long a waiting job has waited since it was submitted or last stopped."""
        return self.now - job.since

    def move_cost(self, job: Job) -> int:
        """Time for which a job that is moved or stopped holds its GPUs without progress: save and load."""
        costs = self.books.costs
        return costs.checkpoint_us(job) + costs.restart_us(job)

    def speed(self, job: Job, where: Placement | None = None) -> float:
        """Speed of a running job where it is, or of any job at a placement; 1.0 is as recorded."""
        if where is None:
            return job.speed / SPEED_ONE
        return self.books.speeds.speed(job, where) / SPEED_ONE

    @property
    def span_matters(self) -> bool:
        """Whether a gang's speed depends on how far it is spread."""
        return self.books.speeds.spans_matter

    def gpus(self, job: Job) -> int:
        """GPUs that a job holds or has reserved now; 0 while it waits."""
        return job.demand.gpus if job.state in _HOLDING else 0

    def throughput(self, job: Job, gpus: int) -> float:
        """Speed of a job on so many GPUs by its own curve; 1.0 on the GPUs it asks for, 0.0 on none."""
        elastic = job.demand.elastic
        if gpus == 0:
            return 0.0
        if elastic is not None and elastic.takes(gpus):
            return elastic.ratio(gpus)
        if gpus != job.demand.asked:
            refuse_size(self, job, gpus)
        return 1.0

    def free_gpus(self, coming: bool = False) -> int:
        """Count the GPUs that are free now; with ``coming``, those too that are being released and unclaimed."""
        books = self.books
        free = sum(mask.bit_count() for mask in books.capacity.free)
        return free + sum(mask.bit_count() for mask in books.unclaimed.values()) if coming else free

    def gpus_on(self, job: Job, node: int) -> int:
        """GPUs that a running job holds on a node."""
        return gpus_on(job, node)

    def nearest(self, job: Job, count: int) -> list[tuple[int, int]]:
        """Nodes that lack the fewest GPUs for one piece of a waiting job's gang: (node, GPUs it lacks)."""
        return search.nearest(self.books, job.demand, count)

    def freeable(self, job: Job) -> bool:
        """Tell whether a running job may be stopped or moved now."""
        if job.state is not RUNNING or not job.demand.preemptible or self.now < job.hold_until:
            return False
        return job not in self.books.touched or moves.may_settle(self, job)

    # -- reading: places ---------------------------------------------------------------------------------

    def fit(
        self, job: Job, placer: Any = None, avoid: Iterable[int | str] = (), gpus: int | None = None
    ) -> Placement | Blocked:
        """Find where a waiting job would start now, or a running one could move, on GPUs that are free now.

        Falsy with the reason where it does not fit. ``placer`` is another strategy, ``avoid`` nodes to leave out,
        ``gpus`` another number of GPUs for an elastic job (of a running one its own count as free then).
        """
        if gpus is not None:
            return moves.fit_sized(self, job, placer, avoid, gpus)
        demand = job.demand
        avoided = self.nodes_mask(avoid)
        plain = placer is None and not avoided and job.state is not RUNNING
        if plain and demand.blocked_epoch == self.books.epoch:
            return demand.blocked  # type: ignore[no-any-return]  # always a Blocked
        if placer is not None and not hasattr(placer, "place"):
            self.refuse(job, f"{placer!r} is no placement strategy: it has no place() method")
        find = search.search_move if job.state is RUNNING else search.search
        found = find(self.books, job, placer or self.placer, avoided)
        return found if isinstance(found, Blocked) else found[0]

    def room(self, job: Job, by: Order, above: Any, settled: int = 0) -> list[Job] | None:
        """Find who must go so that a waiting job fits: running jobs whose key in ``by`` is above a limit.

        The last in the order go first, no more than needed; jobs that ran less than ``settled`` microseconds
        stay. None: it cannot be done (or quota would refuse the start all the same).
        """
        return self._room(by, settled).victims(job, above)

    def reclaim(self, job: Job, by: Order, settled: int = 0) -> list[Job] | None:
        """Find who must give back what was borrowed, so that a job starts within its partition's guarantee.

        Victims belong to borrowing partitions below the lowest common ancestor; None: there is no such set.
        """
        if not self.books.tree.reclaims:
            self._check_order(by)
            return None
        return self._room(by, settled).reclaim(job)

    def shadow(self, job: Job, by: Order, resolution: int = 1) -> Shadow:
        """Find when a waiting job starts if running jobs end in ``by``, an order by ``plan.ends``; see ``backfill``.

        Times are rounded up to multiples of ``resolution`` microseconds.
        """
        self._need("estimate", "plan.shadow")
        self._check_order(by)
        return Shadow(self, job, by, resolution)

    def calendar(self, resolution: int = 1, window: int | None = None) -> Calendar:
        """Reservations of waiting jobs, brought to this pass: jobs that were promised now have started.

        Times are rounded up to multiples of ``resolution``; starts later than ``window`` from now (None: no bound) are
        not promised; both in microseconds, the same in each pass. Not to be used in a trial.
        """
        self._need("estimate", "plan.calendar")
        if self.books.journal is not None:
            self.refuse(None, "the calendar cannot be used in a trial: what it promises is not undone")
        if self._calendar is None:
            self._calendar = Calendar(self, resolution, FOREVER if window is None else window)
        self._calendar.refresh()
        return self._calendar

    @property
    def backlog(self) -> Backlog:
        """Waiting jobs by shape and by how long they need; for ``candidates``."""
        if self._backlog is None:
            self._need("estimate", "plan.candidates")
            self._backlog = Backlog(self, self.books.waiting.values())
            self.books.waiting_indexes[Order(_needed)] = self._backlog  # type: ignore[assignment]  # kept as an order is
        return self._backlog

    def candidates(self, limit: Callable[[Demand], int] | None = None) -> Candidates:
        """Walk waiting jobs that have no reservation, in order of arrival; ``within`` asks for shorter ones of a shape.

        ``limit`` says so from the beginning, as ``Calendar.limit`` does: how long a job of a demand may need.
        """
        return Candidates(self, self.backlog, limit)

    def _room(self, by: Order, settled: int) -> Room:
        room = self._rooms.get((by, settled))
        if room is None:
            self._check_order(by)
            room = self._rooms[by, settled] = Room(self, by, settled)
        return room

    # -- writing -----------------------------------------------------------------------------------------

    def start(self, job: Job, where: Any = None, gpus: int | None = None) -> Placement | Blocked:
        """Start a waiting job, placed by the run's strategy or at ``where`` (a placement, strategy or nodes).

        Falsy with the reason where it does not fit. On GPUs that are still being released the job is reserved.
        ``gpus``: on so many, for an elastic job; else on those it asks for.
        """
        if gpus is not None:
            return moves.start_sized(self, job, where, gpus)
        books = self.books
        if job.state is not PENDING or (job.barred == books.number and books.touched.get(job) is not None):
            return moves.restart(self, job, where)
        if where is not None:
            return moves.start_at(self, job, where)
        demand = job.demand
        if demand.blocked_epoch == books.epoch:
            blocked: Blocked = demand.blocked  # nothing was freed since it failed: it would fail again
            if demand.token != books.token:
                books.mark_failed(demand, blocked)
            books.refused = job
            return blocked
        option = demand.options[0]
        if demand.plain:
            books.placements += 1
            placement = self.placer.place(books.capacity, job, option, option.mask)
            if placement is None:
                return moves.start_claiming(self, job, search.why_not(books, job, self.placer, demand.options))
        else:
            found = search.search(books, job, self.placer)
            if isinstance(found, Blocked):
                return moves.start_claiming(self, job, found)
            placement, option = found
        books.occupy(job, placement, option)
        if books.journal is not None:
            self.touch(job, None)
        elif job not in books.touched:
            books.touched[job] = None
        return placement

    def backfill(self, job: Job, shadow: Shadow) -> Placement | Blocked:
        """Start a waiting job unless it would, by the estimates, delay the one to which ``shadow`` is promised.

        Falsy with the reason, "behind" where only that is in the way. The promise holds for this pass.
        """
        return shadow.backfill(job)

    def touch(self, job: Job, before: Snapshot | None) -> None:
        """Remember what a job was when the pass began, at the first change to it."""
        touched = self.books.touched
        if job not in touched:
            touched[job] = before
            if self.books.journal is not None:
                self.books.journal.append(lambda: touched.pop(job, None))

    def preempt(self, job: Job, mode: str = "checkpoint") -> None:
        """Stop a running job. Modes: checkpoint (progress kept, GPUs held meanwhile), kill, suspend, cancel."""
        moves.preempt(self, job, mode)

    def replace(self, victims: Iterable[Job], job: Job, mode: str = "checkpoint") -> Placement | Blocked:
        """Preempt the victims and start the job in their place; nothing is preempted if it cannot start then."""
        with self.trial() as trial:
            for victim in victims:
                self.preempt(victim, mode)
            placed = self.start(job)
            if placed:
                trial.keep()
        return placed

    def migrate(self, job: Job, where: Any) -> Placement | Blocked:
        """Move a running job: old GPUs are held while it saves its state, new ones from now on.

        Falsy with the reason where the new place is not free.
        """
        moves.check_stoppable(self, job, "migrated")
        return moves.migrate(self, job, where)

    def resize(self, job: Job, gpus: int, where: Any = None) -> Placement | Blocked:
        """Let a running elastic job go on with so many GPUs: a move, near where it is or at ``where``.

        Falsy with the reason where the GPUs it lacks are not free or a quota refuses them.
        """
        return moves.resize(self, job, gpus, where)

    def wake_at(self, time: int, job: Job | None = None) -> None:
        """Ask for a pass at a future instant; with a job, only while its present stint lasts."""
        if isinstance(time, bool) or not isinstance(time, int):
            self.refuse(job, f"wake_at takes integer microseconds, not {time!r}")
        if time <= self.now:
            self.refuse(job, f"wake_at({time}) is not in the future (now is {self.now})")
        self.wakes.append((time, job))
        self.eventful = True

    def close(self, partition: str) -> None:
        """Offer no more jobs of a partition (and of those below it) in this pass."""
        books = self.books
        leaf = books.tree.by_name.get(partition) or self._leaf(partition)
        for each in leaf.below if leaf.children else (leaf,):
            if books.journal is not None:
                books.journal.append(partial(setattr, each, "closed", each.closed))
            each.closed = books.number
            each.closer = books.refused

    def skip(self, job: Job) -> None:
        """Do not offer this job again in this pass."""
        if self.books.journal is not None:
            was = job.barred
            self.books.journal.append(lambda: setattr(job, "barred", was))
        job.barred = self.books.number

    def note(self, name: str, value: float) -> None:
        """Record a value of the policy's own series at this instant."""
        number = float(value)
        if not isfinite(number):
            self.refuse(None, f"note({name!r}, {value!r}): a series holds finite numbers only")
        self.noted.append((str(name), number))
        self.eventful = True

    def rekey(self, job: Job) -> None:
        """Read the keys of a job again in every order that is kept."""
        books = self.books
        if job.rank in books.waiting:
            for waiting in books.waiting_indexes.values():
                waiting.rekey(job)
        if job.rank in books.running:
            for running in books.running_indexes.values():
                running.remove(job)
                running.add(job)
            books.note_change(job.placement)

    def trial(self) -> Trial:
        """Open a what-if: ``with plan.trial() as trial``; undone unless ``trial.keep()``."""
        return Trial(self)

    # -- for the engine and the trial ----------------------------------------------------------------------

    def refuse(self, job: Job | None, why: str) -> NoReturn:
        """Raise ``IllegalDecision`` in the author's line."""
        raise IllegalDecision(self._policy, self.now, "-" if job is None else job.id, why)

    def written(self) -> tuple[int, int, int]:
        """Lengths of what is only appended to, for ``unwrite``."""
        return len(self.wakes), len(self.noted), len(self.reasons)

    def unwrite(self, lengths: tuple[int, int, int]) -> None:
        """Forget what was appended since."""
        del self.wakes[lengths[0] :]
        del self.noted[lengths[1] :]
        del self.reasons[lengths[2] :]

    def note_completed(self, job: Job) -> None:
        """Remember a completed job until the pass that hears of it."""
        self._completed.append(job)
        self.eventful = True

    def close_pass(self) -> None:
        """Forget what happened before the pass that ends."""
        self.eventful = bool(self.stopped)
        self._completed.clear()
        self.woken.clear()
        self.wakes.clear()
        self.noted.clear()
        self._stopped_before, self.stopped = self.stopped, []
