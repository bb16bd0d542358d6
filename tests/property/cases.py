"""Random small clusters and traces, drawn so that hypothesis can shrink them."""

from __future__ import annotations

from random import Random
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from analysim.config.cluster import ClusterConfig
from analysim.policy import PLACERS
from tests.builders import cluster, frame

NODE_TYPES = {
    "a8": {"gpus": 8, "gpu_type": "A"},
    "a4": {"gpus": 4, "gpu_type": "A"},
    "b4": {"gpus": 4, "gpu_type": "B"},
    "b2": {"gpus": 2, "gpu_type": "B"},
    "c0": {},
}
PLACEMENTS = st.sampled_from(sorted(PLACERS))
LEAVES = ("p", "q", "r", "s")
STEP = 500_000
"""Times are multiples of half a second, so that many things happen at one instant."""


@st.composite
def quotas(draw: st.DrawFn, most: int) -> dict[str, Any]:
    """Bounds of one partition whose guarantee is at most ``most`` GPUs."""
    found: dict[str, Any] = {}
    if draw(st.booleans()):
        found["guarantee"] = draw(st.integers(0, most))
    for name in ("limit", "borrow", "lend"):
        if draw(st.integers(0, 3)) == 0:
            found[name] = draw(st.sampled_from([0, 2, 4, 8, {"A": 4}, {"B": 2}]))
    found["reclaim"] = draw(st.booleans())
    found["borrow_nonpreemptible"] = draw(st.booleans())
    return found


