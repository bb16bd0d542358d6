"""Which cluster a trace runs on when the user says so, and when not."""

from __future__ import annotations

from pathlib import Path

from analysim import shelf
from analysim.clusters.files import load_cluster
from analysim.clusters.inferring import infer_cluster
from analysim.clusters.recorded import JobTrace, cluster_of_nodes
from analysim.config.cluster import ClusterConfig

SIDECAR_SUFFIX = ".topology.yaml"
"""What replaces a trace's own suffix in the name of the topology file beside it."""


def find_cluster(trace: JobTrace, topology: str | None = None) -> tuple[ClusterConfig, str]:
    """Choose a run's cluster and say in a few words where it comes from.

    The first there is of: the topology named (a path or a name on the shelf), ``prod.topology.yaml`` beside
    ``prod.csv``, the nodes recorded in the trace, a cluster inferred from its demand.
    Raises ``ShelfError`` for an unknown name, ``ConfigError`` for a broken file.
    """
    if topology is not None:
        path = shelf.find("topologies", topology)
        return load_cluster(path), str(path)
    sidecar = sidecar_of(trace.path)
    if sidecar.is_file():
        return load_cluster(sidecar), f"{sidecar}, beside the trace"
    recorded = cluster_of_nodes(trace)
    if recorded is not None:
        return recorded, "nodes recorded in the trace"
    return infer_cluster(trace), "inferred from the trace's demand"


def sidecar_of(trace_path: str | Path) -> Path:
    """Path of the topology file that belongs to a trace file, whether it is there or not."""
    path = Path(trace_path)
    name = path.name.removesuffix(".gz")
    return path.with_name(name.removesuffix(Path(name).suffix) + SIDECAR_SUFFIX)
