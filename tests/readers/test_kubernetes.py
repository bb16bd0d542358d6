"""Kubernetes objects: quantities, pods, gangs by their owner, owners alone, JSON and YAML, broken files."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError, UserError
from analysim.traces import Trace, read_trace
from analysim.traces.log import UNKNOWN
from analysim.traces.readers.kubernetes_pods import need_of
from analysim.traces.readers.kubernetes_values import read_bytes, read_milli, read_moment
from tests.readers.kubernetes_objects import condition, container, job, metadata, moment, pod, template, workload

MINUTE = 60_000_000


def read(folder: Path, *objects: dict[str, Any]) -> Trace:
    file = folder / "export.json"
    file.write_text(json.dumps({"apiVersion": "v1", "items": list(objects), "kind": "List"}))
    trace = read_trace(file, format="kubernetes")
    balanced(trace)
    return trace


def balanced(trace: Trace) -> None:
    assert trace.rows == len(trace.frame) + sum(trace.set_aside.values())


def jobs(trace: Trace) -> pd.DataFrame:
    return trace.frame.set_index("job_id")


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("2", 2_000),
        (2, 2_000),
        ("500m", 500),
        ("1e3", 1_000_000),
        ("1.5", 1_500),
        ("1k", 1_000_000),
        ("100u", 1),
        (0.5, 500),
    ],
)
def test_quantities(text: object, milli: int) -> None:
    """https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""
    assert read_milli(text) == milli


@pytest.mark.parametrize(
    ("text", "size"),
    [("64Gi", 64 << 30), ("128974848", 128974848), ("129e6", 129_000_000), ("1E", 10**18), ("123Mi", 123 << 20)],
)
def test_bytes(text: str, size: int) -> None:
    assert read_bytes(text) == size


