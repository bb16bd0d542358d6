"""Nodes of Kubernetes and, where they come along, the queues of Kueue.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/
"""

from __future__ import annotations

from collections.abc import Sequence

from analysim.clusters.importing.documents import Object, has_objects, mapping, name_of, read_objects
from analysim.clusters.importing.found import Found, Tally
from analysim.clusters.importing.kubernetes_nodes import read_node, read_racks
from analysim.clusters.importing.kueue import KINDS, Quotas, nodes_for, read_quotas
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source


def read(sources: Sequence[Source]) -> Found:
    """Read nodes, and ClusterQueue, Cohort, ResourceFlavor, LocalQueue and Topology; other kinds are counted.

    Without nodes there are as many as the quotas need. Raises ``ConfigError``.
    """
    found = Found(source="Kubernetes objects")
    tally = Tally()
    objects = _by_kind(sources, tally)
    for source, thing in objects.get("Node", []):
        node = read_node(source, thing, tally)
        if node is not None:
            found.nodes.append(node)
    read_racks(found, [thing for _, thing in objects.get("Topology", [])])
    if "ClusterQueue" in objects:
        quotas = Quotas(found.nodes, tally)
        if not found.nodes:
            quotas.nodes = found.nodes = nodes_for(objects, found.notes)
        found.partitions = read_quotas(quotas, objects)
        found.notes += quotas.notes
    found.notes += tally.notes()
    return found


def _by_kind(sources: Sequence[Source], tally: Tally) -> dict[str, list[tuple[Source, Object]]]:
    """Objects by kind, each once: two dumps of one cluster may overlap."""
    objects: dict[str, list[tuple[Source, Object]]] = {}
    seen: set[tuple[str, str, str]] = set()
    for source in sources:
        for thing in read_objects(source):
            kind = thing["kind"]
            if kind != "Node" and kind not in KINDS:
                tally.add("objects of kinds that are no part of a cluster file, left out", kind)
                continue
            key = (kind, str(mapping(thing, "metadata").get("namespace", "")), name_of(source, thing))
            if key in seen:
                tally.add("objects listed more than once, of which the first counts", f"{kind} {key[2]}")
                continue
            seen.add(key)
            objects.setdefault(kind, []).append((source, thing))
    return objects


IMPORTER = Importer(
    "kubernetes", "nodes of Kubernetes and queues of Kueue (kubectl get -o yaml or json)", has_objects, read
)
