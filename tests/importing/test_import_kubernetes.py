"""Kubernetes nodes, and Kueue's queues as a tree of partitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import ConfigError, UserError
from tests.builders import shared_file
from tests.importing.importing_steps import Imported, bring_in, bring_in_paths

PRODUCT = "nvidia.com/gpu.product"


def node(name: str, gpus: int = 8, product: str = "A100", **more: Any) -> dict[str, Any]:
    resources = {"cpu": "96", "memory": "1056Gi", "nvidia.com/gpu": str(gpus), **more.get("resources", {})}
    labels = {PRODUCT: product, "nvidia.com/gpu.memory": "81920", **more.get("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": more.get("spec", {}),
        "status": {"capacity": more.get("capacity", resources), "allocatable": resources},
    }


def kueue(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def queue(name: str, flavors: dict[str, dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """A queue or (kind=Cohort) a cohort with quota for GPUs and CPUs in each flavor."""
    listed = [
        {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": 9}, {"name": "nvidia.com/gpu", **quota}]}
        for flavor, quota in flavors.items()
    ]
    groups = [{"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": listed}]
    return kueue(spec.pop("kind", "ClusterQueue"), name, resourceGroups=groups, **spec)


def flavor(name: str, product: str) -> dict[str, Any]:
    return kueue("ResourceFlavor", name, nodeLabels={PRODUCT: product})


def bring(folder: Path, *objects: dict[str, Any], as_json: bool = False) -> Imported:
    text = yaml.safe_dump_all(objects)
    if as_json:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return bring_in(folder, "kubernetes", {"objects": text})


@pytest.mark.parametrize("as_json", [False, True], ids=["yaml", "json"])
def test_nodes(tmp_path: Path, as_json: bool) -> None:
    labels = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/rack": "r1"}
    made = bring(tmp_path, node("a", labels=labels), node("b", 4, "T4", labels=labels), as_json=as_json)
    assert made.size == (2, 12)
    kind = made.nodes["a"].type
    assert (kind.gpu_type, kind.gpu_memory_gb, kind.cpus, kind.memory_gb) == ("A100", 80, 96, 1056)
    assert made.racks["b"] == ("r1", "z1")
    assert made.says("racks by label topology.kubernetes.io/rack, pods by topology.kubernetes.io/zone")


def test_equal_racks_of_two_pods_get_names_of_their_own(tmp_path: Path) -> None:
    labels = [
        {"cloud.provider.com/topology-block": block, "cloud.provider.com/topology-rack": "r1"} for block in ("b1", "b2")
    ]
    made = bring(tmp_path, *(node(f"n{index}", labels=each) for index, each in enumerate(labels)))
    assert made.racks == {"n0": ("b1-r1", "b1"), "n1": ("b2-r1", "b2")}


def test_levels_of_kueues_topology(tmp_path: Path) -> None:
    levels = [{"nodeLabel": label} for label in ("zone", "block", "rack", "kubernetes.io/hostname")]
    labels = {"zone": "z", "block": "b", "rack": "r", "kubernetes.io/hostname": "n"}
    made = bring(tmp_path, node("n", labels=labels), kueue("Topology", "default", levels=levels))
    assert made.racks == {"n": ("r", "z-b")}


def test_what_is_no_whole_gpu_is_told(tmp_path: Path) -> None:
    taint = {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}
    made = bring(
        tmp_path,
        node("mig", 0, resources={"nvidia.com/mig-1g.10gb": "7"}),
        node("single", 7, "A100-MIG-1g.10gb"),
        node("shared", 32, "A100-SHARED", labels={"nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "4"}),
        node("head", 0, spec=taint),
        node("cordoned", 8, spec={"unschedulable": True}),
        node("broken", 7, capacity={"nvidia.com/gpu": "8"}),
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    )
    assert {name: each.type.gpus for name, each in made.nodes.items()} == {
        "mig": 0,
        "single": 0,
        "shared": 8,
        "cordoned": 8,
        "broken": 7,
    }
    assert made.nodes["shared"].type.gpu_type == "A100"
    for words in (
        "MIG slices, which",
        "MIG slices as",
        "share GPUs",
        "control plane",
        "cordoned",
        "fewer GPUs",
        "(Pod)",
    ):
        assert made.says(words), words


def test_openb_nodes_are_as_published(tmp_path: Path) -> None:
    made = bring_in_paths(tmp_path, "kubernetes", shared_file("traces/openb/openb_node_list_gpu_node.yaml"))
    listed = bring_in_paths(tmp_path, "openb", shared_file("traces/openb/openb_node_list_gpu_node.csv"))
    assert made.size == listed.size == (1213, 6212)
    assert made.facts["gpus_by_type"] == listed.facts["gpus_by_type"]


NODES = [node("a1"), node("a2"), node("t1", 8, "T4")]
FLAVORS = [flavor("big", "A100"), flavor("small", "T4")]


def test_quotas_by_type_in_a_cohort(tmp_path: Path) -> None:
    made = bring(
        tmp_path,
        *NODES,
        *FLAVORS,
        queue(
            "vision",
            {"big": {"nominalQuota": 8, "borrowingLimit": 4, "lendingLimit": 2}, "small": {"nominalQuota": "8"}},
            cohort="lab",
            preemption={"reclaimWithinCohort": "Any"},
        ),
        queue("nlp", {"big": {"nominalQuota": 4}}, cohortName="lab"),
        kueue("LocalQueue", "q", clusterQueue="vision"),
    )
    lab, vision, nlp = (made.partitions[name] for name in ("lab", "vision", "nlp"))
    assert lab.children == [vision, nlp]
    assert (lab.guarantee, lab.borrow) == ({"A100": 12, "T4": 8}, {"A100": 0, "T4": 0})
    assert (vision.guarantee, vision.borrow, vision.lend) == ({"A100": 8, "T4": 8}, {"A100": 4}, {"A100": 2})
    assert (nlp.guarantee, nlp.borrow) == ({"A100": 4}, {"T4": 0})
    assert (vision.reclaim, nlp.reclaim) == (True, False)
    assert made.says("local queues", "default/q -> vision")
    assert made.says("other resources than whole GPUs", "cpu")


def test_hierarchical_cohorts_add_their_own_quota(tmp_path: Path) -> None:
    made = bring(
        tmp_path,
        *(node(f"a{index}") for index in range(4)),
        flavor("big", "A100"),
        kueue("Cohort", "org"),
        queue("team", {"big": {"nominalQuota": 8, "borrowingLimit": 2}}, kind="Cohort", parentName="org"),
        queue("team", {"big": {"nominalQuota": 4}}, cohort="team"),
        kueue("Cohort", "idle", parent="org"),
    )
    assert made.partitions["org"].children == [made.partitions["team-cohort"]]
    assert (made.partitions["org"].guarantee, made.partitions["org"].borrow) == (12, 0)
    assert (made.partitions["team-cohort"].guarantee, made.partitions["team-cohort"].borrow) == (12, 2)
    assert (made.partitions["team"].guarantee, made.partitions["team"].borrow) == (4, None)
    assert made.says("cohorts without queues", "idle")


def test_a_queue_without_cohort_borrows_nothing(tmp_path: Path) -> None:
    made = bring(tmp_path, *NODES, *FLAVORS, queue("solo", {"big": {"nominalQuota": 8}}))
    assert made.partitions["solo"].borrow == {"A100": 0, "T4": 0}


def test_quotas_beyond_the_nodes_are_limits(tmp_path: Path) -> None:
    made = bring(
        tmp_path,
        node("a1"),
        flavor("big", "A100"),
        queue("x", {"big": {"nominalQuota": 8, "borrowingLimit": 2}}, cohort="lab"),
        queue("y", {"big": {"nominalQuota": 8}}, cohort="lab"),
    )
    assert [made.partitions[name].limit for name in ("lab", "x", "y")] == [16, 10, None]
    assert all(each.guarantee == 0 for each in made.partitions.values())
    assert made.says("became limits", "16 GPUs", "have 8")


def test_a_flavor_of_several_types_counts_all_types_together(tmp_path: Path) -> None:
    any_gpu = kueue("ResourceFlavor", "any")
    made = bring(tmp_path, *NODES, any_gpu, queue("x", {"any": {"nominalQuota": 10}}, cohort="lab"))
    assert (made.partitions["x"].guarantee, made.partitions["lab"].guarantee) == (10, 10)
    assert made.says("more than one GPU type")


def test_a_flavor_that_no_node_matches_is_left_out(tmp_path: Path) -> None:
    made = bring(tmp_path, node("a1"), *FLAVORS, queue("x", {"small": {"nominalQuota": 8}, "big": {"nominalQuota": 2}}))
    assert made.partitions["x"].guarantee == 2
    assert made.says("flavors that no node matches", "x: small")


def test_queues_without_nodes_get_nodes(tmp_path: Path) -> None:
    made = bring(tmp_path, *FLAVORS, queue("x", {"big": {"nominalQuota": 12}, "small": {"nominalQuota": 8}}))
    assert made.facts["gpus_by_type"] == {"A100": 16, "T4": 8}
    assert made.partitions["x"].guarantee == {"A100": 12, "T4": 8}
    assert made.says("assumed: nodes of 8 GPUs")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps(node("a"))[:-20], "line 1: no JSON"),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: [", "no YAML"),
        ("apiVersion: v1\nkind: Node\n", "a Node without a name"),
        ("apiVersion: v1\nkind: List\nitems: [1]\n", "no object with a kind"),
        ("apiVersion: v1\nkind: Pod\n", "no nodes in these files"),
        (yaml.safe_dump(node("a", resources={"cpu": "many"})), "node a: cpu is 'many', no quantity"),
        (yaml.safe_dump(node("a", resources={"nvidia.com/gpu": "1500m"})), "'1500m', no quantity"),
    ],
)
def test_broken(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bring_in(tmp_path, "kubernetes", {"objects": text})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lists_in_lists_do_not_grow_without_end(tmp_path: Path) -> None:
    levels = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 30)]
    text = "apiVersion: v1\nkind: List\na0: &a0 [{kind: Pod}]\n" + "\n".join(levels) + "\nitems: *a29\n"
    with pytest.raises(ConfigError, match="nested too deeply"):
        bring_in(tmp_path, "kubernetes", {"objects": text})


def test_cohorts_in_a_circle(tmp_path: Path) -> None:
    cohorts = [kueue("Cohort", name, parentName=parent) for name, parent in (("a", "b"), ("b", "a"))]
    with pytest.raises(ConfigError, match="is above itself"):
        bring(tmp_path, *NODES, *cohorts, queue("x", {}, cohort="a"))


TEXT = yaml.safe_dump_all([node("a1"), flavor("big", "A100"), queue("x", {"big": {"nominalQuota": 4}}, cohort="lab")])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 3), st.text(max_size=2)), max_size=4))
def test_any_bytes_give_a_cluster_or_one_line(tmp_path: Path, edits: list[tuple[int, int, str]]) -> None:
    text = TEXT
    for place, width, new in edits:
        at = place % len(text)
        text = text[:at] + new + text[at + width :]
    try:
        bring_in(tmp_path, "kubernetes", {"mutated": text})
    except UserError as error:
        assert "\n" not in str(error)
