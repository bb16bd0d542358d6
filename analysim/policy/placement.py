"""Placement strategies: where a gang goes among the places where it fits.

The gang rule is one for all of them: up to the largest eligible node's GPUs, one node; more, full nodes of
one node type and one node of that type for the remainder; ``gpus_per_node`` exactly, on distinct nodes. A
strategy chooses among nodes; ties go to the first node of the topology file.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from analysim.cluster.capacity import Capacity, bits_of
from analysim.cluster.topology import Topology
from analysim.jobs import NOWHERE, Demand, Job, Option, Placement, Workload
from analysim.units import GPU_MILLI


class Placer:
    """Base of the strategies; a subclass chooses one node, and whole nodes, its own way.

    ``across_types``: nodes of all GPU types that a job may use are compared at once, by ``place_across``; else the
    types are tried in the order written. ``watches``: the run shall keep a ``WatchedCapacity`` for it.
    """

    name = ""
    counts_only = False
    across_types = False
    watches = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def begin(self, topology: Topology, workload: Workload) -> None:
        """Prepare for a run; called once the trace is admitted, before anything is placed."""

    def place_across(
        self, capacity: Capacity, job: Job, options: Sequence[Option], avoided: int = 0
    ) -> tuple[Placement, Option] | None:
        """Find a placement on any of several GPU types, none of it on the nodes ``avoided``; here in their order."""
        for option in options:
            placement = self.place(capacity, job, option, option.mask & ~avoided)
            if placement is not None:
                return placement, option
        return None

    def place(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """Find a placement for a job on the nodes of ``mask``; None where it does not fit."""
        demand = job.demand
        gpus = demand.gpus
        if demand.sharing:
            return self.place_share(capacity, job, option, mask)
        if 0 < gpus <= option.largest and not demand.per_node:
            node = self.choose(capacity, job, capacity.levels[option.gpu_type], gpus, mask)
            return None if node < 0 else ((node, capacity.pick(node, gpus)),)
        if gpus == 0:
            return self._place_cpu_job(capacity, job, mask)
        if demand.per_node:
            count = gpus // demand.per_node
            return self._place_evenly(capacity, job, option, mask, demand.per_node, count)
        return self._place_gang(capacity, job, option, mask)

    def choose(self, capacity: Capacity, job: Job, levels: Sequence[int], gpus: int, mask: int) -> int:
        """Choose a node with at least ``gpus`` free GPUs; -1 where there is none."""
        raise NotImplementedError

    def place_share(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """Place a share of one GPU: on the GPU with the least left that is enough, of the node that is chosen."""
        share = job.demand.share
        nodes = able(capacity, job.demand, capacity.with_share(option.gpu_type, share, mask), 1)
        if not nodes:
            return None
        node = self.choose_sharing(capacity, job, nodes)
        return ((node, capacity.tightest(node, share)),)

    def choose_sharing(self, capacity: Capacity, job: Job, nodes: int) -> int:
        """Choose one of the nodes that have room for a share; here the first."""
        return (nodes & -nodes).bit_length() - 1

    def choose_whole(self, capacity: Capacity, job: Job, nodes: int, count: int) -> list[int]:
        """Choose ``count`` nodes of a set that has at least so many; here the first ones."""
        chosen = []
        for _ in range(count):
            bit = nodes & -nodes
            chosen.append(bit.bit_length() - 1)
            nodes ^= bit
        return chosen

    def _place_gang(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        levels = capacity.levels[option.gpu_type]
        for size, nodes_of_size in option.node_types:
            full, rest = divmod(job.demand.gpus, size)
            eligible = mask & nodes_of_size
            free = levels[size] & eligible
            if free and job.demand.resources:
                free = able(capacity, job.demand, free, size)
            if free.bit_count() < full:
                continue
            whole = self.choose_whole(capacity, job, free, full)
            if rest:
                used = sum(1 << node for node in whole)
                last = self.choose(capacity, job, levels, rest, eligible & ~used)
                if last < 0:
                    continue
                whole.append(last)
                return tuple(
                    (node, capacity.pick(node, rest if node == last else size)) for node in sorted(whole)
                )
            return tuple([(node, capacity.free[node]) for node in sorted(whole)])
        return None

    def _place_evenly(
        self, capacity: Capacity, job: Job, option: Option, mask: int, each: int, count: int
    ) -> Placement | None:
        levels = capacity.levels[option.gpu_type]
        chosen: list[int] = []
        while len(chosen) < count:
            node = self.choose(capacity, job, levels, each, mask)
            if node < 0:
                return None
            chosen.append(node)
            mask &= ~(1 << node)
        return tuple((node, capacity.pick(node, each)) for node in sorted(chosen))

    def _place_cpu_job(self, capacity: Capacity, job: Job, mask: int) -> Placement | None:
        if not capacity.models_resources or not job.demand.resources:
            return ((NOWHERE, 0),)
        for node in bits_of(mask):
            if capacity.hosts(node, 0, job.demand):
                return ((node, 0),)
        return None


def fits_one_node(demand: Demand, option: Option) -> bool:
    """Tell whether the gang rule puts a job on one node of a GPU type; a job without GPUs always is."""
    return demand.gpus <= option.largest and demand.per_node in (0, demand.gpus)


def able(capacity: Capacity, demand: Demand, nodes: int, gpus: int) -> int:
    """Keep the nodes that also have the CPUs and memory for ``gpus`` GPUs of a demand."""
    if not demand.resources or not capacity.models_resources:
        return nodes
    return sum(1 << node for node in bits_of(nodes) if capacity.hosts(node, gpus, demand))


def first_able(capacity: Capacity, demand: Demand, nodes: int, gpus: int) -> int:
    """Return the first node of a set that also has the CPUs and memory; -1 where there is none."""
    if not demand.resources or not capacity.models_resources:
        return (nodes & -nodes).bit_length() - 1
    for node in bits_of(nodes):
        if capacity.hosts(node, gpus, demand):
            return node
    return -1


class Pack(Placer):
    """Best fit: the node with the fewest free GPUs that is enough."""

    name = "pack"

    def place(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """As every strategy; the common case, one node and no CPUs or memory, without further calls."""
        demand = job.demand
        gpus = demand.gpus
        if not demand.simple or gpus > option.largest:
            return super().place(capacity, job, option, mask)
        levels = capacity.levels[option.gpu_type]
        for count in range(gpus, len(levels)):
            nodes = levels[count] & mask
            if nodes:
                node = (nodes & -nodes).bit_length() - 1
                return ((node, capacity.pick(node, gpus)),)
        return None

    def choose_sharing(self, capacity: Capacity, job: Job, nodes: int) -> int:
        """Choose the node of the GPU with the least left that is enough; among wholly free ones the fullest node."""
        share = job.demand.share

        def left(node: int) -> tuple[int, int]:
            enough = [each for each in capacity.partial[node].values() if each >= share]
            return min(enough, default=GPU_MILLI), capacity.free[node].bit_count()

        return min(bits_of(nodes), key=left)

    def choose(self, capacity: Capacity, job: Job, levels: Sequence[int], gpus: int, mask: int) -> int:
        """Choose the fullest node that has room."""
        for count in range(gpus, len(levels)):
            nodes = levels[count] & mask
            if nodes:
                node = first_able(capacity, job.demand, nodes, gpus)
                if node >= 0:
                    return node
        return -1


class First(Placer):
    """First fit: the first node of the topology file that has room."""

    name = "first"

    def place_share(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """As every strategy, but no node behind the first that has room is looked at."""
        share = job.demand.share
        node = first_able(capacity, job.demand, capacity.with_share(option.gpu_type, share, mask), 1)
        return None if node < 0 else ((node, capacity.tightest(node, share)),)

    def choose(self, capacity: Capacity, job: Job, levels: Sequence[int], gpus: int, mask: int) -> int:
        """Choose the first node that has room."""
        return first_able(capacity, job.demand, roomy(levels, gpus, mask), gpus)


class Spread(Placer):
    """Worst fit: the node with the most free GPUs."""

    name = "spread"

    def choose_sharing(self, capacity: Capacity, job: Job, nodes: int) -> int:
        """Choose the node with the most left."""
        return max(
            bits_of(nodes),
            key=lambda node: (
                capacity.free[node].bit_count() * GPU_MILLI + sum(capacity.partial[node].values()),
                -node,
            ),
        )

    def choose(self, capacity: Capacity, job: Job, levels: Sequence[int], gpus: int, mask: int) -> int:
        """Choose the emptiest node."""
        for count in range(len(levels) - 1, gpus - 1, -1):
            nodes = levels[count] & mask
            if nodes:
                node = first_able(capacity, job.demand, nodes, gpus)
                if node >= 0:
                    return node
        return -1


class Random(Placer):
    """A node, and of it a GPU for a share, drawn by a hash of (seed, job, attempt) among those that have room."""

    name = "random"
    across_types = True

    def place_across(
        self, capacity: Capacity, job: Job, options: Sequence[Option], avoided: int = 0
    ) -> tuple[Placement, Option] | None:
        """Draw among the nodes of all GPU types on which a job fits whole; other gangs try the types in order."""
        demand = job.demand
        nodes = 0
        for option in options:
            if fits_one_node(demand, option):
                nodes |= option.mask
        node = self._draw_able(capacity, job, nodes & ~avoided, demand.gpus) if nodes else -1
        if node < 0:
            return super().place_across(capacity, job, options, avoided)
        option = next(option for option in options if option.mask >> node & 1)
        return self._on(capacity, job, node), option

    def place(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """As every strategy; shares and CPU jobs are drawn a node as well."""
        demand = job.demand
        resources = capacity.models_resources and demand.resources
        if demand.sharing or (not demand.gpus and resources):
            node = self._draw_able(capacity, job, mask, demand.gpus)
            return None if node < 0 else self._on(capacity, job, node)
        return super().place(capacity, job, option, mask)

    def choose(self, capacity: Capacity, job: Job, levels: Sequence[int], gpus: int, mask: int) -> int:
        """Choose any node that has room."""
        return self._draw_able(capacity, job, mask, gpus)

    def choose_whole(self, capacity: Capacity, job: Job, nodes: int, count: int) -> list[int]:
        """Draw whole nodes without putting back."""
        chosen = []
        for turn in range(count):
            node = nth_bit(nodes, self._draw(job, turn) % nodes.bit_count())
            chosen.append(node)
            nodes &= ~(1 << node)
        return chosen

    def _on(self, capacity: Capacity, job: Job, node: int) -> Placement:
        demand = job.demand
        if not demand.gpus:
            return ((node, 0),)
        if not demand.sharing:
            return ((node, capacity.pick(node, demand.gpus)),)
        fitting = capacity.free[node]
        for gpu, left in capacity.partial[node].items():
            if left >= demand.share:
                fitting |= 1 << gpu
        return ((node, 1 << nth_bit(fitting, self._draw(job, "gpu") % fitting.bit_count())),)

    def _draw_able(self, capacity: Capacity, job: Job, mask: int, gpus: int) -> int:
        """Draw among the nodes of a set that have room; -1 where there is none."""
        demand = job.demand
        nodes = mask
        if gpus:
            nodes = 0
            for levels in capacity.levels:
                nodes |= roomy(levels, gpus, mask)
            if demand.sharing:
                nodes |= capacity.partial_nodes & mask
        turn = 0
        while nodes:
            node = nth_bit(nodes, self._draw(job, turn) % nodes.bit_count())
            if self._is_able(capacity, demand, node, gpus):
                return node
            nodes ^= 1 << node
            turn += 1
        return -1

    def _is_able(self, capacity: Capacity, demand: Demand, node: int, gpus: int) -> bool:
        if demand.sharing and not capacity.tightest(node, demand.share):
            return False
        return not (demand.resources and capacity.models_resources) or capacity.hosts(node, gpus, demand)

    def _draw(self, job: Job, turn: int | str) -> int:
        text = f"{self.seed}:placement:{job.id}:{job.stint}:{turn}"
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class RackFirst(Pack):
    """Fewest racks, then fewest nodes: whole nodes from the fullest rack that has enough of them."""

    name = "rack"

    def choose_whole(self, capacity: Capacity, job: Job, nodes: int, count: int) -> list[int]:
        """Choose whole nodes from as few racks as can be, the tightest fit last."""
        racks = [nodes & rack for rack in capacity.topology.rack_masks]
        chosen: list[int] = []
        while count:
            enough = [rack for rack in racks if rack.bit_count() >= count]
            rack = min(enough, key=int.bit_count) if enough else max(racks, key=int.bit_count)
            racks.remove(rack)
            taken = super().choose_whole(capacity, job, rack, min(count, rack.bit_count()))
            chosen.extend(taken)
            count -= len(taken)
        return chosen


class Anywhere(First):
    """Any free GPUs of one type, by node order: relaxes the gang rule to a count."""

    name = "any"
    counts_only = True

    def place(self, capacity: Capacity, job: Job, option: Option, mask: int) -> Placement | None:
        """Gather GPUs node by node until there are enough."""
        missing = job.demand.gpus
        if missing == 0 or job.demand.per_node or job.demand.sharing:
            return super().place(capacity, job, option, mask)
        levels = capacity.levels[option.gpu_type]
        gathered = []
        nodes = roomy(levels, 1, mask)
        while nodes:
            bit = nodes & -nodes
            nodes ^= bit
            node = bit.bit_length() - 1
            count = min(missing, capacity.free[node].bit_count())
            while count and job.demand.resources and not capacity.hosts(node, count, job.demand):
                count -= 1
            if not count:
                continue
            gathered.append((node, capacity.pick(node, count)))
            missing -= count
            if not missing:
                return tuple(gathered)
        return None


def roomy(levels: Sequence[int], gpus: int, mask: int) -> int:
    """Return the nodes of ``mask`` with at least ``gpus`` free GPUs."""
    nodes = 0
    for count in range(gpus, len(levels)):
        nodes |= levels[count]
    return nodes & mask


def nth_bit(mask: int, number: int) -> int:
    """Return the index of set bit ``number`` (from 0, lowest first), by halving."""
    low, width = 0, mask.bit_length()
    while width > 1:
        half = width >> 1
        below = mask >> low & (1 << half) - 1
        count = below.bit_count()
        if number < count:
            width = half
        else:
            number -= count
            low += half
            width -= half
    return low
