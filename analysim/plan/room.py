"""Who must go so that a waiting job fits.

The *price* of g GPUs on a node is the smallest key among the jobs that would have to leave it when the last in
the order leave first: a job may take them when the price is above its limit. Prices are kept per node and
refreshed only where something changed, and the best price is remembered, so a refusal costs one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from analysim.cluster.capacity import bits_of
from analysim.jobs import Demand, Job, Option, Placement
from analysim.plan.gathering import borrowing, gather, gpus_on, may_reclaim, pieces
from analysim.plan.orders import Order
from analysim.plan.queue import Entry
from analysim.units import FOREVER

if TYPE_CHECKING:
    from analysim.plan.plan import Plan

Price = tuple[int, Any]
Leaving = tuple[Any, int, tuple[Job, ...]]
"""Key and rank of the first of the jobs that leave a node together: one job, or all that share a GPU."""

IMPOSSIBLE: Price = (-1, 0)
FREE: Price = (1, 0)

CANDIDATES = 16
"""Nodes looked at beyond those needed, dearest first, where CPUs or memory may be in the way."""

class Room:
    """Prices of GPUs by node under one order of the running jobs, those that ran less than ``settled`` exempt."""

    def __init__(self, plan: Plan, order: Order, settled: int) -> None:
        self._plan = plan
        self._books = plan.books
        self._index = plan.books.running_index(order)
        self._settled = settled
        self._counts_only = getattr(plan.placer, "counts_only", False)
        self._prices: list[list[Price]] = [[] for _ in range(plan.books.topology.size)]
        self._rankings: dict[tuple[int, int], SortedList] = {}
        self._stale = set(range(plan.books.topology.size))
        self._stale_since = -FOREVER
        self._going: set[int] = set()
        self._settling: list[tuple[int, int]] = []
        self._settles = [0] * plan.books.topology.size
        self._changes = 0
        self._refused: dict[Demand, tuple[int, Any]] = {}
        self._ask_again: dict[Demand, int] = {}
        plan.books.watch(self._note)

    def _note(self, placement: Placement) -> None:
        if not self._stale:
            self._stale_since = self._plan.now
        for node, _ in placement:
            if node >= 0:
                self._stale.add(node)

    def victims(self, job: Job, above: Any) -> list[Job] | None:
        """Choose the victims for a job among running jobs with a key above the limit; None: not enough."""
        entries = self._index.entries
        if not entries or not entries[-1][0] > above or not job.demand.gpus or self._nobody_settled():
            return None
        if job.demand.pinned is not None:
            return self._on_pinned(job.demand.pinned, above)
        for option in job.demand.options:
            if not self._books.admitted(job.demand, option):
                found = self._within_quota(job, option, above)
            elif self._counts_only:
                found = self._anywhere(job.demand, option, above)
            else:
                found = self._on_nodes(job.demand, option, above)
            if found:
                return found
        return None

    def _nobody_settled(self) -> bool:
        """Tell at no cost whether every running job is too young to go, as far as that is known.

        On the nodes priced last nobody could go, nobody there has settled since, and what started on the others since
        then is younger than ``settled``.
        """
        now = self._plan.now
        if self._going or (self._settling and self._settling[0][0] <= now):
            return False
        return not self._stale or now < self._stale_since + self._settled

    def _on_pinned(self, pinned: Placement, above: Any) -> list[Job] | None:
        """Victims for a suspended job: whoever holds one of the GPUs it had."""
        wanted = {node: mask & ~self._books.claimable_on(node) for node, mask in pinned}
        holders = {
            job.rank: job
            for node in wanted
            for job in self._books.jobs_by_node()[node].values()
            if any(where == node and mask & wanted[node] for where, mask in job.placement or ())
        }
        settled = self._plan.now - self._settled
        for job in holders.values():
            if not self._plan.freeable(job) or job.run_from > settled or not self._index.key(job) > above:
                return None
        return sorted(holders.values(), key=lambda job: (self._index.key(job), job.rank), reverse=True) or None

    def _within_quota(self, job: Job, option: Option, above: Any) -> list[Job] | None:
        """Room where a quota refuses: jobs of the same partition make way."""
        entries = self._index.of_leaf(job.demand.leaf)
        if not entries or not entries[-1][0] > above:
            return None
        return self._unless_refused(job, option, self._last_first(above, list(entries)))

    def reclaim(self, job: Job) -> list[Job] | None:
        """Choose borrowers that must give way for a job within its guarantee; None: there are none."""
        for option in job.demand.options:
            if not may_reclaim(job.demand, option):
                continue
            candidates = borrowing(self._plan, job.demand.leaf, self._index, self._settled)
            found = self._unless_refused(job, option, candidates)
            if found:
                return found
        return None

    def _unless_refused(self, job: Job, option: Option, candidates: Iterator[Job]) -> list[Job] | None:
        """Gather victims; after a refusal not again for the same demand until a tenth of ``settled`` has passed."""
        now = self._plan.now
        if now < self._ask_again.get(job.demand, now):
            return None
        found = gather(self._plan, job, option, candidates)
        if not found:
            self._ask_again[job.demand] = now + self._settled // 10
        return found

    def _last_first(self, above: Any, entries: list[Entry]) -> Iterator[Job]:
        """Yield the jobs above a limit that may be made to go, last in the order first."""
        for key, _, job in reversed(entries):
            if not key > above:
                return
            if self._plan.freeable(job) and self._plan.now >= job.run_from + self._settled:
                yield job

    def _anywhere(self, demand: Demand, option: Option, above: Any) -> list[Job] | None:
        """Victims where any GPUs of the type will do."""
        missing = demand.gpus - self._books.claimable_gpus(option)
        chosen: list[Job] = []
        for victim in self._last_first(above, list(self._index.entries)):
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

    def _on_nodes(self, demand: Demand, option: Option, above: Any) -> list[Job] | None:
        self._refresh()
        refused = self._refused.get(demand)
        if refused is not None and refused[0] == self._changes and not above < refused[1]:
            return None
        limit: Price = (0, above)
        for split in pieces(demand, option):
            if all(self._dearest_price(*piece) > limit for piece in split):
                found = self._choose(demand, split, limit)
                if found:
                    return found
        if len(demand.options) == 1:
            self._refused[demand] = (self._changes, above)
        return None

    def _ranked(self, gpus: int, mask: int) -> SortedList:
        """Nodes of a set by their price for so many GPUs: (price, minus the node), so that the first wins a tie."""
        ranking = self._rankings.get((gpus, mask))
        if ranking is None:
            ranking = SortedList((self._price(node, gpus), -node) for node in bits_of(mask))
            self._rankings[gpus, mask] = ranking
        return ranking

    def _dearest_price(self, count: int, gpus: int, mask: int) -> Price:
        """Price of so many GPUs on the ``count`` dearest nodes: that of the last of them."""
        ranking = self._ranked(gpus, mask)
        return ranking[-count][0] if len(ranking) >= count else IMPOSSIBLE

    def _price(self, node: int, gpus: int) -> Price:
        prices = self._prices[node]
        return prices[gpus] if gpus < len(prices) else IMPOSSIBLE

    def _refresh(self) -> None:
        """Price again the nodes where something changed, or where a job settled."""
        settling = self._settling
        stale = self._stale
        now = self._plan.now
        while settling and settling[0][0] <= now:
            stale.add(heappop(settling)[1])
        if not stale:
            return
        for node in stale:
            old = self._prices[node]
            new = self._prices_of(node)
            if old == new:
                continue
            self._prices[node] = new
            self._changes += 1
            for (gpus, mask), ranking in self._rankings.items():
                before = old[gpus] if gpus < len(old) else IMPOSSIBLE
                after = new[gpus] if gpus < len(new) else IMPOSSIBLE
                if before != after and mask >> node & 1:
                    ranking.remove((before, -node))
                    ranking.add((after, -node))
        stale.clear()

    def _prices_of(self, node: int) -> list[Price]:
        prices: list[Price] = [FREE] * (self._books.claimable_on(node).bit_count() + 1)
        going = self._last_first_on(node)
        for key, _, jobs in going:
            prices.extend([(0, key)] * gpus_on(jobs[0], node))
        if going:
            self._going.add(node)
        else:
            self._going.discard(node)
        return prices

    def _last_first_on(self, node: int) -> list[Leaving]:
        """Jobs that may be made to leave a node, last in the order first; those that share a GPU go together."""
        now = self._plan.now
        entry_of = self._index.entry_of
        going: list[Leaving] = []
        sharing: dict[int, list[Job]] = {}
        settles = FOREVER
        for rank, job in self._books.jobs_by_node()[node].items():
            if job.demand.sharing:
                sharing.setdefault(job.placement[0][1], []).append(job)  # type: ignore[index]  # it runs
            if job.demand.preemptible:
                when = max(job.hold_until, job.run_from + self._settled)
                if when <= now:
                    if not job.demand.sharing:
                        going.append((entry_of[rank][0], rank, (job,)))
                elif when < settles:
                    settles = when
        for jobs in sharing.values():
            if all(job.demand.preemptible and self._settled_by(job, now) for job in jobs):
                key, rank, _ = min(entry_of[job.rank] for job in jobs)
                going.append((key, rank, tuple(jobs)))
        if settles != FOREVER and not now < self._settles[node] <= settles:
            self._settles[node] = settles
            heappush(self._settling, (settles, node))
        if len(going) > 1:
            going.sort(reverse=True)
        return going

    def _settled_by(self, job: Job, now: int) -> bool:
        return max(job.hold_until, job.run_from + self._settled) <= now

    def _choose(self, demand: Demand, split: list[tuple[int, int, int]], limit: Price) -> list[Job] | None:
        """Pick the dearest nodes for each piece; return the least that must leave them."""
        needs: dict[int, int] = {}
        victims: dict[int, Job] = {}
        for count, gpus, mask in split:
            found = 0
            for price, node in self._dearest(count, gpus, mask, needs):
                if not price > limit:
                    break
                leaving = self._leaving(demand, node, gpus, limit)
                if leaving is None:
                    continue
                needs[node] = gpus
                victims.update((job.rank, job) for job in leaving)
                found += 1
                if found == count:
                    break
            if found < count:
                return None
        return self._least(needs, victims)

    def _dearest(self, count: int, gpus: int, mask: int, taken: dict[int, int]) -> Iterator[tuple[Price, int]]:
        """Yield (price, node), the dearest first, up to a few more than are needed."""
        most = count if not self._books.capacity.models_resources else count + CANDIDATES
        for price, minus in islice(reversed(self._ranked(gpus, mask)), most + len(taken)):
            if -minus not in taken:
                yield price, -minus

    def _leaving(self, demand: Demand, node: int, gpus: int, limit: Price) -> list[Job] | None:
        """Jobs that must leave a node for so many GPUs; None where that is not allowed or not enough."""
        books = self._books
        missing = gpus - books.claimable_on(node).bit_count()
        leaving: list[Job] = []
        for key, _, jobs in self._last_first_on(node):
            if missing <= 0 and books.would_host(node, gpus, demand, leaving):
                break
            if not (0, key) > limit:
                return None
            leaving.extend(jobs)
            missing -= gpus_on(jobs[0], node)
        if missing > 0 or not books.would_host(node, gpus, demand, leaving):
            return None
        return leaving

    def _least(self, needs: dict[int, int], victims: dict[int, Job]) -> list[Job]:
        """Spare, most valuable first, each victim without which there is still room."""
        key = self._index.key
        if any(job.demand.sharing for job in victims.values()):
            return sorted(victims.values(), key=lambda job: (key(job), job.rank), reverse=True)
        spareable = {
            node: self._books.claimable_on(node).bit_count()
            + sum(gpus_on(job, node) for job in victims.values())
            - gpus
            for node, gpus in needs.items()
        }
        kept = []
        for job in sorted(victims.values(), key=lambda job: (key(job), job.rank)):
            on = [(node, mask.bit_count()) for node, mask in job.placement or () if node in needs]
            if all(spareable[node] >= count for node, count in on) and not job.demand.resources:
                for node, count in on:
                    spareable[node] -= count
            else:
                kept.append(job)
        kept.reverse()
        return kept


def held_on(job: Job, nodes: int) -> int:
    """GPUs that a running job holds on a set of nodes."""
    return sum(mask.bit_count() for node, mask in job.placement or () if node >= 0 and nodes >> node & 1)