@st.composite
def partitions(draw: st.DrawFn, gpus: int) -> list[dict[str, Any]]:
    """No partitions; or p, and a parent of q and r; or s with limits per user and tenant beside them."""
    if draw(st.booleans()):
        return []
    quarter = gpus // 4
    parent = {"name": "parent", **draw(quotas(gpus // 2))}
    share = parent.get("guarantee", 0) // 2
    parent["children"] = [{"name": name, **draw(quotas(share))} for name in ("q", "r")]
    limit = {"gpus": draw(st.integers(1, 8)), "jobs": draw(st.integers(1, 3))}
    kinds = draw(
        st.sampled_from([{}, {"user": limit}, {"tenant": {"jobs": 2}}, {"user": {"gpus": 4}, "tenant": limit}])
    )
    found = [{"name": "p", **draw(quotas(quarter))}, parent, {"name": "s", "limits": kinds, **draw(quotas(quarter))}]
    if draw(st.integers(0, 3)) == 0:
        found[0]["nodes"] = "x"
    if draw(st.integers(0, 3)) == 0:
        bounds = draw(quotas(quarter))
        change = {name: bounds[name] for name in ("guarantee", "limit", "borrow", "lend") if name in bounds}
        found[2]["changes"] = [{"time": draw(st.integers(0, 15)), **change}]
    return found


@st.composite
def clusters(draw: st.DrawFn, speeds: bool = True) -> ClusterConfig:
    """One to three kinds of nodes in racks x and y, with or without CPUs, speeds and partitions."""
    kinds = draw(st.lists(st.sampled_from(sorted(NODE_TYPES)[:4]), min_size=1, max_size=3, unique=True))
    resources = draw(st.booleans())
    types: dict[str, Any] = {kind: dict(NODE_TYPES[kind]) for kind in kinds}
    if resources:
        types["c0"] = {}
        for index, kind in enumerate(types):
            types[kind] |= {"cpus": draw(st.sampled_from([4, 8, 16])), "memory_gb": 64 + index}
    racks: dict[str, list[tuple[str, int]]] = {"x": [(kind, draw(st.integers(1, 2))) for kind in types]}
    if draw(st.booleans()):
        racks["y"] = [(kinds[0], draw(st.integers(1, 2)))]
    fields: dict[str, Any] = {}
    if speeds and draw(st.booleans()):
        fields["speeds"] = {"A": 1.0, "B": 0.7}
        fields["span_penalty"] = {"rack": 0.9, "cluster": 0.8}
    gpus = sum(types[kind].get("gpus", 0) * count for groups in racks.values() for kind, count in groups)
    return cluster(types, racks, partitions=draw(partitions(gpus)), **fields)


@st.composite
def traces(draw: st.DrawFn, most: int = 20, requests: bool = False, elastic: bool = False) -> pd.DataFrame:
    """Up to ``most`` jobs of every kind; many elastic, if wanted, in two of three traces.

    With ``requests`` some want shares of one GPU, or to stay within a level of the tree.
    """
    rows = draw(st.lists(_jobs(requests), min_size=1, max_size=most))
    ids = draw(st.permutations(range(len(rows))))
    if elastic and draw(st.integers(0, 2)):
        for row in rows:
            row |= draw(_sizes(row["gpu_milli"] // 1000, row["gpus_per_node"] or 1))
    return frame(job_id=list(ids), **{name: [row[name] for row in rows] for name in rows[0]})


def elastic_trace(seed: int, count: int = 15) -> pd.DataFrame:
    """Many elastic jobs close together, of sizes that fit anywhere; the same for the same seed."""
    dice = Random(seed)
    gpus = [dice.choice([1, 2, 2, 3, 4]) for _ in range(count)]
    return frame(
        submit_us=[dice.randint(0, 12) * STEP for _ in range(count)],
        duration_us=[dice.randint(1, 40) * STEP + dice.choice([0, 1, 333_333]) for _ in range(count)],
        gpu_milli=[1000 * each for each in gpus],
        min_gpus=[dice.randint(1, each) for each in gpus],
        max_gpus=[each * dice.randint(1, 3) for each in gpus],
        throughput=[dice.choice(["", "amdahl:0.9", "amdahl:0.5", "1=1 2=1.7 4=3 64=20"]) for _ in range(count)],
        estimate_us=[dice.randint(1, 40) * STEP for _ in range(count)],
        partition=[dice.choice(["", *LEAVES]) for _ in range(count)],
        user=[dice.choice(["u1", "u2"]) for _ in range(count)],
        cpu_milli=[dice.choice([0, 0, 1000]) for _ in range(count)],
    )


@st.composite
def _sizes(draw: st.DrawFn, gpus: int, step: int) -> dict[str, Any]:
    """On how many GPUs a job may run, and how fast."""
    if not gpus or draw(st.integers(0, 2)) == 0:
        return {"min_gpus": 0, "max_gpus": 0, "throughput": ""}
    return {
        "min_gpus": draw(st.integers(1, gpus // step)) * step,
        "max_gpus": draw(st.sampled_from([0, gpus, gpus + step, 2 * gpus, 3 * gpus])),
        "throughput": draw(st.sampled_from(["", "linear", "amdahl:0.9", "amdahl:0", "1=1 2=1.7 4=3 64=20"])),
    }


@st.composite
def _jobs(draw: st.DrawFn, requests: bool) -> dict[str, Any]:
    rare = draw(st.integers(0, 5))
    gpus = draw(st.sampled_from([1, 2, 3, 4, 1, 2, 4, 6, 8, 12, 0, 16]))
    share = draw(st.sampled_from([250, 500, 700, 1000])) if requests and gpus == 1 else 1000
    submit = draw(st.integers(0, 16)) * STEP
    divisors = [each for each in (1, 2, 4) if gpus and gpus % each == 0]
    return {
        "submit_us": submit,
        "duration_us": draw(st.integers(0, 30)) * STEP + draw(st.sampled_from([0, 0, 1, 333_333])),
        "gpu_milli": gpus * share,
        "gpus_per_node": draw(st.sampled_from(divisors)) if divisors and rare == 0 else 0,
        "gpu_type": draw(st.sampled_from(["", "", "", "A", "B", "A|B", "B|A"])),
        "cpu_milli": draw(st.sampled_from([0, 0, 1000, 5000, 9500])),
        "memory_mb": draw(st.sampled_from([0, 0, 1024, 30_000])),
        "tenant": draw(st.sampled_from(["", "t1", "t2"])),
        "user": draw(st.sampled_from(["u1", "u2"])),
        "partition": draw(st.sampled_from(["", *LEAVES, *LEAVES])),
        "priority": draw(st.integers(0, 2)),
        "preemptible": rare != 1,
        "estimate_us": draw(st.integers(1, 30)) * STEP,
        "cancel_us": submit + draw(st.integers(0, 20)) * STEP if rare == 2 else -1,
        "checkpoint_us": draw(st.integers(0, 4)) * STEP if rare == 3 else -1,
        "topology_required": draw(st.sampled_from(["node", "rack"])) if requests and rare == 5 else "",
        "topology_preferred": draw(st.sampled_from(["node", "rack"])) if requests and rare == 0 else "",
        "topology_wait_us": draw(st.integers(-1, 10)) * STEP if requests else -1,
        "restart_us": draw(st.integers(0, 4)) * STEP if rare == 4 else -1,
    }
