"""The cluster that a trace itself shows: the nodes on which its jobs ran."""

from __future__ import annotations

import re
from itertools import groupby
from math import ceil
from typing import Protocol

import pandas as pd

from analysim.config.cluster import ClusterConfig, NodeGroup, NodeType, Rack
from analysim.config.nodes import DEFAULT_GPU_TYPE, expand_names, fold_names
from analysim.errors import ConfigError, TraceError
from analysim.units import GPU_MILLI

NODE_SIZES = (1, 2, 4, 8)
"""GPUs that a node may have, up to 8; larger ones have a multiple of 8."""


class JobTrace(Protocol):
    """What this room needs of a trace: its file and its jobs in the canonical columns."""

    frame: pd.DataFrame
    name: str
    path: str


def cluster_of_nodes(trace: JobTrace) -> ClusterConfig | None:
    """Make a cluster of the nodes recorded in a trace; None unless every GPU job has one.

    A node's GPUs are the most held on it at one time, rounded up to 1, 2, 4, 8 or a multiple of 8: a job's
    GPUs are spread evenly over its nodes (``n1,n2`` or ``n[1-2]``) from recorded start to recorded end (the
    start plus its duration where that is missing); a job without recorded start counts alone. A node's GPU
    type is the one named most by its jobs. Nodes come in the order of their names, numbers by value, in one
    rack, as racks are not recorded. Raises ``TraceError`` for a node that is no name.
    """
    jobs = trace.frame[trace.frame["gpu_milli"] > 0]
    if jobs.empty or (jobs["recorded_node"] == "").any():
        return None
    shares = _shares(trace, jobs)
    gpus = _gpus_of_nodes(shares)
    types = _types_of_nodes(shares)
    kinds = [
        (name, types.get(name, DEFAULT_GPU_TYPE), _rounded(gpus[name])) for name in sorted(gpus, key=_natural)
    ]
    node_types = {f"{kind}-{size}": NodeType(gpu_type=kind, gpus=size) for _, kind, size in kinds}
    groups = [
        NodeGroup(type=f"{kind}-{size}", names=fold_names(name for name, _, _ in run))
        for (kind, size), run in groupby(kinds, key=lambda each: each[1:])
    ]
    return ClusterConfig(
        name=f"{trace.name}-recorded",
        node_types=node_types,
        racks=[Rack(name="recorded", nodes=groups)],
        inferred=f"the {len(kinds):,} nodes recorded in the trace, each with the most GPUs its jobs held at"
        f" one time, rounded up to {', '.join(map(str, NODE_SIZES))} or a multiple of {NODE_SIZES[-1]}",
    )


def _shares(trace: JobTrace, jobs: pd.DataFrame) -> pd.DataFrame:
    """A row a job and node: node, milli (of a GPU), gpu_type, start_us and end_us."""
    nodes = {text: _nodes_in(trace, text) for text in jobs["recorded_node"].unique()}
    lists = jobs["recorded_node"].map(nodes)
    counts = lists.str.len()
    end_us = jobs["recorded_end_us"].where(
        jobs["recorded_end_us"] >= 0, jobs["recorded_start_us"] + jobs["duration_us"]
    )
    return pd.DataFrame(
        {
            "node": lists,
            "milli": -(-jobs["gpu_milli"] // counts),
            "gpu_type": jobs["gpu_type"],
            "start_us": jobs["recorded_start_us"],
            "end_us": end_us,
        }
    ).explode("node", ignore_index=True)


def _nodes_in(trace: JobTrace, text: str) -> list[str]:
    try:
        return list(dict.fromkeys(expand_names(text)))
    except ConfigError as error:
        raise TraceError(
            f"{trace.path}: column node: {error.message}",
            f"{error.remedy} Or name a cluster with --topology.",
        ) from None


def _gpus_of_nodes(shares: pd.DataFrame) -> dict[str, int]:
    alone = shares.groupby("node")["milli"].max()
    timed = shares[(shares["start_us"] >= 0) & (shares["end_us"] > shares["start_us"])]
    steps = pd.concat(
        [
            pd.DataFrame({"node": timed["node"], "time": timed["start_us"], "milli": timed["milli"]}),
            pd.DataFrame({"node": timed["node"], "time": timed["end_us"], "milli": -timed["milli"]}),
        ]
    ).sort_values(["node", "time", "milli"])  # at one time, ends come before starts
    together = steps.groupby("node")["milli"].cumsum().groupby(steps["node"]).max()
    most = pd.concat([alone, together]).groupby(level=0).max()
    return {str(name): ceil(milli / GPU_MILLI) for name, milli in most.items()}


def _types_of_nodes(shares: pd.DataFrame) -> dict[str, str]:
    """Type named by most jobs of a node; alternatives (``A|B``) count only where no job names one type."""
    named = shares.loc[shares["gpu_type"] != "", ["node", "gpu_type"]]
    several = named["gpu_type"].str.contains("|", regex=False)
    votes = named.assign(gpu_type=named["gpu_type"].str.split("|").str[0], several=several)
    counts = votes.value_counts(["node", "several", "gpu_type"]).reset_index(name="jobs")
    ordered = counts.sort_values(["node", "several", "jobs", "gpu_type"], ascending=[True, True, False, True])
    best = ordered.drop_duplicates("node")
    return dict(zip(best["node"].astype(str), best["gpu_type"].astype(str), strict=True))


def _rounded(gpus: int) -> int:
    return next((size for size in NODE_SIZES if size >= gpus), -(-gpus // NODE_SIZES[-1]) * NODE_SIZES[-1])


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sort key by which node9 comes before node10."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if index % 2 else (-1, part) for index, part in enumerate(parts)], name
