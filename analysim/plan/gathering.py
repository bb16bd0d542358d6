"""Victims where quota decides: within a quota that refuses, and from those who borrowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from analysim.cluster.partitions import Leaf, borrows, within_guarantee
from analysim.jobs import Demand, Job, Option
from analysim.plan.orders import RunningIndex

if TYPE_CHECKING:
    from analysim.plan.plan import Plan

MOST = 64
"""Candidates looked at for one job."""

ATTEMPTS = 3
"""Sets of victims tried out for one job before it is refused."""

FEW = 8
"""Victims up to which each is tried to be spared, walking the list backwards."""


def pieces(demand: Demand, option: Option) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the ways to split a gang: lists of (nodes, GPUs on each, mask of eligible nodes)."""
    for domains in demand.domains if demand.domains is not None else (None,):
        for domain in domains if domains is not None else (option.mask,):
            yield from _pieces_within(demand, option, option.mask & domain)


def _pieces_within(demand: Demand, option: Option, mask: int) -> Iterator[list[tuple[int, int, int]]]:
    if demand.per_node:
        yield [(demand.gpus // demand.per_node, demand.per_node, mask)]
    elif demand.gpus <= option.largest:
        yield [(1, demand.gpus, mask)]
    else:
        for size, nodes in option.node_types:
            full, rest = divmod(demand.gpus, size)
            yield [(full, size, nodes & mask)] + ([(1, rest, nodes & mask)] if rest else [])


def gpus_on(job: Job, node: int) -> int:
    """GPUs that a running job holds on a node."""
    for where, mask in job.placement or ():
        if where == node:
            return mask.bit_count()
    return 0


def gather(plan: Plan, job: Job, option: Option, candidates: Iterable[Job]) -> list[Job] | None:
    """Collect candidates, in their order, until their GPUs hold the job; keep those on the nodes that do.

    What is found is tried out before it is returned. None: all candidates together make no room.
    """
    books = plan.books
    count, each, mask = next(pieces(job.demand, option))[0]
    ready = sum((nodes & mask).bit_count() for nodes in books.capacity.levels[option.gpu_type][each:])
    chosen: list[Job] = []
    freed: dict[int, int] = {}
    complete: list[int] = []
    attempts = 0
    for victim in islice(candidates, MOST):
        chosen.append(victim)
        for node, held in victim.placement or ():
            if node < 0 or not mask >> node & 1:
                continue
            before = freed.get(node, books.claimable_on(node).bit_count())
            freed[node] = before + held.bit_count()
            if before < each <= freed[node]:
                complete.append(node)
        if complete and (count == 1 or len(complete) + ready >= count):
            needed = [each_job for each_job in chosen if any(gpus_on(each_job, node) for node in complete)]
            if _makes_way(plan, job, needed):
                return _fewest(plan, job, needed)
            attempts += 1
            if attempts == ATTEMPTS:
                return None
            if count == 1:
                complete.clear()
    return None


def _makes_way(plan: Plan, job: Job, victims: list[Job]) -> bool:
    with plan.trial():
        return bool(plan.replace(victims, job))


def _fewest(plan: Plan, job: Job, chosen: list[Job]) -> list[Job]:
    """Spare, walking backwards, each victim without which the job still starts."""
    needed = list(chosen)
    if len(chosen) <= FEW:
        for victim in reversed(chosen):
            rest = [other for other in needed if other is not victim]
            if rest and _makes_way(plan, job, rest):
                needed = rest
    return needed


def may_reclaim(demand: Demand, option: Option) -> bool:
    """Tell whether a start would stay within the guarantee of a partition that reclaims."""
    leaf = demand.leaf
    return any(node.reclaim for node in leaf.path) and within_guarantee(leaf, option.gpu_type, demand.gpu_milli)


def borrowing(plan: Plan, leaf: Leaf, index: RunningIndex, settled: int) -> Iterator[Job]:
    """Yield borrowers last in the order first, for a job of ``leaf``.

    Each one's partition, and every one above it below the lowest common ancestor, is above its guarantee before
    the eviction, counting those yielded before.
    """
    own = set(leaf.path)
    given: dict[Leaf, int] = {}
    leaves = [each for each in plan.books.tree.all if each not in own and each.total.usage > 0]
    entries = merge(*(reversed(list(index.of_leaf(each))) for each in leaves), reverse=True)
    for _, _, victim in entries:
        if not plan.freeable(victim) or plan.now < victim.run_from + settled:
            continue
        below = [each for each in victim.demand.leaf.path if each not in own]
        if all(borrows(each, victim.option.gpu_type, given.get(each, 0)) for each in below):
            for each in below:
                given[each] = given.get(each, 0) + victim.demand.gpu_milli
            yield victim
