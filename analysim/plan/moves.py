"""Starts, stops and moves of one pass, turned into their net effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from analysim.jobs import Demand, Job, Option, Placement, State
from analysim.plan import search
from analysim.plan.blocked import BLOCKED, Blocked
from analysim.plan.releases import claimable
from analysim.plan.sizes import check_size, search_resized, sized

if TYPE_CHECKING:
    from analysim.plan.plan import Plan

MODES = ("checkpoint", "kill", "suspend", "cancel")
"""How a job can be preempted."""


def start_claiming(plan: Plan, job: Job, blocked: Blocked) -> Placement | Blocked:
    """Reserve GPUs that are being released for a job that does not fit on free ones; else mark the failure."""
    books = plan.books
    demand = job.demand
    if books.unclaimed:
        found = search.search_claimable(books, job, plan.placer)
        if found is not None:
            books.reserve(job, *found)
            plan.touch(job, None)
            return found[0]
    if demand.blocked is not blocked:
        plan.reasons.append((job, blocked))
    books.mark_failed(demand, blocked)
    books.refused = job
    return blocked


def start_at(plan: Plan, job: Job, where: Any) -> Placement | Blocked:
    """Start a waiting job at a placement, on named nodes, or by another strategy."""
    books = plan.books
    found = _resolve(plan, job, where, search.search)
    if isinstance(found, Blocked):
        return found
    placement: Placement = found[0]
    option: Option = found[1]
    if search.is_free(books, job, placement):
        if not books.admitted(job.demand, option):
            return BLOCKED["quota"]
        books.occupy(job, placement, option)
    else:
        view = None if job.demand.sharing else claimable(books.capacity, books.releases)
        if view is None or not view.has(placement, job.demand):
            return BLOCKED["no free GPUs"]
        if not search.may_claim(books, job, placement, option):
            return BLOCKED["quota"]
        books.reserve(job, placement, option)
    plan.touch(job, None)
    return placement


def _resolve(plan: Plan, job: Job, where: Any, find: Callable[..., Any]) -> Any:
    """Turn what a policy passed as ``where`` into (placement, option), or a reason why there is none."""
    books = plan.books
    if hasattr(where, "place"):
        return find(books, job, where)
    if isinstance(where, (int, str)):
        where = [where]
    if isinstance(where, list) and where and all(isinstance(node, (int, str)) for node in where):
        chosen = plan.nodes_mask(where)
        return find(books, job, plan.placer, avoided=~chosen)
    read = search.read_placement(books, job, where)
    if isinstance(read, str):
        plan.refuse(job, read)
    return read


def settle(plan: Plan, job: Job) -> None:
    """Before a stop or move: take back what this pass already did to the job; only the net effect counts."""
    books = plan.books
    before = books.touched.get(job)
    if before is not None and before.holds(job):
        return
    if job in books.touched and not books.return_to(job, before):
        plan.refuse(job, "it was moved in this pass and its old GPUs are taken; it cannot be changed again in it")


def may_settle(plan: Plan, job: Job) -> bool:
    """Tell whether what this pass already did to a job can be taken back, so that something else may be done."""
    before = plan.books.touched.get(job)
    return before is None or before.holds(job) or plan.books.can_return(job, before)


def restart(plan: Plan, job: Job, where: Any, gpus: int | None = None) -> Placement | Blocked:
    """Start a job again that this pass stopped: in place nothing happened, elsewhere it is a migration.

    With ``gpus`` it goes on with so many, else with as many as it had.
    """
    books = plan.books
    before = books.touched.get(job)
    if before is None or job.state not in (State.PENDING, State.CHECKPOINTING):
        plan.refuse(job, f"only a pending job can be started; it is {job.state.value}")
    assert before is not None
    with plan.trial() as trial:
        if not books.return_to(job, before):
            if where is None:
                return BLOCKED["no free GPUs"]
            plan.refuse(job, "its old GPUs, which a migration holds while it saves, were given away in this pass")
        placed: Placement | Blocked | None = job.placement
        if gpus is not None:
            placed = _resize(plan, job, gpus, where)
        elif where is not None:
            placed = migrate(plan, job, where)
        if placed:
            trial.keep()
    assert placed is not None
    return placed


def check_stoppable(plan: Plan, job: Job, verb: str) -> None:
    """Refuse to stop or move a job that cannot be; what this pass already did to it is taken back."""
    if job.state is not State.RUNNING:
        plan.refuse(job, f"only a running job can be {verb}; it is {job.state.value}")
    if not job.demand.preemptible:
        plan.refuse(job, f"it is not preemptible and cannot be {verb}")
    settle(plan, job)
    if plan.now < job.hold_until:
        plan.refuse(job, f"it is checkpointing and cannot be {verb} now")


def preempt(plan: Plan, job: Job, mode: str) -> None:
    """Stop a running job; one that this pass started has only to be put back, which ``check_stoppable`` does."""
    if mode not in MODES:
        plan.refuse(job, f"preempt mode {mode!r} is none of {', '.join(MODES)}")
    check_stoppable(plan, job, "preempted")
    if job.state is State.RUNNING:
        books = plan.books
        plan.touch(job, books.stop(job, mode))
        first = books.touched[job]
        assert first is not None
        if books.journal is not None:
            books.journal.append(partial(setattr, first, "mode", first.mode))
        first.mode = mode


def migrate(plan: Plan, job: Job, where: Any) -> Placement | Blocked:
    """Move a running job to a placement, to named nodes, or where another strategy puts it."""
    with plan.trial() as trial:
        placed = start_at(plan, job, where) if job.state is State.PENDING else move(plan, job, where, job.demand)
        if placed:
            trial.keep()
    return placed


def move(plan: Plan, job: Job, where: Any, demand: Demand) -> Placement | Blocked:
    """Move a running job, with its own demand or with that of another number of GPUs."""
    books = plan.books
    old, held = job.placement, job.option
    assert old is not None and held is not None
    find = search.search_move if demand is job.demand else search_resized
    found = sized(job, demand, lambda: _resolve(plan, job, where, find))
    if isinstance(found, Blocked):
        return found
    placement: Placement = found[0]
    option: Option = found[1]
    if dict(placement) == dict(old):
        return old
    if not search.is_free(books, job, placement, own=old):
        return BLOCKED["no free GPUs"]
    if option is not held or demand.gpus > job.demand.gpus:
        books.charge(job.demand, held, -job.demand.gpu_milli, -1)
        legal = books.admitted(demand, option)
        books.charge(job.demand, held, job.demand.gpu_milli, 1)
        if not legal:
            return BLOCKED["quota"]
    plan.touch(job, books.move(job, placement, option, demand))
    return placement


def start_sized(plan: Plan, job: Job, where: Any, gpus: int) -> Placement | Blocked:
    """Start a waiting job on so many GPUs; one that this pass stopped goes on with them."""
    if job.state is not State.PENDING or plan.books.touched.get(job) is not None:
        return restart(plan, job, where, gpus)
    placed: Placement | Blocked = sized(job, check_size(plan, job, gpus), lambda: plan.start(job, where))
    return placed


def resize(plan: Plan, job: Job, gpus: int, where: Any) -> Placement | Blocked:
    """Let a running elastic job go on with so many GPUs."""
    if job.demand.elastic is None:
        plan.refuse(job, f"it is not elastic and cannot be resized to {gpus} GPUs")
    if job.state is State.RUNNING and where is None and type(gpus) is int and gpus == job.demand.gpus:
        assert job.placement is not None
        return job.placement
    with plan.trial() as trial:
        check_stoppable(plan, job, "resized")
        placed = _resize(plan, job, gpus, where)
        if placed:
            trial.keep()
    return placed


def _resize(plan: Plan, job: Job, gpus: int, where: Any) -> Placement | Blocked:
    """Resize a job, what this pass did to it before being settled."""
    if job.state is State.PENDING:  # it was started in this pass
        return start_sized(plan, job, where, gpus)
    demand = check_size(plan, job, gpus)
    if demand is job.demand and where is None:
        assert job.placement is not None
        return job.placement
    return move(plan, job, plan.placer if where is None else where, demand)


def fit_sized(plan: Plan, job: Job, placer: Any, avoid: Iterable[int | str], gpus: int) -> Placement | Blocked:
    """Find where a waiting job would start on so many GPUs, or a running one go on with them."""
    demand = check_size(plan, job, gpus)
    if job.state is not State.RUNNING:
        found: Placement | Blocked = sized(job, demand, lambda: plan.fit(job, placer, avoid))
        return found
    avoided = plan.nodes_mask(avoid)
    placed = sized(job, demand, lambda: search_resized(plan.books, job, placer or plan.placer, avoided))
    return placed if isinstance(placed, Blocked) else placed[0]
