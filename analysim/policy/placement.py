"""Placement strategies: where a gang goes among the places where it fits.

The gang rule is one for all of them: up to the largest eligible node's GPUs, one node; more, full nodes of
one node type and one node of that type for the remainder; ``gpus_per_node`` exactly, on distinct nodes. A
strategy chooses among nodes; ties go to the first node of the topology file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from analysim.cluster.capacity import Capacity, bits_of
from analysim.jobs import NOWHERE, Demand, Job, Option, Placement
from analysim.units import GPU_MILLI


class Placer:
    """Base of the strategies; a subclass chooses one node, and whole nodes, its own way."""

    name = ""
    counts_only = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

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
    """A node drawn by a hash of (seed, job, attempt) among those that have room."""

    name = "random"

    def choose_sharing(self, capacity: Capacity, job: Job, nodes: int) -> int:
        """Choose any node that has room for a share."""
        return self._draw(job, nodes, 0)

    def choose(self, capacity: Capacity, job: Job, levels: Sequence[int], gpus: int, mask: int) -> int:
        """Choose any node that has room."""
        nodes = able(capacity, job.demand, roomy(levels, gpus, mask), gpus)
        return self._draw(job, nodes, 0) if nodes else -1

    def choose_whole(self, capacity: Capacity, job: Job, nodes: int, count: int) -> list[int]:
        """Draw whole nodes without putting back."""
        chosen = []
        for turn in range(count):
            node = self._draw(job, nodes, turn)
            chosen.append(node)
            nodes &= ~(1 << node)
        return chosen

    def _draw(self, job: Job, nodes: int, turn: int) -> int:
        text = f"{self.seed}:placement:{job.id}:{job.stint}:{turn}"
        number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        wanted = number % nodes.bit_count()
        for position, node in enumerate(bits_of(nodes)):
            if position == wanted:
                return node
        raise AssertionError("a set has as many members as it counts")  # pragma: no cover


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


PLACERS: Mapping[str, type[Placer]] = {
    placer.name: placer for placer in (Pack, First, Spread, Random, RackFirst, Anywhere)
}
"""The strategies by the name that ``--placement`` takes."""
