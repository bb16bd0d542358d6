"""Racks and pods from topology.conf and topology.yaml: trees of switches, and blocks.

https://slurm.schedmd.com/topology.conf.html and https://slurm.schedmd.com/topology.yaml.html
"""

from __future__ import annotations

from typing import Any

from analysim.clusters.importing.documents import mapping, read_documents, sequence
from analysim.clusters.importing.slurm_cluster import Slurm, Switch
from analysim.clusters.importing.slurm_texts import Record, configured_records
from analysim.clusters.importing.sources import Source


def add_topology(slurm: Slurm, source: Source) -> None:
    """Read SwitchName and BlockName lines. Raises ``ConfigError``."""
    for record in configured_records(source):
        _add(slurm, record)


def add_topology_yaml(slurm: Slurm, source: Source) -> None:
    """Read the cluster's default topology, else the first; others are named in a note. Raises ``ConfigError``."""
    lists = [document for document in read_documents(source) if isinstance(document, list)]
    named = [each for document in lists for each in document if isinstance(each, dict) and "topology" in each]
    if not named:
        raise source.error(None, "no topology in it.", "Give the whole topology.yaml.")
    chosen = next((each for each in named if str(each.get("cluster_default")).lower() == "true"), named[0])
    if len(named) > 1:
        others = ", ".join(str(each["topology"]) for each in named if each is not chosen)
        slurm.notes.append(f"topology {chosen['topology']} gives racks and pods; left out: {others}")
    switches = sequence(mapping(chosen, "tree"), "switches")
    blocks = sequence(mapping(chosen, "block"), "blocks")
    sizes = ",".join(map(str, sequence(mapping(chosen, "block"), "block_sizes")))
    if not switches and not blocks:
        slurm.notes.append(f"topology {chosen['topology']} is neither a tree nor blocks: no racks are known")
    for item in switches:
        _add(slurm, _record(source, item, {"switch": "switchname", "nodes": "nodes", "children": "switches"}))
    for item in blocks:
        _add(slurm, _record(source, item, {"block": "blockname", "nodes": "nodes"}))
    if sizes:
        _add(slurm, Record(source, 1, {"blocksizes": sizes}))


def _record(source: Source, item: Any, keys: dict[str, str]) -> Record:
    if not isinstance(item, dict) or next(iter(keys)) not in item:
        raise source.error(None, f"an entry without {next(iter(keys))}.", "Correct the topology.")
    values = {keys[key]: str(value) for key, value in item.items() if key in keys}
    return Record(source, 1, values)


def _add(slurm: Slurm, record: Record) -> None:
    if record.get("switchname"):
        for name in record.names("switchname"):
            switch = slurm.switches.setdefault(name, Switch())
            switch.nodes += record.names("nodes")
            switch.children += record.names("switches")
        if record.get("linkspeed"):
            slurm.tally.add("link speeds of switches, which have no unit, left out")
    elif record.get("blockname"):
        slurm.blocks.setdefault(record.get("blockname"), []).extend(record.names("nodes"))
    elif record.get("blocksizes"):
        sizes = record.get("blocksizes").split(",")
        if not all(size.strip().isdecimal() and int(size) for size in sizes):
            raise record.error(f"BlockSizes is {record.get('blocksizes')!r}, no list of numbers.")
        slurm.block_sizes = sorted(int(size) for size in sizes)
    else:
        slurm.tally.add("lines of the topology that name no switch or block, left out")


def apply_topology(slurm: Slurm) -> None:
    """Give hosts racks and pods; hosts that only the topology names are counted, not made."""
    placed: dict[str, tuple[str, str]] = {}
    twice = 0
    for host, rack, pod in [*_of_tree(slurm), *_of_blocks(slurm)]:
        twice += host in placed and placed[host] != (rack, pod)
        placed.setdefault(host, (rack, pod))
    for name, (rack, pod) in placed.items():
        if name in slurm.hosts:
            slurm.hosts[name].rack, slurm.hosts[name].pod = rack, pod
        else:
            slurm.tally.add("nodes in the topology that no other file describes, left out", name)
    if twice:
        slurm.tally.add("nodes on several switches, of which the first is the rack", count=twice)


def _of_tree(slurm: Slurm) -> list[tuple[str, str, str]]:
    parents: dict[str, str] = {}
    for name, switch in slurm.switches.items():
        for child in switch.children:
            parents.setdefault(child, name)
    leaves = {name: switch for name, switch in slurm.switches.items() if switch.nodes}
    tops = [name for name in slurm.switches if name not in parents]
    pods = {name: _pod(name, parents, tops) for name in leaves}
    if leaves:
        named = len(set(filter(None, pods.values())))
        slurm.notes.append(
            f"{len(leaves)} switches with nodes are the racks, {named} switches right above them the pods"
            + ("" if named else ": one switch joins all racks, and is no pod")
        )
    above = {parents.get(pod, "") for pod in pods.values() if pod} - {""} - set(tops)
    if above:
        slurm.notes.append("switches between the pods and the top of the tree, left out: there is no such level here")
    return [(host, name, pods[name]) for name, switch in leaves.items() for host in switch.nodes]


def _pod(leaf: str, parents: dict[str, str], tops: list[str]) -> str:
    """The switch above a leaf; none where it is the one top of the whole tree."""
    above = parents.get(leaf, "")
    return "" if above in tops and len(tops) == 1 else above


def _of_blocks(slurm: Slurm) -> list[tuple[str, str, str]]:
    if not slurm.blocks:
        return []
    base, second = [*slurm.block_sizes, 0, 0][:2]
    group = second // base if base and second else 0
    slurm.notes.append(
        f"{len(slurm.blocks)} blocks are the racks"
        + (f", {group} blocks in the order of the file a pod (BlockSizes {base},{second})" if group > 1 else "")
    )
    if len(slurm.block_sizes) > 2:
        slurm.notes.append("block sizes beyond the second, left out: a cluster file has no such level")
    return [
        (host, name, f"blocks{index // group}" if group > 1 else "")
        for index, (name, hosts) in enumerate(slurm.blocks.items())
        for host in hosts
    ]