@pytest.mark.parametrize("text", ["", "abc", "-1", "1e99", "9" * 40, "1 Gi", "1gi", None, True, [], "1e9999999999"])
def test_what_is_no_quantity(text: object) -> None:
    assert read_milli(text) is None


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2024-05-01T00:00:00Z", 1_714_521_600_000_000),
        ("2024-05-01T02:00:00.25+02:00", 1_714_521_600_250_000),
        ("2024-05-01T00:00:00.123456789Z", 1_714_521_600_123_456),
        ("0001-01-01T00:00:00Z", UNKNOWN),
        ("soon", UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_moments(text: object, microseconds: int) -> None:
    assert read_moment(text) == microseconds


def test_init_containers_count_by_the_rule() -> None:
    """https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/: the larger of the sum and the init ones."""
    spec = {
        "initContainers": [
            container(cpu="3"),
            container(cpu="1", memory="1Gi", restartPolicy="Always"),
            container(cpu="4", memory="1Gi"),
        ],
        "containers": [container(2, cpu="2", memory="1Gi"), container(cpu="500m")],
    }
    assert need_of(spec) == (2_000, 5_000, 2 << 30)


def test_limits_stand_for_requests_that_are_not_there() -> None:
    limits = {"limits": {"nvidia.com/gpu": "2", "cpu": "8"}, "requests": {"cpu": "4"}}
    assert need_of({"containers": [{"resources": limits}]}) == (2_000, 4_000, 0)
    assert need_of({"containers": [container(resources={"amd.com/gpu": 4})]}).gpus == 4_000
    assert need_of({"containers": [container("two")]}).gpus is None


def test_a_pod_is_a_job(tmp_path: Path) -> None:
    spec = {"priority": 50, "nodeSelector": {"nvidia.com/gpu.product": "A100"}}
    single = pod("train", 8, node="n1", labels={"kueue.x-k8s.io/queue-name": "team-a"}, spec=spec)
    row = jobs(read(tmp_path, single)).loc["ml/train"]
    assert (row["gpu_milli"], row["gpus_per_node"], row["tenant"], row["partition"]) == (8_000, 8, "ml", "team-a")
    assert (row["priority"], row["gpu_type"], row["recorded_node"], row["status"]) == (50, "A100", "n1", "Succeeded")
    assert (row["recorded_start_us"], row["recorded_end_us"]) == (10 * MINUTE, 40 * MINUTE)
    assert row["duration_us"] == 30 * MINUTE


def test_pods_that_run_or_wait(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        pod("done", 1),
        pod("runs", 1, phase="Running", finished=None, scheduled=20),
        pod("waits", 1, phase="Pending", finished=None, scheduled=None),
    )
    assert jobs(trace)["duration_us"].to_dict() == {"ml/done": 30 * MINUTE, "ml/runs": 20 * MINUTE}
    assert trace.set_aside == {"never started": 1}
    assert trace.account.repaired["still running at the end of the log: runs until then"].tolist() == [2]


def test_start_and_end_where_conditions_or_containers_are_gone(tmp_path: Path) -> None:
    evicted = pod("evicted", 1, scheduled=None, phase="Failed")
    evicted["status"] |= {
        "startTime": moment(12),
        "containerStatuses": [],
        "conditions": [condition("DisruptionTarget", 30)],
    }
    row = jobs(read(tmp_path, evicted)).loc["ml/evicted"]
    assert (row["recorded_start_us"], row["recorded_end_us"]) == (12 * MINUTE, 30 * MINUTE)


def test_gpu_types_of_required_affinity(tmp_path: Path) -> None:
    expressions = [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["A100", "H100"]}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    assert jobs(read(tmp_path, pod("a", 1, spec=spec)))["gpu_type"].tolist() == ["A100|H100"]


def test_slices_of_a_gpu_are_parts(tmp_path: Path) -> None:
    slices = container(resources={"nvidia.com/mig-3g.20gb": 1})
    trace = read(tmp_path, pod("a", spec={"containers": [slices]}))
    assert trace.frame["gpu_milli"].tolist() == [429]  # 3 of 7 slices
    assert any("1 pods ask for slices of a GPU (MIG)" in note for note in trace.notes)


def test_pods_of_the_nodes_are_no_jobs(tmp_path: Path) -> None:
    static = pod("kube-proxy-n1")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    trace = read(tmp_path, pod("exporter-1", owner=("DaemonSet", "exporter")), static, pod("a", 1))
    assert trace.set_aside == {"pod of a DaemonSet: part of its node": 1, "static pod: part of its node": 1}


def test_replicas_are_jobs_of_their_own(tmp_path: Path) -> None:
    service = [
        pod(f"web-{each}", 1, owner=("ReplicaSet", "web"), labels={"scheduling.k8s.io/group-name": "podgroup-1"})
        for each in "ab"
    ]
    assert len(read(tmp_path, *service).frame) == 2


@pytest.mark.parametrize(
    "label",
    [
        "scheduling.x-k8s.io/pod-group",
        "pod-group.scheduling.sigs.k8s.io",
        "scheduling.k8s.io/group-name",
        "jobset.sigs.k8s.io/jobset-name",
        "training.kubeflow.org/job-name",
        "ray.io/cluster",
    ],
)
def test_pods_of_a_group_are_a_gang(tmp_path: Path, label: str) -> None:
    gang = [
        pod(
            f"w-{each}",
            4,
            created=each,
            scheduled=10 + each,
            finished=40 + each,
            node=f"n{each}",
            labels={label: "llm"},
        )
        for each in range(3)
    ]
    trace = read(tmp_path, *gang, pod("other", 1))
    row = jobs(trace).loc["ml/llm"]
    assert (row["gpu_milli"], row["gpus_per_node"], row["recorded_node"]) == (12_000, 4, "n0,n1,n2")
    assert (row["submit_us"], row["recorded_start_us"], row["recorded_end_us"]) == (0, 12 * MINUTE, 42 * MINUTE)
    assert trace.set_aside == {"a further pod of a gang, folded into its job": 2}
    assert trace.account.set_aside["a further pod of a gang, folded into its job"].tolist() == [2, 3]


def test_the_pod_group_counts_before_the_job(tmp_path: Path) -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "g", "jobset.sigs.k8s.io/jobset-name": "s", "job-name": "j"}
    trace = read(tmp_path, pod("a", 1, labels=labels), pod("b", 1, labels=labels), job("j", 1))
    assert trace.frame["job_id"].tolist() == ["ml/g"]


