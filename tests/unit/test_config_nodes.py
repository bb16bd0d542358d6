"""Names in bracket notation, the list of nodes, and the nodes of partitions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from analysim.config.cluster import ClusterConfig
from analysim.config.nodes import (
    ROOT,
    expand_names,
    fold_names,
    gpus_by_type,
    nodes_of,
    partition_nodes,
    partitions_at,
    select_nodes,
    walk_partitions,
)
from analysim.errors import ConfigError


def cluster(racks: list[dict[str, Any]], **fields: Any) -> ClusterConfig:
    types = {"big": {"gpu_type": "A100", "gpus": 8}, "plain": {"gpus": 4}, "cpu": {"cpus": 64}}
    return ClusterConfig.model_validate({"name": "c", "node_types": types, "racks": racks, **fields})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("gpu[001-003,007],x9", ["gpu001", "gpu002", "gpu003", "gpu007", "x9"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("r[0-1]n[1-2]", ["r0n1", "r0n2", "r1n1", "r1n2"]),
        ("[1-2]-a, b", ["1-a", "2-a", "b"]),
        ("b,a", ["b", "a"]),
    ],
)
def test_expand_names(text: str, names: list[str]) -> None:
    assert expand_names(text) == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a name is missing"),
        ("a,,b", "a name is missing"),
        ("gpu[1-3", "'gpu[1-3' is no name"),
        ("gpu1-3]", "'gpu1-3]' is no name"),
        ("gpu[1,[2]]", "'gpu[1' is no name"),
        ("a b", "'a b' is no name"),
        ("gpu[]", "'' is no number or range"),
        ("gpu[a-c]", "'a-c' is no number or range"),
        ("gpu[3-1]", "the range 3-1 runs backwards"),
        ("gpu[0-999999999999]", "it makes more than 100,000 names"),
        ("a[0-9999]b[0-9999]", "it makes more than 100,000 names"),
    ],
)
def test_bad_notation_is_told_in_one_line(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand_names(text)
    assert caught.value.message == f"bad names {text!r}: {why}."
    assert caught.value.remedy == "Write names such as gpu[001-008,012],x3."


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "a"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["n8", "n9", "n10", "n12"], "n[8-10,12]"),
        (["n1", "n01"], "n1,n01"),
        (["x7", "head"], "x7,head"),
        ([], ""),
    ],
)
def test_fold_names(names: list[str], text: str) -> None:
    assert fold_names(names) == text


@given(
    some.lists(some.from_regex(r"[a-c]{0,2}[0-2]{1,3}[a-b]?|head", fullmatch=True), min_size=1, max_size=30)
)
def test_folded_names_expand_to_themselves(names: list[str]) -> None:
    assert expand_names(fold_names(names)) == names


def test_nodes_come_in_file_order_with_names_rack_and_pod() -> None:
    config = cluster(
        [
            {
                "name": "r[1-2]",
                "pod": "east",
                "nodes": [{"type": "big", "count": 2}, {"type": "cpu", "count": 1}],
            },
            {"name": "s", "nodes": [{"type": "plain", "names": "x[9-10]"}, {"type": "plain", "count": 1}]},
        ]
    )
    nodes = nodes_of(config)
    assert [(node.name, node.type_name, node.rack, node.pod) for node in nodes] == [
        ("r1-n00", "big", "r1", "east"),
        ("r1-n01", "big", "r1", "east"),
        ("r1-n02", "cpu", "r1", "east"),
        ("r2-n00", "big", "r2", "east"),
        ("r2-n01", "big", "r2", "east"),
        ("r2-n02", "cpu", "r2", "east"),
        ("x9", "plain", "s", ""),
        ("x10", "plain", "s", ""),
        ("s-n02", "plain", "s", ""),
    ]
    assert nodes[6].type.gpu_type == "gpu", "a type that names no GPU type"
    assert nodes[2].type.gpu_type is None, "a node without GPUs"
    assert gpus_by_type(nodes) == {"A100": 32, "gpu": 12}


def test_pods_pair_with_racks_and_names_are_dealt_to_them() -> None:
    config = cluster([{"name": "r[0-1]", "pod": "p[0-1]", "nodes": [{"type": "big", "names": "g[1-4]"}]}])
    assert [(node.name, node.rack, node.pod) for node in nodes_of(config)] == [
        ("g1", "r0", "p0"),
        ("g2", "r0", "p0"),
        ("g3", "r1", "p1"),
        ("g4", "r1", "p1"),
    ]


BIG = [{"type": "big", "count": 1}]


@pytest.mark.parametrize(
    ("racks", "message", "remedy"),
    [
        (
            [{"name": "r", "nodes": [{"type": "bigg", "count": 1}]}],
            "racks[0].nodes[0].type: 'bigg' is not one of the node_types.",
            "Did you mean 'big'?",
        ),
        (
            [{"name": "r", "nodes": BIG}, {"name": "r", "nodes": BIG}],
            "racks[1].name: rack 'r' is already in racks[0].",
            "List all its nodes in one entry, or rename one of the two.",
        ),
        (
            [{"name": "r", "nodes": [{"type": "big", "names": "a,b,a"}]}],
            "node 'a' is listed twice, in rack 'r' and in rack 'r'.",
            "Every node needs a name of its own.",
        ),
        (
            [{"name": "r", "nodes": BIG}, {"name": "s", "nodes": [{"type": "big", "names": "r"}]}],
            "'r' is the name of a rack and of a node.",
            "Partitions name both: rename one.",
        ),
        (
            [{"name": "r", "nodes": [{"type": "big"}]}],
            "racks[0].nodes[0]: count or names, but neither is given.",
            "Give one of the two.",
        ),
        (
            [{"name": "r", "nodes": [{"type": "big", "count": 2, "names": "a,b"}]}],
            "racks[0].nodes[0]: count or names, but both are given.",
            "Keep one of the two.",
        ),
        (
            [{"name": "r[0-", "nodes": BIG}],
            "racks[0].name: bad names 'r[0-': 'r[0-' is no name.",
            "Write names such as gpu[001-008,012],x3.",
        ),
        (
            [{"name": "r", "nodes": [{"type": "big", "names": "g[2-1]"}]}],
            "racks[0].nodes[0].names: bad names 'g[2-1]': the range 2-1 runs backwards.",
            "Write names such as gpu[001-008,012],x3.",
        ),
        (
            [{"name": "r[0-2]", "pod": "p[0-1]", "nodes": BIG}],
            "racks[0].pod: 2 pods for 3 racks.",
            "Name one pod for all these racks, or one for each; split the entry otherwise.",
        ),
        (
            [{"name": "r[0-1]", "nodes": [{"type": "big", "names": "a,b,c"}]}],
            "racks[0].nodes[0].names: 3 nodes cannot be dealt evenly to 2 racks.",
            "Name as many for each rack, or split the entry.",
        ),
        (
            [{"name": "r[0-9]", "nodes": [{"type": "big", "count": 20000}]}],
            "racks[0].nodes[0].count: more than 100,000 nodes.",
            "Check the count.",
        ),
        (
            [{"name": "r[0-1]", "nodes": [{"type": "big", "count": 50000}, {"type": "cpu", "count": 1}]}],
            "racks[0]: more than 100,000 nodes.",
            "Check the counts.",
        ),
    ],
)
def test_broken_racks(racks: list[dict[str, Any]], message: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        nodes_of(cluster(racks))
    assert (caught.value.message, caught.value.remedy) == (message, remedy)


TREE = [
    {
        "name": "prod",
        "nodes": ["r0", "r1-n01"],
        "children": [{"name": "speech", "nodes": "r0-n00"}, {"name": "vision"}],
    },
    {"name": "rest"},
]


def test_partition_nodes_are_racks_and_nodes_named_or_inherited() -> None:
    config = cluster([{"name": "r[0-1]", "nodes": [{"type": "big", "count": 2}]}], partitions=TREE)
    assert partition_nodes(config, "prod") == [0, 1, 3]
    assert partition_nodes(config, "speech") == [0]
    assert partition_nodes(config, "vision") == [0, 1, 3]
    assert partition_nodes(config, "rest", nodes_of(config)) == [0, 1, 2, 3]
    assert partition_nodes(config, ROOT) == [0, 1, 2, 3]
    with pytest.raises(ConfigError) as caught:
        partition_nodes(config, "pord")
    assert str(caught.value) == "the cluster has no partition 'pord'. Did you mean 'prod'?"


def test_unknown_names_in_a_node_set() -> None:
    nodes = nodes_of(cluster([{"name": "r", "nodes": BIG}]))
    with pytest.raises(ConfigError) as caught:
        select_nodes(nodes, ["r", "r-n01"])
    assert str(caught.value) == "nodes: 'r-n01' is neither a node nor a rack. Did you mean 'r-n00'?"


def test_walk_goes_parents_first() -> None:
    config = cluster([{"name": "r[0-1]", "nodes": [{"type": "big", "count": 2}]}], partitions=TREE)
    assert [[each.name for each in path] for path in walk_partitions(config.partitions)] == [
        ["prod"],
        ["prod", "speech"],
        ["prod", "vision"],
        ["rest"],
    ]


def test_a_change_replaces_the_quota_and_keeps_nodes_it_does_not_name() -> None:
    partition = {
        "name": "p",
        "nodes": "r0",
        "guarantee": 4,
        "limit": 8,
        "changes": [{"time": "2h", "limit": 2, "nodes": "r1"}, {"time": "1h", "guarantee": 6}],
    }
    config = cluster([{"name": "r[0-1]", "nodes": BIG}], partitions=[partition])
    hour_us = 3_600_000_000

    def at(time_us: int) -> tuple[object, object, object]:
        (standing,) = partitions_at(config.partitions, time_us)
        return standing.guarantee, standing.limit, standing.nodes

    assert at(hour_us - 1) == (4, 8, "r0")
    assert at(hour_us) == (6, None, "r0")
    assert at(2 * hour_us) == (0, 2, "r1")
