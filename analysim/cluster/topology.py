"""The physical tree as the engine uses it: node indexes, bit masks, racks and pods."""

from __future__ import annotations

from analysim.config.cluster import ClusterConfig
from analysim.config.nodes import ClusterNode, nodes_of
from analysim.units import CPU_MILLI, MEGABYTES

UNMODELLED = -1
"""CPUs or memory of a node whose type does not state them: anything fits."""


class Topology:
    """Nodes in file order with what each holds; a node is its index, a set of nodes a bit mask.

    GPU types are numbered in order of first appearance; CPU-only nodes have type -1.
    ``cpu_milli`` and ``memory_mb`` are -1 where the node type does not state them; ``uniform`` tells that all nodes
    have GPUs of one type.
    """

    def __init__(self, config: ClusterConfig) -> None:
        self.config = config
        self.nodes: list[ClusterNode] = nodes_of(config)
        self.size = len(self.nodes)
        self.index_of = {node.name: index for index, node in enumerate(self.nodes)}
        self.gpu_types: list[str] = []
        self.gpu_count = [node.type.gpus for node in self.nodes]
        self.gpu_type = [self._number(node) for node in self.nodes]
        self.cpu_milli = [_scaled(node.type.cpus, CPU_MILLI) for node in self.nodes]
        self.memory_mb = [_scaled(node.type.memory_gb, MEGABYTES) for node in self.nodes]
        self.models_resources = any(value >= 0 for value in (*self.cpu_milli, *self.memory_mb))
        self.rack_of, self.rack_masks = _grouped([(node.pod, node.rack) for node in self.nodes])
        self._domains: dict[str, tuple[int, ...]] = {"rack": tuple(self.rack_masks)}
        self.type_masks = [self._mask_of_type(number) for number in range(len(self.gpu_types))]
        self.all_nodes = (1 << self.size) - 1
        self.uniform = self.type_masks == [self.all_nodes]

    def domains(self, level: str) -> tuple[int, ...]:
        """Sets of nodes that make one ``node``, ``nvlink`` domain, ``rack`` or ``pod`` each, in file order.

        An NVLink domain is a node, or ``nvlink_nodes`` nodes of one type that follow each other in a rack; nodes
        without NVLink are in none. Nodes whose pod is not named are one pod.
        """
        if level not in self._domains:
            make = {"node": self._single_nodes, "nvlink": self._nvlink_domains, "pod": self._pods}[level]
            self._domains[level] = tuple(make())
        return self._domains[level]

    def _single_nodes(self) -> list[int]:
        return [1 << node for node in range(self.size)]

    def _pods(self) -> list[int]:
        return _grouped([node.pod for node in self.nodes])[1]

    def _nvlink_domains(self) -> list[int]:
        places: dict[object, int] = {}
        labels: list[object] = []
        linked = [index for index, node in enumerate(self.nodes) if node.type.nvlink]
        for index in linked:
            node = self.nodes[index]
            kind = (node.pod, node.rack, node.type_name)
            place = places[kind] = places.get(kind, -1) + 1
            labels.append((kind, place // node.type.nvlink_nodes))
        found: dict[object, int] = {}
        for index, label in zip(linked, labels, strict=True):
            found[label] = found.get(label, 0) | 1 << index
        return list(found.values())

    def with_features(self, wanted: str) -> int:
        """Nodes that have what is asked for: names joined by ``&``, alternatives by ``|`` (which binds weaker)."""
        choices = [{name.strip() for name in choice.split("&")} for choice in wanted.split("|")]
        offers = [set(node.type.features) for node in self.nodes]
        return sum(1 << index for index, offer in enumerate(offers) if any(choice <= offer for choice in choices))

    def _number(self, node: ClusterNode) -> int:
        if node.type.gpus == 0:
            return -1
        name = node.type.gpu_type or "gpu"
        if name not in self.gpu_types:
            self.gpu_types.append(name)
        return self.gpu_types.index(name)

    def _mask_of_type(self, number: int) -> int:
        return sum(1 << node for node, kind in enumerate(self.gpu_type) if kind == number)

    @property
    def gpus(self) -> int:
        """GPUs of the whole cluster."""
        return sum(self.gpu_count)

    def gpus_in(self, mask: int, gpu_type: int | None = None) -> int:
        """Count the GPUs (of one type) on the nodes of ``mask``."""
        return sum(
            self.gpu_count[node]
            for node in range(self.size)
            if mask >> node & 1 and (gpu_type is None or self.gpu_type[node] == gpu_type)
        )

    def sizes_in(self, mask: int) -> tuple[tuple[int, int], ...]:
        """Return (GPUs a node, mask) for each node size among the nodes of ``mask``, largest first."""
        sizes: dict[int, int] = {}
        for node in range(self.size):
            if mask >> node & 1:
                sizes[self.gpu_count[node]] = sizes.get(self.gpu_count[node], 0) | 1 << node
        return tuple(sorted(sizes.items(), reverse=True))


def _scaled(value: float | None, scale: int) -> int:
    return UNMODELLED if value is None else round(value * scale)


def _grouped(labels: list[object]) -> tuple[list[int], list[int]]:
    numbers: dict[object, int] = {}
    group_of = [numbers.setdefault(label, len(numbers)) for label in labels]
    masks = [0] * len(numbers)
    for node, group in enumerate(group_of):
        masks[group] |= 1 << node
    return group_of, masks
