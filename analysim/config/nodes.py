"""The nodes that a cluster file describes, one by one, and which of them a partition holds.

Names are written in the bracket notation of Slurm host lists: ``gpu[001-003,007],x9``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from analysim.config.cluster import ClusterConfig, NodeGroup, NodeType, Partition, Rack
from analysim.errors import ConfigError
from analysim.spelling import suggest

ROOT = "root"
"""The partition that holds every node; no other may bear this name."""

DEFAULT_GPU_TYPE = "gpu"
"""GPU type of nodes whose type names none."""

MAX_NAMES = 100_000
"""Most names that one notation, and most nodes that one cluster, may have: a typing error beyond that."""

_NAME = re.compile(r"(?:[^\[\],\s]+|\[[^\[\]]*\])+")
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")
_RANGE = re.compile(r"\s*([0-9]+)(?:-([0-9]+))?\s*")
_NUMBERED = re.compile(r"(.*?)([0-9]+)([^0-9]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node. Its index is its position in ``nodes_of``; ``pod`` is empty where the file names none."""

    name: str
    type_name: str
    type: NodeType
    rack: str
    pod: str


def expand_names(text: str) -> list[str]:
    """Write out names in bracket notation, in the order written: ``gpu[08-10],x9`` is gpu08 gpu09 gpu10 x9.

    A number is padded to the width of the range's first. Raises ``ConfigError`` for bad notation,
    a range that runs backwards, and more than ``MAX_NAMES`` names.
    """
    names: list[str] = []
    for part in _OUTSIDE_BRACKETS.split(text):
        stripped = part.strip()
        if not _NAME.fullmatch(stripped):
            raise _bad_notation(text, f"{stripped!r} is no name" if stripped else "a name is missing")
        choices = [
            _range_values(text, match[1]) if match[2] is None else [match[2]]
            for match in _PIECE.finditer(stripped)
        ]
        if len(names) + prod(map(len, choices)) > MAX_NAMES:
            raise _bad_notation(text, f"it makes more than {MAX_NAMES:,} names")
        names.extend(map("".join, product(*choices)))
    return names


def _range_values(text: str, bracket: str) -> list[str]:
    values: list[str] = []
    for item in bracket.split(","):
        match = _RANGE.fullmatch(item)
        if not match:
            raise _bad_notation(text, f"{item.strip()!r} is no number or range")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _bad_notation(text, f"the range {item.strip()} runs backwards")
        if last - first >= MAX_NAMES:
            raise _bad_notation(text, f"it makes more than {MAX_NAMES:,} names")
        values.extend(f"{number:0{len(match[1])}d}" for number in range(first, last + 1))
    return values


def _bad_notation(text: str, why: str) -> ConfigError:
    return ConfigError(f"bad names {text!r}: {why}.", "Write names such as gpu[001-008,012],x3.")


def fold_names(names: Iterable[str]) -> str:
    """Write names in bracket notation, so that ``expand_names`` gives them back in the same order."""
    groups: list[tuple[str, str, int, list[list[int]]]] = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if not match:
            groups.append((name, "", 0, []))
            continue
        prefix, digits, suffix = match.groups()
        number = int(digits)
        if groups and groups[-1][:2] == (prefix, suffix) and groups[-1][3]:
            _, _, width, ranges = groups[-1]
            if f"{number:0{width}d}" == digits:
                if number == ranges[-1][1] + 1:
                    ranges[-1][1] = number
                else:
                    ranges.append([number, number])
                continue
        groups.append((prefix, suffix, len(digits), [[number, number]]))
    return ",".join(_folded(*group) for group in groups)


def _folded(prefix: str, suffix: str, width: int, ranges: list[list[int]]) -> str:
    if not ranges:
        return prefix
    written = [
        f"{first:0{width}d}" + (f"-{last:0{width}d}" if last > first else "") for first, last in ranges
    ]
    inner = ",".join(written)
    return f"{prefix}[{inner}]{suffix}" if len(written) > 1 or "-" in inner else f"{prefix}{inner}{suffix}"


