"""A cluster in figures and as a readable tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from analysim.config.cluster import ClusterConfig, GpuAmount, Partition
from analysim.config.nodes import (
    ClusterNode,
    fold_names,
    gpus_by_type,
    nodes_of,
    partition_nodes,
    walk_partitions,
)
from analysim.units import format_duration


def describe_cluster(config: ClusterConfig) -> dict[str, Any]:
    """Count what a cluster has, as plain data; CPUs and memory are None where no node type gives them."""
    nodes = nodes_of(config)
    return {
        "name": config.name,
        "description": config.description,
        "source": config.source,
        "inferred": config.inferred,
        "nodes": len(nodes),
        "gpus": sum(node.type.gpus for node in nodes),
        "gpus_by_type": gpus_by_type(nodes),
        "nodes_by_type": {
            name: sum(node.type_name == name for node in nodes)
            for name in dict.fromkeys(node.type_name for node in nodes)
        },
        "racks": len({node.rack for node in nodes}),
        "pods": len({node.pod for node in nodes if node.pod}),
        "cpus": _sum(node.type.cpus for node in nodes),
        "memory_gb": _sum(node.type.memory_gb for node in nodes),
        "partitions": [
            _describe_partition(config, path, nodes) for path in walk_partitions(config.partitions)
        ],
    }


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _describe_partition(
    config: ClusterConfig, path: tuple[Partition, ...], nodes: list[ClusterNode]
) -> dict[str, Any]:
    partition = path[-1]
    indices = partition_nodes(config, partition.name, nodes)
    return {
        "name": partition.name,
        "parent": path[-2].name if len(path) > 1 else None,
        "leaf": not partition.children,
        "nodes": len(indices),
        "gpus": sum(nodes[index].type.gpus for index in indices),
        "guarantee": partition.guarantee,
        "limit": partition.limit,
        "borrow": partition.borrow,
        "lend": partition.lend,
        "reclaim": partition.reclaim,
    }


def draw_cluster(config: ClusterConfig) -> str:
    """Draw a cluster as lines of text: racks alike are folded, partitions stand below their parents."""
    nodes = nodes_of(config)
    facts = describe_cluster(config)
    types = ", ".join(f"{count:,} {name}" for name, count in facts["gpus_by_type"].items())
    lines = [f"{config.name}: {facts['nodes']:,} nodes, {facts['gpus']:,} GPUs ({types or 'none'})"]
    lines += [text for text in (config.description, config.source and f"Source: {config.source}") if text]
    if config.inferred:
        lines.append(f"Inferred: {config.inferred}")
    lines += ["", "racks", *_rack_lines(nodes)]
    if config.partitions:
        lines += ["", "partitions"]
        for path in walk_partitions(config.partitions):
            lines.append(_partition_line(config, path, nodes))
    return "\n".join(lines)


def _rack_lines(nodes: list[ClusterNode]) -> list[str]:
    racks = [list(each) for _, each in groupby(nodes, key=lambda node: node.rack)]
    lines: list[str] = []
    for (pod, contents), alike in groupby(racks, key=lambda rack: (rack[0].pod, _contents(rack))):
        names = [rack[0].rack for rack in alike]
        each = ", each" if len(names) > 1 else ","
        lines.append(f"  {fold_names(names)}{f' in {pod}' if pod else ''}{each} {contents}")
    return lines


def _contents(rack: list[ClusterNode]) -> str:
    parts = []
    for type_name, count in Counter(node.type_name for node in rack).items():
        node_type = next(node.type for node in rack if node.type_name == type_name)
        gpus = f"{node_type.gpus} {node_type.gpu_type}" if node_type.gpus else "no GPUs"
        parts.append(f"{count} x {type_name} ({gpus})")
    return " + ".join(parts)


def _partition_line(config: ClusterConfig, path: tuple[Partition, ...], nodes: list[ClusterNode]) -> str:
    partition = path[-1]
    facts = _describe_partition(config, path, nodes)
    rules = [
        f"{word} {_amount(amount)}"
        for word, amount in (
            ("guarantee", partition.guarantee or None),
            ("limit", partition.limit),
            ("borrow", partition.borrow),
            ("lend", partition.lend),
            ("at most a job", partition.max_gpus_per_job),
        )
        if amount is not None
    ]
    if partition.time_limit is not None:
        rules.append(f"time limit {format_duration(partition.time_limit)}")
    rules += ["reclaims"] * partition.reclaim
    rules += [f"changes {len(partition.changes)} times"] * bool(partition.changes)
    name = f"{'  ' * len(path)}{partition.name}"
    return f"{name:<24} {facts['nodes']:>5,} nodes {facts['gpus']:>7,} GPUs  {', '.join(rules)}".rstrip()


def _amount(amount: GpuAmount) -> str:
    if isinstance(amount, dict):
        return " + ".join(f"{gpus:,} {gpu_type}" for gpu_type, gpus in amount.items())
    return f"{amount:,}"