def test_gangs_of_unequal_pods_or_shared_nodes_are_spread_freely(tmp_path: Path) -> None:
    launcher = [
        pod(name, gpus, labels={"ray.io/cluster": "r"}) for name, gpus in (("head", None), ("w1", 2), ("w2", 2))
    ]
    unequal = [pod(f"u{gpus}", gpus, labels={"ray.io/cluster": "u"}) for gpus in (1, 2)]
    shared = [pod(f"s{each}", 2, node="n1", labels={"ray.io/cluster": "s"}) for each in (1, 2)]
    frame = jobs(read(tmp_path, *launcher, *unequal, *shared))
    assert frame["gpus_per_node"].to_dict() == {"ml/r": 2, "ml/u": 0, "ml/s": 0}


def test_a_gang_waits_for_its_last_pod(tmp_path: Path) -> None:
    labels = {"training.kubeflow.org/job-name": "llm"}
    waiting = pod("b", 1, labels=labels, phase="Pending", scheduled=None, finished=None)
    trace = read(tmp_path, pod("a", 1, labels=labels, phase="Running", finished=None), waiting, pod("c", 1))
    assert trace.set_aside == {"a further pod of a gang, folded into its job": 1, "never started": 1}


def test_attempts_of_a_member_count_once(tmp_path: Path) -> None:
    def member(name: str, index: int, created: float, **given: Any) -> dict[str, Any]:
        labels = {"batch.kubernetes.io/job-name": "j", "batch.kubernetes.io/job-completion-index": str(index)}
        return pod(name, 2, created=created, labels=labels, owner=("Job", "j"), **given)

    trace = read(
        tmp_path,
        member("j-0-a", 0, 0, scheduled=5, finished=15, phase="Failed"),
        member("j-0-b", 0, 16, scheduled=17, finished=60),
        member("j-1-a", 1, 0, scheduled=6, finished=60),
    )
    row = jobs(trace).loc["ml/j"]
    assert (row["gpu_milli"], row["recorded_start_us"], row["recorded_end_us"]) == (4_000, 6 * MINUTE, 60 * MINUTE)
    assert row["status"] == "Succeeded"
    assert trace.account.set_aside["an earlier attempt or copy of a pod or object, folded into its job"].tolist() == [1]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"parallelism": 3, "completions": 3}, {"ml/j": 3_000}),
        ({"parallelism": 3, "completions": 9}, {"ml/p0": 1_000, "ml/p1": 1_000, "ml/p2": 1_000}),
        ({"parallelism": 3}, {"ml/p0": 1_000, "ml/p1": 1_000, "ml/p2": 1_000}),
        ({}, {"ml/j": 1_000}),
    ],
)
def test_a_job_is_a_gang_if_it_completes_what_it_runs(
    tmp_path: Path, spec: dict[str, int], expected: dict[str, int]
) -> None:
    pods = [pod(f"p{each}", 1, created=each, labels={"job-name": "j"}, owner=("Job", "j")) for each in range(3)]
    trace = read(tmp_path, *pods, job("j", 1, **spec))
    assert jobs(trace)["gpu_milli"].to_dict() == expected
    assert trace.account.set_aside["told by the other objects of its job, folded into it"].tolist() == [4]


def test_pods_of_a_job_that_is_not_in_the_file_are_alone_unless_indexed(tmp_path: Path) -> None:
    plain = [pod(f"p{each}", 1, labels={"job-name": "j"}, owner=("Job", "j")) for each in range(2)]
    assert len(read(tmp_path, *plain).frame) == 2


def test_jobs_without_pods_tell_themselves(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        job("j", 8, parallelism=4, completions=4),
        job("runs", 1, ended=None),
        job("held", 1, started=None, ended=None),
    )
    row = jobs(trace).loc["ml/j"]
    assert (row["gpu_milli"], row["gpus_per_node"], row["status"]) == (32_000, 8, "Complete")
    assert (row["recorded_start_us"], row["recorded_end_us"]) == (5 * MINUTE, 65 * MINUTE)
    assert trace.set_aside == {"never started": 1}


