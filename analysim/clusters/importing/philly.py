"""Machine lists of Microsoft's Philly trace, and the nodes per virtual cluster that others derived from it.

https://github.com/msr-fiddle/philly-traces (cluster_machine_list); a revised list counts the GPUs seen in the jobs;
philly_vc.csv is of https://github.com/S-Lab-System-Group/HeliosArtifact
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysim.clusters.importing.found import Found, FoundNode, FoundPartition
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source
from analysim.clusters.importing.tables import Row, read_rows
from analysim.config.nodes import MAX_NAMES

LIST = ["machineId", "number of GPUs", "single GPU mem"]
REVISED = ["", "machineId", "number of GPUs"]
CLUSTERS = ["vc", "node num"]
GPUS_PER_NODE = 8
"""GPUs of the nodes that the table of virtual clusters counts."""

_MEMORY = re.compile(r"([0-9.]+)\s*G(?:i?B)?", re.IGNORECASE)


def recognises(source: Source) -> bool:
    """Whether the header is that of a machine list or of the table of virtual clusters."""
    return source.header in (LIST, REVISED, CLUSTERS)


def read(sources: Sequence[Source]) -> Found:
    """Read machine lists and virtual clusters.

    A revised list's counts win over the published list's. Virtual clusters without a list have nodes of their own, of
    ``GPUS_PER_NODE`` each; with a list they are limits, as which machine was whose is not published.
    Raises ``ConfigError``.
    """
    found = Found(source="Microsoft Philly, 2017")
    machines: dict[str, FoundNode] = {}
    for source in sorted(sources, key=lambda each: each.header == REVISED):
        if source.header == CLUSTERS:
            continue
        for row in read_rows(source, source.header):
            _add_machine(machines, row)
    clusters = [row for each in sources if each.header == CLUSTERS for row in read_rows(each, CLUSTERS)]
    found.nodes = list(machines.values())
    if machines:
        _note_lists(found, sources)
        for row in clusters:
            limit = row.whole("node num") * GPUS_PER_NODE
            found.partitions.append(FoundPartition(row.text("vc"), limit=limit))
        if clusters:
            found.notes.append(
                f"a virtual cluster is a limit of {GPUS_PER_NODE} GPUs for each of its nodes: whose machine was which"
                " is not published"
            )
    else:
        _own_nodes(found, clusters)
    return found


def _add_machine(machines: dict[str, FoundNode], row: Row) -> None:
    name, gpus = row.text("machineId"), row.whole("number of GPUs")
    node = machines.setdefault(name, FoundNode(name))
    node.gpus = gpus
    memory = _MEMORY.fullmatch(row.cells.get("single GPU mem", ""))
    if memory:
        node.gpu_memory_gb = float(memory[1])


def _note_lists(found: Found, sources: Sequence[Source]) -> None:
    gpus = sum(node.gpus for node in found.nodes)
    found.notes.append("GPU types are not published: all count as one; the memory of one GPU is kept where listed")
    if any(each.header == REVISED for each in sources):
        without = sum(not node.gpus for node in found.nodes)
        found.notes.append(f"GPUs as the revised list counts them; {without:,} machines are listed with none, and kept")
    else:
        found.notes.append(
            f"the published list is known to be wrong: {gpus:,} GPUs are listed, the trace's jobs used more on some"
            " machines (about 3,205 in all); recorded placements may exceed it"
        )


def _own_nodes(found: Found, clusters: Sequence[Row]) -> None:
    for row in clusters:
        name, count = row.text("vc"), row.whole("node num")
        if len(found.nodes) + count > MAX_NAMES:
            raise row.source.error(row.line, f"more than {MAX_NAMES:,} nodes.", "Check the counts.")
        nodes = [f"vc-{name}-n{index:02d}" for index in range(count)]
        found.nodes += [FoundNode(each, gpus=GPUS_PER_NODE) for each in nodes]
        found.partitions.append(FoundPartition(name, nodes=nodes))
    found.notes.append(f"assumed: nodes of {GPUS_PER_NODE} GPUs, each virtual cluster with nodes of its own")


IMPORTER = Importer(
    "philly", "Philly's machine lists (machineId, number of GPUs, ...) and nodes per virtual cluster", recognises, read
)
