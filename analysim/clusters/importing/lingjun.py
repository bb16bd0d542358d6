"""Hosts and switches of Alibaba's Lingjun 2023: access, pod and core switch of each host.

https://github.com/alibaba/clusterdata
"""

from __future__ import annotations

from collections.abc import Sequence

from analysim.clusters.importing.found import Found, FoundNode
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source
from analysim.clusters.importing.tables import read_rows

COLUMNS = ["ip", "DSW", "PSW", "ASW"]
GPUS_PER_HOST = 8
"""GPUs of a host, which the table does not say."""


def recognises(source: Source) -> bool:
    """Whether the header is that of the switch table."""
    return source.header == COLUMNS


def read(sources: Sequence[Source]) -> Found:
    """Read hosts: the pod is (DSW, PSW), the rack (DSW, PSW, ASW), as names of switches repeat.

    Raises ``ConfigError``.
    """
    found = Found(source="hosts and switches of Alibaba Lingjun 2023")
    for source in sources:
        for row in read_rows(source, COLUMNS):
            pod = f"{row.text('DSW')}-{row.text('PSW')}"
            rack = f"{pod}-{row.text('ASW')}"
            found.nodes.append(FoundNode(name=row.text("ip"), gpus=GPUS_PER_HOST, pod=pod, rack=rack))
    found.notes += [
        f"assumed: {GPUS_PER_HOST} GPUs a host of one type; the table has hosts and switches only",
        "a rack is the hosts of one access switch (DSW, PSW and ASW together, as names repeat), a pod those of one"
        " pod switch (PSW); the core switch (DSW) is no level of a cluster file beyond the pods' names",
    ]
    return found


IMPORTER = Importer("lingjun", "the switch table of Alibaba's Lingjun (ip,DSW,PSW,ASW)", recognises, read)
