"""Topology files: broken ones with their exact messages, written ones read back equal, the shipped ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysim import shelf
from analysim.clusters import describe_cluster, draw_cluster, load_cluster, write_cluster
from analysim.config.cluster import (
    ClusterConfig,
    Links,
    NodeGroup,
    NodeType,
    Partition,
    Rack,
    RunningLimit,
    SpanPenalty,
)
from analysim.config.loading import Dumper
from analysim.config.nodes import nodes_of, partition_nodes
from analysim.errors import AnalysimError, ConfigError

SHIPPED = Path(__file__).parents[2] / "topologies"


def topology(**fields: Any) -> dict[str, Any]:
    """Two racks of two nodes with 8 A100 each, and one rack of one node with 4 T4; 36 GPUs."""
    return {
        "name": "c",
        "node_types": {"a": {"gpu_type": "A100", "gpus": 8}, "t": {"gpu_type": "T4", "gpus": 4}},
        "racks": [
            {"name": "r[0-1]", "nodes": [{"type": "a", "count": 2}]},
            {"name": "s", "nodes": [{"type": "t", "count": 1}]},
        ],
        **fields,
    }


def written(tmp_path: Path, data: dict[str, Any]) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(yaml.dump(data, Dumper=Dumper))
    return path


def tree(*partitions: dict[str, Any]) -> dict[str, Any]:
    return topology(partitions=[{"name": f"p{index}", **each} for index, each in enumerate(partitions)])


BROKEN = [
    (topology(rack=[]), "unknown key 'rack'.", "Did you mean 'racks'?"),
    (
        topology(racks=[{"name": "r", "nodes": [{"type": "A", "count": 1}]}]),
        "racks[0].nodes[0].type: 'A' is not one of the node_types.",
        "Did you mean 'a'?",
    ),
    (
        topology(node_types={"a": {"gpu_type": "A100|T4", "gpus": 8}, "t": {"gpus": 1}}),
        "node_types.a.gpu_type: 'A100|T4' has a '|'.",
        "A node has one GPU type; jobs name alternatives with '|'.",
    ),
    (topology(speeds={"A10": 1}), "speeds: no node type has the GPU type 'A10'.", "Did you mean 'A100'?"),
    (
        tree({"limit": {"V100": 8}}),
        "partition 'p0', limit: no node type has the GPU type 'V100'.",
        "Did you mean 'A100'?",
    ),
    (
        tree({"changes": [{"time": 60, "lend": {"H200": 8}}]}),
        "partition 'p0', lend: no node type has the GPU type 'H200'.",
        "Known: A100, T4.",
    ),
    (
        tree({"name": "root"}),
        "partition 'root': this name stands for the whole cluster.",
        "Choose another name.",
    ),
    (
        tree({"name": "x", "children": [{"name": "y"}]}, {"name": "y"}),
        "partition 'y' is there twice.",
        "Jobs name a partition without its parents: every name in the tree must differ.",
    ),
    (
        tree({"nodes": "r[0-2]"}),
        "partition 'p0': nodes: 'r2' is neither a node nor a rack.",
        "Known: r0, r1, s, r0-n00, r0-n01, r1-n00, r1-n01, s-n00.",
    ),
    (
        tree({"nodes": ["r0", "r1-n[0"]}),
        "partition 'p0': bad names 'r1-n[0': 'r1-n[0' is no name.",
        "Write names such as gpu[001-008,012],x3.",
    ),
    (
        tree({"nodes": "r0", "children": [{"name": "k", "nodes": "r0,s"}]}),
        "partition 'k': node 's-n00' is not one of its parent 'p0'.",
        "A child's nodes lie within its parent's.",
    ),
    (
        tree({"guarantee": 16, "limit": 8}),
        "partition 'p0' guarantees 16 GPUs but limits them to 8.",
        "Raise the limit or lower the guarantee.",
    ),
    (
        tree({"guarantee": {"A100": 16}, "limit": {"A100": 8}}),
        "partition 'p0' guarantees 16 A100 but limits them to 8.",
        "Raise the limit or lower the guarantee.",
    ),
    (
        tree({"guarantee": 16, "limit": {"A100": 8, "T4": 4}}),
        "partition 'p0' guarantees 16 GPUs but limits them to 12.",
        "Raise the limit or lower the guarantee.",
    ),
    (
        tree({"guarantee": 16, "children": [{"name": "k", "guarantee": 10}, {"name": "l", "guarantee": 8}]}),
        "partition 'p0' guarantees 16 GPUs, its children 'k', 'l' 18.",
        "Raise the guarantee of 'p0' or lower theirs.",
    ),
    (
        tree({"guarantee": {"A100": 12, "T4": 4}, "children": [{"name": "k", "guarantee": {"A100": 13}}]}),
        "partition 'p0' guarantees 12 A100, its children 'k' 13.",
        "Raise the guarantee of 'p0' or lower theirs.",
    ),
    (
        tree({"nodes": "r0", "guarantee": 17}),
        "partition 'p0': 17 GPUs guaranteed, but the nodes have 16.",
        "Lower the guarantees or add nodes.",
    ),
    (
        tree({"guarantee": {"T4": 8}}),
        "partition 'p0': 8 T4 guaranteed, but the nodes have 4.",
        "Lower the guarantees or add nodes.",
    ),
    (
        tree({"guarantee": 20}, {"guarantee": 20}),
        "partitions 'p0', 'p1': 40 GPUs guaranteed, but the nodes have 36.",
        "Lower the guarantees or add nodes.",
    ),
    (
        tree({"nodes": "r0,r1-n00", "guarantee": 8}, {"nodes": "r1", "guarantee": 8}),
        "partitions 'p0' and 'p1' both guarantee GPUs of node 'r1-n00' but have different nodes.",
        "Give both the same nodes, or separate ones, or make one a child of the other.",
    ),
    (
        tree({"guarantee": 8, "changes": [{"time": "2h", "guarantee": 40}]}),
        "partition 'p0': 40 GPUs guaranteed, but the nodes have 36 from 2 h on.",
        "Lower the guarantees or add nodes.",
    ),
    (
        tree({"changes": [{"time": "1h", "limit": 4}, {"time": 3600, "limit": 8}]}),
        "partition 'p0': two changes at 60 min.",
        "Merge them into one.",
    ),
]


@pytest.mark.parametrize(("data", "message", "remedy"), BROKEN)
def test_broken_topologies(tmp_path: Path, data: dict[str, Any], message: str, remedy: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(ConfigError) as caught:
        load_cluster(path)
    assert (caught.value.message, caught.value.remedy) == (f"{path}: {message}", remedy)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "data",
    [
        tree({"nodes": "r[0-1]"}, {"nodes": "r1,s"}),
        tree({"nodes": "r0", "limit": 8}, {"limit": 20}),
        tree({"guarantee": 18}, {"guarantee": 18}),
        tree({"nodes": "r0", "guarantee": 16}, {"nodes": "r1", "guarantee": {"A100": 16}}),
        tree({"guarantee": 16, "limit": {"A100": 8}}),
        tree({"guarantee": {"A100": 8, "T4": 4}, "children": [{"name": "k", "guarantee": 12}]}),
        tree(
            {"guarantee": 20, "changes": [{"time": 60, "guarantee": 0}]},
            {"changes": [{"time": 60, "guarantee": 36}]},
        ),
    ],
    ids=["overlap", "limits", "one pool", "apart", "unbounded type", "mixed amounts", "handed over"],
)
def test_sound_partitions(tmp_path: Path, data: dict[str, Any]) -> None:
    assert load_cluster(written(tmp_path, data)).partitions[0].name == "p0"


def test_a_written_cluster_is_read_back_equal(tmp_path: Path) -> None:
    data = topology(
        description="a long description, " * 20,
        source="6214e9",
        inferred="by hand",
        speeds={"A100": 1.0, "T4": 0.25},
        span_penalty={"rack": 0.95},
        links={"rack_gbps": 400},
        partitions=[
            {
                "name": "6214e9",
                "nodes": ["r0", "r1-n[00-01]"],
                "guarantee": {"A100": 8},
                "time_limit": "1h0.5s",
                "limits": {"tenant": {"gpus": 4}},
                "changes": [{"time": "1d", "limit": 4, "nodes": "r1"}],
                "children": [{"name": "on", "reclaim": True, "time_limit": "90m"}],
            }
        ],
    )
    config = load_cluster(written(tmp_path, data))
    target = tmp_path / "out.yaml"
    write_cluster(config, target)
    assert load_cluster(target) == config
    text = target.read_text()
    assert text.startswith("# AnalySIM cluster: 5 nodes; GPUs: 32 A100, 4 T4.\n# Nobody has described")
    assert "time_limit: 3600.5\n" in text
    assert "time_limit: 5400\n" in text


def test_writing_over_a_file_needs_force(tmp_path: Path) -> None:
    config = ClusterConfig.model_validate(topology())
    target = tmp_path / "prod.topology.yaml"
    target.write_text("name: edited for hours\n")
    with pytest.raises(ConfigError) as caught:
        write_cluster(config, target)
    assert str(caught.value) == f"{target} is there already. Choose another name, or replace it with --force."
    assert target.read_text() == "name: edited for hours\n"
    write_cluster(config, target, force=True)
    assert load_cluster(target) == config


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(AnalysimError) as caught:
        write_cluster(ClusterConfig.model_validate(topology()), tmp_path / "gone" / "c.yaml")
    assert str(caught.value) == (
        f"{tmp_path}/gone/c.yaml cannot be written: No such file or directory."
        " Check the folder, its rights and its space."
    )
    assert caught.value.exit_code == 1


SIZES = {
    "gpu-1152": (144, 1152, 12, 3, 11),
    "helios-venus": (133, 1064, 17, 0, 0),
    "helios-venus-vc": (133, 1064, 17, 0, 25),
    "mixed": (54, 288, 9, 2, 0),
    "philly": (356, 2848, 45, 0, 15),
    "philly-640": (80, 640, 10, 0, 0),
    "tiny": (4, 16, 2, 0, 0),
    "venus-640": (80, 640, 10, 0, 0),
}
"""Nodes, GPUs, racks, pods and partitions of each shipped topology, as its description promises."""


def test_every_shipped_topology_is_listed_here() -> None:
    assert sorted(path.stem for path in SHIPPED.glob("*.yaml")) == sorted(SIZES)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_shipped_topologies(tmp_path: Path, name: str) -> None:
    config = load_cluster(shelf.find("topologies", str(SHIPPED / f"{name}.yaml")))
    facts = describe_cluster(config)
    counts = (facts["nodes"], facts["gpus"], facts["racks"], facts["pods"], len(facts["partitions"]))
    assert counts == SIZES[name]
    assert config.name == name
    assert config.description
    assert config.source
    assert not config.inferred
    write_cluster(config, tmp_path / "copy.yaml")
    assert load_cluster(tmp_path / "copy.yaml") == config


def test_the_quotas_of_venus_add_up_to_the_maxima_of_its_virtual_clusters() -> None:
    config = load_cluster(SHIPPED / "helios-venus-vc.yaml")
    limits = {partition.name: partition.limit for partition in config.partitions}
    assert sum(limit for limit in limits.values() if isinstance(limit, int)) == 1680
    assert (limits["vcJsw"], limits["vcgkz"], limits["vcIya"]) == (256, 8, 0)


def test_every_virtual_cluster_of_philly_has_nodes_of_its_own() -> None:
    config = load_cluster(SHIPPED / "philly.yaml")
    nodes = nodes_of(config)
    owned = [partition_nodes(config, partition.name, nodes) for partition in config.partitions]
    assert sorted(index for indices in owned for index in indices) == list(range(356))
    assert {p.name: 8 * len(indices) for p, indices in zip(config.partitions, owned, strict=True)} == {
        "6214e9": 512,
        "7f04ca": 256,
        "11cb48": 128,
        "b436b2": 512,
        "ee9e8c": 512,
        "e13805": 128,
        "6c71a0": 256,
        "2869ce": 128,
        "ed69ec": 64,
        "103959": 64,
        "0e4a51": 256,
        "23dbec": 8,
        "51b7ef": 8,
        "795a4c": 8,
        "925e2b": 8,
    }


def test_the_quota_tree_of_the_large_cluster_promises_every_gpu_once() -> None:
    config = load_cluster(SHIPPED / "gpu-1152.yaml")
    assert sum(partition.guarantee for partition in config.partitions) == 1152  # type: ignore[misc]
    for partition in config.partitions:
        assert sum(child.guarantee for child in partition.children) == partition.guarantee  # type: ignore[misc]


def test_the_reference_shows_a_file_that_works_and_names_every_key(tmp_path: Path) -> None:
    text = (SHIPPED.parent / "docs" / "reference" / "topology-file.md").read_text()
    path = tmp_path / "example.yaml"
    path.write_text(text.split("```yaml\n")[1].split("```")[0])
    assert describe_cluster(load_cluster(path))["gpus"] == 64
    for model in (ClusterConfig, NodeType, Rack, NodeGroup, Links, SpanPenalty, Partition, RunningLimit):
        for key in model.model_fields:
            assert re.search(rf"\b{key}\b", text), f"{key} of {model.__name__} is not in the reference"


def test_description_counts_what_is_there() -> None:
    data = tree({"nodes": "r0", "guarantee": 8, "children": [{"name": "k", "limit": {"A100": 4}}]})
    data["node_types"]["a"] |= {"cpus": 64, "memory_gb": 512}
    facts = describe_cluster(ClusterConfig.model_validate(data))
    assert facts["gpus_by_type"] == {"A100": 32, "T4": 4}
    assert facts["nodes_by_type"] == {"a": 4, "t": 1}
    assert (facts["cpus"], facts["memory_gb"]) == (256, 2048)
    assert [(p["name"], p["parent"], p["leaf"], p["nodes"], p["gpus"]) for p in facts["partitions"]] == [
        ("p0", None, False, 2, 16),
        ("k", "p0", True, 2, 16),
    ]
    assert describe_cluster(ClusterConfig.model_validate(topology()))["cpus"] is None


def test_a_cluster_is_drawn_as_a_tree() -> None:
    data = tree(
        {"nodes": "r0", "guarantee": 8, "children": [{"name": "k", "limit": {"A100": 4}, "time_limit": "2h"}]}
    )
    data["racks"][0]["pod"] = "east"
    assert draw_cluster(ClusterConfig.model_validate(data)).splitlines() == [
        "c: 5 nodes, 36 GPUs (32 A100, 4 T4)",
        "",
        "racks",
        "  r[0-1] in east, each 2 x a (8 A100)",
        "  s, 1 x t (4 T4)",
        "",
        "partitions",
        "  p0                         2 nodes      16 GPUs  guarantee 8",
        "    k                        2 nodes      16 GPUs  limit 4 A100, time limit 2 h",
    ]
