"""Who must go so that a waiting job fits.

The *price* of g GPUs on a node is the smallest key among the jobs that would have to leave it when the last in
the order leave first: a job may take them when the price is above its limit. Prices are kept per node and
refreshed only where something changed, and the best price is remembered, so a refusal costs one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from analysim.jobs import Demand, Job, Option, Placement
from analysim.plan.orders import Order

if TYPE_CHECKING:
    from analysim.plan.plan import Plan

Price = tuple[int, Any]
IMPOSSIBLE: Price = (-1, 0)
FREE: Price = (1, 0)

CANDIDATES = 16
"""Nodes looked at, dearest first, before a request for room is refused."""

Spare = Callable[[Job], bool] | None


def pieces(demand: Demand, option: Option) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the ways to split a gang: lists of (nodes, GPUs on each, mask of eligible nodes)."""
    if demand.per_node:
        yield [(demand.gpus // demand.per_node, demand.per_node, option.mask)]
    elif demand.gpus <= option.largest:
        yield [(1, demand.gpus, option.mask)]
    else:
        for size, nodes in option.node_types:
            full, rest = divmod(demand.gpus, size)
            mask = nodes & option.mask
            yield [(full, size, mask)] + ([(1, rest, mask)] if rest else [])


class Room:
    """Prices of GPUs by node under one order of the running jobs."""

    def __init__(self, plan: Plan, order: Order) -> None:
        self._plan = plan
        self._books = plan.books
        self._index = plan.books.running_index(order)
        self._prices: list[list[Price]] = [[] for _ in range(plan.books.topology.size)]
        self._best: dict[tuple[int, int], tuple[Price, int] | None] = {}
        self._stale = set(range(plan.books.topology.size))
        plan.books.watch(self._note)

    def _note(self, placement: Placement) -> None:
        for node, _ in placement:
            if node >= 0:
                self._stale.add(node)

    def victims(self, job: Job, above: Any, spare: Spare) -> list[Job] | None:
        """Choose the victims for a job among running jobs with a key above the limit; None: not enough."""
        entries = self._index.entries
        if not entries or not entries[-1][0] > above or not job.demand.gpus:
            return None
        for option in job.demand.options:
            if not self._books.admitted(job.demand, option):
                found = self._within_quota(job, option, above, spare)
            elif getattr(self._plan.placer, "counts_only", False):
                found = self._anywhere(job.demand, option, above, spare)
            else:
                found = self._on_nodes(job.demand, option, above, spare)
            if found:
                return found
        return None

    def _within_quota(self, job: Job, option: Option, above: Any, spare: Spare) -> list[Job] | None:
        """First make the start legal, then make room for it."""
        books = self._books
        chosen: list[Job] = []
        for victim in self._last_first(above, spare):
            if books.relieves(victim, job.demand, option):
                books.charge(victim.demand, victim.option, -victim.demand.gpu_milli, -1)
                chosen.append(victim)
                if books.admitted(job.demand, option):
                    break
        legal = books.admitted(job.demand, option)
        for victim in chosen:
            books.charge(victim.demand, victim.option, victim.demand.gpu_milli, 1)
        if not legal:
            return None
        with self._plan.trial():
            for victim in chosen:
                self._plan.preempt(victim, "kill")
            if self._plan.fit(job):
                return chosen
            more = self._on_nodes(job.demand, option, above, spare)
        return None if more is None else chosen + more

    def _last_first(self, above: Any, spare: Spare) -> Iterator[Job]:
        plan = self._plan
        for key, _, job in reversed(self._index.entries):
            if not key > above:
                return
            if plan.freeable(job) and not (spare is not None and spare(job)):
                yield job

    def _anywhere(self, demand: Demand, option: Option, above: Any, spare: Spare) -> list[Job] | None:
        """Victims where any GPUs of the type will do."""
        missing = demand.gpus - self._books.claimable_gpus(option)
        chosen: list[Job] = []
        for victim in self._last_first(above, spare):
            if missing <= 0:
                break
            held = held_on(victim, option.mask)
            if held:
                chosen.append(victim)
                missing -= held
        if missing > 0:
            return None
        for victim in reversed(chosen[:]):
            if missing + held_on(victim, option.mask) <= 0:
                missing += held_on(victim, option.mask)
                chosen.remove(victim)
        return chosen

    def _on_nodes(self, demand: Demand, option: Option, above: Any, spare: Spare) -> list[Job] | None:
        self._refresh()
        limit: Price = (0, above)
        for split in pieces(demand, option):
            if all(self._best_price(gpus, mask) > limit for _, gpus, mask in split):
                found = self._choose(demand, split, limit, spare)
                if found:
                    return found
        return None

    def _best_price(self, gpus: int, mask: int) -> Price:
        best = self._best.get((gpus, mask))
        if best is None:
            price, node = max(
                ((self._price(node, gpus), -node) for node in range(len(self._prices)) if mask >> node & 1),
                default=(IMPOSSIBLE, 0),
            )
            best = self._best[gpus, mask] = (price, -node)
        return best[0]

    def _price(self, node: int, gpus: int) -> Price:
        prices = self._prices[node]
        return prices[gpus] if gpus < len(prices) else IMPOSSIBLE

    def _refresh(self) -> None:
        for node in self._stale:
            self._prices[node] = self._prices_of(node)
            for (gpus, mask), best in self._best.items():
                if best is not None and mask >> node & 1:
                    price = self._price(node, gpus)
                    if node == best[1]:
                        if price < best[0]:
                            self._best[gpus, mask] = None
                        else:
                            self._best[gpus, mask] = (price, node)
                    elif price > best[0] or (price == best[0] and node < best[1]):
                        self._best[gpus, mask] = (price, node)
        self._stale.clear()

    def _prices_of(self, node: int) -> list[Price]:
        free = self._books.claimable_on(node).bit_count()
        prices: list[Price] = [FREE] * (free + 1)
        for job in self._jobs_last_first(node):
            price = (0, self._index.key(job))
            prices.extend([price] * gpus_on(job, node))
        return prices

    def _jobs_last_first(self, node: int) -> list[Job]:
        plan = self._plan
        jobs = [job for job in self._books.jobs_by_node()[node].values() if plan.freeable(job)]
        jobs.sort(key=lambda job: (self._index.key(job), job.rank), reverse=True)
        return jobs

    def _choose(
        self, demand: Demand, split: list[tuple[int, int, int]], limit: Price, spare: Spare
    ) -> list[Job] | None:
        """Pick the dearest nodes for each piece; return the least that must leave them."""
        needs: dict[int, int] = {}
        victims: dict[int, Job] = {}
        for count, gpus, mask in split:
            found = 0
            for price, minus in self._dearest(count, gpus, mask, needs):
                if not price > limit:
                    break
                leaving = self._leaving(demand, -minus, gpus, limit, spare)
                if leaving is None:
                    continue
                needs[-minus] = gpus
                victims.update((job.rank, job) for job in leaving)
                found += 1
                if found == count:
                    break
            if found < count:
                return None
        return self._least(needs, victims)

    def _dearest(self, count: int, gpus: int, mask: int, taken: dict[int, int]) -> Iterator[tuple[Price, int]]:
        best = self._best[gpus, mask]
        if count == 1 and best is not None and best[1] not in taken:
            yield best[0], -best[1]
        nodes = (node for node in range(len(self._prices)) if mask >> node & 1 and node not in taken)
        prices = ((self._price(node, gpus), -node) for node in nodes)
        ranked = nlargest(count + CANDIDATES, prices)
        yield from ranked[1:] if count == 1 and best is not None and best[1] not in taken else ranked

    def _leaving(
        self, demand: Demand, node: int, gpus: int, limit: Price, spare: Spare
    ) -> list[Job] | None:
        """Jobs that must leave a node for so many GPUs; None where that is not allowed or not enough."""
        books = self._books
        missing = gpus - books.claimable_on(node).bit_count()
        leaving: list[Job] = []
        for job in self._jobs_last_first(node):
            if missing <= 0 and books.would_host(node, gpus, demand, leaving):
                break
            if not (0, self._index.key(job)) > limit:
                return None
            if spare is None or not spare(job):
                leaving.append(job)
                missing -= gpus_on(job, node)
        if missing > 0 or not books.would_host(node, gpus, demand, leaving):
            return None
        return leaving

    def _least(self, needs: dict[int, int], victims: dict[int, Job]) -> list[Job]:
        """Spare, most valuable first, each victim without which there is still room."""
        spareable = {
            node: self._books.claimable_on(node).bit_count()
            + sum(gpus_on(job, node) for job in victims.values())
            - gpus
            for node, gpus in needs.items()
        }
        ordered = sorted(victims.values(), key=lambda job: (self._index.key(job), job.rank))
        kept = []
        for job in ordered:
            on = [(node, mask.bit_count()) for node, mask in job.placement or () if node in needs]
            if all(spareable[node] >= count for node, count in on) and not job.demand.resources:
                for node, count in on:
                    spareable[node] -= count
            else:
                kept.append(job)
        kept.reverse()
        return kept


def gpus_on(job: Job, node: int) -> int:
    """GPUs that a running job holds on a node."""
    return sum(mask.bit_count() for where, mask in job.placement or () if where == node)


def held_on(job: Job, nodes: int) -> int:
    """GPUs that a running job holds on a set of nodes."""
    return sum(mask.bit_count() for node, mask in job.placement or () if node >= 0 and nodes >> node & 1)


def borrowers(plan: Plan, job: Job, by: Order, spare: Spare) -> list[Job] | None:
    """Choose, last in the order first, borrowers that must give way for a job within its guarantee.

    Each victim's partition, and every one above it below the lowest common ancestor, is above its guarantee
    before the eviction. None: the job would itself borrow, or the borrowers do not make room for it.
    """
    books = plan.books
    demand = job.demand
    leaf = demand.leaf
    if not any(node.reclaim for node in leaf.path) or leaf.total.usage + demand.gpu_milli > leaf.total.guarantee:
        return None
    index = books.running_index(by)
    chosen: list[Job] = []
    with plan.trial():
        for _, _, victim in reversed(list(index.entries)):
            if not plan.freeable(victim) or (spare is not None and spare(victim)):
                continue
            if not _borrows(victim, demand):
                continue
            plan.preempt(victim, "kill")
            chosen.append(victim)
            if any(books.admitted(demand, option) for option in demand.options) and plan.fit(job):
                break
        else:
            return None
    return _fewest(plan, job, chosen)


def _borrows(victim: Job, demand: Demand) -> bool:
    ancestors = set(demand.leaf.path)
    below = [leaf for leaf in victim.demand.leaf.path if leaf not in ancestors]
    return bool(below) and all(leaf.total.usage > leaf.total.guarantee for leaf in below)


def _fewest(plan: Plan, job: Job, chosen: list[Job]) -> list[Job]:
    """Spare, walking backwards, each victim without which the job still fits."""
    needed = list(chosen)
    for victim in reversed(chosen):
        rest = [other for other in needed if other is not victim]
        with plan.trial():
            for other in rest:
                plan.preempt(other, "kill")
            if plan.fit(job):
                needed = rest
    return needed

