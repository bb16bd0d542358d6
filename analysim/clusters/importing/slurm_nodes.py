"""Nodes and partitions of Slurm: from scontrol, sinfo, slurm.conf and gres.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analysim.clusters.importing.found import FoundNode, FoundPartition
from analysim.clusters.importing.slurm_cluster import Host, Slurm
from analysim.clusters.importing.slurm_texts import (
    Record,
    configured_records,
    is_slice,
    read_gres,
    read_time,
    read_tres,
    shown_records,
)
from analysim.clusters.importing.sources import Source
from analysim.units import MEGABYTES

_OUT_OF_USE = ("DOWN", "DRAIN", "FAIL", "MAINT", "NOT_RESPONDING", "INVAL")
_DEFAULT = "default"


def add_shown(slurm: Slurm, source: Source) -> None:
    """Read ``scontrol show node`` and ``show partition``, with or without ``--oneliner``. Raises ``ConfigError``."""
    for record in shown_records(source):
        if "nodename" in record.values:
            _add_node(slurm, record)
        elif "partitionname" in record.values:
            for name in record.get("partitionname").split(","):
                _add_queue(slurm, record, name, record.names("nodes") or [])
        else:
            slurm.tally.add("lines or records that are neither nodes nor partitions, left out")


def _add_node(slurm: Slurm, record: Record) -> None:
    for name in record.names("nodename"):
        host = slurm.host(name)
        gpus = read_gres(record.get("gres"), slurm.tally) or _tres_gpus(record)
        slurm.describe(host, gpus, record.number("cputot"), record.number("realmemory"))
        host.partitions += [each for each in record.get("partitions").split(",") if each]
        _note_state(slurm, record, name)


def _tres_gpus(record: Record) -> dict[str, int]:
    """GPUs in CfgTRES, for nodes whose Gres is not shown; by type where types are tracked."""
    tres = read_tres(record.get("cfgtres"))
    typed = {name[9:]: int(value) for name, value in tres.items() if name.startswith("gres/gpu:") and value.isdecimal()}
    typed = {name: count for name, count in typed.items() if not is_slice(name)}
    total = tres.get("gres/gpu", "")
    return typed or ({"": int(total)} if total.isdecimal() and int(total) else {})


def _note_state(slurm: Slurm, record: Record, name: str) -> None:
    state = record.get("state").upper()
    if any(word in state for word in _OUT_OF_USE):
        slurm.tally.add("nodes that were down, drained or failing when this was written, kept", name)


def _add_queue(slurm: Slurm, record: Record, name: str, nodes: list[str] | None) -> None:
    queue = slurm.queue(name)
    if nodes is not None:
        queue.nodes = list(dict.fromkeys([*(queue.nodes or []), *nodes]))
    queue.time_limit_s = read_time(record, "maxtime") if queue.time_limit_s is None else queue.time_limit_s
    queue.priority_tier = record.whole("prioritytier") or queue.priority_tier
    queue.qos = record.get("qos") or queue.qos
    if record.get("state").upper() not in ("UP", ""):
        slurm.tally.add("partitions that are not up, kept", name)
    for key in ("maxnodes", "minnodes", "maxcpuspernode", "allowgroups", "allowaccounts", "allowqos", "gracetime"):
        if record.get(key).upper() not in ("", "ALL", "0", "1"):
            slurm.tally.add("limits of partitions that a cluster file cannot hold, left out", key)


def add_configuration(slurm: Slurm, source: Source) -> None:
    """Read NodeName, PartitionName and NodeSet lines; the other parameters are counted. Raises ``ConfigError``."""
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    sets: dict[str, list[str]] = {}
    queues: list[tuple[Record, str]] = []
    for record in configured_records(source):
        kind = next((each for each in ("nodename", "partitionname", "nodeset") if each in record.values), "")
        if kind == "nodeset":
            sets[record.values[kind]] = _node_set(slurm, record)
        elif not kind:
            slurm.name = slurm.name or record.get("clustername")
            slurm.tally.add(f"parameters in {source.path.name} that are not about nodes and partitions, left out")
        elif record.values[kind].lower() == _DEFAULT:
            defaults[kind] |= {key: value for key, value in record.values.items() if key != kind}
        else:
            whole = Record(source, record.line, defaults[kind] | dict(record.values))
            if kind == "nodename":
                _add_configured_node(slurm, whole)
            else:
                queues += [(whole, name) for name in whole.get(kind).split(",")]
    for record, name in queues:
        _add_queue(slurm, record, name, _named_nodes(slurm, record, sets))


def _add_configured_node(slurm: Slurm, record: Record) -> None:
    names = record.names("nodename")
    if record.get("state").upper() == "FUTURE":
        slurm.tally.add("nodes of the state FUTURE, left out", names[0] if names else "", len(names))
        return
    cpus = record.number("cpus") or record.number("procs")
    sockets = record.number("sockets") or (record.number("boards") or 1) * (record.number("socketsperboard") or 0)
    if cpus is None and (sockets or record.get("corespersocket")):
        cpus = (sockets or 1) * (record.number("corespersocket") or 1) * (record.number("threadspercore") or 1)
    gpus = read_gres(record.get("gres"), slurm.tally) if record.get("gres") else None
    for name in names:
        host = slurm.host(name)
        slurm.describe(host, gpus, cpus, record.number("realmemory"))
        host.features += [each for each in record.get("features", "feature").split(",") if each]
        _note_state(slurm, record, name)


def _node_set(slurm: Slurm, record: Record) -> list[str]:
    features = set(record.get("feature").split(",")) - {""}
    named = [] if record.get("nodes").upper() == "ALL" else record.names("nodes")
    everywhere = record.get("nodes").upper() == "ALL"
    return named + [name for name, host in slurm.hosts.items() if everywhere or features & set(host.features)]


def _named_nodes(slurm: Slurm, record: Record, sets: dict[str, list[str]]) -> list[str]:
    if record.get("nodes").upper() == "ALL":
        return list(slurm.hosts)
    nodes: list[str] = []
    for name in record.names("nodes"):
        nodes += sets.get(name, [name])
    return nodes


def add_gres(slurm: Slurm, source: Source) -> None:
    """Keep the lines of gres.conf, which add what slurm.conf does not say. Raises ``ConfigError``."""
    for record in configured_records(source):
        if record.get("name").lower() == "gpu":
            slurm.gres.append(record)
        elif record.get("name"):
            slurm.tally.add("lines of gres.conf about other GRES than GPUs, left out", record.get("name"))
        elif record.get("autodetect") == "off":
            continue
        elif record.get("autodetect"):
            slurm.tally.add("lines of gres.conf that leave it to the nodes to detect their GPUs (AutoDetect)")
        else:
            slurm.tally.add("lines of gres.conf that name no GRES, left out")


def _apply_gres(slurm: Slurm) -> None:
    named: dict[str, dict[str, int]] = {}
    everywhere: dict[str, int] = {}
    for record in slurm.gres:
        gpu_type, count = record.get("type"), record.whole("count")
        files = record.names("file", "multiplefiles")
        count = len(files) if count is None else count
        if is_slice(gpu_type) or record.get("multiplefiles"):
            slurm.tally.add("entries of MIG slices, which are no whole GPUs, left out", gpu_type)
            continue
        hosts = record.names("nodename")
        for target in [named.setdefault(name, {}) for name in hosts] if hosts else [everywhere]:
            target[gpu_type] = target.get(gpu_type, 0) + (count or 1)
    for name in named:
        slurm.host(name)
    for host in slurm.hosts.values():
        gpus = named.get(host.name, everywhere)
        if gpus and host.gpus is None and (host.name in named or len(slurm.hosts) == 1):
            host.gpus = gpus
        elif gpus and host.gpus and set(host.gpus) == {""}:
            _type_gpus(slurm, host, gpus)


def _type_gpus(slurm: Slurm, host: Host, gpus: dict[str, int]) -> None:
    """Give untyped GPUs the types of gres.conf, if it counts as many or knows one type only."""
    count = (host.gpus or {})[""]
    if sum(gpus.values()) == count:
        host.gpus = dict(gpus)
    elif len(gpus) == 1:
        host.gpus = {next(iter(gpus)): count}
        slurm.tally.add("nodes with another number of GPUs than gres.conf lists, of which the former counts", host.name)
    else:
        slurm.tally.add("nodes with untyped GPUs that gres.conf does not match, left untyped", host.name)


def add_sinfo(slurm: Slurm, source: Source) -> None:
    """Read a table of sinfo with the column NODELIST or HOSTNAMES. Raises ``ConfigError``."""
    records = list(_sinfo_rows(slurm, source))
    if not records:
        raise source.error(None, "a header of sinfo and no nodes.", "Give the whole table.")
    if not any("gres" in record.values for record in records):
        slurm.notes.append(
            f"{source.path.name} has no column GRES and says nothing of GPUs: sinfo -N -o '%N %P %G %c %m' does"
        )
    for record in records:
        gpus = read_gres(record.get("gres"), slurm.tally) if "gres" in record.values else None
        cpus = record.get("cpus") or record.get("cpus(a/i/o/t)")
        total = Record(source, record.line, {"cpus": cpus.split("/")[-1]})
        partition = record.get("partition").rstrip("*")
        for name in record.names("nodelist", "hostnames"):
            host = slurm.host(name)
            slurm.describe(host, gpus, total.number("cpus"), record.number("memory"))
            host.partitions += [partition] if partition else []
            _note_state(slurm, record, name)
        if partition:
            queue = slurm.queue(partition)
            queue.time_limit_s = queue.time_limit_s or read_time(record, "timelimit")


def _sinfo_rows(slurm: Slurm, source: Source) -> Iterator[Record]:
    keys: list[str] = []
    bars = False
    for number, line in source.numbered():
        if not keys:
            if re.search(r"\b(?:NODELIST|HOSTNAMES)\b", line):
                bars = "|" in line
                keys = [each.strip().lower() for each in (line.split("|") if bars else line.split())]
            continue
        fields = [each.strip() for each in line.split("|")] if bars else line.split(None, len(keys) - 1)
        if len(fields) == len(keys):
            yield Record(source, number, dict(zip(keys, fields, strict=True)))
        elif line.strip():
            slurm.tally.add(f"lines of {source.path.name} with another number of columns, left out", f"line {number}")


def nodes_of_hosts(slurm: Slurm) -> list[FoundNode]:
    """Make nodes of hosts. One with GPUs of several types becomes a node a type: a node here has one type."""
    _apply_gres(slurm)
    nodes: list[FoundNode] = []
    for host in slurm.hosts.values():
        types = {name: count for name, count in (host.gpus or {}).items() if count} or {"": 0}
        total = sum(types.values())
        slurm.nodes_of_host[host.name] = []
        for index, (gpu_type, count) in enumerate(types.items()):
            share = count / total if total else 1.0
            name = host.name if index == 0 else f"{host.name}-{gpu_type or 'gpu'}"
            slurm.nodes_of_host[host.name].append(name)
            node = FoundNode(name, gpu_type or None, count, rack=host.rack, pod=host.pod)
            node.cpus = None if host.cpus is None else round(host.cpus * share, 3)
            node.memory_gb = None if host.memory_mb is None else round(host.memory_mb * share / MEGABYTES, 3)
            nodes.append(node)
        if len(types) > 1:
            slurm.tally.add(
                "nodes with GPUs of several types, each made into a node a type, CPUs and memory shared out", host.name
            )
        if host.gpus is None:
            slurm.tally.add("nodes whose GPUs no file tells, counted without", host.name)
    return nodes


def partitions_of(slurm: Slurm) -> list[FoundPartition]:
    """Make partitions; one whose nodes no file lists has those that name it."""
    members: dict[str, list[str]] = {}
    for host in slurm.hosts.values():
        for name in dict.fromkeys(host.partitions):
            members.setdefault(name, []).append(host.name)
            slurm.queue(name)
    partitions = []
    for queue in slurm.queues.values():
        hosts = queue.nodes if queue.nodes is not None else members.get(queue.name, [])
        nodes = [node for host in hosts for node in slurm.nodes_of_host.get(host, [host])]
        partitions.append(
            FoundPartition(queue.name, nodes=nodes, time_limit_s=queue.time_limit_s, priority_tier=queue.priority_tier)
        )
    return partitions
