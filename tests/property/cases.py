"""Random small clusters and traces, drawn so that hypothesis can shrink them."""

from __future__ import annotations

from typing import Any

import pandas as pd
from hypothesis import strategies as st

from analysim.config.cluster import ClusterConfig
from tests.builders import cluster, frame

NODE_TYPES = {
    "a8": {"gpus": 8, "gpu_type": "A"},
    "a4": {"gpus": 4, "gpu_type": "A"},
    "b4": {"gpus": 4, "gpu_type": "B"},
    "b2": {"gpus": 2, "gpu_type": "B"},
    "c0": {},
}
PLACEMENTS = st.sampled_from(["pack", "first", "spread", "random", "rack", "any"])
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
def traces(draw: st.DrawFn, most: int = 20) -> pd.DataFrame:
    """Up to ``most`` jobs of every kind that the schema knows."""
    rows = draw(st.lists(_jobs(), min_size=1, max_size=most))
    ids = draw(st.permutations(range(len(rows))))
    return frame(job_id=list(ids), **{name: [row[name] for row in rows] for name in rows[0]})


@st.composite
def _jobs(draw: st.DrawFn) -> dict[str, Any]:
    rare = draw(st.integers(0, 5))
    gpus = draw(st.sampled_from([1, 2, 3, 4, 1, 2, 4, 6, 8, 12, 0, 16]))
    submit = draw(st.integers(0, 16)) * STEP
    divisors = [each for each in (1, 2, 4) if gpus and gpus % each == 0]
    return {
        "submit_us": submit,
        "duration_us": draw(st.integers(0, 30)) * STEP + draw(st.sampled_from([0, 0, 1, 333_333])),
        "gpu_milli": gpus * 1000,
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
        "deadline_us": submit + draw(st.integers(0, 60)) * STEP if rare == 5 else -1,
        "restart_us": draw(st.integers(0, 4)) * STEP if rare == 4 else -1,
    }