def nodes_of(config: ClusterConfig) -> list[ClusterNode]:
    """List the nodes in file order: racks as written, in each its groups as written.

    A type with GPUs but no ``gpu_type`` gets ``DEFAULT_GPU_TYPE``. Raises ``ConfigError`` for an unknown
    type, a name used twice, a group with both or neither of ``count`` and ``names``, and bad notation.
    """
    types = {name: _with_gpu_type(each) for name, each in config.node_types.items()}
    nodes: list[ClusterNode] = []
    racks: dict[str, str] = {}
    for index, rack in enumerate(config.racks):
        where = f"racks[{index}]"
        rack_names = _expand(f"{where}.name", rack.name)
        for name in rack_names:
            if name in racks:
                raise ConfigError(
                    f"{where}.name: rack {name!r} is already in {racks[name]}.",
                    "List all its nodes in one entry, or rename one of the two.",
                )
            racks[name] = where
        _append_racks(nodes, types, where, rack, rack_names)
    _refuse_twins(nodes, racks)
    return nodes


def _with_gpu_type(node_type: NodeType) -> NodeType:
    if node_type.gpus and node_type.gpu_type is None:
        return node_type.model_copy(update={"gpu_type": DEFAULT_GPU_TYPE})
    return node_type


def _append_racks(
    nodes: list[ClusterNode], types: dict[str, NodeType], where: str, rack: Rack, rack_names: list[str]
) -> None:
    pods = _pods(where, rack, len(rack_names))
    groups: list[tuple[str, list[list[str]]]] = []
    first = 0
    for index, group in enumerate(rack.nodes):
        place = f"{where}.nodes[{index}]"
        if group.type not in types:
            raise ConfigError(
                f"{place}.type: {group.type!r} is not one of the node_types.", suggest(group.type, types)
            )
        names = _group_names(place, group, rack_names, first)
        first += len(names[0])
        groups.append((group.type, names))
    if len(nodes) + first * len(rack_names) > MAX_NAMES:
        raise ConfigError(f"{where}: more than {MAX_NAMES:,} nodes.", "Check the counts.")
    for position, rack_name in enumerate(rack_names):
        for type_name, names in groups:
            nodes.extend(
                ClusterNode(name, type_name, types[type_name], rack_name, pods[position])
                for name in names[position]
            )


def _pods(where: str, rack: Rack, count: int) -> list[str]:
    if rack.pod is None:
        return [""] * count
    pods = _expand(f"{where}.pod", rack.pod)
    if len(pods) == 1:
        return pods * count
    if len(pods) != count:
        raise ConfigError(
            f"{where}.pod: {len(pods)} pods for {count} racks.",
            "Name one pod for all these racks, or one for each; split the entry otherwise.",
        )
    return pods


def _group_names(where: str, group: NodeGroup, racks: list[str], first: int) -> list[list[str]]:
    """Names of a group's nodes, rack by rack; a list of names is dealt out to the racks evenly."""
    if (group.count is None) == (group.names is None):
        given, verb = ("both are", "Keep") if group.count else ("neither is", "Give")
        raise ConfigError(f"{where}: count or names, but {given} given.", f"{verb} one of the two.")
    if group.count is not None:
        if group.count * len(racks) > MAX_NAMES:
            raise ConfigError(f"{where}.count: more than {MAX_NAMES:,} nodes.", "Check the count.")
        return [[f"{rack}-n{index:02d}" for index in range(first, first + group.count)] for rack in racks]
    names = _expand(f"{where}.names", group.names or "")
    share, rest = divmod(len(names), len(racks))
    if rest:
        raise ConfigError(
            f"{where}.names: {len(names)} nodes cannot be dealt evenly to {len(racks)} racks.",
            "Name as many for each rack, or split the entry.",
        )
    return [names[index * share : (index + 1) * share] for index in range(len(racks))]


