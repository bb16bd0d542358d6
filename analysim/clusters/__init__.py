"""Where a run's cluster comes from: a topology file, the trace's recorded nodes, or the trace's demand."""

from analysim.clusters.checking import check_cluster
from analysim.clusters.describing import describe_cluster, draw_cluster
from analysim.clusters.files import cluster_text, load_cluster, write_cluster
from analysim.clusters.finding import find_cluster
from analysim.clusters.inferring import infer_cluster
from analysim.clusters.recorded import cluster_of_nodes

__all__ = [
    "check_cluster",
    "cluster_of_nodes",
    "cluster_text",
    "describe_cluster",
    "draw_cluster",
    "find_cluster",
    "infer_cluster",
    "load_cluster",
    "write_cluster",
]
