"""What surrounds a pass: its net effect, whom to blame when it fails, quota changes, and the end of the run."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from analysim.cluster.partitions import UNBOUNDED, Leaf, PartitionTree
from analysim.config.cluster import QuotaChange
from analysim.config.nodes import expand_names
from analysim.engine.stints import close_stint, waiting_pieces
from analysim.errors import AnalysimError, ConfigError, IllegalDecision, PolicyFailure, TraceError
from analysim.jobs import Job, State, Workload
from analysim.plan.blocked import REASONS
from analysim.plan.plan import Plan
from analysim.plan.snapshot import Snapshot
from analysim.policy.base import Policy
from analysim.tables import CHECKPOINT, DECISIONS, HOLD, SUSPEND
from analysim.units import FOREVER

if TYPE_CHECKING:
    from analysim.engine.simulation import Simulation

PENDING = State.PENDING
RUNNING = State.RUNNING

_ACTION = {name: code for code, name in enumerate(DECISIONS)}
_REASON = {name: code for code, name in enumerate(REASONS)}
_STOPPED = {"checkpoint": "preempt", "kill": "kill", "suspend": "suspend", "cancel": "cancel"}
_START, _RESERVE = _ACTION["start"], _ACTION["reserve"]


def commit(simulation: Simulation, plan: Plan) -> None:
    """Turn what a pass changed into events and records: only the net effect counts."""
    books = simulation.books
    now = books.now
    touched = books.touched
    if touched:
        waiting = books.waiting
        for job, before in touched.items():
            if before is not None:
                _commit_change(simulation, job, before)
                continue
            state = job.state
            if state is PENDING:
                continue
            if waiting.pop(job.rank, None) is not None:
                for index in books.waiting_indexes.values():
                    index.remove(job)
            if state is RUNNING:
                if job.first_start >= 0:
                    simulation.ledger.decisions.pending.extend((now, job.rank, _START, -1))
                simulation.begin(job)
            else:
                simulation.ledger.decisions.pending.extend((now, job.rank, _RESERVE, -1))
        touched.clear()
        simulation._idle_wakes = 0
    if books.fresh:
        if books.pending_count:
            books.settle_fresh()
        books.fresh.clear()
    if plan.reasons:
        for job, blocked in plan.reasons:
            row = (now, job.rank, _ACTION["blocked"], _REASON[blocked.reason])
            simulation.ledger.decisions.pending.extend(row)
        plan.reasons.clear()
    if plan.eventful:
        _commit_writings(simulation, plan)
    if plan.eventful:
        plan.close_pass()


def _commit_writings(simulation: Simulation, plan: Plan) -> None:
    """Arm the wake-ups and record the notes of a pass."""
    for when, woken in plan.wakes:
        if woken is None or woken.state in (State.PENDING, State.RUNNING):
            simulation.arm_wake(when, woken)
    for name, value in plan.noted:
        simulation.ledger.notes.append((simulation.books.now, name, value))


def _commit_change(simulation: Simulation, job: Job, before: Snapshot) -> None:
    """Record what a pass did to a job that was running when it began."""
    books = simulation.books
    now = books.now
    ledger = simulation.ledger
    if before.holds(job):
        return  # stopped and started in place, or moved and moved back: nothing happened
    close_stint(ledger, job, before, now, job._done - before.done)
    job.stint += 1
    if job.state is RUNNING:
        if job.demand.gpus == before.demand.gpus:
            job.migrations += 1
            action = "migrate"
        else:
            simulation.resizes[job.rank] = simulation.resizes.get(job.rank, 0) + 1
            action = "resize"
        simulation.arm_finish(job)
    else:
        action = _STOPPED[before.mode]
        job.preemptions += action != "cancel"
        if job.state is PENDING:
            job.since = now
            books.enqueue(job)
            simulation.plan.stopped.append(job)
            simulation.plan.eventful = True
        elif job.state is State.KILLED:
            simulation.write_end(job, now, State.KILLED)
    ledger.decisions.pending.extend((now, job.rank, _ACTION[action], -1))
    release = books.releases.get(job.rank)
    if release is not None and release.from_us == now:
        simulation.arm_release(release)


def start_initial(simulation: Simulation, plan: Plan) -> None:
    """Start the jobs that ran when the trace begins, before the first pass; what does not fit waits like any other."""
    workload, index_of = simulation.workload, simulation.topology.index_of
    asked = [job for job in simulation.books.fresh if job.id in simulation.initial]
    simulation.initial = frozenset()
    for job in asked:
        names = _names_in(str(workload.value("recorded_node", job.rank)))
        known = bool(names) and all(name in index_of for name in names)
        if not (known and plan.start(job, where=names)) and not plan.start(job):
            simulation.initial_waiting += 1


def _names_in(text: str) -> list[str]:
    """Node names of a recorded list; none where it is no list of names."""
    try:
        return list(dict.fromkeys(expand_names(text))) if text else []
    except ConfigError:
        return []


# -- whom to blame ---------------------------------------------------------------------------------------


def blame(simulation: Simulation, error: BaseException) -> NoReturn:
    """Raise a failure that names the policy, its file and the line."""
    policy = simulation.policy
    where = _place_of(policy, error)
    if isinstance(error, IllegalDecision):
        raise type(error)(error.policy, error.time_us, error.job, f"{error.why}. {where}") from error
    if isinstance(error, AnalysimError) and not isinstance(error, PolicyFailure):
        raise error
    name = "" if isinstance(error, PolicyFailure) else f"{type(error).__name__}: "
    text = error.message if isinstance(error, PolicyFailure) else str(error)
    at = simulation.books.now / 1e6
    raise PolicyFailure(f"policy {policy.name!r} failed at {at:.6f} s, {where}: {name}{text}") from error


@contextmanager
def blaming(simulation: Simulation) -> Iterator[None]:
    """Blame the policy for whatever is raised inside."""
    try:
        yield
    except (Exception, SystemExit) as error:
        blame(simulation, error)


def _place_of(policy: Policy, error: BaseException) -> str:
    file = inspect.getsourcefile(type(policy)) or "its file"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}:{lines[-1]}" if lines else file


def refuse_answer(simulation: Simulation, answer: Any) -> NoReturn:
    """A policy returned something instead of deciding through the plan."""
    policy = simulation.policy
    code = type(policy).schedule.__code__
    what = "a generator (it contains yield)" if inspect.isgenerator(answer) else repr(answer)
    raise PolicyFailure(
        f"policy {policy.name!r}, {code.co_filename}:{code.co_firstlineno}: schedule() returned {what};",
        "it must return nothing and decide through the plan.",
    )


def need_estimates(policy: Policy, tree: PartitionTree, workload: Workload) -> None:
    """Fill missing estimates with the partition's time limit; raise ``TraceError`` where there is none."""
    if policy.knowledge != "estimate":
        return
    missing = workload.frame["estimate_us"].to_numpy() < 0
    if not missing.any():
        return
    limits = [tree.time_limit(leaf) for leaf in tree.all]
    fill = [limits[leaf] for leaf in workload.leaf_of[missing].tolist()]
    without = [rank for rank, limit in zip(missing.nonzero()[0].tolist(), fill, strict=True) if limit >= UNBOUNDED]
    if without:
        first = workload.value("job_id", without[0])
        raise TraceError(
            f"policy {policy.name!r} needs estimates and {len(without)} jobs have none (the first: {first}).",
            "Give --estimates exact, factor:F or lognormal:S, or a time_limit on the partition.",
        )
    workload.frame = workload.frame.copy()
    workload.frame.loc[missing, "estimate_us"] = fill


