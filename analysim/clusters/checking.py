"""Whether a cluster file holds together: names, GPU types, node sets and quotas.

Node sets of partitions may overlap, as Slurm's do. Guarantees may not: of two partitions side by side that
both guarantee GPUs, the node sets are equal (one shared pool) or apart, and one pool is promised only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from analysim.config.cluster import ClusterConfig, GpuAmount, Partition, Quota
from analysim.config.nodes import (
    ROOT,
    ClusterNode,
    gpus_by_type,
    nodes_of,
    partitions_at,
    select_nodes,
    walk_partitions,
)
from analysim.errors import ConfigError
from analysim.spelling import suggest
from analysim.units import format_duration


def check_cluster(config: ClusterConfig) -> None:
    """Check what the models alone cannot see; quotas are checked at the start and after each change.

    Raises ``ConfigError`` for the first thing that does not hold together.
    """
    nodes = nodes_of(config)
    _check_gpu_types(config, nodes)
    paths = list(walk_partitions(config.partitions))
    _check_names([path[-1] for path in paths])
    times = {0}
    for path in paths:
        times |= _change_times(path[-1])
    for time_us in sorted(times):
        when = f" from {format_duration(time_us)} on" if time_us else ""
        tree = partitions_at(config.partitions, time_us)
        _QuotaCheck(nodes, when).check_children(tree, (1 << len(nodes)) - 1, None)


def _check_gpu_types(config: ClusterConfig, nodes: Sequence[ClusterNode]) -> None:
    for name, node_type in config.node_types.items():
        if node_type.gpu_type is not None and "|" in node_type.gpu_type:
            raise ConfigError(
                f"node_types.{name}.gpu_type: {node_type.gpu_type!r} has a '|'.",
                "A node has one GPU type; jobs name alternatives with '|'.",
            )
    known = {each.gpu_type: None for each in config.node_types.values() if each.gpu_type}
    known |= dict.fromkeys(gpus_by_type(nodes))
    for where, gpu_type in _named_gpu_types(config):
        if gpu_type not in known:
            raise ConfigError(
                f"{where}: no node type has the GPU type {gpu_type!r}.", suggest(gpu_type, known)
            )


def _named_gpu_types(config: ClusterConfig) -> Iterator[tuple[str, str]]:
    """GPU types that speeds and quotas name, with where they do."""
    for gpu_type in config.speeds:
        yield "speeds", gpu_type
    for path in walk_partitions(config.partitions):
        for quota in (path[-1], *path[-1].changes):
            for field in ("guarantee", "limit", "borrow", "lend"):
                amount: GpuAmount | None = getattr(quota, field)
                for gpu_type in amount if isinstance(amount, dict) else ():
                    yield f"partition {path[-1].name!r}, {field}", gpu_type


def _check_names(partitions: list[Partition]) -> None:
    seen: set[str] = set()
    for partition in partitions:
        if partition.name == ROOT:
            raise ConfigError(
                f"partition {ROOT!r}: this name stands for the whole cluster.", "Choose another name."
            )
        if partition.name in seen:
            raise ConfigError(
                f"partition {partition.name!r} is there twice.",
                "Jobs name a partition without its parents: every name in the tree must differ.",
            )
        seen.add(partition.name)


def _change_times(partition: Partition) -> set[int]:
    times = [change.time for change in partition.changes]
    for time_us in times:
        if times.count(time_us) > 1:
            raise ConfigError(
                f"partition {partition.name!r}: two changes at {format_duration(time_us)}.",
                "Merge them into one.",
            )
    return set(times)


@dataclass
class _QuotaCheck:
    """Checks a tree of partitions as it stands at one time; node sets are bit masks over the node indices."""

    nodes: Sequence[ClusterNode]
    when: str

    def check_children(self, children: list[Partition], above: int, parent: Partition | None) -> None:
        masks = [self._node_mask(child, above, parent) for child in children]
        for child, mask in zip(children, masks, strict=True):
            self._check_limit(child, mask)
        if parent is not None:
            self._check_parent(children, parent)
        self._check_pools(children, masks)
        for child, mask in zip(children, masks, strict=True):
            self.check_children(child.children, mask, child)

    def _node_mask(self, partition: Partition, above: int, parent: Partition | None) -> int:
        if partition.nodes is None:
            return above
        try:
            chosen = select_nodes(self.nodes, partition.nodes)
        except ConfigError as error:
            raise ConfigError(f"partition {partition.name!r}: {error.message}", error.remedy) from None
        mask = sum(1 << index for index in chosen)
        if parent is not None and mask & ~above:
            stray = self.nodes[(mask & ~above).bit_length() - 1].name
            raise ConfigError(
                f"partition {partition.name!r}: node {stray!r} is not one of its parent {parent.name!r}.",
                "A child's nodes lie within its parent's.",
            )
        return mask

    def _check_limit(self, partition: Partition, mask: int) -> None:
        for guarantee, limit, unit in _comparable(partition, self._capacity(mask)):
            if guarantee > limit:
                raise ConfigError(
                    f"partition {partition.name!r} guarantees {guarantee} {unit}"
                    f" but limits them to {limit}{self.when}.",
                    "Raise the limit or lower the guarantee.",
                )

    def _check_parent(self, children: list[Partition], parent: Partition) -> None:
        names = _quoted(child.name for child in children if _total(child.guarantee))
        promised = sum(_total(child.guarantee) for child in children)
        if promised > _total(parent.guarantee):
            raise ConfigError(
                f"partition {parent.name!r} guarantees {_total(parent.guarantee)} GPUs,"
                f" its children {names} {promised}{self.when}.",
                f"Raise the guarantee of {parent.name!r} or lower theirs.",
            )
        if isinstance(parent.guarantee, dict):
            for gpu_type, promised in _sum_by_type(children).items():
                own = parent.guarantee.get(gpu_type, 0)
                if promised > own:
                    raise ConfigError(
                        f"partition {parent.name!r} guarantees {own} {gpu_type},"
                        f" its children {names} {promised}{self.when}.",
                        f"Raise the guarantee of {parent.name!r} or lower theirs.",
                    )

    def _check_pools(self, children: list[Partition], masks: list[int]) -> None:
        """One pool of nodes is promised only once, and no more of it than there is."""
        promising = [pair for pair in zip(children, masks, strict=True) if _total(pair[0].guarantee)]
        for (one, mask), (other, mask_of_other) in combinations(promising, 2):
            if mask != mask_of_other and mask & mask_of_other:
                shared = self.nodes[(mask & mask_of_other).bit_length() - 1].name
                raise ConfigError(
                    f"partitions {one.name!r} and {other.name!r} both guarantee GPUs of node {shared!r}"
                    f" but have different nodes{self.when}.",
                    "Give both the same nodes, or separate ones, or make one a child of the other.",
                )
        for mask in dict.fromkeys(mask for _, mask in promising):
            self._check_capacity([child for child, each in promising if each == mask], mask)

    def _check_capacity(self, sharing: list[Partition], mask: int) -> None:
        capacity = self._capacity(mask)
        amounts = {"GPUs": (sum(_total(each.guarantee) for each in sharing), sum(capacity.values()))}
        for gpu_type, promised in _sum_by_type(sharing).items():
            amounts[gpu_type] = (promised, capacity.get(gpu_type, 0))
        for unit, (promised, there) in amounts.items():
            if promised > there:
                raise ConfigError(
                    f"partition{'s' * (len(sharing) > 1)} {_quoted(each.name for each in sharing)}:"
                    f" {promised} {unit} guaranteed, but the nodes have {there}{self.when}.",
                    "Lower the guarantees or add nodes.",
                )

    def _capacity(self, mask: int) -> dict[str, int]:
        return gpus_by_type(node for index, node in enumerate(self.nodes) if mask >> index & 1)


def _comparable(quota: Quota, capacity: dict[str, int]) -> list[tuple[int, int, str]]:
    """Pairs of guarantee and limit that count the same GPUs, with the name of what they count."""
    guarantee, limit = quota.guarantee, quota.limit
    if limit is None:
        return []
    if isinstance(limit, int):
        return [(_total(guarantee), limit, "GPUs")]
    if isinstance(guarantee, dict):
        return [(guarantee[each], limit[each], each) for each in guarantee if each in limit]
    bounded = all(gpu_type in limit for gpu_type in capacity)
    return [(guarantee, _total(limit), "GPUs")] if bounded else []


def _total(amount: GpuAmount) -> int:
    return sum(amount.values()) if isinstance(amount, dict) else amount


def _sum_by_type(partitions: list[Partition]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for partition in partitions:
        if isinstance(partition.guarantee, dict):
            for gpu_type, gpus in partition.guarantee.items():
                sums[gpu_type] = sums.get(gpu_type, 0) + gpus
    return sums


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
