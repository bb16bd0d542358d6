"""From what was found to a cluster: node types, racks and names folded, partitions as a tree, all checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from analysim.clusters.checking import check_cluster
from analysim.clusters.importing.found import Found, FoundNode, FoundPartition, Tally
from analysim.clusters.importing.partitioning import partition_tree
from analysim.config.cluster import ClusterConfig, NodeGroup, NodeType, Rack
from analysim.config.nodes import fold_names
from analysim.errors import ConfigError

ONE_RACK = "rack0"
"""Rack of all nodes where racks are not recorded."""

NO_RACK = "no-rack"
"""Rack of the nodes that have none where others have."""

_NO_NAME = re.compile(r"[\[\],\s]+")


def build_cluster(found: Found, name: str) -> tuple[ClusterConfig, list[str]]:
    """Make the cluster of what was found; gives it with the notes of the importer and of the building.

    Nodes come rack by rack, racks and the nodes of a rack in the order found.
    Raises ``ConfigError`` where there are no nodes, two nodes of one name, or where the whole does not hold together.
    """
    tally = Tally()
    nodes, names = _named_nodes(found.nodes, tally)
    types = _node_types(nodes)
    racks = _racks(nodes, types, tally)
    gpus = sum(node.gpus for node in nodes)
    count = len({(node.pod, node.rack) for node in nodes})
    notes = [f"{len(nodes):,} nodes with {gpus:,} GPUs in {count:,} rack{'s' * (count > 1)}", *found.notes]
    if not gpus:
        notes.append("no GPUs were found: only jobs without GPUs can run here")
    config = ClusterConfig(
        name=name,
        source=found.source,
        node_types=dict(types.values()),
        racks=racks,
        partitions=partition_tree(_renamed(found.partitions, names, tally), [node.name for node in nodes], tally),
    )
    check_cluster(config)
    return config, notes + tally.notes()


def _named_nodes(found: Sequence[FoundNode], tally: Tally) -> tuple[list[FoundNode], dict[str, str]]:
    """Nodes once each, under names that bracket notation can hold; also the new name of each old one."""
    if not found:
        raise ConfigError("There are no nodes in these files.", "Add the file that lists the nodes.")
    nodes: dict[str, FoundNode] = {}
    names: dict[str, str] = {}
    for node in found:
        old = node.name
        clean = names.setdefault(old, _NO_NAME.sub("_", old).strip("_") or "node")
        if clean != old:
            tally.add("names of nodes rewritten, as they may not have blanks, commas or brackets", old)
        node.name = clean
        if clean not in nodes:
            nodes[clean] = node
        elif nodes[clean] == node:
            tally.add("nodes listed twice with the same figures, counted once", old)
        else:
            raise ConfigError(f"Node {old!r} is there twice, with different figures.", "Leave out one of the two.")
    return list(nodes.values()), names


def _renamed(partitions: Iterable[FoundPartition], names: dict[str, str], tally: Tally) -> list[FoundPartition]:
    """Partitions with the nodes there are; others are counted."""
    kept = []
    for partition in partitions:
        if partition.nodes is not None:
            known = [names[name] for name in partition.nodes if name in names]
            if missing := len(partition.nodes) - len(known):
                tally.add("nodes that partitions name but nothing describes, left out", partition.name, missing)
            partition.nodes = known
        if partition.nodes is None or partition.nodes:
            kept.append(partition)
        else:
            tally.add("partitions without nodes, left out", partition.name)
    return kept


def _type_of(node: FoundNode) -> NodeType:
    gpu_type = node.gpu_type.replace("|", "/") if node.gpu_type and node.gpus else None
    return NodeType(
        gpu_type=gpu_type,
        gpus=node.gpus,
        gpu_memory_gb=node.gpu_memory_gb if node.gpus and node.gpu_memory_gb else None,
        cpus=node.cpus or None,
        memory_gb=node.memory_gb or None,
        nvlink=node.nvlink and node.gpus > 1,
    )


def _node_types(nodes: Iterable[FoundNode]) -> dict[str, tuple[str, NodeType]]:
    """Node types by the figures they stand for, each with a name such as ``V100-8``."""
    types: dict[str, tuple[str, NodeType]] = {}
    taken: set[str] = set()
    for node in nodes:
        kind = _type_of(node)
        if repr(kind) in types:
            continue
        base = f"{kind.gpu_type or 'gpu'}-{kind.gpus}" if kind.gpus else "cpu"
        sizes = [f"{kind.cpus:g}" if kind.cpus else "", f"{kind.memory_gb:g}gb" if kind.memory_gb else ""]
        choices = [base, "-".join([base, *filter(None, sizes)])]
        choices += [f"{choices[1]}-{number}" for number in range(2, len(types) + 3)]
        name = next(each for each in choices if each not in taken)
        taken.add(name)
        types[repr(kind)] = (name, kind)
    return types


def _racks(nodes: Sequence[FoundNode], types: dict[str, tuple[str, NodeType]], tally: Tally) -> list[Rack]:
    members: dict[tuple[str, str], list[FoundNode]] = {}
    for node in nodes:
        members.setdefault((node.pod, node.rack), []).append(node)
    names = _rack_names(list(members), {node.name for node in nodes})
    if set(members) == {("", "")}:
        tally.add(f"racks are not recorded; nodes that stand in one, {names['', '']}", count=len(nodes))
    elif missing := sum(len(rack) for (_, name), rack in members.items() if not name):
        tally.add("nodes whose rack is not recorded, in one of their own", count=missing)
    described = []
    for key, rack in members.items():
        groups = [
            (types[kind][0], [node.name for node in run])
            for kind, run in groupby(rack, key=lambda node: repr(_type_of(node)))
        ]
        described.append((names[key], _clean(key[0]), groups))
    return _folded(described)


def _clean(text: str) -> str:
    return _NO_NAME.sub("_", text)


def _rack_names(keys: list[tuple[str, str]], nodes: set[str]) -> dict[tuple[str, str], str]:
    """A name of its own for each rack: with its pod's where another pod has one of that name."""
    plain = [rack for _, rack in keys]
    names: dict[tuple[str, str], str] = {}
    taken = set(nodes)
    for pod, rack in keys:
        missing = ONE_RACK if len(keys) == 1 else NO_RACK
        base = _clean(f"{pod}-{rack}" if plain.count(rack) > 1 and pod else rack)
        base = (base if rack else "") or (f"{missing}-{_clean(pod)}" if pod else missing)
        choices = [base, f"rack-{base}", *(f"rack-{base}-{number}" for number in range(2, len(keys) + len(nodes) + 3))]
        names[pod, rack] = next(name for name in choices if name not in taken)
        taken.add(names[pod, rack])
    return names