def need_record(policy: Policy, workload: Workload) -> None:
    """Raise ``TraceError`` where a policy goes by recorded starts and no job has one."""
    if policy.knowledge != "record" or not workload.count:
        return
    if not (workload.frame["recorded_start_us"] >= 0).any():
        raise TraceError(
            f"policy {policy.name!r} needs recorded starts and no job has one.",
            "Name the column that has them with --column start_time=OWN.",
        )


# -- quota changes and the end ---------------------------------------------------------------------------


def change_quota(simulation: Simulation, leaf: Leaf, change: QuotaChange) -> None:
    """Put a quota change in force: it replaces all four amounts, and the nodes where it names some."""
    tree = simulation.tree
    books = simulation.books
    tree.apply(leaf, change)
    if change.nodes is not None:
        tree.change_nodes(leaf, change.nodes)
        for demand in simulation.workload.demands:
            for option in demand.options:
                tree.narrow(option, demand.leaf)
    books.freed()
    simulation.ledger.quota_changes.append((books.now, leaf.full_name))


def end(simulation: Simulation) -> None:
    """Close what is still open: running and waiting jobs are unfinished, and say who starved."""
    books = simulation.books
    until = simulation._until
    still_alive = bool(books.running or books.releases or simulation._next is not None)
    now = until if until < FOREVER and (still_alive or books.pending_count) else books.now
    books.now = now
    simulation.finished_us = now
    if books.pending_count and not still_alive and until == FOREVER:
        simulation.starved = _starved_lines(simulation)
    for job in sorted(books.running.values(), key=lambda job: job.rank):
        close_stint(simulation.ledger, job, job, now, books.progress(job) - job._done)
        simulation.write_end(job, -1, State.UNFINISHED)
    for release in books.releases.values():
        job = release.job
        simulation.ledger.held(job.rank, release.placement, release.from_us, now, CHECKPOINT)
        if job.state is State.CHECKPOINTING:
            simulation.write_end(job, -1, State.UNFINISHED)
    for reservation in books.reserved.values():
        job = reservation.job
        for placement, since in waiting_pieces(reservation.held):
            simulation.ledger.held(job.rank, placement, since, now, HOLD)
        _end_waiting(simulation, job, now)
    for job in [*books.waiting.values(), *books.fresh]:
        if job.demand.pinned is not None:
            simulation.ledger.held(job.rank, job.demand.pinned, job.since, now, SUSPEND)
        _end_waiting(simulation, job, now)
    while simulation._next is not None:
        rank, submit, work, number = simulation._next
        job = Job(rank, submit, work, simulation.workload.demands[number], simulation.workload)
        simulation.write_end(job, -1, State.UNFINISHED)
        simulation._next = next(simulation._rows, None)


def _end_waiting(simulation: Simulation, job: Job, now: int) -> None:
    job.waited += now - job.since
    simulation.write_end(job, -1, State.UNFINISHED)


def _starved_lines(simulation: Simulation) -> list[str]:
    """One line for each demand shape that waits for ever."""
    counts: dict[int, list[Any]] = {}
    for job in sorted([*simulation.books.waiting.values(), *simulation.books.fresh], key=lambda job: job.rank):
        counts.setdefault(job.demand.index, [0, job])[0] += 1
    lines = []
    for count, job in counts.values():
        demand = job.demand
        untried = "no start of it was tried, or only at places that were not free"
        blocked = demand.blocked.reason if demand.blocked is not None else untried
        lines.append(
            f"starved: {count} jobs of {demand.gpus} GPUs in partition {demand.leaf.name!r} "
            f"(first: {job.id}) wait for ever: {blocked}"
        )
    return lines
