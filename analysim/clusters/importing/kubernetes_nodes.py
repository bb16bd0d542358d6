"""A node of Kubernetes: GPUs, CPUs, memory, and the labels that say which rack it stands in."""

from __future__ import annotations

from collections.abc import Sequence

from analysim.clusters.importing.documents import Object, mapping, name_of, quantity, sequence, whole_quantity
from analysim.clusters.importing.found import Found, FoundNode, Tally
from analysim.clusters.importing.sources import Source
from analysim.units import MEGABYTES

GPU_RESOURCES = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "alibabacloud.com/gpu-count",
    "aliyun.com/gpu-count",
    "habana.ai/gaudi",
)
"""Extended resources that count whole GPUs; the first that a node has counts."""

TYPE_LABELS = (
    "nvidia.com/gpu.product",
    "alibabacloud.com/gpu-card-model",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/class",
    "accelerator",
)
"""Labels that name a node's GPU model; the first that a node has counts."""

RACK_LABELS = (
    "topology.kubernetes.io/rack",
    "cloud.provider.com/topology-rack",
    "network.topology.nvidia.com/leaf",
    "topology.k8s.aws/network-node-layer-3",
    "cloud.google.com/gce-topology-subblock",
    "rack",
)
POD_LABELS = (
    "topology.kubernetes.io/block",
    "cloud.provider.com/topology-block",
    "network.topology.nvidia.com/spine",
    "topology.k8s.aws/network-node-layer-2",
    "cloud.google.com/gce-topology-block",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
)
HOST_LABEL = "kubernetes.io/hostname"
BYTES_PER_GB = 1 << 30
_CONTROL = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


def read_node(source: Source, thing: Object, tally: Tally) -> FoundNode | None:
    """Read what is allocatable (else the capacity) of a node; None for one of the control plane.

    Raises ``ConfigError`` for quantities that are none.
    """
    name = name_of(source, thing)
    labels = {key: value for key, value in mapping(thing, "metadata", "labels").items() if isinstance(value, str)}
    taints = [taint for taint in sequence(mapping(thing, "spec"), "taints") if isinstance(taint, dict)]
    if any(taint.get("key") in _CONTROL and taint.get("effect") != "PreferNoSchedule" for taint in taints):
        tally.add("nodes of the control plane, which take no jobs, left out", name)
        return None
    capacity = mapping(thing, "status", "capacity")
    amounts = {**capacity, **mapping(thing, "status", "allocatable")}
    if not amounts:
        tally.add("nodes that do not say what they have, counted without GPUs", name)
    gpus = _gpus(source, name, labels, amounts, tally)
    resource = next((each for each in GPU_RESOURCES if each in amounts), "")
    if resource and gpus < whole_quantity(source, f"node {name}: {resource}", capacity.get(resource, "0")):
        tally.add("nodes with fewer GPUs allocatable than installed, of which the former count", name)
    if mapping(thing, "spec").get("unschedulable") in (True, "true"):
        tally.add("nodes that are cordoned, kept", name)
    if gpus and not _gpu_type(labels):
        tally.add("nodes with GPUs that name no model", name)
    return FoundNode(
        name=name,
        gpu_type=_gpu_type(labels),
        gpus=gpus,
        gpu_memory_gb=_gpu_memory(source, name, labels),
        cpus=_amount(source, name, amounts, "cpu", 1),
        memory_gb=_amount(source, name, amounts, "memory", BYTES_PER_GB),
        labels=labels,
    )


def _gpus(source: Source, name: str, labels: dict[str, str], amounts: Object, tally: Tally) -> int:
    for key in amounts:
        if key.startswith("nvidia.com/mig-") and amounts[key] != "0":
            tally.add("entries of MIG slices, which are no whole GPUs, left out", f"{name}: {key} {amounts[key]}")
        elif key.startswith("nvidia.com/gpu.shared") and amounts[key] != "0":
            tally.add("nodes that share GPUs in time, with as many as the label nvidia.com/gpu.count says", name)
            return whole_quantity(source, f"node {name}: gpu.count", labels.get("nvidia.com/gpu.count", "0"))
    resource = next((each for each in GPU_RESOURCES if each in amounts), None)
    if resource is None:
        return 0
    gpus = whole_quantity(source, f"node {name}: {resource}", amounts[resource])
    product = labels.get("nvidia.com/gpu.product", "")
    if "-MIG-" in product and gpus:
        tally.add("nodes that offer MIG slices as nvidia.com/gpu, counted without GPUs", name)
        return 0
    if product.endswith("-SHARED") or labels.get("nvidia.com/gpu.replicas", "1") not in ("0", "1"):
        tally.add("nodes that share GPUs in time, with as many as the label nvidia.com/gpu.count says", name)
        count = labels.get("nvidia.com/gpu.count", str(gpus))
        return min(gpus, whole_quantity(source, f"node {name}: gpu.count", count))
    return gpus


def _gpu_type(labels: dict[str, str]) -> str | None:
    name = next((labels[each] for each in TYPE_LABELS if labels.get(each)), None)
    return name.removesuffix("-SHARED") if name else None


def _gpu_memory(source: Source, name: str, labels: dict[str, str]) -> float | None:
    text = labels.get("nvidia.com/gpu.memory")
    return round(quantity(source, f"node {name}: gpu.memory", text) / MEGABYTES, 1) if text else None


def _amount(source: Source, name: str, amounts: Object, key: str, unit: float) -> float | None:
    return round(quantity(source, f"node {name}: {key}", amounts[key]) / unit, 3) if key in amounts else None


def read_racks(found: Found, topologies: Sequence[Object]) -> None:
    """Give nodes racks and pods by label: the lowest levels of Kueue's Topology, else the labels in common use."""
    levels = [
        [str(level["nodeLabel"]) for level in sequence(mapping(each, "spec"), "levels") if _has_label(level)]
        for each in topologies
    ]
    levels = [[label for label in each if label != HOST_LABEL] for each in levels]
    given = max(levels, key=len, default=[])
    if len(levels) > 1:
        found.notes.append(f"{len(levels)} objects of the kind Topology; the deepest is used: {', '.join(given)}")
    racks = given[-1:] or _used(found.nodes, RACK_LABELS)
    pods = given[:-1] if racks == given[-1:] and given else _used(found.nodes, POD_LABELS)
    for node in found.nodes:
        node.rack = node.labels.get(racks[0], "") if racks else ""
        node.pod = "-".join(filter(None, (node.labels.get(label, "") for label in pods)))
    if racks or pods:
        found.notes.append(f"racks by label {' '.join(racks) or '(none)'}, pods by {', '.join(pods) or '(none)'}")


def _has_label(level: object) -> bool:
    return isinstance(level, dict) and isinstance(level.get("nodeLabel"), str)


def _used(nodes: Sequence[FoundNode], labels: Sequence[str]) -> list[str]:
    return next(([label] for label in labels if any(node.labels.get(label) for node in nodes)), [])
