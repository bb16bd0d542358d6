"""Clusters of Slurm: any mix of what its commands show and its configuration files, each known by its content.

https://slurm.schedmd.com/scontrol.html, sinfo.html, slurm.conf.html, gres.conf.html, topology.conf.html,
topology.yaml.html and sacctmgr.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from analysim.clusters.importing.found import Found
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.slurm_accounting import apply_accounting
from analysim.clusters.importing.slurm_cluster import Slurm
from analysim.clusters.importing.slurm_nodes import (
    add_configuration,
    add_gres,
    add_shown,
    add_sinfo,
    nodes_of_hosts,
    partitions_of,
)
from analysim.clusters.importing.slurm_texts import bar_records
from analysim.clusters.importing.slurm_topology import add_topology, add_topology_yaml, apply_topology
from analysim.clusters.importing.sources import Source

_SHOWN = re.compile(r"NodeName=.*\bCPUTot=|PartitionName=.*\bTotalNodes=")
_TOPOLOGY = re.compile(r"^[ \t]*(?:SwitchName|BlockName)[ \t]*=", re.MULTILINE | re.IGNORECASE)
_TOPOLOGY_YAML = re.compile(r"^[ \t]*-[ \t]+topology[ \t]*:", re.MULTILINE)
_GRES = re.compile(r"^[ \t]*(?:AutoDetect=|Name=gpu\b|NodeName=.*[ \t]Name=gpu\b)", re.MULTILINE | re.IGNORECASE)
_CONFIGURATION = re.compile(r"^[ \t]*(?:NodeName|PartitionName|NodeSet)[ \t]*=", re.MULTILINE | re.IGNORECASE)
_TABLE = re.compile(r"\b(?:NODELIST|HOSTNAMES)\b")

QOS, ASSOCIATIONS = "sacctmgr show qos", "sacctmgr show assoc"


def content_of(source: Source) -> str:
    """Name what a file is; empty where it is nothing of Slurm's."""
    if _TOPOLOGY_YAML.search(source.text):
        return "topology.yaml"
    if _is_shown(source):
        return "scontrol show"
    if _TOPOLOGY.search(source.text):
        return "topology.conf"
    keys = [each.strip().lower() for each in source.first.split("|")]
    if len(keys) > 1 and "account" in keys:
        return ASSOCIATIONS
    if len(keys) > 1 and "name" in keys:
        return QOS
    if any(_TABLE.search(line) for line in source.lines[:3]):
        return "sinfo"
    if _GRES.search(source.text):
        return "gres.conf"
    return "slurm.conf" if _CONFIGURATION.search(source.text) else ""


def _is_shown(source: Source) -> bool:
    """Whether ``scontrol show`` wrote it: a record of many lines, the others indented, or all on one line."""
    for line, below in zip(source.lines, [*source.lines[1:], ""], strict=True):
        if _SHOWN.match(line):
            return True
        goes_on = below[:1].isspace() and "=" in below and not _CONFIGURATION.match(below)
        if goes_on and line.startswith(("NodeName=", "PartitionName=")) and not line.rstrip().endswith("\\"):
            return True
    return False


def recognises(source: Source) -> bool:
    """Whether a file is one of Slurm's."""
    return bool(content_of(source))


_ADD: dict[str, Callable[[Slurm, Source], None]] = {
    "scontrol show": add_shown,
    "slurm.conf": add_configuration,
    "gres.conf": add_gres,
    "sinfo": add_sinfo,
    "topology.conf": add_topology,
    "topology.yaml": add_topology_yaml,
    QOS: lambda slurm, source: slurm.qos.extend(bar_records(source)),
    ASSOCIATIONS: lambda slurm, source: slurm.associations.extend(bar_records(source)),
}


def read(sources: Sequence[Source]) -> Found:
    """Read all files together: what one does not say of a node another may; where they differ the first counts.

    Raises ``ConfigError``.
    """
    slurm = Slurm()
    contents = [content_of(source) for source in sources]
    for source, content in zip(sources, contents, strict=True):
        _ADD[content](slurm, source)
    found = Found(name=slurm.name, source=f"Slurm: {', '.join(dict.fromkeys(contents))}")
    found.notes += [f"{source.path.name} read as {content}" for source, content in zip(sources, contents, strict=True)]
    apply_topology(slurm)
    found.nodes = nodes_of_hosts(slurm)
    found.partitions = partitions_of(slurm)
    apply_accounting(slurm, found)
    found.notes += slurm.notes + slurm.tally.notes()
    return found


IMPORTER = Importer(
    "slurm",
    "scontrol show node and partition, sinfo with NODELIST, slurm.conf, gres.conf, topology.conf, topology.yaml,"
    " sacctmgr -P show qos and assoc",
    recognises,
    read,
)
