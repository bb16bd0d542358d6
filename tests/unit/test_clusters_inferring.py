"""The cluster of a trace without one: a sidecar, recorded nodes, or a size inferred from the demand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysim.clusters import (
    cluster_of_nodes,
    describe_cluster,
    find_cluster,
    infer_cluster,
    load_cluster,
    write_cluster,
)
from analysim.clusters.finding import sidecar_of
from analysim.config.cluster import ClusterConfig
from analysim.config.nodes import nodes_of
from analysim.errors import ConfigError, ShelfError, TraceError

HOUR_US = 3_600_000_000
COLUMNS: dict[str, Any] = {
    "submit_us": 0,
    "duration_us": HOUR_US,
    "gpu_milli": 1000,
    "gpus_per_node": 0,
    "gpu_type": "",
    "recorded_node": "",
    "recorded_start_us": -1,
    "recorded_end_us": -1,
}


@dataclass
class Trace:
    """As much of a trace as a cluster is made of."""

    frame: pd.DataFrame
    name: str = "prod"
    path: str = "prod.csv"


def trace_of(*jobs: dict[str, Any]) -> Trace:
    return Trace(pd.DataFrame([{**COLUMNS, **job} for job in jobs], columns=list(COLUMNS)))


def steady(count: int, **job: Any) -> list[dict[str, Any]]:
    """Jobs of one hour, one an hour: count / (count - 1) run on average from first to last submit."""
    return [{"submit_us": index * HOUR_US, **job} for index in range(count)]


def gpus(config: ClusterConfig) -> dict[str, int]:
    return describe_cluster(config)["gpus_by_type"]  # type: ignore[no-any-return]


def test_just_large_enough_for_the_load() -> None:
    # 101 jobs of 64 GPUs and an hour over 100 hours: 64.64 busy GPUs, 80.8 at load 0.8, so 11 nodes
    config = infer_cluster(trace_of(*steady(101, gpu_milli=64_000)))
    assert gpus(config) == {"gpu": 88}
    assert [(rack.name, rack.nodes[0].count) for rack in config.racks] == [("rack0", 8), ("rack1", 3)]
    assert config.name == "prod-inferred"
    assert config.inferred == (
        "11 nodes of 8 GPUs in racks of 8, just large enough for an offered load of 0.8 over the trace's 4.2"
        " days and for the largest job"
    )


def test_an_exact_fit_is_not_rounded_up() -> None:
    # 0.1 h of 8 GPUs per hour and job, 8 at a time: 6.4 busy GPUs are 8 at load 0.8
    jobs = [
        {"submit_us": i * HOUR_US // 8, "duration_us": HOUR_US // 10, "gpu_milli": 8000} for i in range(80)
    ]
    jobs.append({"submit_us": 10 * HOUR_US, "duration_us": 0})
    assert gpus(infer_cluster(trace_of(*jobs))) == {"gpu": 8}


def test_just_large_enough_for_the_largest_job() -> None:
    jobs = [*steady(1000), {"gpu_milli": 130_000, "duration_us": 1}]
    assert gpus(infer_cluster(trace_of(*jobs))) == {"gpu": 136}
    spread = [*steady(1000), {"gpu_milli": 6_000, "gpus_per_node": 2, "duration_us": 1}]
    assert gpus(infer_cluster(trace_of(*spread))) == {"gpu": 24}


def test_nodes_grow_with_the_gpus_a_job_wants_on_one() -> None:
    jobs = [*steady(1000), {"gpu_milli": 32_000, "gpus_per_node": 16, "duration_us": 1}]
    config = infer_cluster(trace_of(*jobs))
    assert [node.type.gpus for node in nodes_of(config)] == [16, 16]
    assert config.inferred.startswith("2 nodes of 16 GPUs in racks of 8,")


def test_jobs_that_come_at_once_are_measured_by_the_longest() -> None:
    # 40 GPU-hours over the longest duration of 2 h: 20 busy GPUs, 25 at load 0.8
    jobs = [{"duration_us": 2 * HOUR_US}, *[{} for _ in range(38)]]
    config = infer_cluster(trace_of(*jobs))
    assert gpus(config) == {"gpu": 32}
    assert "over the longest duration, 2 h, as all jobs come at once, and" in config.inferred


def test_never_larger_than_all_jobs_at_once() -> None:
    jobs = [{"submit_us": 0, "gpu_milli": 8000}, {"submit_us": 1, "gpu_milli": 8000}]
    config = infer_cluster(trace_of(*jobs))
    assert gpus(config) == {"gpu": 16}
    assert config.inferred == "2 nodes of 8 GPUs in racks of 8, just large enough to hold all jobs at once"


def test_gpu_types_get_a_pool_each() -> None:
    jobs = [
        *steady(101, gpu_milli=64_000, gpu_type="V100"),
        *steady(101, gpu_milli=16_000, gpu_type="A100|V100"),
        *steady(101, gpu_milli=10_000),
    ]
    config = infer_cluster(trace_of(*jobs))
    # busy GPUs 64.64, 16.16 and 10.1 shared 4 to 1: 72.72 and 18.18, at load 0.8 90.9 and 22.7
    assert gpus(config) == {"A100": 24, "V100": 96}
    assert config.inferred.startswith("3 A100 nodes of 8 GPUs and 12 V100 nodes of 8 GPUs in racks of 8, ")
    assert [rack.name for rack in config.racks] == ["rack0", "rack1", "rack2"]


def test_a_wide_job_without_a_type_fits_into_one_pool() -> None:
    jobs = [
        *steady(1000, gpu_type="V100"),
        *steady(1000, gpu_type="T4"),
        {"gpu_milli": 64_000, "duration_us": 1},
    ]
    assert gpus(infer_cluster(trace_of(*jobs))) == {"T4": 64, "V100": 8}


@pytest.mark.parametrize(
    "jobs",
    [
        [],
        [{"gpu_milli": 0}],
        [{"duration_us": 0}],
        [{"gpu_milli": 500}],
        [{"duration_us": 0, "gpu_type": "A"}, {"duration_us": 0}],
    ],
    ids=["no jobs", "CPU jobs only", "no work", "half a GPU", "no work, typed"],
)
def test_the_smallest_cluster_is_one_node(jobs: list[dict[str, Any]]) -> None:
    assert len(nodes_of(infer_cluster(trace_of(*jobs)))) == 1


def test_a_cluster_beyond_belief_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        infer_cluster(trace_of({"gpu_milli": 900_000_000}))
    assert caught.value.message == "prod.csv: a cluster for it would have 112,500 nodes."
    assert caught.value.remedy == (
        "Check the units of submit_time and duration, or name a cluster with --topology."
    )


def ran(node: str, start_h: float, gpus: float, **job: Any) -> dict[str, Any]:
    start_us = round(start_h * HOUR_US)
    return {"recorded_node": node, "recorded_start_us": start_us, "gpu_milli": round(gpus * 1000), **job}


def sizes(config: ClusterConfig | None) -> dict[str, tuple[str | None, int]]:
    assert config is not None
    return {node.name: (node.type.gpu_type, node.type.gpus) for node in nodes_of(config)}


def test_recorded_nodes_have_the_most_gpus_held_at_one_time() -> None:
    config = cluster_of_nodes(
        trace_of(
            ran("n10", 0, 2),
            ran("n10", 0.5, 1),  # three at a time: 4
            ran("n9", 0, 4),
            ran("n9", 1, 4),  # one after the other: 4
            ran("m", 0, 4),
            ran("m", 1, 4, recorded_end_us=HOUR_US * 3),
            ran("m", 2, 5),  # nine at a time: 16
            {"gpu_milli": 0},  # CPU jobs need no node
        )
    )
    assert sizes(config) == {"m": ("gpu", 16), "n9": ("gpu", 4), "n10": ("gpu", 4)}
    assert config is not None
    assert [rack.name for rack in config.racks] == ["recorded"]
    assert config.inferred == (
        "the 3 nodes recorded in the trace, each with the most GPUs its jobs held at one time, rounded up to"
        " 1, 2, 4, 8 or a multiple of 8"
    )


def test_gpus_are_spread_over_the_nodes_of_a_job() -> None:
    config = cluster_of_nodes(trace_of(ran("a,b", 0, 3), ran("c[1-4]", 0, 32), ran("a", 0, 0.5)))
    assert sizes(config) == {"a": ("gpu", 2), "b": ("gpu", 2)} | {f"c{i}": ("gpu", 8) for i in range(1, 5)}


def test_jobs_without_a_recorded_start_count_alone() -> None:
    jobs = [{"recorded_node": "a", "gpu_milli": 3000}] * 5
    assert sizes(cluster_of_nodes(trace_of(*jobs))) == {"a": ("gpu", 4)}


def test_a_nodes_gpu_type_is_what_most_of_its_jobs_name() -> None:
    config = cluster_of_nodes(
        trace_of(
            ran("a", 0, 1, gpu_type="T4|V100"),
            ran("a", 1, 1, gpu_type="T4|V100"),
            ran("a", 2, 1, gpu_type="V100"),
            ran("b", 0, 1, gpu_type="T4|V100"),
            ran("c", 0, 1),
        )
    )
    assert sizes(config) == {"a": ("V100", 1), "b": ("T4", 1), "c": ("gpu", 1)}


def test_every_gpu_job_must_have_a_node() -> None:
    assert cluster_of_nodes(trace_of(ran("a", 0, 1), {})) is None
    assert cluster_of_nodes(trace_of({"gpu_milli": 0, "recorded_node": "a"})) is None


def test_a_recorded_node_that_is_no_name() -> None:
    with pytest.raises(TraceError) as caught:
        cluster_of_nodes(trace_of(ran("n[1-", 0, 1)))
    assert caught.value.message == "prod.csv: column node: bad names 'n[1-': 'n[1-' is no name."
    assert caught.value.remedy == (
        "Write names such as gpu[001-008,012],x3. Or name a cluster with --topology."
    )


@pytest.mark.parametrize("jobs", [steady(20, gpu_type="A100"), [ran("n[1-3]", 0, 24), ran("n5", 1, 2)]])
def test_what_was_inferred_can_be_written_edited_and_found(
    tmp_path: Path, jobs: list[dict[str, Any]]
) -> None:
    trace = trace_of(*jobs)
    trace.path = str(tmp_path / "prod.csv.gz")
    config, _ = find_cluster(trace)
    write_cluster(config, sidecar_of(trace.path))
    found, origin = find_cluster(trace)
    assert found == config
    assert origin == f"{tmp_path}/prod.topology.yaml, beside the trace"


def test_the_order_in_which_a_cluster_is_looked_for(tmp_path: Path) -> None:
    def origin(topology: str | None, *jobs: dict[str, Any]) -> tuple[str, str]:
        trace = trace_of(*jobs)
        trace.path = str(tmp_path / "prod.csv")
        config, text = find_cluster(trace, topology)
        return config.name, text

    assert origin(None, {}) == ("prod-inferred", "inferred from the trace's demand")
    assert origin(None, ran("a", 0, 1)) == ("prod-recorded", "nodes recorded in the trace")
    sidecar = tmp_path / "prod.topology.yaml"
    sidecar.write_text(
        "name: beside\nnode_types: {n: {gpus: 1}}\nracks: [{name: r, nodes: [{type: n, count: 1}]}]\n"
    )
    assert origin(None, ran("a", 0, 1)) == ("beside", f"{sidecar}, beside the trace")
    named = tmp_path / "named.yaml"
    named.write_text(sidecar.read_text().replace("beside", "named"))
    assert origin(str(named), ran("a", 0, 1)) == ("named", str(named))
    assert load_cluster(named).name == "named"
    with pytest.raises(ShelfError, match="No topology is called 'no-such-cluster'"):
        origin("no-such-cluster", {})


@pytest.mark.parametrize(
    ("trace", "sidecar"),
    [
        ("prod.csv", "prod.topology.yaml"),
        ("data/prod.csv.gz", "data/prod.topology.yaml"),
        ("prod.parquet", "prod.topology.yaml"),
        ("prod.2024.csv", "prod.2024.topology.yaml"),
    ],
)
def test_the_sidecar_stands_beside_the_trace(trace: str, sidecar: str) -> None:
    assert sidecar_of(trace) == Path(sidecar)
