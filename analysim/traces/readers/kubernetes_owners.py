"""What the objects that own pods tell of a job: Jobs, JobSets, Kubeflow and Ray jobs, Kueue workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from analysim.traces.log import UNKNOWN
from analysim.traces.readers.fields import at, objects_at, text_at
from analysim.traces.readers.kubernetes_pods import (
    OWNERS,
    Need,
    Told,
    gpu_type_of,
    keys_of,
    labels_of,
    need_of,
    queue_of,
    read_priority,
)
from analysim.traces.readers.kubernetes_values import condition_moment, holds, read_count, read_moment

_WHOLE, _WORKLOAD, _PART = 1, 2, 3
"""Ranks: an object that is the whole job tells it, else its Kueue workload, else the parts it was made of."""

_ENDS = ("Complete", "Completed", "Succeeded", "Failed", "Finished")
_STARTS = ("Admitted", "QuotaReserved", "RayClusterProvisioned")

Members = list[tuple[Any, int | None]]
"""Pod specs, and how many pods there are of each (None: cannot be read)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the pods of a Job run: side by side when it completes as many as it runs at a time."""

    parallelism: int
    completions: int | None

    @property
    def is_gang(self) -> bool:
        """Whether its pods run together, or one after the other as attempts of one."""
        return self.completions is not None and self.completions <= self.parallelism


def shape_of(job: dict[str, Any]) -> Shape:
    """Read the shape of a batch Job; both numbers are 1 where neither is told."""
    parallelism = read_count(at(job, "spec", "parallelism"), 1)
    completions = read_count(at(job, "spec", "completions"), 1 if parallelism == 1 else None)
    return Shape(1 if parallelism is None else parallelism, completions)


def read_owner(kind: str, owner: dict[str, Any]) -> Told | None:
    """Read an object of a kind that owns pods; None for other kinds."""
    if kind == "Job" and at(owner, "spec", "tasks") is not None:
        return None  # of Volcano, whose pods tell it
    find = _MEMBERS.get(kind) or (_kubeflow_members if OWNERS.get(kind) == "kubeflow" else None)
    return None if find is None else _read(kind, owner, list(find(at(owner, "spec"), at(owner, "status"))))


def _read(kind: str, owner: dict[str, Any], members: Members) -> Told:
    metadata, spec, status = at(owner, "metadata"), at(owner, "spec"), at(owner, "status")
    need = Need()
    for pod, count in members:
        need = need.plus(need_of(pod).times(count))
    each = {gpus for pod, count in members if count and (gpus := need_of(pod).gpus)}
    first = members[0][0] if members else None
    end = _end(status)
    labels = labels_of(metadata)
    keys, is_part = _keys(kind, metadata, labels, status)
    return Told(
        keys=keys,
        rank=_WORKLOAD if kind == "Workload" else _PART if is_part else _WHOLE,
        slot=f"{kind} {text_at(metadata, 'name')}",
        submit=read_moment(at(metadata, "creationTimestamp")),
        start=_start(kind, status),
        end=end,
        finished=end != UNKNOWN,
        status=_status(kind, status),
        need=need,
        each=each.pop() if len(each) == 1 else 0,
        gpu_type=next((gpu_type for pod, _ in members if (gpu_type := gpu_type_of(pod))), ""),
        partition=text_at(spec, "queueName") or queue_of(labels),
        priority=read_priority(at(spec, "priority") if kind == "Workload" else at(first, "priority")),
        priority_class=labels.get("kueue.x-k8s.io/priority-class")
        or text_at(spec, "priorityClassName")
        or text_at(first, "priorityClassName"),
    )


def _keys(kind: str, metadata: Any, labels: dict[str, str], status: Any) -> tuple[list[str], bool]:
    """Name the jobs that an object is or is a part of, and tell whether it is only a part."""
    namespace, name = text_at(metadata, "namespace"), text_at(metadata, "name")
    above = keys_of(metadata, labels)
    if kind == "Workload":
        return _workload_keys(metadata, above), False
    own = f"{OWNERS[kind]}/{namespace}/{name}"
    if kind == "RayJob" and (cluster := text_at(status, "rayClusterName")):
        return [f"ray/{namespace}/{cluster}", own], False
    above = [key for key in above if key != own]
    return [*above, own], bool(above)


def _workload_keys(metadata: Any, above: list[str]) -> list[str]:
    """Name the jobs of a Workload: its owners; where these are pods, the pod group of its own name or a pod."""
    namespace, name = text_at(metadata, "namespace"), text_at(metadata, "name")
    pods: list[str] = []
    for owner in objects_at(metadata, "ownerReferences"):
        kind = OWNERS.get(text_at(owner, "kind"), "")
        keys = pods if kind == "pod" else above
        if kind:
            keys.append(f"{kind}/{namespace}/{text_at(owner, 'name')}")
    return list(dict.fromkeys(above)) or [f"group/{namespace}/{name}", *pods[:1]]


def _start(kind: str, status: Any) -> int:
    start = read_moment(at(status, "startTime"))
    moments = [start, *(condition_moment(status, each) for each in _STARTS)]
    if kind == "JobSet":
        moments.append(condition_moment(status, "Suspended", "False"))
    return next((moment for moment in moments if moment != UNKNOWN), UNKNOWN)


def _end(status: Any) -> int:
    told = (read_moment(at(status, "completionTime")), read_moment(at(status, "endTime")))
    moments = [*told, *(condition_moment(status, kind) for kind in _ENDS)]
    return next((moment for moment in moments if moment != UNKNOWN), UNKNOWN)


def _status(kind: str, status: Any) -> str:
    if kind in ("RayJob", "RayCluster"):
        return text_at(status, "jobStatus") or text_at(status, "jobDeploymentStatus") or text_at(status, "state")
    for each in (*_ENDS, "Evicted", "Suspended", "Running", "Admitted", "QuotaReserved"):
        if holds(status, each):
            return each
    return "Running" if text_at(status, "startTime") else "Pending"


def is_evicted(workload: dict[str, Any]) -> bool:
    """Whether a Kueue workload was evicted and waits again: when it ran is not told any more."""
    status = at(workload, "status")
    return holds(status, "Evicted") and not holds(status, "QuotaReserved") and not holds(status, "Finished")


def _job_members(spec: Any, status: Any) -> Iterator[tuple[Any, int | None]]:
    yield at(spec, "template", "spec"), read_count(at(spec, "parallelism"), 1)


def _jobset_members(spec: Any, status: Any) -> Iterator[tuple[Any, int | None]]:
    for replicated in objects_at(spec, "replicatedJobs"):
        replicas = read_count(at(replicated, "replicas"), 1)
        for pod, count in _job_members(at(replicated, "template", "spec"), None):
            yield pod, None if replicas is None or count is None else replicas * count


def _kubeflow_members(spec: Any, status: Any) -> Iterator[tuple[Any, int | None]]:
    for name, replicas in spec.items() if isinstance(spec, dict) else ():
        if str(name).endswith("ReplicaSpecs") and isinstance(replicas, dict):
            for each in replicas.values():
                yield at(each, "template", "spec"), read_count(at(each, "replicas"), 1)


def _ray_members(spec: Any, status: Any) -> Iterator[tuple[Any, int | None]]:
    cluster = at(spec, "rayClusterSpec") or spec
    if head := at(cluster, "headGroupSpec", "template", "spec"):
        yield head, 1
    for group in objects_at(cluster, "workerGroupSpecs"):
        replicas = read_count(at(group, "replicas"), read_count(at(group, "minReplicas"), 0))
        hosts = read_count(at(group, "numOfHosts"), 1)
        yield at(group, "template", "spec"), None if replicas is None or hosts is None else replicas * hosts


def _workload_members(spec: Any, status: Any) -> Iterator[tuple[Any, int | None]]:
    """Pod sets, with as many pods as were admitted, where that is told."""
    admitted = {
        text_at(each, "name"): at(each, "count") for each in objects_at(status, "admission", "podSetAssignments")
    }
    for pods in objects_at(spec, "podSets"):
        count = admitted.get(text_at(pods, "name"))
        yield at(pods, "template", "spec"), read_count(at(pods, "count") if count is None else count, 1)


_MEMBERS: dict[str, Callable[[Any, Any], Iterator[tuple[Any, int | None]]]] = {
    "Job": _job_members,
    "JobSet": _jobset_members,
    "RayCluster": _ray_members,
    "RayJob": _ray_members,
    "Workload": _workload_members,
}
