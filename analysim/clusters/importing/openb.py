"""Node lists of Alibaba's cluster-trace-gpu-v2023 (openb): a machine a row, GPU model per machine.

https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023
"""

from __future__ import annotations

from collections.abc import Sequence

from analysim.clusters.importing.found import Found, FoundNode
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source
from analysim.clusters.importing.tables import read_rows
from analysim.units import CPU_MILLI, MEGABYTES

COLUMNS = ["sn", "cpu_milli", "memory_mib", "gpu", "model"]
NO_MODEL = ("", "nan", "none")


def recognises(source: Source) -> bool:
    """Whether the header is that of the node lists."""
    return source.header == COLUMNS


def read(sources: Sequence[Source]) -> Found:
    """Read the lists; a machine without GPUs has no model (empty or NaN). Raises ``ConfigError``."""
    found = Found(source="node list of Alibaba cluster-trace-gpu-v2023 (openb)")
    for source in sources:
        for row in read_rows(source, COLUMNS):
            model = row.cells["model"]
            gpus = row.whole("gpu")
            node = FoundNode(
                name=row.text("sn"),
                gpu_type=None if model.lower() in NO_MODEL else model,
                gpus=gpus,
                cpus=row.number("cpu_milli") / CPU_MILLI,
                memory_gb=row.number("memory_mib") / MEGABYTES,
            )
            found.nodes.append(node)
    with_gpus = sum(node.gpus > 0 for node in found.nodes)
    found.notes.append(f"{with_gpus:,} nodes with GPUs and {len(found.nodes) - with_gpus:,} without read")
    return found


IMPORTER = Importer(
    "openb", "the node list CSV of Alibaba's openb trace (sn,cpu_milli,memory_mib,gpu,model)", recognises, read
)
