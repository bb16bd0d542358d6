"""What a Kubernetes pod asks for, where it may run, which job it belongs to, and when it ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analysim.traces.log import UNKNOWN
from analysim.traces.readers.fields import at, objects_at, text_at
from analysim.traces.readers.kubernetes_values import condition_moment, read_bytes, read_count, read_milli, read_moment

_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "nvidia.com/gpu.shared")
_MIG = "nvidia.com/mig-"
_MIG_SLICES = 7
_GPU_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "alibabacloud.com/gpu-card-model",
)
_GROUPS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
)
_QUEUES = (
    "kueue.x-k8s.io/queue-name",
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
    "kai.scheduler/queue",
    "runai/queue",
)
_PARTS = (
    "jobset.sigs.k8s.io/replicatedjob-name",
    "jobset.sigs.k8s.io/job-index",
    "training.kubeflow.org/replica-type",
    "volcano.sh/task-spec",
)
_INDICES = ("batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index", "volcano.sh/task-index")
_JOB_LABELS = (
    ("jobset.sigs.k8s.io/jobset-name", "jobset"),
    ("training.kubeflow.org/job-name", "kubeflow"),
    ("ray.io/cluster", "ray"),
)
_KUBEFLOW = ("PyTorchJob", "MPIJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob")
OWNERS = {
    "Job": "job",
    "JobSet": "jobset",
    "RayCluster": "ray",
    "RayJob": "rayjob",
    "Pod": "pod",
    "PodGroup": "group",
    **dict.fromkeys(_KUBEFLOW, "kubeflow"),
}
"""First part of the key of a job, by the kind of the object that owns it."""


class Need(NamedTuple):
    """What pods ask for: thousandths of GPUs and CPUs, bytes of memory; None where that cannot be read."""

    gpus: int | None = 0
    cpus: int | None = 0
    memory: int | None = 0

    def plus(self, other: Need) -> Need:
        """Add what others ask for."""
        return Need(*(None if a is None or b is None else a + b for a, b in zip(self, other, strict=True)))

    def largest(self, other: Need) -> Need:
        """Take the larger one of each."""
        return Need(*(None if a is None or b is None else max(a, b) for a, b in zip(self, other, strict=True)))

    def times(self, count: int | None) -> Need:
        """Multiply by a number of pods; nothing can be told where that is None."""
        return Need(*(None if a is None or count is None else a * count for a in self))


@dataclass(slots=True)
class Told:
    """What one object tells of a job: times in microseconds since 1970, ``UNKNOWN`` where it does not.

    ``keys`` name the job, the one that counts first, a pod itself last; of the objects of a job those of the
    least ``rank`` tell it. ``slot`` is the member of the gang (attempts share one), empty: itself. ``each`` are
    the GPUs of each of its pods that has any, in thousandths, 0 where they differ. ``indexed`` pods have a place
    of their own among those of their Job.
    """

    keys: list[str]
    rank: int
    slot: str
    submit: int
    start: int = UNKNOWN
    end: int = UNKNOWN
    finished: bool = False
    status: str = ""
    need: Need = field(default_factory=Need)
    each: int = 0
    node: str = ""
    gpu_type: str = ""
    partition: str = ""
    priority: int = UNKNOWN
    priority_class: str = ""
    indexed: bool = False


def read_pod(pod: dict[str, Any]) -> Told:
    """Read a pod: started when it was scheduled, ended with its last container."""
    metadata, spec, status = at(pod, "metadata"), at(pod, "spec"), at(pod, "status")
    labels = labels_of(metadata)
    phase = text_at(status, "phase")
    start = condition_moment(status, "PodScheduled")
    if start == UNKNOWN:
        start = read_moment(at(status, "startTime"))
    finished = phase in ("Succeeded", "Failed")
    need = need_of(spec)
    return Told(
        keys=[*keys_of(metadata, labels, spec), f"pod/{text_at(metadata, 'namespace')}/{text_at(metadata, 'name')}"],
        rank=0,
        slot=_slot(labels),
        submit=read_moment(at(metadata, "creationTimestamp")),
        start=start,
        end=_end(metadata, status) if finished else UNKNOWN,
        finished=finished,
        status=phase,
        need=need,
        each=need.gpus or 0,
        node=text_at(spec, "nodeName"),
        gpu_type=gpu_type_of(spec),
        partition=queue_of(labels),
        indexed=_INDICES[0] in labels,
        priority=read_priority(at(spec, "priority")),
        priority_class=text_at(spec, "priorityClassName"),
    )


def why_aside(pod: dict[str, Any]) -> str:
    """Say why a pod is no job: it belongs to its node; empty where it is one."""
    metadata = at(pod, "metadata")
    owner = _owner(metadata)[0]
    if owner == "DaemonSet":
        return "pod of a DaemonSet: part of its node"
    if owner == "Node" or text_at(metadata, "annotations", "kubernetes.io/config.mirror"):
        return "static pod: part of its node"
    return ""


def read_priority(value: Any) -> int:
    """Read a priority; UNKNOWN where there is none."""
    text = str(value).strip()
    digits = text.removeprefix("-")
    return int(text) if digits.isdecimal() and digits.isascii() and len(digits) <= 10 else UNKNOWN


def _end(metadata: Any, status: Any) -> int:
    """The last end of a container, else when the pod was disrupted, was no longer ready, or was deleted."""
    ends = [
        read_moment(at(container, "state", "terminated", "finishedAt"))
        for name in ("containerStatuses", "initContainerStatuses")
        for container in objects_at(status, name)
    ]
    others = (
        condition_moment(status, "DisruptionTarget"),
        condition_moment(status, "ContainersReady", "False"),
        condition_moment(status, "Ready", "False"),
        read_moment(at(metadata, "deletionTimestamp")),
    )
    known = [end for end in (max(ends, default=UNKNOWN), *others) if end != UNKNOWN]
    return known[0] if known else UNKNOWN


def need_of(spec: Any) -> Need:
    """Return what a pod asks for: the sum of its containers or the largest init container, if that is more.

    An init container that is restarted always (a sidecar) adds to the sum and to the init containers after it.
    Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
    """
    sidecars, largest = Need(), Need()
    for container in objects_at(spec, "initContainers"):
        need = _container_need(container)
        if text_at(container, "restartPolicy") == "Always":
            sidecars = sidecars.plus(need)
            need = Need()
        largest = largest.largest(sidecars.plus(need))
    total = sidecars
    for container in objects_at(spec, "containers"):
        total = total.plus(_container_need(container))
    total = total.largest(largest)
    if isinstance(at(spec, "resources"), dict):  # of the pod as a whole
        whole = _container_need(spec)
        total = Need(total.gpus, whole.cpus or total.cpus, whole.memory or total.memory)
    overhead = at(spec, "overhead")
    return total.plus(_amounts(overhead)) if isinstance(overhead, dict) else total


def _container_need(container: Any) -> Need:
    limits, requests = at(container, "resources", "limits"), at(container, "resources", "requests")
    asked = dict(limits) if isinstance(limits, dict) else {}
    return _amounts({**asked, **requests} if isinstance(requests, dict) else asked)


def _amounts(asked: dict[str, Any]) -> Need:
    gpus: int | None = 0
    for name, amount in asked.items():
        part: int | None = 0
        if name in _GPUS:
            part = read_milli(amount)
        elif isinstance(name, str) and name.startswith(_MIG):
            part = _mig_milli(name, amount)
        gpus = None if gpus is None or part is None else gpus + part
    cpus = read_milli(asked["cpu"]) if "cpu" in asked else 0
    return Need(gpus, cpus, read_bytes(asked["memory"]) if "memory" in asked else 0)


def _mig_milli(name: str, amount: Any) -> int | None:
    """Thousandths of a GPU in slices such as ``nvidia.com/mig-3g.20gb``: three sevenths each."""
    slices, milli = read_count(name.removeprefix(_MIG).partition("g")[0]), read_milli(amount)
    return None if slices is None or milli is None else -(-milli * slices // _MIG_SLICES)


def asks_slices(spec: Any) -> bool:
    """Whether a pod asks for slices of a GPU (MIG)."""
    return any(_MIG in str(at(each, "resources")) for each in objects_at(spec, "containers"))


def asks_claims(spec: Any) -> bool:
    """Whether a pod asks for devices by claims (dynamic resource allocation), which are objects of their own."""
    return any(True for _ in objects_at(spec, "resourceClaims"))


def gpu_type_of(spec: Any) -> str:
    """Return the GPU types that a pod's node selector or required node affinity names, as ``A|B``."""
    for label in _GPU_LABELS:
        if chosen := text_at(spec, "nodeSelector", label):
            return chosen
    terms = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    types: dict[str, None] = {}
    for term in objects_at(terms, "nodeSelectorTerms"):
        for each in objects_at(term, "matchExpressions"):
            values = each.get("values")
            if each.get("key") in _GPU_LABELS and each.get("operator") == "In" and isinstance(values, list):
                types.update(dict.fromkeys(value for value in values if isinstance(value, str)))
    return "|".join(types)


