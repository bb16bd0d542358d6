"""A cluster for a trace that comes without one: just large enough for what its jobs ask."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import pandas as pd

from analysim.clusters.recorded import JobTrace
from analysim.config.cluster import ClusterConfig, NodeGroup, NodeType, Rack
from analysim.config.nodes import DEFAULT_GPU_TYPE, MAX_NAMES, fold_names
from analysim.errors import ConfigError
from analysim.units import GPU_MILLI, MICROSECONDS, format_duration

TARGET_LOAD = 0.8
"""Offered load that an inferred cluster is sized for."""

NODE_GPUS = 8
"""GPUs of an inferred node, unless the trace asks for more on one."""

RACK_NODES = 8
"""Nodes in a rack of an inferred cluster."""


@dataclass
class _Demand:
    """What the GPU jobs of a trace ask for, an entry a job."""

    gpu_type: pd.Series[str]
    gpus: pd.Series[float]
    work: pd.Series[float]
    nodes: pd.Series[float]
    span_s: float
    span_text: str

    @property
    def all_at_once(self) -> bool:
        """Whether the target load would take more GPUs than all jobs together."""
        return float(self.work.sum()) > TARGET_LOAD * self.span_s * float(self.gpus.sum())


def infer_cluster(trace: JobTrace) -> ClusterConfig:
    """Make the smallest cluster of 8-GPU nodes for a load of 0.8 and for the largest job.

    Offered load is sum(gpus * duration) / (GPUs * (last - first submit)); where all jobs are submitted at
    once, the longest duration stands for the span. There are never more nodes than hold all jobs at once or
    the largest. A node has more than 8 GPUs if the trace's ``gpus_per_node`` does. A trace that names GPU
    types gets a pool for each (alternatives count for the first); jobs that name none add to each pool by its
    share. CPUs and memory are not modelled. Raises ``ConfigError`` beyond ``MAX_NAMES`` nodes.
    """
    jobs = trace.frame[trace.frame["gpu_milli"] > 0]
    node_gpus = max(NODE_GPUS, int(jobs["gpus_per_node"].max())) if len(jobs) else NODE_GPUS
    demand = _demand_of(trace.frame, jobs, node_gpus)
    pools = _pool_sizes(demand, node_gpus)
    if sum(pools.values()) > MAX_NAMES:
        raise ConfigError(
            f"{trace.path}: a cluster for it would have {sum(pools.values()):,} nodes.",
            "Check the units of submit_time and duration, or name a cluster with --topology.",
        )
    parts = [
        f"{count:,}{f' {name}' if name else ''} nodes of {node_gpus} GPUs" for name, count in pools.items()
    ]
    enough = "to hold all jobs at once"
    if not demand.all_at_once:
        enough = f"for an offered load of {TARGET_LOAD} over {demand.span_text} and for the largest job"
    return ClusterConfig(
        name=f"{trace.name}-inferred",
        node_types={
            name or "node": NodeType(gpu_type=name or DEFAULT_GPU_TYPE, gpus=node_gpus) for name in pools
        },
        racks=_racks(pools),
        inferred=f"{' and '.join(parts)} in racks of {RACK_NODES}, just large enough {enough}",
    )


def _demand_of(frame: pd.DataFrame, jobs: pd.DataFrame, node_gpus: int) -> _Demand:
    gpus = jobs["gpu_milli"] / GPU_MILLI
    per_node = jobs["gpus_per_node"].where(jobs["gpus_per_node"] > 0, node_gpus)
    span_us = int(frame["submit_us"].max() - frame["submit_us"].min()) if len(frame) else 0
    span_text = f"the trace's {format_duration(span_us)}"
    if not span_us and len(jobs):
        span_us = int(jobs["duration_us"].max())
        span_text = f"the longest duration, {format_duration(span_us)}, as all jobs come at once,"
    return _Demand(
        gpu_type=jobs["gpu_type"].str.split("|").str[0],
        gpus=gpus,
        work=gpus * (jobs["duration_us"] / MICROSECONDS),
        nodes=-(-gpus // per_node),
        span_s=span_us / MICROSECONDS,
        span_text=span_text,
    )


def _pool_sizes(demand: _Demand, node_gpus: int) -> dict[str, int]:
    """Nodes of each GPU type, by name; one pool named "" where the trace names none."""
    types = sorted(set(demand.gpu_type) - {""}) or [""]
    typed = {name: demand.gpu_type == name for name in types}
    works = {name: float(demand.work[mask].sum()) for name, mask in typed.items()}
    total = sum(works.values())
    untyped = demand.gpu_type == "" if types != [""] else demand.gpu_type != ""
    sizes = {}
    for name, mask in typed.items():
        share = works[name] / total if total else 1 / len(types)
        work = works[name] + share * float(demand.work[untyped].sum())
        gpus = float(demand.gpus[mask].sum()) + share * float(demand.gpus[untyped].sum())
        wanted = gpus if demand.all_at_once else work / (TARGET_LOAD * demand.span_s or 1.0)
        widest = int(demand.nodes[mask].max()) if mask.any() else 1
        # a hair less, so that rounding errors of the sums do not add a node
        sizes[name] = max(1, widest, ceil(wanted / node_gpus - 1e-9))
    if untyped.any():
        largest = max(sizes, key=lambda name: sizes[name])
        sizes[largest] = max(sizes[largest], int(demand.nodes[untyped].max()))
    return sizes


def _racks(pools: dict[str, int]) -> list[Rack]:
    """Racks of one GPU type each, numbered through; the last of a type holds what is left."""
    width = len(str(sum(ceil(count / RACK_NODES) for count in pools.values()) - 1))
    racks: list[Rack] = []
    first = 0
    for name, count in pools.items():
        for racks_alike, nodes in ((count // RACK_NODES, RACK_NODES), (1, count % RACK_NODES)):
            if racks_alike and nodes:
                numbers = (f"rack{number:0{width}d}" for number in range(first, first + racks_alike))
                group = NodeGroup(type=name or "node", count=nodes)
                racks.append(Rack(name=fold_names(numbers), nodes=[group]))
                first += racks_alike
    return racks
