"""Scores that are kept are those of a fresh start, and fragmentation is what its definition says."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.cluster.partitions import PartitionTree
from analysim.cluster.topology import Topology
from analysim.cluster.watched import WatchedCapacity, class_of
from analysim.config.run import RunConfig
from analysim.engine.admission import Admission
from analysim.jobs import Demand, Job, Placement
from analysim.plan.search import find_place
from analysim.policy import PLACERS
from analysim.policy.board import Board, board_of, piece_of
from analysim.policy.fragmentation import TypicalPod, typical_pods
from analysim.policy.placement import nth_bit
from analysim.policy.scored import Scored
from tests.property.cases import clusters, traces

NAMES = ("fgd", "bestfit", "dotprod", "gpupacking", "gpuclustering", "random", "pack")


def fresh(name: str, topology: Topology, workload: Any) -> Any:
    placer = PLACERS[name](3)
    placer.begin(topology, workload)
    return placer


@settings(max_examples=max(settings.default.max_examples // 2, 30))
@given(st.data(), traces(requests=True), clusters(speeds=False))
def test_kept_scores_are_those_of_a_fresh_start(data: st.DataObject, rows: Any, cluster: Any) -> None:
    topology = Topology(cluster)
    config = RunConfig(trace="test", unknown_partition="root")
    workload = Admission(topology, PartitionTree(topology), False, config).admit(rows)
    if not workload.demands:
        return
    placers = [fresh(name, topology, workload) for name in NAMES]
    scored = [placer for placer in placers if isinstance(placer, Scored)]
    capacity = WatchedCapacity(topology)
    held: list[tuple[Placement, Demand]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        if held and data.draw(st.integers(0, 3)) == 0:
            capacity.give(*held.pop(data.draw(st.integers(0, len(held) - 1))))
        else:
            demand = data.draw(st.sampled_from(workload.demands))
            placer = data.draw(st.sampled_from(placers))
            job = Job(0, 0, 0, demand, workload)
            found = find_place(capacity, job, placer, demand.options)
            first = find_place(capacity, job, PLACERS["first"](), demand.options)
            assert (found is None) == (first is None)
            if found is not None:
                capacity.take(found[0], demand)
                held.append((found[0], demand))
        if data.draw(st.integers(0, 4)) == 0:
            capacity.copy().board = None  # a copy that is thrown away leaves nothing
        check(capacity, scored, workload, held)


def check(capacity: WatchedCapacity, scored: list[Scored], workload: Any, held: list[tuple[Placement, Demand]]) -> None:
    counted: list[dict[int, int]] = [{} for _ in range(capacity.topology.size)]
    for placement, demand in held:
        for node, mask in placement:
            if mask:
                kind = class_of(demand)
                counted[node][kind] = counted[node].get(kind, 0) + mask.bit_count()
    assert [dict(each) for each in capacity.held] == counted
    board = board_of(capacity)
    anew = Board(capacity)
    anew.update(capacity, range(anew.size))
    for demand in workload.demands[:4]:
        piece = piece_of(demand, demand.gpus, capacity.models_resources)
        for placer in scored:
            kept = placer.scores(board, piece)
            other = fresh(placer.name, capacity.topology, workload).scores(anew, piece)
            assert kept.values.tolist() == other.values.tolist(), placer.name
            feasible = kept.values >= 0
            assert kept.gpus[feasible].tolist() == other.gpus[feasible].tolist()
    naive_fragmentation(capacity, board, workload)


def naive_fragmentation(capacity: WatchedCapacity, board: Board, workload: Any) -> None:
    topology = capacity.topology
    pods = typical_pods(topology, workload)
    fgd = fresh("fgd", topology, workload)
    found = fgd._fragmentation.of(board.gpu_type, board.cpu_milli, board.residual, board.whole)
    assert found.tolist() == [
        sum(pod.count * lost(capacity, node, pod) for pod in pods) for node in range(topology.size)
    ]


def lost(capacity: WatchedCapacity, node: int, pod: TypicalPod) -> int:
    """F_n(m) as it is defined."""
    topology = capacity.topology
    residual = [
        1000 if capacity.free[node] >> gpu & 1 else capacity.partial[node].get(gpu, 0)
        for gpu in range(topology.gpu_count[node])
    ]
    idle = sum(residual)
    cpus = topology.cpu_milli[node] < 0 or capacity.cpu_milli[node] >= pod.cpu_milli
    enough = sum(each >= pod.share for each in residual) >= pod.gpus
    if not pod.gpus or not cpus or not enough or topology.gpu_type[node] not in pod.gpu_types:
        return idle
    return sum(each for each in residual if each < pod.share)


@given(st.integers(1, 1 << 70), st.data())
def test_the_nth_bit_is_found(mask: int, data: st.DataObject) -> None:
    bits = [place for place in range(mask.bit_length()) if mask >> place & 1]
    number = data.draw(st.integers(0, len(bits) - 1))
    assert nth_bit(mask, number) == bits[number]
