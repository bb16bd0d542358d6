"""The live books of a run: who waits, who runs where, what is free and what is on its way.

Only the plan and the engine write here. Every change is one of a few moves of a job (start, stop, move), each
of which can be taken back exactly, which is what net effects and what-ifs are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysim.cluster.partitions import Leaf, PartitionTree, charge, charge_holder
from analysim.cluster.topology import Topology
from analysim.jobs import Demand, Job, Option, Placement, State
from analysim.plan.blocked import BLOCKED, Blocked
from analysim.plan.holdings import Holdings
from analysim.plan.orders import Group, Order, RunningIndex, WaitingIndex
from analysim.plan.releases import Release, Reservation
from analysim.plan.snapshot import Snapshot, marks_of, split
from analysim.speed import CostModel, SpeedModel, time_needed, work_done

PENDING = State.PENDING
RUNNING = State.RUNNING
RESERVED = State.RESERVED
CHECKPOINTING = State.CHECKPOINTING
_RESOURCES = BLOCKED["resources"]


class Books(Holdings):
    """State of the cluster and of every live job; times in integer microseconds.

    ``token`` changes with every pass and whenever the pass frees something: marks of failure carry it.
    ``epoch`` changes whenever anything is freed: a failure of the same epoch would be repeated.
    ``touched`` holds the jobs that this pass changed, with what they were (None: pending); ``refused`` is the
    job whose start failed last.
    """

    def __init__(self, topology: Topology, tree: PartitionTree, speeds: SpeedModel, costs: CostModel) -> None:
        super().__init__(topology, tree)
        self.speeds = speeds
        self.costs = costs
        self.plain = speeds.uniform and not costs.start_us
        self.face: Any = None
        self.skipping = True
        self.now = 0
        self.number = 0
        self.token = 0
        self.epoch = 0
        self.placements = 0
        self.marks = 0
        self.refused: Job | None = None
        self.fresh: list[Job] = []
        self.waiting: dict[int, Job] = {}
        self.pending_count = 0
        self.running: dict[int, Job] = {}
        self.waiting_indexes: dict[Order | None, WaitingIndex] = {}
        self.running_indexes: dict[Order | None, RunningIndex] = {}
        self._by_node: list[dict[int, Job]] | None = None
        self.watched = False
        self.on_change: list[Callable[[Placement], None]] = []
        self.touched: dict[Job, Snapshot | None] = {}
        self.journal: list[Callable[[], object]] | None = None

    # -- marks of failure ------------------------------------------------------------------------------

    def freed(self) -> None:
        """Something was freed: what failed before may fit now."""
        self.token = self.epoch = self.marks = self.marks + 1

    def offers(self, job: Job) -> bool:
        """Tell whether a walk may yield this job now."""
        if job.state is not PENDING or job.barred == self.number or job.demand.leaf.closed == self.number:
            return False
        if not self.skipping:
            return True
        demand = job.demand
        token = self.token
        if demand.token == token:
            return False
        family = demand.family
        return family.token != token or not family.stops(demand)

    def opens(self, group: Group) -> bool:
        """Tell whether a walk has to look into a group at all."""
        if group.leaf.closed == self.number:
            return False
        family = group.family
        return not (self.skipping and family.token == self.token and group.gpu_milli >= family.blocked_from)

    def passes(self, demand: Demand) -> bool:
        """Tell whether a walk may pass over all jobs of a demand."""
        return demand.leaf.closed == self.number or (
            self.skipping
            and (demand.token == self.token or (demand.family.token == self.token and demand.family.stops(demand)))
        )

    def mark_failed(self, demand: Demand, blocked: Blocked) -> None:
        """Remember that a demand does not fit now, and with it every larger one of its family."""
        if self.journal is not None:
            self.journal.append(marks_of(demand))
        demand.token = self.token
        demand.blocked = blocked
        demand.blocked_epoch = self.epoch
        if demand.pinned is None:
            demand.family.mark(demand, self.token, blocked is not _RESOURCES)

    # -- holdings --------------------------------------------------------------------------------------

    def occupy(self, job: Job, placement: Placement, option: Option) -> None:
        """Start a pending job on free GPUs."""
        demand = job.demand
        self.capacity.take(placement, demand)
        for chain in option.chains:
            charge(chain, demand.gpu_milli)
        if demand.leaf.limited:
            charge_holder(demand, demand.gpu_milli, 1)
        if self.plain and job.first_start < 0:
            now = self.now
            job.placement = placement
            job.option = option
            job.hold_from = job.hold_until = job.run_from = now
            job.ends = now + job._work
        else:
            self._time_stint(job, placement, option)
        job.state = RUNNING
        self.pending_count -= 1
        self.running[job.rank] = job
        if self.watched:
            self._index_running(job)
        if self.journal is not None:
            self.journal.append(lambda: self._put_back(job, None))

    def _time_stint(self, job: Job, placement: Placement, option: Option) -> None:
        now = self.now
        speeds = self.speeds
        job.placement = placement
        job.option = option
        job.hold_from = job.hold_until = now
        if job.first_start < 0:
            job.run_from = now + self.costs.start_us
        elif job.demand.pinned is not None:
            job.run_from = now
        else:
            job.run_from = now + self.costs.restart_us(job)
        if speeds.uniform:
            job.ends = job.run_from + job._work - job._done
        else:
            job.speed = speeds.speed(job, placement)
            job.ends = job.run_from + time_needed(job._work - job._done, job.speed)

    def begin_reserved(self, job: Job) -> None:
        """Start a reserved job whose last GPU is free now."""
        assert job.placement is not None and job.option is not None
        del self.reserved[job.rank]
        self._time_stint(job, job.placement, job.option)
        job.state = RUNNING
        self.enter_running(job)

    def enter_running(self, job: Job) -> None:
        """Enter a job among the running, in every order that is kept."""
        self.running[job.rank] = job
        if self.watched:
            self._index_running(job)

    def _index_running(self, job: Job) -> None:
        for index in self.running_indexes.values():
            index.add(job)
        if self._by_node is not None:
            self._settle_on_nodes(job, self._by_node)
        self.note_change(job.placement)

    def watch(self, change: Callable[[Placement], None]) -> None:
        """Call back with the nodes of every change from now on."""
        self.on_change.append(change)
        self.watched = True

    def jobs_by_node(self) -> list[dict[int, Job]]:
        """Running jobs of each node by rank, kept up from the first use."""
        if self._by_node is None:
            self.watched = True
            self._by_node = [{} for _ in range(self.topology.size)]
            for job in self.running.values():
                self._settle_on_nodes(job, self._by_node)
        return self._by_node

    def _settle_on_nodes(self, job: Job, by_node: list[dict[int, Job]]) -> None:
        for node, _ in job.placement or ():
            if node >= 0:
                by_node[node][job.rank] = job

    def note_change(self, placement: Placement | None) -> None:
        """Tell whoever keeps figures per node that these nodes changed."""
        for changed in self.on_change:
            changed(placement or ())

    def leave_running(self, job: Job) -> list[tuple[Any, int, Job]]:
        """Take a job from among the running; return its entries in the orders."""
        del self.running[job.rank]
        if not self.watched:
            return []
        if self._by_node is not None:
            for node, _ in job.placement or ():
                if node >= 0:
                    del self._by_node[node][job.rank]
        self.note_change(job.placement)
        return [index.remove(job) for index in self.running_indexes.values()]

    def vacate(self, job: Job) -> list[tuple[Any, int, Job]]:
        """Free the GPUs of a running job now."""
        entries: list[tuple[Any, int, Job]] = []
        if self.watched:
            entries = self.leave_running(job)
        else:
            del self.running[job.rank]
        demand = job.demand
        self.capacity.give(job.placement, demand)  # type: ignore[arg-type]  # a running job has a placement
        for chain in job.option.chains:  # type: ignore[union-attr]  # and an option
            charge(chain, -demand.gpu_milli)
        if demand.leaf.limited:
            charge_holder(demand, -demand.gpu_milli, -1)
        self.token = self.epoch = self.marks = self.marks + 1
        return entries

    def reserve(self, job: Job, placement: Placement, option: Option) -> None:
        """Start a pending job on GPUs of which some are still being released."""
        reservation = Reservation(job)
        for node, mask in placement:
            wanted = mask & ~self.capacity.free[node]
            if wanted:
                reservation.missing += wanted.bit_count()
                self._claim(job, node, wanted)
            free = mask ^ wanted
            if free:
                self.capacity.take(((node, free),), job.demand)
                reservation.held.append((node, free, self.now))
            if node >= 0:
                self.capacity.check_node(node)
        self.charge(job.demand, option, job.demand.gpu_milli, 1)
        job.placement = placement
        job.option = option
        job.state = RESERVED
        self.pending_count -= 1
        self.reserved[job.rank] = reservation
        self.note_change(placement)
        if self.journal is not None:
            self.journal.append(lambda: self._put_back(job, None))

    def unreserve(self, job: Job) -> None:
        """Take back a reservation made in this pass."""
        reservation = self.reserved.pop(job.rank)
        assert job.option is not None
        self.charge(job.demand, job.option, -job.demand.gpu_milli, -1)
        for node, mask, _ in reservation.held:
            self.capacity.give(((node, mask),), job.demand)
        for release in self.releases.values():
            for node, mask in release.give_back(job):
                self._flip(node, mask)
                self._hand_over(release, job.demand, node, mask, -1)
        self.note_change(job.placement)
        self.freed()

    def hold(self, job: Job, placement: Placement, until: int, charged: bool) -> None:
        """Keep GPUs of a job that saves its state until then."""
        assert job.option is not None
        self.releases[job.rank] = Release(job, job.option, placement, self.now, until, charged)
        self._flip_unclaimed(self.releases[job.rank])
        self.freed()

    # -- stopping, and taking back ----------------------------------------------------------------------

    def progress(self, job: Job) -> int:
        """Productive microseconds done so far."""
        if job.state is not RUNNING or self.now <= job.run_from:
            return job._done
        return min(job._work, job._done + work_done(self.now - job.run_from, job.speed))

    def stop(self, job: Job, mode: str) -> Snapshot:
        """Stop a running job; return what it was. Modes: checkpoint, kill, suspend, cancel."""
        before = Snapshot(job)
        before.mode = mode
        now = self.now
        saved = self.progress(job)
        if mode in ("kill", "cancel"):
            elapsed = max(0, now - job.run_from)
            saved = min(saved, job._done + self.costs.saved_by_interval(elapsed, job.speed))
        cost = self.costs.checkpoint_us(job) if mode == "checkpoint" and now >= job.run_from else 0
        placement = job.placement
        assert placement is not None
        if cost:
            before.entries = self.leave_running(job)
            self.hold(job, placement, now + cost, charged=True)
            job.state = CHECKPOINTING
            job.ends = now + cost
        else:
            before.entries = self.vacate(job)
            job.state = State.KILLED if mode == "cancel" else PENDING
            self.pending_count += job.state is PENDING
            job.ends = -1
            job.demand = job.demand.pin(placement) if mode == "suspend" else job.demand.base
        job._done = saved
        job.shared = ()
        job.barred = self.number
        if self.journal is not None:
            self.journal.append(lambda: self._put_back(job, before))
        return before

    def move(self, job: Job, placement: Placement, option: Option, demand: Demand) -> Snapshot:
        """Move a running job: old GPUs held while it saves, new ones from now, shared ones once.

        ``demand`` is the job's own, or that of another number of GPUs.
        """
        before = Snapshot(job)
        now = self.now
        old = job.placement
        assert old is not None
        cost = self.costs.checkpoint_us(job) if now >= job.run_from else 0
        job._done = self.progress(job)
        before.entries = self.leave_running(job)
        shared, gone, new = split(old, placement)
        self.capacity.take(new, job.demand)
        if option is not job.option or demand is not job.demand:
            assert job.option is not None
            self.charge(job.demand, job.option, -job.demand.gpu_milli, 0)
            self.charge(demand, option, demand.gpu_milli, 0)
            job.demand = demand
        if cost:
            if gone:
                self.hold(job, gone, now + cost, charged=False)
        else:
            self.capacity.give(gone, job.demand)
            self.freed()
        job.placement, job.option = placement, option
        job.shared = shared if cost else ()
        job.hold_from = now
        job.hold_until = now + cost
        job.run_from = now + cost + self.costs.restart_us(job)
        job.speed = self.speeds.speed(job, placement)
        job.ends = job.run_from + time_needed(job._work - job._done, job.speed)
        self.enter_running(job)
        if self.journal is not None:
            self.journal.append(lambda: self._put_back(job, before))
        return before

    def return_to(self, job: Job, before: Snapshot | None) -> bool:
        """Put a job back to what it was when the pass began; False: its GPUs are gone, nothing is changed."""
        if before is not None and not self._can_return(job, before):
            return False
        after = Snapshot(job)
        if before is not None:
            after.mode = before.mode
        self._put_back(job, before)
        if before is None:
            job.barred = self.number
        if self.journal is not None:
            self.journal.append(lambda: self._redo(job, after))
        return True

    def _put_back(self, job: Job, before: Snapshot | None) -> None:
        """Let go of what a job holds and make it what it was (None: pending)."""
        self._let_go(job)
        if before is None:
            job.state = PENDING
            job.demand = job.demand.base
            job.placement = job.option = None
            job.ends = -1
            self.pending_count += 1
            return
        assert before.state is RUNNING and before.placement is not None and before.option is not None
        self.capacity.take(before.placement, before.demand)
        self.charge(before.demand, before.option, before.demand.gpu_milli, 1)
        before.write_to(job)
        self.running[job.rank] = job
        if self._by_node is not None:
            self._settle_on_nodes(job, self._by_node)
        indexes = list(self.running_indexes.values())
        for index, entry in zip(indexes, before.entries, strict=False):
            index.put_back(entry)
        for index in indexes[len(before.entries) :]:
            index.add(job)
        self.note_change(before.placement)

    def _redo(self, job: Job, after: Snapshot) -> None:
        """Do again what ``return_to`` took back: a start, a reservation, a move or a stop."""
        journal, self.journal = self.journal, None
        assert after.placement is not None and after.option is not None
        if job.state is PENDING:
            redo = self.occupy if after.state is RUNNING else self.reserve
            job.demand = after.demand
            redo(job, after.placement, after.option)
        elif after.state is RUNNING:
            self.move(job, after.placement, after.option, after.demand)
        else:
            self.stop(job, after.mode)
        job.barred = after.barred
        self.journal = journal

    def _can_return(self, job: Job, before: Snapshot) -> bool:
        """Tell whether what a job held before is still free, its own or being released by itself."""
        own = dict(job.placement or ()) if job.state is RUNNING else {}
        release = self.releases.get(job.rank)
        for node, mask in before.placement or ():
            have = own.get(node, 0) | (self.capacity.free[node] if node >= 0 else mask)
            if release is not None:
                have |= release.masks.get(node, 0)
            if mask & ~have and not (before.demand.sharing and self.capacity.has(((node, mask),), before.demand)):
                return False
            holds = node in own or (release is not None and node in release.masks)
            if before.demand.resources and node >= 0 and (mask or not holds):
                held = own.get(node, 0) | (release.masks.get(node, 0) if release is not None else 0)
                if not self.capacity.hosts(node, (mask & ~held).bit_count(), before.demand):
                    return False
        return True

    def _let_go(self, job: Job) -> None:
        """Free whatever a job holds now."""
        state = job.state
        if state is RESERVED:
            self.unreserve(job)
            return
        release = self.releases.pop(job.rank, None)
        if release is not None:
            self.note_change(release.placement)
            self._flip_unclaimed(release)
            self.capacity.give(release.unclaimed, job.demand)
            if release.charged:
                self.charge(job.demand, release.option, -job.demand.gpu_milli, -1)
        if state is RUNNING:
            self.vacate(job)
        elif state is PENDING:
            self.pending_count -= 1
        self.freed()

    # -- orders ----------------------------------------------------------------------------------------

    def waiting_index(self, order: Order | None) -> WaitingIndex:
        """Return the index of waiting jobs in an order, built at its first use."""
        index = self.waiting_indexes.get(order)
        if index is None:
            index = self.waiting_indexes[order] = WaitingIndex(order, self)
            index.add_all(self.waiting.values())
        return index

    def running_index(self, order: Order | None) -> RunningIndex:
        """Return the index of running jobs in an order, built at its first use."""
        index = self.running_indexes.get(order)
        if index is None:
            self.watched = True
            index = self.running_indexes[order] = RunningIndex(order, self)
            for job in self.running.values():
                index.add(job)
        return index

    def enqueue(self, job: Job) -> None:
        """Enter a job that goes on waiting when a pass ends."""
        self.waiting[job.rank] = job
        for index in self.waiting_indexes.values():
            index.add(job)

    def settle_fresh(self) -> None:
        """The jobs of this instant that did not start begin to wait."""
        if len(self.fresh) == 1:
            if self.fresh[0].state is PENDING:
                self.enqueue(self.fresh[0])
            return
        still = [job for job in self.fresh if job.state is PENDING]
        self.waiting.update((job.rank, job) for job in still)
        for index in self.waiting_indexes.values():
            index.add_all(still)

    def release(self, release: Release) -> None:
        """Free what a job held while it saved its state, but for what was claimed."""
        job = release.job
        del self.releases[job.rank]
        free = release.unclaimed
        self._flip_unclaimed(release)
        self.capacity.give(free, job.demand)
        if release.charged:
            amount = sum(mask.bit_count() for _, mask in free) * job.demand.share
            self.charge(job.demand, release.option, -amount, -1)
        self.note_change(free)
        self.freed()

    def dequeue(self, job: Job) -> None:
        """Take out a job that waits no longer."""
        if self.waiting.pop(job.rank, None) is not None:
            for index in self.waiting_indexes.values():
                index.remove(job)

    def usage(self, leaf: Leaf) -> int:
        """Count what a partition has in use, in thousandths of a GPU."""
        if self.tree.bounded:
            return leaf.total.usage
        jobs = [*self.running.values(), *(reservation.job for reservation in self.reserved.values())]
        used = sum(job.demand.gpu_milli for job in jobs if leaf in job.demand.leaf.path)
        for release in self.releases.values():
            if release.charged and leaf in release.job.demand.leaf.path:
                used += sum(mask.bit_count() for mask in release.masks.values()) * release.job.demand.share
        return used
