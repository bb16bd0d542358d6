"""The books recomputed from scratch after every instant, for ``--check`` and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analysim.cluster.capacity import bits_of
from analysim.errors import InvariantError
from analysim.jobs import TRANSITIONS, Demand, Job, Placement, State
from analysim.units import GPU_MILLI

if TYPE_CHECKING:
    from analysim.engine.simulation import Simulation


class Auditor:
    """Checks that no GPU is held twice or lost, that every index agrees, and that states follow the table."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._states: dict[int, State] = {}

    def check(self) -> None:
        """Recompute and compare; raise ``InvariantError`` at the first difference."""
        self._check_gpus()
        self._check_levels()
        self._check_accounts()
        self._check_queues()
        self._check_states()
        if self._simulation.workload.elastic:
            self._check_sizes()

    def _fail(self, what: str) -> None:
        raise InvariantError(f"at {self._simulation.books.now / 1e6:.6f} s: {what}")

    def _holdings(self) -> Iterator[tuple[Job, Placement]]:
        """Everything that is held: by running jobs, by jobs that save, by reservations."""
        books = self._simulation.books
        for job in books.running.values():
            yield job, job.placement or ()
        for release in books.releases.values():
            yield release.job, tuple((node, mask) for node, mask in release.placement)
        for reservation in books.reserved.values():
            yield reservation.job, tuple((node, mask) for node, mask, _ in reservation.held)

    def _check_gpus(self) -> None:
        books = self._simulation.books
        held = [0] * books.topology.size
        shares: dict[tuple[int, int], int] = {}
        for job, placement in self._holdings():
            for node, mask in placement:
                if node < 0:
                    continue
                if job.demand.sharing:
                    shares[node, mask] = shares.get((node, mask), 0) + job.demand.share
                    continue
                if held[node] & mask:
                    self._fail(f"job {job.id}: GPUs of node {books.topology.nodes[node].name} are held twice")
                held[node] |= mask
        for (node, mask), share in shares.items():
            left = books.capacity.partial[node].get(mask.bit_length() - 1, 0)
            if held[node] & mask or share + left != GPU_MILLI:
                self._fail(f"node {books.topology.nodes[node].name}: shares and what is left of them are not a GPU")
            held[node] |= mask
        if sum(map(len, books.capacity.partial)) > len(shares):
            self._fail("a share is held of a GPU by nobody")
        for node, mask in enumerate(held):
            if mask ^ books.capacity.free[node] != (1 << books.topology.gpu_count[node]) - 1:
                self._fail(f"node {books.topology.nodes[node].name}: held and free GPUs are not all its GPUs")

    def _check_levels(self) -> None:
        capacity = self._simulation.books.capacity
        for levels, mask in zip(capacity.levels, capacity.topology.type_masks, strict=True):
            seen = 0
            for count, nodes in enumerate(levels):
                seen |= nodes
                for node in bits_of(nodes):
                    if capacity.free[node].bit_count() != count:
                        self._fail(f"node {node} stands at level {count} of the index")
            if seen != mask:
                self._fail("the index has lost a node")

    def _check_accounts(self) -> None:
        books = self._simulation.books
        expected = {leaf.name: 0 for leaf in books.tree.all}
        for demand, amount in self._charged():
            for leaf in demand.leaf.path:
                expected[leaf.name] += amount
        for leaf in books.tree.all if books.tree.bounded else ():
            if leaf.total.usage != expected[leaf.name]:
                self._fail(
                    f"partition {leaf.name!r} counts {leaf.total.usage / GPU_MILLI} GPUs, "
                    f"its jobs hold {expected[leaf.name] / GPU_MILLI}"
                )

    def _charged(self) -> Iterator[tuple[Demand, int]]:
        books = self._simulation.books
        for job in books.running.values():
            yield job.demand, job.demand.gpu_milli
        for reservation in books.reserved.values():
            yield reservation.job.demand, reservation.job.demand.gpu_milli
        for release in books.releases.values():
            if release.charged:
                demand = release.job.demand
                yield demand, sum(mask.bit_count() for mask in release.masks.values()) * demand.share

    def _check_queues(self) -> None:
        books = self._simulation.books
        waiting = [job for job in books.waiting.values() if job.state is State.PENDING]
        fresh = [job for job in books.fresh if job.state is State.PENDING]
        if len(waiting) + len(fresh) != books.pending_count:
            self._fail(f"{books.pending_count} jobs are counted as waiting, {len(waiting) + len(fresh)} wait")
        for index in books.waiting_indexes.values():
            if len(index) != len(books.waiting):
                self._fail("an order of waiting jobs has lost a job")
        for running in books.running_indexes.values():
            if len(running) != len(books.running):
                self._fail("an order of running jobs has lost a job")

    def _check_states(self) -> None:
        books = self._simulation.books
        live = {job.rank: job for job in [*books.waiting.values(), *books.fresh, *books.running.values()]}
        live.update((reservation.job.rank, reservation.job) for reservation in books.reserved.values())
        live.update((rank, release.job) for rank, release in books.releases.items())
        for rank, job in live.items():
            before = self._states.get(rank, State.PENDING)
            if job.state is not before and not self._reachable(before, job.state):
                self._fail(f"job {job.id} went from {before.value} to {job.state.value}")
        self._states = {rank: job.state for rank, job in live.items()}

    def _check_sizes(self) -> None:
        """A running job has the GPUs that its demand says, and their speed; a waiting one asks as the trace does."""
        books = self._simulation.books
        for job in books.running.values():
            placement, demand = job.placement or (), job.demand
            if sum(mask.bit_count() for _, mask in placement) != demand.gpus:
                self._fail(f"job {job.id} has a placement of other than {demand.gpus} GPUs")
            if demand.elastic is not None and not demand.elastic.takes(demand.gpus):
                self._fail(f"job {job.id} runs on {demand.gpus} GPUs, which it may not")
            if job.speed != books.speeds.speed(job, placement):
                self._fail(f"job {job.id} does not run at the speed of its {demand.gpus} GPUs")
        for job in [*books.waiting.values(), *books.fresh]:
            if job.state is State.PENDING and job.demand.base is not job.demand:
                self._fail(f"job {job.id} waits for {job.demand.gpus} GPUs instead of {job.demand.asked}")

    @staticmethod
    def _reachable(before: State, after: State) -> bool:
        """Tell whether one instant may lead there: at most two rows of the table, as a start may follow a stop."""
        return after in TRANSITIONS[before] or any(after in TRANSITIONS[middle] for middle in TRANSITIONS[before])


