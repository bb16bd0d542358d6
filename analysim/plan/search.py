"""Where a job fits: on free GPUs, on GPUs that are being released, at a place that a policy chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from analysim.cluster.capacity import Capacity, bits_of
from analysim.jobs import NOWHERE, Demand, Job, Option, Placement
from analysim.plan.blocked import BLOCKED, Blocked
from analysim.plan.books import Books
from analysim.plan.releases import claimable
from analysim.units import GPU_MILLI

_FRAGMENTED, _NO_FREE_GPUS = BLOCKED["fragmented"], BLOCKED["no free GPUs"]


class Placer(Protocol):
    """What the plan asks of a placement strategy."""

    def place(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """Find a placement on the nodes of ``mask``; None where the job does not fit."""


def place(placer: Placer, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
    """Place a job by a strategy, within one node, NVLink domain, rack or pod where it asks for that.

    Of the domains of a level that hold it, the one with the fewest free GPUs is taken, the first of those.
    """
    levels = job.demand.domains
    if levels is None:
        return placer.place(capacity, job, option, mask)
    for domains in levels:
        if len(domains) == 1:
            placement = placer.place(capacity, job, option, mask & domains[0])
            if placement is not None:
                return placement
            continue
        free = [(capacity.free_milli_within(option.gpu_type, mask & each), each) for each in domains]
        for amount, each in sorted(free, key=lambda pair: pair[0]):
            if amount >= job.demand.gpu_milli:
                placement = placer.place(capacity, job, option, mask & each)
                if placement is not None:
                    return placement
    return None


def find_place(
    capacity: Capacity, job: Job, placer: Placer, options: Sequence[Option], avoided: int = 0
) -> tuple[Placement, Option] | None:
    """Find a place on any of several GPU types: all compared at once where the strategy does that, else in order.

    A job that has to stay within a part of the tree tries them in order under every strategy.
    """
    if len(options) > 1 and job.demand.domains is None and getattr(placer, "across_types", False):
        return placer.place_across(capacity, job, options, avoided)  # type: ignore[attr-defined,no-any-return]
    for option in options:
        placement = place(placer, capacity, job, option, option.mask & ~avoided if avoided else option.mask)
        if placement is not None:
            return placement, option
    return None


def search(books: Books, job: Job, placer: Placer, avoided: int = 0) -> tuple[Placement, Option] | Blocked:
    """Find a place on free GPUs, trying the GPU types in the order written; else the reason.

    A strategy that compares nodes of all types gets those that quota allows at once.
    """
    demand = job.demand
    asked: list[Option] = []
    if getattr(placer, "across_types", False) and len(demand.options) > 1 and demand.pinned is None:
        asked = [option for option in demand.options if not option.bounded or books.admitted(demand, option)]
        books.placements += 1
        found = find_place(books.capacity, job, placer, asked, avoided)
        return found or why_not(books, job, placer, asked, avoided)
    for option in demand.options:
        if option.bounded and not books.admitted(demand, option):
            continue
        asked.append(option)
        if demand.pinned is None:
            books.placements += 1
            mask = option.mask & ~avoided if avoided else option.mask
            placement = place(placer, books.capacity, job, option, mask)
        else:
            placement = demand.pinned if resumes(books.capacity, demand, option, demand.pinned) else None
        if placement is not None:
            return placement, option
    return why_not(books, job, placer, asked, avoided)


def search_move(
    books: Books, job: Job, placer: Placer, avoided: int = 0
) -> tuple[Placement, Option] | Blocked:
    """Find a place that a running job could move to; it counts in its partition already, so quota is not asked."""
    books.placements += 1
    found = find_place(books.capacity, job, placer, job.demand.options, avoided)
    return found if found is not None and found[0][0][0] != NOWHERE else BLOCKED["fragmented"]


def nearest(books: Books, demand: Demand, count: int) -> list[tuple[int, int]]:
    """List up to ``count`` eligible nodes that have not enough free GPUs for a piece of a gang, most free first."""
    found: list[tuple[int, int]] = []
    for option in demand.options:
        levels = books.capacity.levels[option.gpu_type] if demand.gpus else []
        each = demand.per_node or min(demand.gpus, option.largest)
        for free in range(min(each, len(levels)) - 1, -1, -1):
            for node in bits_of(levels[free] & option.mask):
                if len(found) == count:
                    return found
                if books.topology.gpu_count[node] >= each:
                    found.append((node, each - free))
    return found


def resumes(capacity: Capacity, demand: Demand, option: Option, pinned: Placement) -> bool:
    """Tell whether a suspended job finds its GPUs, which are of this type, free, and CPUs and memory for them.

    Its state stayed there: a node that its partition has lost meanwhile takes it back.
    """
    if not all(node < 0 or option.allowed >> node & 1 for node, _ in pinned):
        return False
    if not demand.resources or not capacity.models_resources:
        return capacity.has(pinned, demand)
    hosted = (node < 0 or capacity.hosts(node, mask.bit_count(), demand) for node, mask in pinned)
    return capacity.has(pinned, demand) and all(hosted)


def why_not(
    books: Books, job: Job, placer: Placer, asked: Sequence[Option], avoided: int = 0
) -> Blocked:
    """Say why a job does not fit; ``asked`` are the GPU types that quota allows.

    "resources" is said where any type would do but for CPUs or memory: a job that asks fewer of them may fit.
    """
    demand = job.demand
    capacity = books.capacity
    gpu_milli = demand.gpu_milli
    if demand.resources and capacity.models_resources and _gpus_alone_fit(books, job, placer, asked, avoided):
        return BLOCKED["resources"]
    if len(asked) < len(demand.options):
        return BLOCKED["quota"]
    if demand.domains is not None and _fits_elsewhere(books, job, placer, asked, avoided):
        return BLOCKED["topology"]
    for option in demand.options:
        if capacity.free_milli_within(option.gpu_type, option.mask) >= gpu_milli:
            return _FRAGMENTED
    kinds = range(len(capacity.levels))
    if len(kinds) == 1 and demand.options[0].mask == demand.leaf.nodes:
        return _NO_FREE_GPUS
    anywhere = sum(capacity.free_milli_within(kind, demand.leaf.nodes) for kind in kinds)
    return BLOCKED["type"] if anywhere >= gpu_milli else _NO_FREE_GPUS


def _fits_elsewhere(books: Books, job: Job, placer: Placer, asked: Sequence[Option], avoided: int) -> bool:
    """Tell whether the job would fit if it did not have to stay within a part of the tree."""
    return any(placer.place(books.capacity, job, option, option.mask & ~avoided) for option in asked)


def _gpus_alone_fit(books: Books, job: Job, placer: Placer, asked: Sequence[Option], avoided: int) -> bool:
    """Tell whether the job would fit if it asked for no CPUs and no memory."""
    demand = job.demand
    if not demand.gpus or demand.pinned is not None:
        return True
    demand.resources = False
    try:
        return any(place(placer, books.capacity, job, option, option.mask & ~avoided) for option in asked)
    finally:
        demand.resources = True


def search_claimable(books: Books, job: Job, placer: Placer) -> tuple[Placement, Option] | None:
    """Find a place that may use GPUs which are still being released."""
    view = None if job.demand.sharing else claimable(books.capacity, books.releases)
    if view is None:
        return None
    for option in job.demand.options:
        if job.demand.pinned is None:
            books.placements += 1
            placement = place(placer, view, job, option, option.mask)
        else:
            placement = job.demand.pinned if resumes(view, job.demand, option, job.demand.pinned) else None
        if placement is not None and may_claim(books, job, placement, option):
            return placement, option
    return None


def may_claim(books: Books, job: Job, placement: Placement, option: Option) -> bool:
    """Tell whether quota, CPUs and memory allow a reservation, counting what the claimed GPUs' holders give up."""
    demand = job.demand
    given: list[tuple[Demand, Option, int]] = []
    for node, mask in placement:
        if node < 0:
            continue
        wanted = mask & ~books.capacity.free[node]
        cpu_milli = memory_mb = 0
        for release in books.releases.values():
            count = (release.masks.get(node, 0) & wanted).bit_count()
            holder = release.job.demand
            cpu_milli += count * holder.cpu_milli
            memory_mb += count * holder.memory_mb
            if count and release.charged:
                given.append((holder, release.option, count * GPU_MILLI))
        if demand.resources and not books.capacity.hosts(node, mask.bit_count(), demand, cpu_milli, memory_mb):
            return False
    for holder, held, amount in given:
        books.charge(holder, held, -amount, 0)
    legal = books.admitted(demand, option)
    for holder, held, amount in given:
        books.charge(holder, held, amount, 0)
    return legal