def _expand(where: str, text: str) -> list[str]:
    try:
        return expand_names(text)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", error.remedy) from None


def _refuse_twins(nodes: list[ClusterNode], racks: dict[str, str]) -> None:
    seen: dict[str, str] = {}
    for node in nodes:
        if node.name in seen:
            raise ConfigError(
                f"node {node.name!r} is listed twice, in rack {seen[node.name]!r} and in rack {node.rack!r}.",
                "Every node needs a name of its own.",
            )
        if node.name in racks:
            raise ConfigError(
                f"{node.name!r} is the name of a rack and of a node.", "Partitions name both: rename one."
            )
        seen[node.name] = node.rack


def gpus_by_type(nodes: Iterable[ClusterNode]) -> dict[str, int]:
    """Count GPUs by type, in the order in which the types first occur."""
    counts: dict[str, int] = {}
    for node in nodes:
        if node.type.gpus and node.type.gpu_type is not None:
            counts[node.type.gpu_type] = counts.get(node.type.gpu_type, 0) + node.type.gpus
    return counts


def select_nodes(nodes: Sequence[ClusterNode], names: str | list[str]) -> list[int]:
    """Find the indices, ascending, of the nodes and racks named in bracket notation.

    Raises ``ConfigError`` for a name that is neither a node nor a rack.
    """
    of_name: dict[str, list[int]] = {}
    for index, node in enumerate(nodes):
        of_name.setdefault(node.rack, []).append(index)
    of_name |= {node.name: [index] for index, node in enumerate(nodes)}
    chosen: set[int] = set()
    for text in [names] if isinstance(names, str) else names:
        for name in expand_names(text):
            if name not in of_name:
                raise ConfigError(f"nodes: {name!r} is neither a node nor a rack.", suggest(name, of_name))
            chosen.update(of_name[name])
    return sorted(chosen)


def walk_partitions(
    partitions: Iterable[Partition], above: tuple[Partition, ...] = ()
) -> Iterator[tuple[Partition, ...]]:
    """Go through a tree of partitions, parents first; each comes as its path from the top down to itself."""
    for partition in partitions:
        path = (*above, partition)
        yield path
        yield from walk_partitions(partition.children, path)


def partition_nodes(
    config: ClusterConfig, partition: str, nodes: Sequence[ClusterNode] | None = None
) -> list[int]:
    """Find the indices, ascending, of the nodes of a partition at the start of a run.

    One that names no nodes has those of its parent; ``ROOT`` has all. ``nodes`` spares making
    the list of ``nodes_of`` again. Raises ``ConfigError`` for an unknown partition, node or rack.
    """
    nodes = nodes_of(config) if nodes is None else nodes
    if partition == ROOT:
        return list(range(len(nodes)))
    paths = {path[-1].name: path for path in walk_partitions(config.partitions)}
    if partition not in paths:
        raise ConfigError(f"the cluster has no partition {partition!r}.", suggest(partition, [ROOT, *paths]))
    for each in reversed(paths[partition]):
        if each.nodes is not None:
            try:
                return select_nodes(nodes, each.nodes)
            except ConfigError as error:
                raise ConfigError(f"partition {each.name!r}: {error.message}", error.remedy) from None
    return list(range(len(nodes)))


def partitions_at(partitions: Iterable[Partition], time_us: int) -> list[Partition]:
    """Give the tree of partitions as it stands at a time since the first submit, in microseconds.

    A change replaces guarantee, limit, borrow and lend together, and the nodes where it names some.
    """
    standing: list[Partition] = []
    for partition in partitions:
        update: dict[str, object] = {"children": partitions_at(partition.children, time_us)}
        for change in sorted(partition.changes, key=lambda each: each.time):
            if change.time <= time_us:
                update |= {
                    "guarantee": change.guarantee,
                    "limit": change.limit,
                    "borrow": change.borrow,
                    "lend": change.lend,
                }
                if change.nodes is not None:
                    update["nodes"] = change.nodes
        standing.append(partition.model_copy(update=update))
    return standing
