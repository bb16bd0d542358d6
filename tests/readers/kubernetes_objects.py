"""Objects of Kubernetes in code, as small as they can be."""

from __future__ import annotations

from typing import Any


def moment(minutes: float) -> str:
    """A moment so many minutes after midnight."""
    return f"2024-05-01T{int(minutes) // 60:02d}:{int(minutes) % 60:02d}:{round(minutes % 1 * 60):02d}Z"


def container(gpus: Any = None, cpu: Any = None, memory: Any = None, **more: Any) -> dict[str, Any]:
    """A container that asks for so much."""
    amounts = {"nvidia.com/gpu": gpus, "cpu": cpu, "memory": memory, **more.pop("resources", {})}
    return {"resources": {"requests": {name: value for name, value in amounts.items() if value is not None}}, **more}


def pod(
    name: str,
    gpus: Any = None,
    *,
    created: float = 0,
    scheduled: float | None = 10,
    finished: float | None = 40,
    phase: str = "Succeeded",
    labels: dict[str, str] | None = None,
    owner: tuple[str, str] | None = None,
    node: str = "",
    spec: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A pod; times are minutes after midnight."""
    conditions = (
        [{"type": "PodScheduled", "status": "True", "lastTransitionTime": moment(scheduled)}]
        if scheduled is not None
        else []
    )
    ended = {"terminated": {"finishedAt": moment(finished)}} if finished is not None else {"running": {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, created, labels, owner),
        "spec": {"containers": [container(gpus)], **({"nodeName": node} if node else {}), **(spec or {})},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": [{"state": ended}]},
    }


def metadata(
    name: str, created: float = 0, labels: dict[str, str] | None = None, owner: tuple[str, str] | None = None
) -> dict[str, Any]:
    """The metadata of an object in the namespace ``ml``."""
    owners = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner else []
    return {
        "name": name,
        "namespace": "ml",
        "creationTimestamp": moment(created),
        "labels": labels or {},
        "ownerReferences": owners,
    }


def template(gpus: Any) -> dict[str, Any]:
    """A template of pods with so many GPUs each."""
    return {"spec": {"containers": [container(gpus)]}}


def condition(kind: str, minutes: float, status: str = "True") -> dict[str, Any]:
    """A condition and when it came to hold."""
    return {"type": kind, "status": status, "lastTransitionTime": moment(minutes)}


def job(
    name: str,
    gpus: Any,
    *,
    created: float = 0,
    started: float | None = 5,
    ended: float | None = 65,
    labels: Any = None,
    owner: Any = None,
    **spec: Any,
) -> dict[str, Any]:
    """A batch Job; ``spec`` holds its parallelism, completions and the like."""
    status: dict[str, Any] = {"startTime": moment(started)} if started is not None else {}
    if ended is not None:
        status |= {"completionTime": moment(ended), "conditions": [condition("Complete", ended)]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, created, labels, owner),
        "spec": {"template": template(gpus), **spec},
        "status": status,
    }


def workload(
    name: str,
    gpus: Any,
    count: int,
    *,
    created: float = 0,
    owner: Any = None,
    conditions: Any = (),
    admitted: int | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Kueue Workload of one pod set."""
    admission = {"admission": {"podSetAssignments": [{"name": "main", "count": admitted}]}} if admitted else {}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": metadata(name, created, None, owner),
        "spec": {
            "podSets": [{"name": "main", "count": count, "template": template(gpus)}],
            "queueName": "team-a",
            "priority": 7,
            **spec,
        },
        "status": {"conditions": list(conditions), **admission},
    }
