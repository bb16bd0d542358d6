"""Elastic jobs: on how many GPUs one may run, and where a running one goes on with more of them or fewer.

A resize is a move to a placement with another number of GPUs. Where the policy does not say where, the job stays
where it is as far as the gang rule lets it: first on its own nodes, then on its own whole nodes and others, then
anywhere; of a node that it was on it keeps the GPUs it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from analysim.cluster.capacity import Capacity, lowest_bits
from analysim.jobs import NOWHERE, Demand, Job, Option, Placement
from analysim.plan.blocked import BLOCKED, Blocked
from analysim.plan.books import Books
from analysim.plan.search import Placer, place

if TYPE_CHECKING:
    from analysim.plan.plan import Plan


def check_size(plan: Plan, job: Job, gpus: Any) -> Demand:
    """Return the demand of a job on so many GPUs; refuse what is not one of its sizes."""
    demand = job.demand
    if isinstance(gpus, bool) or not isinstance(gpus, int):
        plan.refuse(job, f"a number of GPUs is an integer, not {gpus!r}")
    if demand.pinned is not None and gpus != demand.gpus:
        plan.refuse(job, f"it is suspended and resumes only on the {demand.gpus} GPUs it had, not on {gpus}")
    elastic = demand.elastic
    if gpus == demand.gpus:
        return demand
    if elastic is None or not elastic.takes(gpus):
        refuse_size(plan, job, gpus)
    return demand.sized(gpus)


def refuse_size(plan: Plan, job: Job, gpus: int) -> NoReturn:
    """Raise ``IllegalDecision`` for a number of GPUs on which a job does not run."""
    elastic = job.demand.elastic
    if elastic is None:
        plan.refuse(job, f"it is not elastic: it asks for {job.demand.asked} GPUs and cannot have {gpus}")
    step = f" in steps of {elastic.step}" if elastic.step > 1 else ""
    plan.refuse(job, f"it runs on {elastic.least} to {elastic.most} GPUs{step}, not on {gpus}")


def sized(job: Job, demand: Demand, ask: Callable[[], Any]) -> Any:
    """Ask something with another demand of the job, which keeps it only if it has started with it."""
    before = job.demand
    state = job.state
    job.demand = demand
    try:
        return ask()
    finally:
        if job.state is state:
            job.demand = before


def search_resized(
    books: Books, job: Job, placer: Placer, avoided: int = 0
) -> tuple[Placement, Option] | Blocked:
    """Find where a running job goes on, its demand being the new one already and its own GPUs counted as free."""
    old, held, demand = job.placement, job.option, job.demand
    assert old is not None and held is not None
    view = books.capacity.copy()
    view.give(old, demand)
    own = dict(old)
    for option in (held, *(other for other in demand.options if other is not held)):
        books.placements += 1
        mask = option.mask & ~avoided
        if getattr(placer, "counts_only", False) and not demand.per_node and demand.domains is None:
            placement = _anywhere(books.capacity, job, option, placer, mask)
        else:
            placement = _near(view, job, option, placer, mask)
        if placement is not None and placement[0][0] != NOWHERE:
            kept = [(node, _keep(own.get(node, 0), books.capacity, node, gpus)) for node, gpus in placement]
            return tuple(kept), option
    return BLOCKED["fragmented"]


def _keep(own: int, capacity: Capacity, node: int, chosen: int) -> int:
    """As many GPUs of a node as were chosen: those that the job has there first, then free ones."""
    count = chosen.bit_count()
    kept = lowest_bits(own, min(count, own.bit_count()))
    return kept | lowest_bits(capacity.free[node], count - kept.bit_count())


def _near(view: Capacity, job: Job, option: Option, placer: Placer, mask: int) -> Placement | None:
    """Place a gang by the gang rule: on its own nodes, on some of its own nodes and others, or anywhere."""
    assert job.placement is not None
    own = sum(1 << node for node, _ in job.placement) & mask
    placement = place(placer, view, job, option, own) if own else None
    if placement is None and own and job.demand.domains is None:
        placement = _extended(view, job, option, placer, own, mask)
    return placement or place(placer, view, job, option, mask)


def _extended(view: Capacity, job: Job, option: Option, placer: Placer, own: int, mask: int) -> Placement | None:
    """Keep own nodes that the gang rule lets the new gang have in full, and place the rest of it beside them."""
    demand = job.demand
    if demand.per_node:
        return _beside(view, job, option, placer, own, demand.per_node, mask)
    if demand.gpus > option.largest:
        for size, nodes in option.node_types:
            whole = own & nodes & view.levels[option.gpu_type][size]
            placement = _beside(view, job, option, placer, whole, size, mask & nodes) if whole else None
            if placement is not None:
                return placement
    return None


def _beside(
    view: Capacity, job: Job, option: Option, placer: Placer, kept: int, each: int, mask: int
) -> Placement | None:
    """Keep ``each`` GPUs on all of some nodes, which are fewer than the gang needs, and place what is missing."""
    missing = job.demand.gpus - each * kept.bit_count()
    if missing <= 0:
        return None
    rest: Placement | None = sized(
        job, job.demand.sized(missing), lambda: placer.place(view, job, option, mask & ~kept)
    )
    if rest is None:
        return None
    here = [(node, view.pick(node, each)) for node in range(kept.bit_length()) if kept >> node & 1]
    return tuple(sorted([*here, *rest]))


def _anywhere(capacity: Capacity, job: Job, option: Option, placer: Placer, mask: int) -> Placement | None:
    """Keep the job's own GPUs of a type, and take any others where more are needed."""
    assert job.placement is not None
    counts: dict[int, int] = {}
    missing = job.demand.gpus
    for node, held in job.placement:
        if mask >> node & 1 and missing:
            counts[node] = min(missing, held.bit_count())
            missing -= counts[node]
    if missing:
        rest: Placement | None = sized(
            job, job.demand.sized(missing), lambda: placer.place(capacity, job, option, mask)
        )
        if rest is None:
            return None
        for node, more in rest:
            counts[node] = counts.get(node, 0) + more.bit_count()
    return tuple((node, (1 << count) - 1) for node, count in sorted(counts.items()))


