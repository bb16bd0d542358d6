"""Where the record has more GPUs busy at one time than a cluster has: the cluster is not the recorded one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.cluster.partitions import Leaf, PartitionTree
from analysim.cluster.topology import Topology
from analysim.config.nodes import expand_names
from analysim.errors import ConfigError
from analysim.metrics.agreement import Spans
from analysim.metrics.steps import distinct
from analysim.units import GPU_MILLI, MICROSECONDS

NAMED = 10
"""Nodes that are named one by one."""


def gpus_of(leaf: Leaf, topology: Topology) -> int:
    """GPUs that the jobs of a partition may hold at one time: those of its nodes, or its quota where that is less."""
    return min(topology.gpus_in(leaf.nodes), leaf.total.cap // GPU_MILLI)


def peak_of(spans: Spans) -> tuple[int, float | None]:
    """Return the most GPUs busy at one time, and the first such moment in seconds."""
    times = distinct(np.concatenate([spans.start_us, spans.end_us]))
    if not len(times):
        return 0, None
    busy = spans.busy(times)
    first = int(np.argmax(busy))
    return int(busy[first]), float(times[first]) / MICROSECONDS


def share_of_time_above(spans: Spans, gpus: int) -> float:
    """Return the share of the recorded time in which more GPUs are busy than there are."""
    times = distinct(np.concatenate([spans.start_us, spans.end_us]))
    if len(times) < 2:
        return 0.0
    above = spans.busy(times)[:-1] > gpus
    return float(np.diff(times)[above].sum() / (times[-1] - times[0]))


def over_partitions(spans: Spans, leaf_names: npt.NDArray[Any], tree: PartitionTree) -> Iterator[dict[str, Any]]:
    """Compare the peak of each partition, those above others too, with what it may hold by the topology file.

    ``leaf_names`` are those of the spans. Quotas that change in time are taken as at the start.
    """
    for leaf in tree.all:
        own = {below.full_name for below in leaf.below}
        gpus = gpus_of(leaf, tree.topology)
        peak, time_s = peak_of(spans.chosen(np.flatnonzero(np.isin(leaf_names, list(own)))))
        if peak > gpus:
            yield {"partition": leaf.full_name, "gpus": gpus, "peak": peak, "time_s": time_s}


def over_nodes(spans: Spans, recorded: Iterable[str], topology: Topology) -> dict[str, Any]:
    """Count the nodes that hold more recorded GPUs at one time than they have, and name the worst.

    ``recorded`` are the nodes of each span as the trace writes them; a job's GPUs count evenly on its nodes. Names
    that the topology lacks are left out.
    """
    rows = _by_node(spans, recorded, topology)
    if rows.empty:
        return {"known": 0, "over": 0, "worst": []}
    together = rows.groupby("node")["gpus"].cumsum().groupby(rows["node"]).max()
    have = pd.Series(topology.gpu_count)[together.index]
    over = (together - have)[together > have].sort_values(ascending=False, kind="stable")
    worst = [
        {"node": topology.nodes[node].name, "gpus": int(have[node]), "peak": int(together[node])}
        for node in over.index[:NAMED].tolist()
    ]
    return {"known": len(together), "over": len(over), "worst": worst}


def _by_node(spans: Spans, recorded: Iterable[str], topology: Topology) -> pd.DataFrame:
    """Changes of what each node holds, in time; at one time, ends come before starts."""
    texts = pd.Series(list(recorded), dtype=object)
    known = {text: _indexes(str(text), topology) for text in texts.unique()}
    table = pd.DataFrame({"node": texts.map(known), "start": spans.start_us, "end": spans.end_us, "gpus": spans.gpus})
    table = table[(table["node"].str.len() > 0) & (table["end"] > table["start"])]
    table["gpus"] = -(-table["gpus"] // table["node"].str.len())
    table = table.explode("node")
    starts = pd.DataFrame({"node": table["node"], "time": table["start"], "gpus": table["gpus"]})
    ends = pd.DataFrame({"node": table["node"], "time": table["end"], "gpus": -table["gpus"]})
    return pd.concat([starts, ends]).astype("int64").sort_values(["node", "time", "gpus"], ignore_index=True)


def _indexes(text: str, topology: Topology) -> list[int]:
    try:
        names = expand_names(text) if text else []
    except ConfigError:
        return []
    found = [topology.index_of.get(name, -1) for name in dict.fromkeys(names)]
    return [] if -1 in found else found
