"""Placement by scores: formulas of FGD (ATC 2023) and of what it was compared with, worked out by hand."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest

from analysim.cluster.partitions import PartitionTree
from analysim.cluster.topology import Topology
from analysim.cluster.watched import WatchedCapacity
from analysim.config.cluster import PlacementName
from analysim.config.run import RunConfig
from analysim.engine.admission import Admission
from analysim.jobs import Job, Option, Placement
from analysim.plan.search import find_place
from analysim.policy import PLACERS, Placer
from analysim.policy.board import Piece, board_of
from analysim.policy.fragmentation import Fragmentation, TypicalPod, typical_pods
from analysim.policy.scored import Scored
from tests.builders import cluster, job, run, trace

SCORED = ("fgd", "bestfit", "dotprod", "gpupacking", "gpuclustering")


class Bench:
    """A cluster of nodes on which jobs are placed by hand, one after another."""

    def __init__(self, nodes: list[dict[str, Any]], *rows: dict[str, Any]) -> None:
        types = {f"t{number}": node for number, node in enumerate(nodes)}
        config = cluster(types, {f"r{number}": [(name, 1)] for number, name in enumerate(types)})
        self.topology = Topology(config)
        self.capacity = WatchedCapacity(self.topology)
        frame = trace(*rows)
        admission = Admission(self.topology, PartitionTree(self.topology), False, RunConfig(trace="test"))
        self.workload = admission.admit(frame)
        assert self.workload.rejections == {}

    def job(self, rank: int) -> Job:
        return Job(rank, 0, 0, self.workload.demands[self.workload.demand_of[rank]], self.workload)

    def take(self, rank: int, node: int, mask: int) -> None:
        self.capacity.take(((node, mask),), self.job(rank).demand)

    def placer(self, name: str, seed: int = 0) -> Placer:
        placer = PLACERS[name](seed)
        placer.begin(self.topology, self.workload)
        return placer

    def place(self, name: str, rank: int, seed: int = 0) -> Placement | None:
        demand = self.job(rank).demand
        found: tuple[Placement, Option] | None = find_place(
            self.capacity, self.job(rank), self.placer(name, seed), demand.options
        )
        return None if found is None else found[0]

    def scores(self, name: str, piece: Piece) -> list[int]:
        placer = self.placer(name)
        assert isinstance(placer, Scored)
        return placer.scores(board_of(self.capacity), piece).values.tolist()


def node(gpus: int, cpus: int = 128, gpu_type: str = "A") -> dict[str, Any]:
    return {"gpus": gpus, "cpus": cpus, "memory_gb": 512} | ({"gpu_type": gpu_type} if gpus else {})


WHOLE = Piece(0, 0, 1, 1000, 1)
SHARE = Piece(0, 0, 1, 300, 0)


# -- the formulas --------------------------------------------------------------------------------------------


def test_dotprod_and_bestfit_weigh_cpus_and_gpus() -> None:
    bench = Bench([node(4, 64), node(8, 128)], job(1, 0, 1))
    piece = Piece(32_000, 0, 2, 1000, 2)
    # 100 (1 - (64/128 32/128 + 4/8 2/8) / 2) = 87.5; 100 (1 - (1 32/128 + 1 2/8) / 2) = 75
    assert bench.scores("dotprod", piece) == [87, 75]
    # 100 (1 - 32/128/2 - 2/8/2) = 75; 100 (1 - 96/128/2 - 6/8/2) = 25
    assert bench.scores("bestfit", piece) == [75, 25]


def test_gpupacking_prefers_shared_gpus_then_used_nodes() -> None:
    bench = Bench([node(4), node(8), node(4), node(4)], job(1, 0, 1, 0.55), job(2, 0, 1, 1))
    bench.take(0, 2, 1)  # 450 left of its first GPU
    bench.take(1, 3, 1)
    # unused: 33 - 4 and 33 - 8; 100 - 45 // 10; one free GPU of a used node: 50 - 1
    assert bench.scores("gpupacking", SHARE) == [29, 25, 96, 49]
    assert bench.scores("gpupacking", WHOLE) == [29, 25, 49, 49]
    assert bench.scores("gpupacking", Piece(0, 0, 3, 1000, 3)) == [29, 25, 47, 47]
    assert bench.scores("gpupacking", Piece(1000, 0, 0, 0, -1)) == [0, 0, 0, 0]
    wide = Bench([node(24), node(24)], job(1, 0, 1, 1))
    wide.take(0, 1, 1)
    assert wide.scores("gpupacking", Piece(0, 0, 20, 1000, 20)) == [24, 33]  # max(33 - 24, 24), max(50 - 20, 33)


def test_gpuclustering_keeps_classes_together() -> None:
    bench = Bench([node(8), node(8), node(8), node(8)], job(1, 0, 1, 0.5), job(2, 0, 1, 1), job(3, 0, 1, 2))
    bench.take(0, 1, 1)
    bench.take(0, 2, 1)
    bench.take(1, 2, 2)
    bench.take(2, 3, 3)
    # 25 (8000 - I) / 8000 is 0, 1 (500 taken), 4 (1500), 6 (2000)
    assert bench.scores("gpuclustering", SHARE) == [25, 76, 54, 6]
    assert bench.scores("gpuclustering", WHOLE) == [25, 1, 54, 6]
    assert bench.scores("gpuclustering", Piece(0, 0, 2, 1000, 2)) == [25, 1, 4, 81]


def test_gpuclustering_forgets_jobs_that_left() -> None:
    bench = Bench([node(8), node(8)], job(1, 0, 1, 0.5), job(2, 0, 1, 1))
    bench.take(0, 0, 1)
    bench.take(1, 0, 2)
    assert bench.scores("gpuclustering", WHOLE) == [54, 25]
    bench.capacity.give(((0, 1),), bench.job(0).demand)
    assert bench.scores("gpuclustering", WHOLE) == [78, 25]
    bench.capacity.give(((0, 2),), bench.job(1).demand)
    assert bench.scores("gpuclustering", WHOLE) == [25, 25]
    assert bench.capacity.held == [{}, {}]


PODS = (
    TypicalPod(2000, 600, 1, frozenset({0}), 2),
    TypicalPod(1000, 1000, 1, frozenset({0}), 1),
    TypicalPod(8000, 300, 1, frozenset({0}), 1),
    TypicalPod(1000, 0, 0, frozenset({0, 1}), 1),
)
"""On a node with 4 CPUs: the third finds too few CPUs, the fourth wants no GPU."""


def test_fragmentation_of_a_node_by_hand() -> None:
    measure = Fragmentation(Topology(cluster({"a": node(2)}, {"r": [("a", 1)]})), PODS)
    assert measure.total == 5
    # Residuals 500 and 1000, I = 1500: 500 is lost to the first pod (twice) and the second, all to the others.
    assert measure.of_node(0, 4000, 0b10, [500]) == 2 * 500 + 500 + 1500 + 1500
    # 8 CPUs: the third pod uses both GPUs. 1 CPU: only the second finds enough.
    assert measure.of_node(0, 8000, 0b10, [500]) == 2 * 500 + 500 + 0 + 1500
    assert measure.of_node(0, 1000, 0b10, [500]) == 2 * 1500 + 500 + 1500 + 1500
    # Another type: nobody; nothing idle: nothing lost.
    other = Topology(cluster({"a": node(2), "b": node(2, gpu_type="B")}, {"r": [("a", 1), ("b", 1)]}))
    assert Fragmentation(other, PODS).of_node(1, 8000, 0b11, []) == 5 * 2000
    assert measure.of_node(0, 8000, 0, []) == 0


def test_a_pod_of_two_gpus_is_lost_on_one() -> None:
    topology = Topology(cluster({"a": node(4)}, {"r": [("a", 1)]}))
    measure = Fragmentation(topology, [TypicalPod(0, 1000, 2, frozenset({0}), 1)])
    assert measure.of_node(0, 0, 0b1, [400]) == 1400
    assert measure.of_node(0, 0, 0b11, [400]) == 400


def test_fgd_scores_by_the_gradient_and_chooses_the_gpu() -> None:
    # The workload's pods are PODS: two shares of 600, one GPU, a share of 300 with many CPUs, a CPU job.
    bench = Bench(
        [node(2, 12), node(2, 12, "B")],
        job(1, 0, 1, 0.6, cpus=2, gpu_type="A"),
        job(2, 0, 1, 0.6, cpus=2, gpu_type="A"),
        job(3, 0, 1, 1, cpus=1, gpu_type="A"),
        job(4, 0, 1, 0.3, cpus=8, gpu_type="A"),
        job(5, 0, 1, 0, cpus=1),
        job(6, 0, 1, 0.5, cpus=8, gpu_type="A"),  # takes its part, and is none of the typical: see below
    )
    placer = bench.placer("fgd")
    placer._fragmentation = Fragmentation(bench.topology, PODS)  # type: ignore[attr-defined]
    bench.take(5, 0, 0b01)  # node 0: 4 CPUs, residuals 500 and 1000, F = 4500 / 5
    scores = placer.scores(board_of(bench.capacity), SHARE)  # type: ignore[attr-defined]
    # On GPU 0 (200 and 1000 stay) F is 2*200 + 200 + 1200 + 1200 = 3000 / 5; on GPU 1 (500 and 700)
    # 2*500 + 1200 + 1200 + 1200 = 4600 / 5: 300 go, or 20 come.
    assert scores.values[0] == int(100 / (1 + math.exp(-0.3))) == 57
    assert scores.gpus[0] == 0
    # A whole GPU: 500 stays, all of it lost but to nobody: 5 * 500 = 2500 / 5, so that 400 go.
    assert placer.scores(board_of(bench.capacity), WHOLE).values[0] == int(100 / (1 + math.exp(-0.4)))  # type: ignore[attr-defined]
    # A CPU job that leaves 1 CPU: 2*1500 + 500 + 1500 + 1500 = 6500 / 5, so that 400 come.
    cpu_job = placer.scores(board_of(bench.capacity), Piece(3000, 0, 0, 0, -1))  # type: ignore[attr-defined]
    assert cpu_job.values[0] == int(100 / (1 + math.exp(0.4)))


def test_nothing_gained_and_nothing_lost_is_fifty() -> None:
    bench = Bench([node(2, 64)], job(1, 0, 1, 1, cpus=1), job(2, 0, 1, 0, cpus=1))
    assert bench.scores("fgd", Piece(1000, 0, 0, 0, -1)) == [50]


# -- typical pods --------------------------------------------------------------------------------------------


def test_typical_pods_cover_95_percent_the_most_frequent_first() -> None:
    rows = [job(n, 0, 1, 0.5, cpus=2) for n in range(60)] + [job(100 + n, 0, 1, 2, cpus=8) for n in range(35)]
    rows += [job(200 + n, 0, 1, 1, cpus=3, memory_mb=n) for n in range(4)] + [job(300, 0, 1, 1, cpus=4)]
    bench = Bench([node(8), node(4, gpu_type="B")], *rows)
    any_type = frozenset({0, 1})
    assert typical_pods(bench.topology, bench.workload) == [
        TypicalPod(2000, 500, 1, any_type, 60),
        TypicalPod(8000, 1000, 2, any_type, 35),
    ]
    rows += [job(400, 0, 1, 1, cpus=4, gpu_type="B")]  # 95 of 101 are too few: the next comes in
    bench = Bench([node(8), node(4, gpu_type="B")], *rows)
    assert typical_pods(bench.topology, bench.workload)[2:] == [TypicalPod(3000, 1000, 1, any_type, 4)]


def test_of_equally_frequent_pods_the_larger_comes_first() -> None:
    bench = Bench([node(8)], job(1, 0, 1, 1, cpus=1), job(2, 0, 1, 1, cpus=2), job(3, 0, 1, 0.5, cpus=2))
    pods = typical_pods(bench.topology, bench.workload)
    assert [(pod.cpu_milli, pod.share) for pod in pods] == [(2000, 1000), (2000, 500), (1000, 1000)]


# -- where jobs go -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORED)
def test_ties_go_to_the_first_node_of_one_order_for_each_seed(name: str) -> None:
    bench = Bench([node(8)] * 6, job(1, 0, 1, 1), job(2, 0, 1, 2), job(3, 0, 1, 0.5), job(4, 0, 1, 0, cpus=1))
    chosen = []
    for seed in range(12):
        places = [bench.place(name, rank, seed) for rank in range(4)]
        nodes = {place[0][0] for place in places if place}
        assert len(nodes) == 1 and None not in places  # all jobs find the same node first
        chosen += nodes
    assert len(set(chosen)) > 2  # but each seed another
    assert bench.place(name, 0, 5) == bench.place(name, 0, 5)


@pytest.mark.parametrize("name", sorted(set(PLACERS) - {"fgd", "random"}))
def test_a_share_takes_the_tightest_gpu(name: str) -> None:
    bench = Bench([node(4)], job(1, 0, 1, 0.3), job(2, 0, 1, 0.6), job(3, 0, 1, 0.4))
    bench.take(0, 0, 0b0001)  # 700 left
    bench.take(1, 0, 0b0010)  # 400 left
    bench.take(1, 0, 0b0100)
    assert bench.place(name, 2) == ((0, 0b0010),)
    bench.take(2, 0, 0b0010)
    bench.take(2, 0, 0b0100)
    assert bench.place(name, 2) == ((0, 0b0001),)


@pytest.mark.parametrize("name", [*SCORED, "random"])
def test_nodes_of_all_types_are_compared(name: str) -> None:
    nodes = [node(2, gpu_type=kind) for kind in "ABCDEF"]
    bench = Bench(nodes, job(1, 0, 1, 1), job(2, 0, 1, 1, gpu_type="B|D"), job(3, 0, 1, 0.5, gpu_type="F"))
    places = [{bench.place(name, rank, seed)[0][0] for seed in range(40)} for rank in range(3)]  # type: ignore[index]
    assert places[0] == ({0, 1, 2, 3, 4, 5} if name != "fgd" else {0, 2, 4})  # which fewer of the others may use
    assert places[1] == {1, 3}
    assert places[2] == {5}


@pytest.mark.parametrize("name", SCORED)
def test_cpus_memory_and_gpus_must_do(name: str) -> None:
    nodes = [node(2, 4), {**node(2, 64), "memory_gb": 1}, node(1, 64), node(2, 64)]
    bench = Bench(nodes, job(1, 0, 1, 2, cpus=8, memory_mb=4096))
    assert bench.place(name, 0) == ((3, 0b11),)
    bench.take(0, 3, 0b11)
    assert bench.place(name, 0) is None


@pytest.mark.parametrize("name", SCORED)
def test_gangs_of_several_nodes_go_node_by_node(name: str) -> None:
    bench = Bench(
        [node(4)] * 4 + [node(8, gpu_type="B")],
        job(1, 0, 1, 10, gpu_type="A"),
        job(2, 0, 1, 6, gpus_per_node=2, gpu_type="A"),
        job(3, 0, 1, 8, gpu_type="A|B"),
        job(4, 0, 1, 1),
    )
    wide = bench.place(name, 0)
    assert wide is not None and sorted(mask.bit_count() for _, mask in wide) == [2, 4, 4]
    even = bench.place(name, 1)
    assert even is not None and [mask.bit_count() for _, mask in even] == [2, 2, 2]
    assert bench.place(name, 2) == ((4, 0xFF),)  # fits on one node of type B, needs two of A
    bench.take(3, 4, 1)
    spread = bench.place(name, 2)
    assert spread is not None and [mask for _, mask in spread] == [0xF, 0xF]
    for n in range(3):
        bench.take(3, n, 1)
    assert bench.place(name, 2) is None


def test_a_remainder_goes_where_it_fits_best() -> None:
    bench = Bench([node(4)] * 3, job(1, 0, 1, 2), job(2, 0, 1, 5))
    bench.take(0, 1, 0b11)
    for seed in range(5):
        place = bench.place("bestfit", 1, seed)
        assert place is not None and dict(place)[1] == 0b0100


def test_a_cpu_job_that_takes_nothing_goes_nowhere() -> None:
    bench = Bench([{"gpus": 2, "gpu_type": "A"}], job(1, 0, 1, 0, cpus=3))
    assert bench.place("fgd", 0) == ((-1, 0),)


def test_nodes_without_stated_cpus_take_anything() -> None:
    bench = Bench([{"gpus": 2, "gpu_type": "A"}, node(2, 4)], job(1, 0, 1, 1, cpus=8))
    for name in SCORED:
        assert bench.place(name, 0) == ((0, 1),)


def test_a_copy_is_scored_apart() -> None:
    bench = Bench([node(8), node(8)], job(1, 0, 1, 1))
    before = bench.scores("bestfit", WHOLE)
    twin = bench.capacity.copy()
    twin.take(((0, 1),), bench.job(0).demand)
    placer = bench.placer("bestfit")
    assert isinstance(placer, Scored)
    assert placer.scores(board_of(twin), WHOLE).values[0] > before[0]
    assert placer.scores(board_of(bench.capacity), WHOLE).values.tolist() == before
    assert (bench.capacity.held[0], twin.held[0]) == ({}, {1: 1})


def test_a_strategy_of_a_policy_works_where_the_run_has_another() -> None:
    """It has not begun then, and nobody watches the capacity for it."""
    bench = Bench([node(4), node(2), node(4)], job(1, 0, 1, 2), job(2, 0, 1, 8))
    for name in SCORED:
        assert PLACERS[name]().place(bench.capacity, bench.job(0), bench.job(0).demand.options[0], 0b10) == ((1, 3),)
        wide = PLACERS[name]().place(bench.capacity, bench.job(1), bench.job(1).demand.options[0], 0b011)
        assert wide is None  # no two nodes of one kind


def test_scores_that_were_forgotten_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench([node(8), node(4)], job(1, 0, 1, 1))
    board, placer = board_of(bench.capacity), bench.placer("bestfit")
    assert isinstance(placer, Scored)
    pieces = [Piece(1000 * cpus, 0, 1, 1000, 1) for cpus in range(5)]
    before = [placer.scores(board, piece).values.tolist() for piece in pieces]
    monkeypatch.setattr("analysim.policy.board.MOST_KEPT", 4)
    assert [placer.scores(board, piece).values.tolist() for piece in pieces] == before
    bench.take(0, 0, 1)
    board_of(bench.capacity)
    after = [placer.scores(board, piece).values.tolist() for piece in pieces]
    assert len(board.scores) <= 3 and after != before
    fresh = Bench([node(8), node(4)], job(1, 0, 1, 1))
    fresh.take(0, 0, 1)
    assert after == [fresh.scores("bestfit", piece) for piece in pieces]


# -- random --------------------------------------------------------------------------------------------------


def test_random_draws_node_and_gpu_evenly() -> None:
    bench = Bench([node(2), node(2), node(2, 1)], job(1, 0, 1, 0.5, cpus=2), job(2, 0, 1, 0.6, cpus=0))
    bench.take(1, 0, 1)  # 400 left: not enough
    places = [bench.place("random", 0, seed) for seed in range(600)]
    counts = {place: places.count(place) for place in set(places)}
    assert set(counts) == {((0, 2),), ((1, 1),), ((1, 2),)}  # node 2 has too few CPUs
    # 300 +- 4 sd of a binomial of 600 and 1/2, 150 +- 4 sd of one of 600 and 1/4
    assert abs(counts[((0, 2),)] - 300) < 49 and abs(counts[((1, 1),)] - 150) < 43


def test_random_draws_a_node_for_a_cpu_job() -> None:
    bench = Bench([node(1, 4), node(1, 2), node(1, 4)], job(1, 0, 1, 0, cpus=3))
    assert {bench.place("random", 0, seed) for seed in range(40)} == {((0, 0),), ((2, 0),)}


# -- in a run ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORED)
def test_a_simulation_is_placed_by_scores(name: str) -> None:
    rows = trace(
        job(1, 0, 100, 0.5, cpus=2),
        job(2, 1, 100, 0.5, cpus=2),
        job(3, 2, 100, 4, cpus=2),
        job(4, 3, 10, 8, cpus=2),
        job(5, 4, 10, 0, cpus=1),
    )
    config = cluster({"a": node(4), "b": node(4, gpu_type="B")}, {"r": [("a", 2), ("b", 1)]})
    outcome = run(rows, config, "fifo", placement=name)
    assert set(outcome.jobs["state"]) == {"completed"}
    first, second = outcome.segments(1), outcome.segments(2)
    if name in ("fgd", "bestfit", "gpupacking", "gpuclustering"):
        assert (first[0][4], first[0][5]) == (second[0][4], second[0][5])  # they share a GPU


def test_the_formulas_agree_with_numpy_arrays() -> None:
    """``of`` for many nodes and ``of_node`` for one are the same."""
    random = np.random.default_rng(3)
    measure = Fragmentation(Topology(cluster({"a": node(4)}, {"r": [("a", 1)]})), PODS)
    residual = random.choice([0, 200, 300, 500, 600, 999, 1000], (50, 4))
    cpus = random.choice([0, 1000, 2000, 7999, 8000], 50)
    whole = (residual == 1000).sum(axis=1)
    together = measure.of(np.zeros(50, np.int64), cpus, residual, whole)
    for place, row in enumerate(residual.tolist()):
        partial = [left for left in row if left < 1000]
        assert measure.of_node(0, int(cpus[place]), (1 << int(whole[place])) - 1, partial) == together[place]


def test_the_configuration_takes_the_names_of_all_strategies() -> None:
    assert get_args(PlacementName) == tuple(PLACERS)