Described = tuple[str, str, list[tuple[str, list[str]]]]
"""A rack: name, pod, and its nodes in groups of one type."""


def _folded(racks: list[Described]) -> list[Rack]:
    """Racks alike that follow one another and are numbered through are one entry."""
    entries: list[list[Described]] = []
    for rack in racks:
        if entries and _alike(entries[-1][-1], rack) and _numbered([entries[-1][0][0], rack[0]]):
            entries[-1].append(rack)
        else:
            entries.append([rack])
    folded = []
    for entry in entries:
        groups = []
        for index, (type_name, _) in enumerate(entry[0][2]):
            members = [name for _, _, rack_groups in entry for name in rack_groups[index][1]]
            groups.append(NodeGroup(type=type_name, names=fold_names(members)))
        name = fold_names(rack_name for rack_name, _, _ in entry)
        folded.append(Rack(name=name, pod=entry[0][1] or None, nodes=groups))
    return folded


def _alike(one: Described, other: Described) -> bool:
    sizes = [[(type_name, len(names)) for type_name, names in groups] for _, _, groups in (one, other)]
    return one[1] == other[1] and sizes[0] == sizes[1]


def _numbered(names: list[str]) -> bool:
    return fold_names(names).count("[") == 1 and "," not in fold_names(names).split("[")[0]
