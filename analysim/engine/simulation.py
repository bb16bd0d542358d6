"""The simulation: SimPy's clock, the events of each instant, then one scheduling pass."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysim.cluster.partitions import PartitionTree
from analysim.cluster.topology import Topology
from analysim.cluster.watched import WatchedCapacity
from analysim.config.cluster import ClusterConfig
from analysim.config.run import RunConfig
from analysim.engine import passes
from analysim.engine.admission import Admission
from analysim.engine.events import ARRIVE, FINISH, QUOTA, RELAX, TICK, WAKE, WITHDRAW, Clock, Occurrence
from analysim.engine.invariants import Auditor
from analysim.engine.stints import close_stint, waiting_pieces
from analysim.engine.tables import build_tables
from analysim.engine.watchdog import Watchdog
from analysim.errors import PolicyFailure
from analysim.jobs import JOB_VIEWS, Job, State
from analysim.ledger import Ledger
from analysim.plan.books import Books
from analysim.plan.plan import Plan
from analysim.plan.releases import Release
from analysim.policy.base import Policy
from analysim.policy.placers import PLACERS
from analysim.speed import CostModel, SpeedModel
from analysim.tables import CHECKPOINT, HOLD, SUSPEND, RunTables
from analysim.units import FOREVER

PENDING = State.PENDING
RUNNING = State.RUNNING
COMPLETED = State.COMPLETED
KILLED = State.KILLED

MAX_ROUNDS = 1_000
"""Passes at one instant before the run fails: the policy makes something happen at no cost for ever."""

MAX_IDLE_WAKES = 100
"""Wake-ups in a row without a decision, nothing running and nothing to come, before jobs count as starved."""

_CHUNK = 4_096
_COLLECT_AFTER = 200_000
_MANY_JOBS = 20_000
_REPORT_EVERY = 256
_PACK_EVERY = 128


@dataclass(frozen=True)
class Progress:
    """Where a run is: simulated seconds, and jobs."""

    now_s: float
    jobs_done: int
    jobs_total: int
    jobs_pending: int


class Simulation:
    """One run of a policy over a trace on a cluster.

    ``frame`` has the canonical columns of a trace, sorted by (submit, id); ``initial`` are the ids of jobs that hold
    GPUs when it begins, where they were recorded if the cluster has those nodes. ``advance`` and ``commit`` are the
    primitives; ``run`` is a loop over them. Raises ``PolicyFailure`` when the policy fails or breaks the rules.
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        cluster: ClusterConfig,
        policy: Policy,
        config: RunConfig,
        *,
        check: bool = False,
        report: Callable[[Progress], None] | None = None,
        skip_shapes: bool = True,
        initial: frozenset[Any] = frozenset(),
    ) -> None:
        self.policy = policy
        self.topology = Topology(cluster)
        self.tree = PartitionTree(self.topology)
        placer = PLACERS[config.placement](config.seed)
        self.workload = Admission(self.topology, self.tree, placer.counts_only, config).admit(frame)
        passes.need_record(policy, self.workload)
        passes.need_estimates(policy, self.tree, self.workload)
        speeds = SpeedModel(self.topology, self.workload.elastic)
        self.books = Books(self.topology, self.tree, speeds, CostModel(config.costs))
        self.books.skipping = skip_shapes
        if placer.watches:
            self.books.capacity = WatchedCapacity(self.topology)
        placer.begin(self.topology, self.workload)
        self.plan = Plan(self.books, placer, policy)
        self.ledger = Ledger()
        self.env = Clock(initial_time=int(self.workload.submit_us[0]) if self.workload.count else 0)
        self.start_us = int(self.env.now)
        self.passes = 0
        self.events = 0
        self.rounds = 0
        self.starved: list[str] = []
        self.initial = initial
        self.initial_waiting = 0
        self.ended = 0
        self.resizes: dict[int, int] = {}
        self.finished_us = self.start_us
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self._config = config
        self._until = FOREVER if config.until is None else self.start_us + config.until
        self._auditor = Auditor(self) if check else None
        self._report = report
        self._view = JOB_VIEWS[policy.knowledge]
        self._shortened = self.workload.shortened
        self._plain = self.books.plain and not self._shortened
        self._hears = policy.knowledge != "none"
        self._dirty = False
        self._arrived = False
        self._attention = policy.attention
        self._idle_wakes = 0
        self._tick_at = -1
        self._wakes: set[tuple[int, int]] = set()
        self._pass_at = -1
        self._finishing: list[Callable[[Any], None]] = [self._on_finish]
        self._rows = self._arrivals()
        self._next = next(self._rows, None)
        self._arriving: list[Callable[[Any], None]] = [self._on_arrival]
        self._arrival = Occurrence(self._arriving, None)
        self._arm_quota_changes()
        if self._next is not None:
            self.env.schedule(self._arrival, ARRIVE, self._next[1] - self.start_us)  # type: ignore[arg-type]  # phases are our priorities

    # -- events ------------------------------------------------------------------------------------------

    def _arrivals(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (rank, submit, work, demand number) of the admitted jobs, in chunks of Python integers."""
        workload = self.workload
        for first in range(0, workload.count, _CHUNK):
            part = slice(first, first + _CHUNK)
            submits = workload.submit_us[part].tolist()
            works = workload.work_us[part].tolist()
            demands = workload.demand_of[part].tolist()
            ranks = range(first, first + len(submits))
            for row in zip(ranks, submits, works, demands, strict=True):
                if row[3] >= 0:
                    yield row

    def _at(self, when: int, phase: int, handler: Callable[[Any], None], what: Any) -> None:
        event = Occurrence([handler], what)
        self.env.schedule(event, phase, when - self.books.now)  # type: ignore[arg-type]  # phases are our priorities

    def arm_finish(self, job: Job) -> None:
        event = Occurrence(self._finishing, job)
        self.env.schedule(event, FINISH, job.ends - self.books.now)  # type: ignore[arg-type]  # phases are our priorities

    def _on_arrival(self, event: Occurrence) -> None:
        books = self.books
        fresh = books.fresh
        now = books.now
        row = self._next
        workload = self.workload
        view = self._view
        demands = workload.demands
        cancels, relaxes = workload.has_cancels, workload.relaxes
        while row is not None and row[1] == now:
            job = view(row[0], now, row[2], demands[row[3]], workload)
            row = next(self._rows, None)
            if cancels and not self._arm_withdrawal(job):
                continue
            if relaxes and job.demand.relaxed is not None:
                self._at(now + job.demand.relax_us, RELAX, self._on_relax, job)
            fresh.append(job)
            books.pending_count += 1
        self._next = row
        self._arrived = True
        if row is not None:
            event.callbacks = self._arriving
            self.env.schedule(event, ARRIVE, row[1] - now)  # type: ignore[arg-type]  # phases are our priorities

    def _arm_withdrawal(self, job: Job) -> bool:
        """Arm a job's withdrawal; False: it was withdrawn before it came."""
        when = self.workload.amount("cancel_us", job.rank)
        if when < 0:
            return True
        if when <= job.submit:
            self.write_end(job, job.submit, State.CANCELLED)
            return False
        self._at(when, WITHDRAW, self._on_withdrawal, job)
        return True

    def _on_withdrawal(self, event: Occurrence) -> None:
        job: Job = event.what
        if job.state is not PENDING:
            return
        books = self.books
        books.dequeue(job)
        books.fresh = [other for other in books.fresh if other is not job]
        books.pending_count -= 1
        job.waited += books.now - job.since
        self.write_end(job, books.now, State.CANCELLED)
        self._dirty = True

    def _on_relax(self, event: Occurrence) -> None:
        """A job has waited long enough for the level of the tree that it prefers."""
        job: Job = event.what
        if job.state.code >= 0:
            return  # it has ended
        books = self.books
        waiting = job.rank in books.waiting
        if waiting:
            books.dequeue(job)
        relaxed, pinned = self.workload.demands[job.demand.index].relaxed, job.demand.pinned
        assert relaxed is not None
        sized = relaxed.sized(job.demand.gpus)
        job.demand = sized if pinned is None else sized.pin(pinned)
        if waiting:
            books.enqueue(job)
            self._dirty = True

    def _on_finish(self, event: Occurrence) -> None:
        job: Job = event.what
        books = self.books
        now = books.now
        if job.ends != now or job.state is not RUNNING:
            return  # a stale event: the job was stopped or moved since
        books.vacate(job)
        work = job._work
        if job.stint == 1 and self._plain:
            job.state = COMPLETED
            self.ended += 1
            ledger = self.ledger
            rows = ledger.plain.pending
            for node, mask in job.placement:  # type: ignore[union-attr]  # it ran somewhere
                rows.extend((job.rank, job.run_from, now, node, ledger.number(mask)))
        else:
            close_stint(self.ledger, job, job, now, work - job._done)
            killed = self._shortened and work < self.workload.duration_us[job.rank]
            self.write_end(job, now, KILLED if killed else COMPLETED)
        job._done = work
        if self._hears:
            self.plan.note_completed(job)
        self._dirty = True

    def write_end(self, job: Job, end: int, state: State) -> None:
        """Record how a job ended; -1: it has not."""
        job.state = state
        self.ended += 1
        row = (job.rank, job.first_start, end, state.code, job.waited, job.preemptions, job.migrations)
        self.ledger.ends.pending.extend(row)

    def _on_release(self, event: Occurrence) -> None:
        release: Release = event.what
        books = self.books
        job = release.job
        if books.releases.get(job.rank) is not release:
            return
        now = books.now
        self.ledger.held(job.rank, release.placement, release.from_us, now, CHECKPOINT)
        books.release(release)
        for claimant, node, mask in release.claims:
            reservation = books.reserved[claimant.rank]
            if reservation.receive(node, mask, now):
                for placement, since in waiting_pieces(reservation.held):
                    self.ledger.held(claimant.rank, placement, since, now, HOLD)
                books.begin_reserved(claimant)
                self.begin(claimant)
        if job.state is State.CHECKPOINTING:
            job.state = PENDING
            job.demand = job.demand.base
            job.since = now
            books.pending_count += 1
            books.fresh.append(job)
        self._dirty = True

    def _on_wake(self, event: Occurrence) -> None:
        job, stint = event.what
        now = self.books.now
        self._wakes.discard((now, -1 if job is None else job.rank))
        if job is not None:
            if job.stint != stint or job.state not in (PENDING, RUNNING):
                return
            self.plan.rekey(job)
            self.plan.woken.append(job)
            self.plan.eventful = True
        self._idle_wakes += 1
        self._dirty = True

    def _on_tick(self, event: Occurrence) -> None:
        self._dirty = True

    def _arm_quota_changes(self) -> None:
        self._changes_to_come = 0
        self.books.now = self.plan.now = self.start_us
        for leaf in self.tree.all:
            for change in leaf.config.changes if leaf.config else ():
                self._changes_to_come += 1
                self._at(self.start_us + change.time, QUOTA, self._on_quota_change, (leaf, change))

    def _on_quota_change(self, event: Occurrence) -> None:
        leaf, change = event.what
        self._changes_to_come -= 1
        passes.change_quota(self, leaf, change)
        self._dirty = True

    # -- the loop ----------------------------------------------------------------------------------------

    def advance(self) -> Plan | None:
        """Apply events up to the next instant that needs a pass; None: the run is over."""
        env = self.env
        peek, step_instant = env.peek, env.step_instant
        books = self.books
        idle_passes = self.plan.wants_idle_passes
        heeds_all = self._attention == "all"
        every = self._config.schedule_every
        plan = self.plan
        running = books.running
        until = self._until
        events = 0
        while True:
            now = peek()
            if now > until or (not running and not self._goes_on()):
                self.events += events
                return None
            books.now = plan.now = now  # type: ignore[assignment]  # the clock is fed integers only
            events += step_instant(now)
            if self._auditor is not None:
                self._auditor.check()
            if not self._dirty:
                if not self._arrived:
                    continue
                if not heeds_all and books.pending_count > len(books.fresh) and self._brings_no_news():
                    self._arrived = False
                    books.settle_fresh()
                    books.fresh.clear()
                    continue
            if not books.pending_count and not idle_passes:
                self._dirty = self._arrived = False  # nothing to decide; the next pass hears of it
            elif every and now % every:
                self._arm_tick(every)
            else:
                self.events += events
                break
        self._dirty = self._arrived = False
        self.passes += 1
        if now == self._pass_at:
            self._count_round()
        else:
            self._pass_at = books.now
            self.rounds = 1
        if not self.passes % _PACK_EVERY:
            self.ledger.pack()
        books.number += 1
        books.token = books.marks = books.marks + 1
        return plan

    def _brings_no_news(self) -> bool:
        """Tell whether nothing happened but arrivals for which the policy wants no pass (``policy.base.Attention``)."""
        books = self.books
        only_room = self._attention == "room"
        indexes = books.waiting_indexes.values()
        for job in books.fresh:
            demand = job.demand
            closer = None
            if only_room:
                if demand.blocked_epoch == books.epoch:
                    continue  # the same request failed, and nothing was freed since
                leaf = demand.leaf
                if leaf.closed == books.number and leaf.closer is not None and leaf.closer.state is PENDING:
                    closer = leaf.closer
            if not indexes:
                return False
            for index in indexes:
                if not index.stands_behind(job, closer):
                    return False
        return True

    def _goes_on(self) -> bool:
        """With nothing running, tell whether anything is still to come but wake-ups that nobody can use."""
        if self.books.releases or self._next is not None:
            return True
        return self.books.pending_count > 0 and (self._changes_to_come > 0 or self._idle_wakes < MAX_IDLE_WAKES)

    def _arm_tick(self, every: int) -> None:
        when = -(-self.books.now // every) * every
        if self._tick_at != when:
            self._tick_at = when
            self._at(when, TICK, self._on_tick, None)

    def _count_round(self) -> None:
        self.rounds += 1
        if self.rounds > MAX_ROUNDS:
            raise PolicyFailure(
                f"policy {self.policy.name!r} at {self.books.now / 1e6:.6f} s: {MAX_ROUNDS} passes at one instant;",
                "it keeps making something happen that takes no time.",
            )

    def commit(self, plan: Plan) -> None:
        """Make the net effect of a pass happen, and record it."""
        passes.commit(self, plan)
        if self._auditor is not None:
            self._auditor.check()

    def begin(self, job: Job) -> None:
        """A stint begins at this instant: count the wait that ends, arm the finish."""
        now = self.books.now
        if job.since != now:
            job.waited += now - job.since
        job.stint += 1
        if job.first_start < 0:
            job.first_start = now
        pinned = job.demand.pinned
        if pinned is not None:
            self.ledger.held(job.rank, pinned, job.since, now, SUSPEND)
            job.demand = self.workload.demands[job.demand.index].sized(job.demand.gpus)
        event = Occurrence(self._finishing, job)
        self.env.schedule(event, FINISH, job.ends - now)  # type: ignore[arg-type]  # phases are our priorities

    def arm_release(self, release: Release) -> None:
        """Arm the instant at which held GPUs become free."""
        self._at(release.until_us, FINISH, self._on_release, release)

    def arm_wake(self, when: int, job: Job | None) -> None:
        """Arm a wake-up, merging duplicates."""
        key = (when, -1 if job is None else job.rank)
        if key not in self._wakes:
            self._wakes.add(key)
            self._at(when, WAKE, self._on_wake, (job, 0 if job is None else job.stint))

    def run(self) -> RunTables:
        """Run to the end and return the tables. Garbage is collected seldom while the engine runs."""
        thresholds = gc.get_threshold()
        if self.workload.count > _MANY_JOBS:
            gc.collect()  # an earlier run is garbage in cycles, which would be kept with the rest
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER, *thresholds[1:])
        began = time.perf_counter()
        cpu_began = time.process_time()
        try:
            with Watchdog(self, self._config.pass_seconds):
                self._loop()
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            self.seconds = time.perf_counter() - began
            self.cpu_seconds = time.process_time() - cpu_began
        self._end()
        return build_tables(self)

    def _loop(self) -> None:
        schedule = self.policy.schedule
        commit = passes.commit if self._auditor is None else type(self).commit
        report = self._report
        last = time.monotonic()
        with passes.blaming(self):
            self.policy.begin(self.plan)
        while (plan := self.advance()) is not None:
            if self.initial:
                passes.start_initial(self, plan)
            try:
                answer = schedule(plan)
            except (Exception, SystemExit) as error:
                passes.blame(self, error)
            if answer is not None:
                passes.refuse_answer(self, answer)
            commit(self, plan)
            if report is not None and self.passes % _REPORT_EVERY == 0 and time.monotonic() - last > 0.2:
                last = time.monotonic()
                report(self.progress())

    def progress(self) -> Progress:
        """Say where the run is."""
        return Progress(self.books.now / 1e6, self.ended, self.workload.count, self.books.pending_count)

    def _end(self) -> None:
        passes.end(self)

    @property
    def facts(self) -> dict[str, Any]:
        """Counts and times of the run, and one line for each demand shape that starved."""
        return {
            "events": self.events,
            "passes": self.passes,
            "placements": self.books.placements,
            "engine_seconds": self.seconds,
            "starved": self.starved,
            "initial_waiting": self.initial_waiting,
        }