def test_kueue_workloads_tell_queue_priority_and_times(tmp_path: Path) -> None:
    conditions = [condition("QuotaReserved", 20), condition("Admitted", 21), condition("Finished", 81)]
    trace = read(tmp_path, workload("w", 8, 4, conditions=conditions, admitted=2, created=3))
    row = jobs(trace).loc["ml/w"]
    assert (row["gpu_milli"], row["partition"], row["priority"], row["status"]) == (16_000, "team-a", 7, "Finished")
    assert (row["recorded_start_us"], row["recorded_end_us"]) == (18 * MINUTE, 78 * MINUTE)


def test_evicted_and_pending_workloads(tmp_path: Path) -> None:
    evicted = [condition("Evicted", 30), condition("QuotaReserved", 30, "False")]
    trace = read(
        tmp_path,
        workload("out", 8, 1, conditions=evicted),
        workload("waits", 8, 1, conditions=[condition("QuotaReserved", 1, "False")]),
        workload("runs", 8, 1, conditions=[condition("QuotaReserved", 1), condition("Admitted", 2)]),
    )
    assert trace.set_aside == {
        "Workload that was evicted and waits again: when it ran is not told": 1,
        "never started": 1,
    }


def test_a_job_its_pods_and_its_workload_count_once(tmp_path: Path) -> None:
    """The pods tell; the submission is the earliest, the queue and the priority those of the Workload."""
    admitted = workload("job-j-1a2b", 4, 2, created=1, owner=("Job", "j"), conditions=[condition("Admitted", 30)])
    pods = [
        pod(f"p{each}", 4, created=31, scheduled=32, finished=90, owner=("Job", "j"), labels={"job-name": "j"})
        for each in range(2)
    ]
    whole = job("j", 4, created=0, parallelism=2, completions=2)
    for order in ([admitted, *pods, whole], [whole, admitted, *pods], [*pods, admitted, whole]):
        row = jobs(read(tmp_path, *order)).loc["ml/j"]
        assert (row["submit_us"], row["recorded_start_us"], row["recorded_end_us"]) == (0, 32 * MINUTE, 90 * MINUTE)
        assert (row["gpu_milli"], row["partition"], row["priority"]) == (8_000, "team-a", 7)


def test_workloads_of_pods_count_once(tmp_path: Path) -> None:
    """Kueue names the Workload of a group of pods as the group, and the pods are its owners."""
    group = {"kueue.x-k8s.io/pod-group-name": "g"}
    owners = [{"kind": "Pod", "name": name} for name in ("a", "b")]
    of_group, of_pod = workload("g", 1, 2), workload("pod-c-1a2b", 1, 1, owner=("Pod", "c"))
    of_group["metadata"]["ownerReferences"] = owners
    pods = [pod("a", 1, labels=group), pod("b", 1, labels=group), pod("c", 1)]
    for order in ([of_group, of_pod, *pods], [*pods, of_group, of_pod]):
        frame = jobs(read(tmp_path, *order))
        assert frame["gpu_milli"].to_dict() == {"ml/c": 1_000, "ml/g": 2_000}
        assert frame["priority"].tolist() == [7, 7]
    admitted = [condition("Admitted", 1), condition("Finished", 2)]
    alone = workload("pod-c-1a2b", 1, 1, owner=("Pod", "c"), conditions=admitted)
    assert read(tmp_path, alone).frame["job_id"].tolist() == ["ml/c"]


def test_a_pod_without_anything(tmp_path: Path) -> None:
    assert read(tmp_path, {"kind": "Pod", "metadata": metadata("a")}, pod("b", 1)).set_aside == {"never started": 1}