def read_placement(books: Books, job: Job, where: Any) -> tuple[Placement, Option] | str:
    """Check a placement that a policy chose, whether or not it is free now; return what is wrong as text."""
    demand = job.demand
    try:
        pairs = tuple((int(node), int(mask)) for node, mask in where)
    except (TypeError, ValueError):
        return f"{where!r} is not a placement: pairs of (node, mask of GPUs) are expected"
    if demand.gpus == 0:
        anywhere = demand.options[0]
        takes_nothing = not demand.resources or not books.capacity.models_resources
        if pairs == ((NOWHERE, 0),) and takes_nothing:
            return pairs, anywhere
        if len(pairs) == 1 and pairs[0][1] == 0 and pairs[0][0] >= 0 and anywhere.mask >> pairs[0][0] & 1:
            return pairs, anywhere
        return f"a job without GPUs is placed on one node of its partition, with no GPUs: not on {where!r}"
    total = sum(mask.bit_count() for _, mask in pairs)
    if total != demand.gpus or len({node for node, _ in pairs}) != len(pairs):
        return f"the placement has {total} GPUs on {len(pairs)} nodes; the job asks for {demand.gpus} GPUs"
    if demand.per_node and any(mask.bit_count() != demand.per_node for _, mask in pairs):
        return f"the job asks for exactly {demand.per_node} GPUs on each node"
    topology = books.topology
    for node, mask in pairs:
        if not 0 <= node < topology.size or mask <= 0 or mask >> topology.gpu_count[node]:
            return f"node {node} has no GPUs with mask {mask:#b}"
    kind = topology.gpu_type[pairs[0][0]]
    option = next((each for each in demand.options if each.gpu_type == kind), None)
    if option is None or any(not option.mask >> node & 1 for node, _ in pairs):
        return "the placement uses nodes that the job may not use (GPU type or partition)"
    used = sum(1 << node for node, _ in pairs)
    if demand.domains is not None and not any(used & ~each == 0 for domains in demand.domains for each in domains):
        return "the placement spans more of the tree than the job allows"
    if demand.pinned is not None and dict(pairs) != dict(demand.pinned):
        return "a suspended job resumes only on the GPUs it had"
    return pairs, option


def is_free(books: Books, job: Job, placement: Placement, own: Placement = ()) -> bool:
    """Tell whether a placement is free now, what the job itself holds there counted as free."""
    if not books.capacity.has(placement, job.demand, own):
        return False
    held = dict(own)
    for node, mask in placement:
        if node < 0:
            continue
        more = mask & ~held.get(node, 0)
        if job.demand.resources and not books.capacity.hosts(node, more.bit_count(), job.demand):
            return False
    return True