def labels_of(metadata: Any) -> dict[str, str]:
    """Return the labels and annotations of an object, labels first."""
    found: dict[str, str] = {}
    for name in ("annotations", "labels"):
        values = at(metadata, name)
        if isinstance(values, dict):
            found.update((key, value) for key, value in values.items() if value and isinstance(value, str))
    return found


def queue_of(labels: dict[str, str]) -> str:
    """Return the queue that an object's labels or annotations name."""
    return next((labels[name] for name in _QUEUES if name in labels), "")


def keys_of(metadata: Any, labels: dict[str, str], spec: Any = None) -> list[str]:
    """Name the jobs that an object may be a part of, the one that counts first."""
    namespace = text_at(metadata, "namespace")
    owner, owner_name = _owner(metadata)
    found = list(_groups(labels, spec, owner))
    found += [(kind, labels[name]) for name, kind in _JOB_LABELS if name in labels]
    if job := _job(labels):
        older = labels.get("group-name") == "kubeflow.org"
        found.append(("kubeflow" if older else "job", job))
    if owner in OWNERS and owner != "Pod":
        found.append((OWNERS[owner], owner_name))
    return list(dict.fromkeys([f"{kind}/{namespace}/{name}" for kind, name in found]))


def _groups(labels: dict[str, str], spec: Any, owner: str) -> Iterator[tuple[str, str]]:
    if group := text_at(spec, "schedulingGroup", "podGroupName"):
        yield "group", group
    for name in _GROUPS:
        group = labels.get(name, "")
        # Volcano makes a group of whatever it schedules: replicas of a service are no gang.
        if group and not (owner in ("ReplicaSet", "StatefulSet") and group.startswith("podgroup-")):
            yield "group", group


def _job(labels: dict[str, str]) -> str:
    return labels.get("batch.kubernetes.io/job-name") or labels.get("job-name", "")


def _owner(metadata: Any) -> tuple[str, str]:
    """Kind and name of the controlling owner."""
    owners = list(objects_at(metadata, "ownerReferences"))
    chosen = next((each for each in owners if str(each.get("controller")).lower() == "true"), None)
    chosen = chosen or (owners[0] if owners else None)
    return text_at(chosen, "kind"), text_at(chosen, "name")


def _slot(labels: dict[str, str]) -> str:
    """Name the member of its gang that a pod is, by its index; empty where it has none and is its own."""
    if not any(name in labels for name in _INDICES):
        return ""
    return "#".join([_job(labels), *(labels.get(name, "") for name in (*_PARTS, *_INDICES))])
