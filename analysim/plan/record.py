"""When and where a job ran in reality, as its trace tells."""

from __future__ import annotations

from analysim.cluster.topology import Topology
from analysim.config.nodes import expand_names
from analysim.errors import ConfigError
from analysim.jobs import Job


def start(job: Job) -> int | None:
    """Return when a job started, in microseconds; None where the trace does not tell."""
    time = job.source.amount("recorded_start_us", job.rank)
    return time if time >= 0 else None


def nodes(job: Job, topology: Topology) -> list[int]:
    """Return the indexes of the nodes on which a job ran; none where the trace or the topology lacks any."""
    text = str(job.source.value("recorded_node", job.rank))
    try:
        names = dict.fromkeys(expand_names(text)) if text else {}
    except ConfigError:
        return []
    found = [topology.index_of.get(name, -1) for name in names]
    return [] if -1 in found else found