def test_jobsets_their_jobs_and_workloads_count_once(tmp_path: Path) -> None:
    replicated = [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": template(8)}}}]
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata("s"),
        "spec": {"replicatedJobs": replicated},
        "status": {"conditions": [condition("Completed", 70)]},
    }
    labels = {"jobset.sigs.k8s.io/jobset-name": "s"}
    parts = [job(f"s-w-{each}", 8, started=5 + each, labels=labels, parallelism=3, completions=3) for each in range(2)]
    row = jobs(read(tmp_path, *parts, jobset)).loc["ml/s"]
    assert (row["gpu_milli"], row["gpus_per_node"]) == (48_000, 8)
    assert (row["recorded_start_us"], row["recorded_end_us"]) == (6 * MINUTE, 70 * MINUTE)
    assert jobs(read(tmp_path, *parts))["gpu_milli"].to_dict() == {"ml/s": 48_000}
    indexed = [
        pod(
            f"s-{part}-{index}",
            8,
            labels={
                **labels,
                "jobset.sigs.k8s.io/job-index": str(part),
                "batch.kubernetes.io/job-completion-index": str(index),
                "job-name": f"s-w-{part}",
            },
        )
        for part in range(2)
        for index in range(3)
    ]
    assert jobs(read(tmp_path, *indexed, *parts, jobset))["gpu_milli"].to_dict() == {"ml/s": 48_000}


def test_kubeflow_jobs(tmp_path: Path) -> None:
    replicas = {"Master": {"replicas": 1, "template": template(4)}, "Worker": {"replicas": 3, "template": template(4)}}
    training = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata("llm"),
        "spec": {"pytorchReplicaSpecs": replicas},
        "status": {"startTime": moment(5), "completionTime": moment(50), "conditions": [condition("Succeeded", 50)]},
    }
    row = jobs(read(tmp_path, training)).loc["ml/llm"]
    assert (row["gpu_milli"], row["gpus_per_node"], row["status"]) == (16_000, 4, "Succeeded")
    assert row["duration_us"] == 45 * MINUTE


def test_ray_jobs_and_their_clusters_count_once(tmp_path: Path) -> None:
    cluster = {
        "headGroupSpec": {"template": template(None)},
        "workerGroupSpecs": [{"replicas": 2, "template": template(8)}],
    }
    ray_job = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": metadata("tune"),
        "spec": {"rayClusterSpec": cluster},
        "status": {
            "rayClusterName": "tune-c1",
            "startTime": moment(3),
            "endTime": moment(33),
            "jobStatus": "SUCCEEDED",
        },
    }
    ray_cluster = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": metadata("tune-c1", owner=("RayJob", "tune")),
        "spec": cluster,
    }
    trace = read(tmp_path, ray_cluster, ray_job)
    assert trace.frame[["gpu_milli", "gpus_per_node", "duration_us", "status"]].to_numpy().tolist() == [
        [16_000, 8, 30 * MINUTE, "SUCCEEDED"]
    ]


def test_priority_classes(tmp_path: Path) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    trace = read(
        tmp_path, pod("a", 1, spec={"priorityClassName": "high"}), pod("b", 1, spec={"priorityClassName": "low"}), high
    )
    assert jobs(trace)["priority"].to_dict() == {"ml/a": 1000, "ml/b": 0}
    assert any("(low)" in note for note in trace.notes)
    assert trace.set_aside == {"PriorityClass: not read as a job": 1}


def test_gpus_that_cannot_be_read_are_not_told(tmp_path: Path) -> None:
    assert read(tmp_path, pod("a", "many"), pod("b", 1)).set_aside == {"GPUs not told": 1}


def test_odd_values_are_not_told(tmp_path: Path) -> None:
    huge = job("huge", 1_000_000_000, parallelism=1_000_000)
    odd = workload("w", 1, 1, conditions=[condition("Admitted", 1), condition("Finished", 2)])
    odd["metadata"]["ownerReferences"] = [{"kind": ["Job"], "name": {}}, 7]
    trace = read(tmp_path, huge, odd)
    assert trace.set_aside == {"GPUs not told": 1}


