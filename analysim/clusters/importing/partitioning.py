"""Partitions that were found, as the tree of a cluster file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysim.clusters.importing.found import FoundPartition, Tally
from analysim.config.cluster import Limits, Partition, QuotaChange, RunningLimit
from analysim.config.nodes import ROOT, fold_names
from analysim.errors import ConfigError


def partition_tree(found: Sequence[FoundPartition], nodes: Sequence[str], tally: Tally) -> list[Partition]:
    """Make the tree; names are unique and none is ``root``, and what holds all nodes names none.

    Raises ``ConfigError`` for a name that is there twice, and for parents that go round in a circle.
    """
    by_name: dict[str, FoundPartition] = {}
    for partition in found:
        if partition.name in by_name:
            raise ConfigError(f"Partition {partition.name!r} is there twice.", "Leave out one of the two.")
        by_name[partition.name] = partition
    children: dict[str, list[FoundPartition]] = {}
    for partition in by_name.values():
        _refuse_circle(partition, by_name)
        parent = partition.parent if partition.parent in by_name else ""
        children.setdefault(parent, []).append(partition)
    order = {name: index for index, name in enumerate(nodes)}
    return [_partition(each, children, order, set(by_name), tally) for each in children.get("", [])]


def _refuse_circle(partition: FoundPartition, by_name: Mapping[str, FoundPartition]) -> None:
    seen = {partition.name}
    above = by_name.get(partition.parent)
    while above is not None:
        if above.name in seen:
            raise ConfigError(f"Partition {partition.name!r} is above itself.", "Correct its parents.")
        seen.add(above.name)
        above = by_name.get(above.parent)


def _partition(
    found: FoundPartition,
    children: Mapping[str, list[FoundPartition]],
    order: Mapping[str, int],
    taken: set[str],
    tally: Tally,
) -> Partition:
    fields: dict[str, Any] = {
        "name": _free_name(found.name, taken, tally),
        "limits": Limits(user=_limit(found.user), tenant=_limit(found.tenant)),
        "children": [_partition(each, children, order, taken, tally) for each in children.get(found.name, [])],
    }
    if found.nodes is not None and len(set(found.nodes)) < len(order):
        fields["nodes"] = fold_names(sorted(set(found.nodes), key=order.__getitem__))
    if found.guarantee:
        fields["guarantee"] = found.guarantee
    for name in ("limit", "borrow", "lend", "max_gpus_per_job"):
        if getattr(found, name) is not None:
            fields[name] = getattr(found, name)
    if found.time_limit_s is not None:
        fields["time_limit"] = found.time_limit_s
    return Partition(
        **fields,
        reclaim=found.reclaim,
        priority_tier=found.priority_tier,
        changes=[QuotaChange(time=each.time_s, guarantee=each.guarantee, borrow=each.borrow) for each in found.events],
    )


def _free_name(name: str, taken: set[str], tally: Tally) -> str:
    if name != ROOT:
        return name
    new = next(each for each in ("root-partition", *(f"root-{n}" for n in range(9))) if each not in taken)
    tally.add(f"partitions renamed, as {ROOT} is the whole cluster", new)
    return new


def _limit(limit: RunningLimit | None) -> RunningLimit | None:
    return None if limit is None or (limit.gpus is None and limit.jobs is None) else limit
