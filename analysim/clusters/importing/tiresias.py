"""Cluster specification of the Tiresias simulator: so many switches with so many equal nodes each.

https://github.com/SymbioticLab/Tiresias
"""

from __future__ import annotations

from collections.abc import Sequence

from analysim.clusters.importing.found import Found, FoundNode
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source
from analysim.clusters.importing.tables import read_rows
from analysim.config.nodes import MAX_NAMES

COLUMNS = ["num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"]


def recognises(source: Source) -> bool:
    """Whether the header is that of a cluster specification."""
    return source.header == COLUMNS


def read(sources: Sequence[Source]) -> Found:
    """Read specifications; a switch is a rack, memory is in GB. Raises ``ConfigError``."""
    found = Found(source="cluster specification of Tiresias")
    racks = 0
    for source in sources:
        for row in read_rows(source, COLUMNS):
            switches, size = row.whole("num_switch", 1), row.whole("num_node_p_switch", 1)
            if len(found.nodes) + switches * size > MAX_NAMES:
                raise source.error(row.line, f"more than {MAX_NAMES:,} nodes.", "Check the counts.")
            gpus, cpus, memory = row.whole("num_gpu_p_node"), row.number("num_cpu_p_node"), row.number("mem_p_node")
            for _ in range(switches):
                name = f"switch{racks}"
                for index in range(size):
                    node = FoundNode(f"{name}-n{index:02d}", gpus=gpus, cpus=cpus, memory_gb=memory, rack=name)
                    found.nodes.append(node)
                racks += 1
    found.notes.append("a switch is a rack; GPUs have no type in the specification; names of nodes are ours")
    return found


IMPORTER = Importer("tiresias", f"Tiresias' cluster_spec.csv ({','.join(COLUMNS)})", recognises, read)
