"""Free capacity, indexed by (GPU type, free count) as bit sets of nodes, with conservation checks."""

from __future__ import annotations

from collections.abc import Iterator

from analysim.cluster.topology import Topology
from analysim.errors import InvariantError
from analysim.jobs import Demand, Placement
from analysim.units import GPU_MILLI

_MOST_PICKS = 1 << 14
"""Choices of GPUs remembered for each count before they are forgotten."""


def lowest_bits(mask: int, count: int) -> int:
    """Return the ``count`` lowest set bits of ``mask``."""
    if mask.bit_count() == count:
        return mask
    taken = 0
    for _ in range(count):
        bit = mask & -mask
        taken |= bit
        mask ^= bit
    return taken


def bits_of(mask: int) -> Iterator[int]:
    """Yield the indexes of the set bits, lowest first."""
    while mask:
        bit = mask & -mask
        yield bit.bit_length() - 1
        mask ^= bit


class Capacity:
    """What is free on each node now.

    ``levels[t][k]`` is the set of nodes of GPU type t with exactly k free GPUs, ``free[n]`` the mask of
    free GPUs of node n, ``cpu_milli`` and ``memory_mb`` what is free of each (None: not modelled anywhere).
    A GPU of which a share is taken is not free; ``partial[n]`` has the thousandths left of each such GPU that has any,
    ``partial_nodes`` the nodes that have some.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.free = [(1 << count) - 1 for count in topology.gpu_count]
        self.bit = [1 << node for node in range(topology.size)]
        self.levels: list[list[int]] = []
        for number, mask in enumerate(topology.type_masks):
            largest = max(topology.gpu_count[node] for node in bits_of(mask))
            self.levels.append([0] * (largest + 1))
            for node in bits_of(mask):
                self.levels[number][topology.gpu_count[node]] |= 1 << node
        self._level_of = self._levels_by_node()
        self.models_resources = topology.models_resources
        self.cpu_milli = list(topology.cpu_milli)
        self.memory_mb = list(topology.memory_mb)
        self.partial: list[dict[int, int]] = [{} for _ in topology.gpu_count]
        self.partial_nodes = 0
        self._picks: dict[int, dict[int, int]] = {}

    def _levels_by_node(self) -> list[list[int]]:
        """List the levels to which each node belongs."""
        kinds = self.topology.gpu_type
        if self.topology.uniform:
            return [self.levels[0]] * len(kinds)
        none: list[int] = []
        return [self.levels[kind] if kind >= 0 else none for kind in kinds]

    def copy(self) -> Capacity:
        """Copy what is free now, for a question that takes nothing."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.free = self.free[:]
        twin.levels = [levels[:] for levels in self.levels]
        twin._level_of = twin._levels_by_node()
        twin.cpu_milli = self.cpu_milli[:]
        twin.memory_mb = self.memory_mb[:]
        twin.partial = [dict(left) for left in self.partial]
        return twin

    def pick(self, node: int, count: int) -> int:
        """Choose ``count`` free GPUs of a node: the lowest indexes."""
        free = self.free[node]
        picks = self._picks.get(count)
        if picks is None:
            picks = self._picks[count] = {}
        mask = picks.get(free)
        if mask is None:
            if len(picks) > _MOST_PICKS:
                picks.clear()
            mask = picks[free] = lowest_bits(free, count)
        return mask

    def take(self, placement: Placement, demand: Demand) -> None:
        """Take the GPUs of a placement, and the CPUs and memory that go with them."""
        if demand.sharing:
            self._take_share(placement, demand)
            return
        free = self.free
        for node, mask in placement:
            if not mask:
                continue
            before = free[node]
            if before & mask != mask:
                raise InvariantError(f"GPUs {mask & ~before:b} of node {self.topology.nodes[node].name} are held twice")
            free[node] = before ^ mask
            levels = self._level_of[node]
            bit = self.bit[node]
            count = before.bit_count()
            levels[count] ^= bit
            levels[count - mask.bit_count()] |= bit
        if demand.resources and self.models_resources:
            self._use(placement, demand, -1)

    def give(self, placement: Placement, demand: Demand) -> None:
        """Give the GPUs of a placement back, and the CPUs and memory that went with them."""
        if demand.sharing:
            self._give_share(placement, demand)
            return
        free = self.free
        for node, mask in placement:
            if not mask:
                continue
            before = free[node]
            if before & mask:
                raise InvariantError(f"GPUs {mask & before:b} of node {self.topology.nodes[node].name} are freed twice")
            free[node] = before | mask
            levels = self._level_of[node]
            bit = self.bit[node]
            count = before.bit_count()
            levels[count] ^= bit
            levels[count + mask.bit_count()] |= bit
        if demand.resources and self.models_resources:
            self._use(placement, demand, 1)

    def _take_share(self, placement: Placement, demand: Demand) -> None:
        ((node, mask),) = placement
        left = self.partial[node]
        gpu = mask.bit_length() - 1
        before = left.get(gpu, 0)
        if self.free[node] & mask:
            before = GPU_MILLI
            self._flip(node, mask, -1)
        if before < demand.share:
            raise InvariantError(f"GPU {gpu} of node {self.topology.nodes[node].name} is held more than once over")
        self._leave(node, gpu, before - demand.share)
        if demand.resources and self.models_resources:
            self._use(placement, demand, -1)

    def _give_share(self, placement: Placement, demand: Demand) -> None:
        ((node, mask),) = placement
        gpu = mask.bit_length() - 1
        after = self.partial[node].get(gpu, 0) + demand.share
        if self.free[node] & mask or after > GPU_MILLI:
            raise InvariantError(f"GPU {gpu} of node {self.topology.nodes[node].name} is freed twice")
        if after == GPU_MILLI:
            self._leave(node, gpu, 0)
            self._flip(node, mask, 1)
        else:
            self._leave(node, gpu, after)
        if demand.resources and self.models_resources:
            self._use(placement, demand, 1)

    def _flip(self, node: int, mask: int, sign: int) -> None:
        """One GPU of a node becomes free (1), or ceases to be (-1)."""
        levels, bit = self._level_of[node], self.bit[node]
        count = self.free[node].bit_count()
        self.free[node] ^= mask
        levels[count] ^= bit
        levels[count + sign] |= bit

    def _leave(self, node: int, gpu: int, share: int) -> None:
        """Note how many thousandths of a partly taken GPU are left."""
        left = self.partial[node]
        if share:
            left[gpu] = share
            self.partial_nodes |= self.bit[node]
        else:
            left.pop(gpu, None)
            if not left:
                self.partial_nodes &= ~self.bit[node]

    def tightest(self, node: int, share: int) -> int:
        """Choose the GPU of a node with the least left that is enough for a share, as a mask; 0: there is none.

        Of equal ones the lowest index; a wholly free GPU comes last.
        """
        best = min(((left, gpu) for gpu, left in self.partial[node].items() if left >= share), default=None)
        if best is not None:
            return 1 << best[1]
        free = self.free[node]
        return free & -free

    def with_share(self, gpu_type: int, share: int, mask: int) -> int:
        """Return the nodes of a set with a GPU of which so many thousandths are left."""
        nodes = 0
        levels = self.levels[gpu_type]
        for count in range(1, len(levels)):
            nodes |= levels[count]
        kinds = self.topology.gpu_type
        for node in bits_of(self.partial_nodes & mask & ~nodes):
            if kinds[node] == gpu_type and max(self.partial[node].values()) >= share:
                nodes |= self.bit[node]
        return nodes & mask

    def _use(self, placement: Placement, demand: Demand, sign: int, passing: bool = False) -> None:
        for node, mask in placement:
            if node < 0:
                continue
            share = sign * (mask.bit_count() if demand.gpus else 1)
            if self.topology.cpu_milli[node] >= 0:
                self.cpu_milli[node] += share * demand.cpu_milli
            if self.topology.memory_mb[node] >= 0:
                self.memory_mb[node] += share * demand.memory_mb
            if not passing:
                self.check_node(node)

    def check_node(self, node: int) -> None:
        """Raise ``InvariantError`` where more CPUs or memory of a node are held than it has."""
        if self.cpu_milli[node] < -1 or self.memory_mb[node] < -1:
            raise InvariantError(f"CPUs or memory of node {self.topology.nodes[node].name} are held twice")

    def exchange(self, node: int, mask: int, old: Demand, new: Demand, sign: int) -> None:
        """CPUs and memory that go with GPUs pass from one demand to another (sign -1: back)."""
        if self.models_resources and (old.resources or new.resources):
            # One holder's GPUs may bring the CPUs that another's need: only the sum has to hold.
            self._use(((node, mask),), old, sign, passing=True)
            self._use(((node, mask),), new, -sign, passing=True)

    def hosts(self, node: int, gpus: int, demand: Demand, cpu_milli: int = 0, memory_mb: int = 0) -> bool:
        """Tell whether a node has the CPUs and memory for ``gpus`` GPUs of a demand, so much more being free."""
        share = gpus if demand.gpus else 1
        topology = self.topology
        return (
            topology.cpu_milli[node] < 0 or share * demand.cpu_milli <= self.cpu_milli[node] + cpu_milli
        ) and (topology.memory_mb[node] < 0 or share * demand.memory_mb <= self.memory_mb[node] + memory_mb)

    def has(self, placement: Placement, demand: Demand, own: Placement = ()) -> bool:
        """Tell whether the GPUs of a placement are free, what a job holds itself counted as free."""
        held = dict(own)
        for node, mask in placement:
            if node >= 0:
                lacking = mask & ~held.get(node, 0) & ~self.free[node]
                if lacking and not (
                    demand.sharing and self.partial[node].get(lacking.bit_length() - 1, 0) >= demand.share
                ):
                    return False
        return True

    def free_milli_within(self, gpu_type: int, mask: int) -> int:
        """Count what is free of a type on the nodes of ``mask`` in thousandths, parts of GPUs included."""
        total = self.free_within(gpu_type, mask) * GPU_MILLI
        kinds = self.topology.gpu_type
        for node in bits_of(self.partial_nodes & mask):
            if kinds[node] == gpu_type:
                total += sum(self.partial[node].values())
        return total

    def free_within(self, gpu_type: int, mask: int) -> int:
        """Count the free GPUs of a type on the nodes of ``mask``."""
        total = 0
        levels = self.levels[gpu_type]
        for count in range(1, len(levels)):
            nodes = levels[count]
            if nodes:
                total += count * (nodes & mask).bit_count()
        return total
