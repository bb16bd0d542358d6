"""What a calendar counts in: nodes, or, where a strategy takes any GPUs of a pool, whole pools of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysim.cluster.capacity import Capacity, bits_of, lowest_bits
from analysim.cluster.topology import Topology
from analysim.jobs import NOWHERE, Demand, Option, Placement

Pairs = tuple[tuple[int, int], ...]
"""What a job takes: pairs of (site, GPUs)."""


class Way:
    """One way to lay a gang out on sites: of ``asks``, pairs (GPUs, sites that must have so many), each must hold.

    ``sites`` are the eligible sites by index (``columns`` the same, for tables), ``total`` the least sum of the counts
    over ``asks`` (for gangs that take any GPUs), ``allowed`` tells for each interval whether quotas admit the gang
    (None: always).
    """

    __slots__ = ("allowed", "asks", "columns", "mask", "sites", "total")

    def __init__(self, sites: Any, asks: Sequence[tuple[int, int]], total: int = 0) -> None:
        self.sites: npt.NDArray[np.int64] = np.array(list(sites), np.int64)
        at = self.sites
        in_a_row = len(at) > 0 and int(at[-1] - at[0]) == len(at) - 1
        self.columns: Any = slice(int(at[0]), int(at[-1]) + 1) if in_a_row else at  # a slice copies nothing
        self.asks = asks
        self.total = total
        self.mask = 0
        self.allowed: npt.NDArray[np.bool_] | None = None

    def among(self, sites: set[int]) -> Way:
        """Ask the same of some sites only; ``mask`` has them as a set."""
        kept = [site for site in self.sites.tolist() if site in sites]
        way = Way(kept, self.asks, self.total)
        way.mask = sum(1 << site for site in kept)
        return way


class Sites:
    """The sites of a run: ``masks`` are their nodes. A site is a node, as a promise must hold on actual nodes.

    ``pooled``: a strategy that takes any GPUs makes one large node of all nodes that belong to the same GPU types and
    partitions: whoever starts there finds GPUs for the count that it was promised. That needs demands without
    ``gpus_per_node`` and without CPUs and memory, and node sets that do not change.
    """

    def __init__(self, topology: Topology, demands: Sequence[Demand], counts_only: bool, changes: bool) -> None:
        self.counts_only = counts_only
        plain = all(not demand.per_node and not (topology.models_resources and demand.resources) for demand in demands)
        self.pooled = counts_only and plain and not changes
        self.masks = [1 << node for node in range(topology.size)]
        if self.pooled:
            self.masks = _classes([option.mask for demand in demands for option in demand.options], topology.all_nodes)
        self._site_of = {node: site for site, mask in enumerate(self.masks) for node in bits_of(mask)}

    def counts(self, capacity: Capacity) -> list[int]:
        """Count the free GPUs of each site."""
        free = [mask.bit_count() for mask in capacity.free]
        return [sum(free[node] for node in bits_of(mask)) for mask in self.masks] if self.pooled else free

    def pairs(self, placement: Placement) -> Pairs:
        """Return what a placement takes of each site."""
        if not self.pooled:
            return tuple((node, mask.bit_count()) for node, mask in placement)
        taken: dict[int, int] = {}
        for node, mask in placement:
            site = self._site_of[node] if node >= 0 else NOWHERE
            taken[site] = taken.get(site, 0) + mask.bit_count()
        return tuple(taken.items())

    def actual(self, pairs: Pairs, capacity: Capacity) -> Placement | None:
        """Choose GPUs that are free now; None: there are not enough."""
        placement: list[tuple[int, int]] = []
        for site, count in pairs:
            nodes = bits_of(self.masks[site]) if count else iter((site,))
            for node in nodes:
                free = capacity.free[node] if count else 0
                taken = lowest_bits(free, min(count, free.bit_count()))
                if taken or site < 0 or not (count or self.pooled):
                    placement.append((node, taken))
                count -= taken.bit_count()
                if not count:
                    break
            if count:
                return None
        return tuple(sorted(placement))

    def ways(self, demand: Demand, option: Option) -> list[Way]:
        """What a demand asks of the sites of one GPU type by the gang rule: alternatives, one for each size of node."""
        gpus = demand.gpus
        if self.pooled and gpus:
            sites = [site for site, mask in enumerate(self.masks) if mask & option.mask]
            return [Way(sites, [(gpus, 1)] if len(sites) == 1 else _any(gpus), gpus if len(sites) > 1 else 0)]
        nodes = bits_of(option.mask)
        if not gpus:
            return [Way(range(len(self.masks)) if self.pooled else nodes, [(0, 1)])]
        if demand.per_node:
            return [Way(nodes, [(demand.per_node, gpus // demand.per_node)])]
        if self.counts_only:
            return [Way(nodes, _any(min(gpus, option.largest)), gpus)]
        if gpus <= option.largest:
            return [Way(nodes, [(gpus, 1)])]
        found = []
        for size, of_size in option.node_types:
            full, rest = divmod(gpus, size)
            eligible = bits_of(option.mask & of_size)
            found.append(Way(eligible, [(size, full), (rest, full + 1)] if rest else [(size, full)]))
        return found

    def least(self, demand: Demand) -> int:
        """The fewest GPUs that a gang may take on a site."""
        if not demand.gpus or self.counts_only:
            return min(demand.gpus, 1)
        if demand.per_node:
            return demand.per_node
        least = demand.gpus
        for option in demand.options:
            for size, _ in option.node_types if demand.gpus > option.largest else ():
                least = min(least, demand.gpus % size or size)
        return least


def _any(gpus: int) -> list[tuple[int, int]]:
    """Asks whose counts sum up to the GPUs that can be gathered."""
    return [(count, 0) for count in range(1, gpus + 1)]


def _classes(sets: Sequence[int], everything: int) -> list[int]:
    """Split nodes into the classes that no set divides."""
    classes = [everything]
    for nodes in dict.fromkeys(sets):
        classes = [part for each in classes for part in (each & nodes, each & ~nodes) if part]
    return classes
