"""Fragmentation of single situations: one hour in which nothing changes, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysim.metrics import summarise
from analysim.metrics.demand import weight_below
from analysim.metrics.steps import UNCOVERED, distinct, lowest_cover
from tests.unit.metrics_tables import job, node, row, tables


def situation(
    nodes: list[dict[str, Any]], held: dict[str, int], waiting: list[dict[str, Any]], **columns: Any
) -> dict[str, float | None]:
    """Measure a cluster on which one job holds GPUs for an hour while others wait."""
    holder = job(0, 0, sum(held.values()), 3600, start_s=0, end_s=3600, **columns)
    rows = [
        row(0, name, gpus, 0, 3600, cpus=columns.get("cpus", 0.0) * gpus / holder["num_gpus"])
        for name, gpus in held.items()
    ]
    found = summarise(tables(nodes, [holder, *waiting], rows))["fragmentation"]
    assert isinstance(found, dict)
    return found


def waiting(job_id: int, gpus: int, **columns: Any) -> dict[str, Any]:
    return job(job_id, 0, gpus, 60, state="unfinished", **columns)


def test_gang_of_full_nodes_and_one_remainder() -> None:
    # Free: 4, 4, 3, 1. Largest gang: two full nodes and the 3 = 11 of 12.
    nodes = [node(name, 4) for name in "abcd"]
    assert situation(nodes, {"c": 1, "d": 3}, [])["largest_gang_share"] == 11 / 12


def test_gang_keeps_to_one_gpu_type_and_node_size() -> None:
    # Free: 4 + 3 on T4 of 4, 8 on A100, 2 + 2 on T4 of 2: the best of 7, 8 and 4, of 19.
    nodes = [
        node("a", 4),
        node("b", 4),
        node("c", 8, gpu_type="A100"),
        node("d", 2, node_type="small"),
        node("e", 2, node_type="small"),
    ]
    assert situation(nodes, {"b": 1}, [])["largest_gang_share"] == 8 / 19


def test_excess_nodes_are_those_that_packing_would_free() -> None:
    # 1 GPU on each of 3 nodes: the largest alone would hold all 3.
    nodes = [node("a", 2), node("b", 4), node("c", 2)]
    assert situation(nodes, {"a": 1, "b": 1, "c": 1}, [])["excess_nodes"] == 2.0


def test_nothing_free_has_no_shares() -> None:
    found = situation([node("a", 4)], {"a": 4}, [])
    assert found == {
        "unusable_share": None,
        "stranded_gpus": 0.0,
        "largest_gang_share": None,
        "excess_nodes": 0.0,
    }


def test_mix_leaves_out_what_is_beyond_95_percent() -> None:
    # The holder and 18 others ask for 1 GPU, one job for 4: 19 of 20 are 95 %, and all of them fit.
    ones = [waiting(number, 1) for number in range(1, 19)]
    assert situation([node("a", 4)], {"a": 1}, [*ones, waiting(30, 4)])["unusable_share"] == 0.0
    # 18 of 19 are less than 95 %: the job of 4 belongs to the mix and cannot use the 3 free GPUs.
    found = situation([node("a", 4)], {"a": 1}, [*ones[:17], waiting(30, 4)])
    assert found["unusable_share"] == pytest.approx(1 / 19)


def test_wide_job_can_use_full_nodes_of_any_size() -> None:
    # Holder: 1 GPU. The 16-GPU job wants full nodes: 2 of 2 is one, 7 of 8 is not. Mix: half and half.
    nodes = [node("a", 8), node("b", 2)]
    found = situation(nodes, {"a": 1}, [waiting(1, 16)])
    assert found["unusable_share"] == pytest.approx(7 / 2 / 9)
    assert found["stranded_gpus"] == 7.0


def test_gpu_type_decides_who_can_use_a_node() -> None:
    # The holder (any type) can use all 7 free GPUs, the waiting jobs only their own types.
    nodes = [node("a", 4), node("b", 4, gpu_type="A100")]
    found = situation(nodes, {"a": 1}, [waiting(1, 1, gpu_type="A100"), waiting(2, 1, gpu_type="T4|V100")])
    assert found["unusable_share"] == pytest.approx((3 + 4) / 3 / 7)


def test_cpus_are_split_by_gpus_and_rounded_up() -> None:
    # 8 CPUs, of which the holder (1 GPU) has 3: 5 left for 3 free GPUs. A job of 3 GPUs and 5 CPUs asks 1.667
    # a GPU, rounded up to thousandths: 5.001 do not fit. One of 3 GPUs and 4.998 CPUs does.
    nodes = [node("a", 4, cpus=8.0)]
    tight = situation(nodes, {"a": 1}, [waiting(1, 3, cpus=5.0)], cpus=3.0)
    assert tight["unusable_share"] == 0.5
    fits = situation(nodes, {"a": 1}, [waiting(1, 3, cpus=4.998)], cpus=3.0)
    assert fits["unusable_share"] == 0.0


def test_memory_counts_where_it_is_modelled() -> None:
    modelled = situation([node("a", 4, memory_gb=64.0)], {"a": 1}, [waiting(1, 2, memory_gb=65.0)])
    assert modelled["unusable_share"] == 0.5
    unmodelled = situation([node("a", 4)], {"a": 1}, [waiting(1, 2, memory_gb=65.0)])
    assert unmodelled["unusable_share"] == 0.0


def test_stranded_asks_every_partition() -> None:
    nodes = [node("a", 4), node("b", 4)]
    held = {"a": 2, "b": 3}
    # First of p needs 3, more than the 2 and the 1 that are free; the second in line does not count.
    assert situation(nodes, held, [waiting(1, 3), waiting(2, 1)])["stranded_gpus"] == 3.0
    # First of q needs 2: node a is large enough for it.
    assert situation(nodes, held, [waiting(1, 3), waiting(2, 2, partition="q")])["stranded_gpus"] == 1.0
    # gpus_per_node counts, not the whole gang; CPU jobs and rejected ones are not in the way.
    others = [waiting(3, 0, partition="r"), job(4, 0, 1, 60, state="rejected", partition="s")]
    assert situation(nodes, held, [waiting(1, 4, gpus_per_node=2), *others])["stranded_gpus"] == 1.0
    assert situation(nodes, held, others)["stranded_gpus"] == 0.0


def test_stranded_goes_by_the_leaf_that_jobs_are_counted_in() -> None:
    # Partitions p and q of the trace are one pool here, so only job 1, which needs 3, is first of a queue.
    nodes = [node("a", 4)]
    jobs = [waiting(1, 3, leaf="root"), waiting(2, 2, partition="q", leaf="root")]
    assert situation(nodes, {"a": 2}, jobs, leaf="root")["stranded_gpus"] == 2.0


def test_reserved_job_does_not_strand() -> None:
    # Job 1 (4 GPUs) is reserved from the start: nobody is pending, and 2 free GPUs are not stranded.
    jobs = [
        job(0, 0, 2, 3600, start_s=0, end_s=3600),
        job(1, 0, 4, 60, state="unfinished"),
    ]
    rows = [row(0, "a", 2, 0, 3600), row(1, "b", 2, 0, 3600, "hold")]
    run = tables([node("a", 4), node("b", 2)], jobs, rows)
    assert summarise(run)["fragmentation"]["stranded_gpus"] == 0.0


def test_node_that_lost_gpus_is_no_longer_a_full_one() -> None:
    # After half an hour node a keeps 3 of its 4 GPUs: the largest gang is 4 + 4 of 8, then 4 + 3 of 7.
    nodes = [node("a", 4), node("b", 4), node("c", 1, gpu_type="A100"), node("a", 3, time_s=1800.0)]
    found = situation(nodes, {"c": 1}, [])
    assert found["largest_gang_share"] == 1.0
    assert situation([*nodes, node("b", 2, time_s=1800.0)], {"c": 1}, [])[
        "largest_gang_share"
    ] == pytest.approx((1 + 3 / 5) / 2)


def test_lowest_cover_agrees_with_looking_at_every_step() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        size = int(random.integers(1, 40))
        first = random.integers(0, size + 1, 30)
        last = np.minimum(first + random.integers(0, 20, 30), size)
        value = random.integers(0, 100, 30)
        expected = [
            min((v for a, b, v in zip(first, last, value, strict=True) if a <= step < b), default=UNCOVERED)
            for step in range(size)
        ]
        assert lowest_cover(first, last, value, size).tolist() == expected


def test_weight_below_agrees_with_counting() -> None:
    random = np.random.default_rng(2)
    x, y, weight = (random.integers(0, 12, 60) for _ in range(3))
    x_max, y_max = (random.integers(-1, 13, 200) for _ in range(2))
    expected = [int(weight[(x <= a) & (y <= b)].sum()) for a, b in zip(x_max, y_max, strict=True)]
    assert weight_below(x, y, weight, x_max, y_max).tolist() == expected


def test_distinct_sorts_and_drops_repeats() -> None:
    assert distinct(np.array([3, 1, 3, -2, 1])).tolist() == [-2, 1, 3]
    assert distinct(np.array([], np.int64)).tolist() == []
