"""How fast a job runs where it is placed, and what starting, stopping and moving it costs.

One small interface: other sources of speed (sharing, network contention, forecasts) plug in here.
"""

from __future__ import annotations

from analysim.cluster.topology import Topology
from analysim.config.cluster import Costs
from analysim.jobs import Job, Placement
from analysim.units import MICROSECONDS, SPEED_ONE


def work_done(elapsed_us: int, speed: int) -> int:
    """Productive microseconds gained in an interval, rounded down."""
    return elapsed_us if speed == SPEED_ONE else elapsed_us * speed // SPEED_ONE


def time_needed(work_us: int, speed: int) -> int:
    """Microseconds until so much work is done, rounded up."""
    return work_us if speed == SPEED_ONE else -(-work_us * SPEED_ONE // speed)


class SpeedModel:
    """Speed by GPU type and by the span of a gang, from the topology's own figures, and by the GPUs of elastic jobs.

    ``uniform`` is true when every job runs at speed 1 everywhere; ``elastic`` tells whether any job is.
    """

    def __init__(self, topology: Topology, elastic: bool = False) -> None:
        self._topology = topology
        config = topology.config
        self._speeds = config.speeds
        self._penalty = config.span_penalty
        spans = (self._penalty.node, self._penalty.rack, self._penalty.cluster)
        self.spans_matter = any(span != 1 for span in spans)
        self.uniform = not self.spans_matter and not self._speeds and not elastic

    def speed(self, job: Job, placement: Placement) -> int:
        """Return the speed of a job on a placement in millionths."""
        if self.uniform or placement[0][0] < 0:
            return SPEED_ONE
        factor = self._span_factor(placement)
        if self._speeds:
            recorded = job.gpu_type.split("|")[0]
            kind = self._topology.gpu_type[placement[0][0]]
            placed = self._topology.gpu_types[kind] if kind >= 0 else ""
            factor *= self._speeds.get(placed, 1.0) / self._speeds.get(recorded, 1.0)
        elastic = job.demand.elastic
        if elastic is not None:
            factor *= elastic.ratio(sum(mask.bit_count() for _, mask in placement))
        return max(1, round(factor * SPEED_ONE))

    def _span_factor(self, placement: Placement) -> float:
        if len(placement) == 1:
            return self._penalty.node
        racks = self._topology.rack_of
        first = racks[placement[0][0]]
        inside = all(racks[node] == first for node, _ in placement)
        return self._penalty.rack if inside else self._penalty.cluster


class CostModel:
    """What starting, checkpointing and restarting cost, per job or from the run's configuration."""

    def __init__(self, costs: Costs) -> None:
        transfer = None
        if costs.size_gb is not None and costs.bandwidth_gb_per_s is not None:
            transfer = round(costs.size_gb / costs.bandwidth_gb_per_s * MICROSECONDS)
        self.start_us = costs.start_s
        self._checkpoint_us = costs.checkpoint_s if transfer is None else transfer
        self._restart_us = costs.restart_s if transfer is None else transfer
        self.interval_us = costs.checkpoint_interval_s

    def checkpoint_us(self, job: Job) -> int:
        """Time for which GPUs are held while the job's state is saved."""
        own = job.source.amount("checkpoint_us", job.rank)
        return own if own >= 0 else self._checkpoint_us

    def restart_us(self, job: Job) -> int:
        """Time for which GPUs are held while the job's state is loaded."""
        own = job.source.amount("restart_us", job.rank)
        return own if own >= 0 else self._restart_us

    def saved_by_interval(self, elapsed_us: int, speed: int) -> int:
        """Work saved by periodic checkpoints in a stint of this length that was killed."""
        if not self.interval_us:
            return 0
        return work_done(elapsed_us // self.interval_us * self.interval_us, speed)
