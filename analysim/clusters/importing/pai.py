"""Machine specification of Alibaba's cluster-trace-gpu-v2020 (PAI): a machine a row, no header.

https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysim.clusters.importing.found import Found, FoundNode
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source
from analysim.clusters.importing.tables import read_rows

COLUMNS = ["machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"]
_ROW = re.compile(r'"?[0-9a-f]{16,64}"?,"?[A-Za-z][\w.-]*"?,[0-9.]+,[0-9.]+,[0-9.]+')


def recognises(source: Source) -> bool:
    """Whether the first line is the header of the table, or a machine by its hash."""
    return source.header == COLUMNS or _ROW.fullmatch(source.first) is not None


def read(sources: Sequence[Source]) -> Found:
    """Read machines; ``cap_cpu`` is cores, ``cap_mem`` GB, ``cap_gpu`` GPUs. Raises ``ConfigError``."""
    found = Found(source="machine specification of Alibaba cluster-trace-gpu-v2020 (PAI)")
    for source in sources:
        header = source.header == COLUMNS
        if header and sum(1 for line in source.lines if line.strip()) == 1 and len(sources) > 1:
            continue  # the header comes as a file of its own
        for row in read_rows(source, COLUMNS, header):
            gpus = row.whole("cap_gpu")
            found.nodes.append(
                FoundNode(
                    name=row.text("machine"),
                    gpu_type=row.text("gpu_type") if gpus else None,
                    gpus=gpus,
                    cpus=row.number("cap_cpu"),
                    memory_gb=row.number("cap_mem"),
                )
            )
    if any(node.gpu_type == "MISC" for node in found.nodes):
        found.notes.append("GPU type MISC is the trace's name for models that it does not tell apart")
    return found


IMPORTER = Importer("pai", "the machine specification of Alibaba's PAI trace (CSV or tar.gz)", recognises, read)