@pytest.mark.parametrize("indent", [None, 1])
def test_half_characters_are_replaced(tmp_path: Path, indent: int | None) -> None:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod("a\ud800", 1), indent=indent))
    assert read_trace(file).frame["job_id"].tolist() == ["ml/a?"]


def test_a_list_as_yaml_and_documents_read_alike(tmp_path: Path) -> None:
    objects = [pod("a", 1, node="n1"), pod("b", "2"), job("j", 1)]
    expected = read(tmp_path, *objects).frame
    texts = {
        "list": yaml.safe_dump(
            {"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {"resourceVersion": ""}}
        ),
        "documents": yaml.safe_dump_all(objects, explicit_start=True),
        "indented": yaml.safe_dump({"items": []}).replace("[]", "")
        + "".join(f"  - {json.dumps(each)}\n" for each in objects),
        "lines": "\n".join(map(json.dumps, objects)),
        "json": json.dumps(objects, indent=2),
    }
    for name, text in texts.items():
        file = tmp_path / name
        file.write_text(text)
        pd.testing.assert_frame_equal(read_trace(file, format="kubernetes").frame, expected)
        assert read_trace(file).format == "kubernetes", name


def test_blocks_of_text_are_no_items(tmp_path: Path) -> None:
    single = pod("a", 1)
    single["metadata"]["annotations"] = {"note": "BLOCK"}
    text = yaml.safe_dump({"apiVersion": "v1", "items": [single, pod("b", 1)], "kind": "List"})
    lines = ["|", "first", "- second", "--- third", "items:", "- fourth"]
    file = tmp_path / "export.yaml"
    file.write_text(text.replace("BLOCK", "\n        ".join(lines)))
    assert len(read_trace(file).frame) == 2


def test_one_object(tmp_path: Path) -> None:
    for text in (json.dumps(pod("a", 1), indent=4), yaml.safe_dump(pod("a", 1))):
        file = tmp_path / "pod"
        file.write_text(text)
        assert read_trace(file).rows == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a"', "ends too early"),
        ('{"kind": "List", "items": []}', "no objects"),
        ('{"kind": "List", "items": [{"kind": "Pod"}]}', "record 1: this Pod has no metadata.name"),
        ("kind: List\nitems:\n- kind: Pod\n  metadata: {name: a\n- kind: Pod\n", "bad YAML"),
        ("items:\n- text\n", "line 2: 'text' stands where an object should"),
        ("a,b,c\n1,2,3\n", "stands where an object should"),
        ("\t", "bad YAML"),
        ("{}\n[]\n", "line 2: this is no JSON object"),
    ],
)
def test_broken_files_are_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "export"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(file, format="kubernetes")


_OBJECTS = [
    pod("a", 1, node="n1"),
    pod("b", 2, labels={"ray.io/cluster": "r"}),
    job("j", 1, parallelism=2),
    workload("w", 8, 2),
]
_TEXTS = [
    json.dumps({"items": _OBJECTS, "kind": "List"}),
    yaml.safe_dump_all(_OBJECTS),
    yaml.safe_dump({"items": _OBJECTS}),
]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_the_file_it_balances_or_is_told(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = data.draw(st.sampled_from(_TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 30))
        text = text[:place] + data.draw(st.text(max_size=8)) + text[place + length :]
    file = tmp_path_factory.mktemp("fuzz") / "export"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(UserError):
        balanced(read_trace(file, format="kubernetes"))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_stands_in_a_field(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    objects = json.loads(json.dumps(_OBJECTS))
    for _ in range(data.draw(st.integers(1, 3))):
        value: Any = objects
        while True:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(value[key], dict | list) or not value[key] or data.draw(st.integers(0, 4)) == 0:
                break
            value = value[key]
        if value is not objects:
            value[key] = data.draw(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats()
                | st.text(max_size=5)
                | st.just([])
                | st.just({"a": [1]})
            )
    file = tmp_path_factory.mktemp("fuzz") / "export.json"
    file.write_text(json.dumps({"items": objects}))
    with suppress(UserError):
        balanced(read_trace(file, format="kubernetes"))
