"""The books recomputed from scratch in the middle of a pass, apart from the engine's own ``--check``.

GPUs, CPUs and memory of every node; usage, by GPU type too, and claims of every partition; limits per user and
tenant; counts of waiting jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from analysim.cluster.partitions import Account
from analysim.cluster.watched import WatchedCapacity, class_of
from analysim.jobs import Demand, Job, Option, Placement, State
from analysim.plan.books import Books
from analysim.policy import Plan


def audit(plan: Plan) -> None:
    """Compare the books with what the live jobs hold; AssertionError at the first difference."""
    books = plan.books
    _check_gpus(books)
    _check_resources(books)
    _check_classes(books)
    _check_accounts(books)
    _check_holders(books)
    pending = [job for job in [*books.waiting.values(), *books.fresh] if job.state is State.PENDING]
    stopped = [job for job, before in books.touched.items() if before is not None and job.state is State.PENDING]
    assert books.pending_count == len(pending) + len(stopped)


def _holdings(books: Books) -> Iterator[tuple[Demand, Placement]]:
    """Who holds which GPUs; those that a reservation has claimed of a release are still the release's."""
    for job in books.running.values():
        yield job.demand, job.placement or ()
    for release in books.releases.values():
        yield release.job.demand, release.placement
    for reservation in books.reserved.values():
        yield reservation.job.demand, tuple((node, mask) for node, mask, _ in reservation.held)


def _check_gpus(books: Books) -> None:
    topology = books.topology
    held = [0] * topology.size
    shares: dict[tuple[int, int], int] = defaultdict(int)
    for demand, placement in _holdings(books):
        for node, mask in placement:
            if demand.sharing:
                shares[node, mask] += demand.share
            elif node >= 0:
                assert held[node] & mask == 0, "a GPU is held twice"
                held[node] |= mask
    for (node, mask), share in shares.items():
        assert held[node] & mask == 0, "a GPU is held whole and in part"
        assert share + books.capacity.partial[node].get(mask.bit_length() - 1, 0) == 1000, "part of a GPU is lost"
        held[node] |= mask
    left = {(node, 1 << gpu) for node, each in enumerate(books.capacity.partial) for gpu in each}
    assert left <= set(shares), "a part is left of a GPU that nobody shares"
    for node, mask in enumerate(held):
        assert mask | books.capacity.free[node] == (1 << topology.gpu_count[node]) - 1, "a GPU is lost"
        assert mask & books.capacity.free[node] == 0, "a held GPU counts as free"
    for kind, levels in enumerate(books.capacity.levels):
        for node in range(topology.size):
            if topology.gpu_type[node] == kind:
                free = books.capacity.free[node].bit_count()
                assert [count for count, nodes in enumerate(levels) if nodes >> node & 1] == [free]


def _check_resources(books: Books) -> None:
    capacity, topology = books.capacity, books.topology
    if not capacity.models_resources:
        return
    used: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for demand, placement in _users(books):
        for node, mask in placement:
            share = mask.bit_count() if demand.gpus else 1
            used[node][0] += share * demand.cpu_milli
            used[node][1] += share * demand.memory_mb
    for node in range(topology.size):
        for total, free, taken in (
            (topology.cpu_milli[node], capacity.cpu_milli[node], used[node][0]),
            (topology.memory_mb[node], capacity.memory_mb[node], used[node][1]),
        ):
            assert total < 0 or total - free == taken, "CPUs or memory are lost"
            assert total < 0 or free >= 0, "CPUs or memory are held twice"


def _users(books: Books) -> Iterator[tuple[Demand, Placement]]:
    """Who uses CPUs and memory: of claimed GPUs, the claimant."""
    for job in [*books.running.values(), *(each.job for each in books.reserved.values())]:
        yield job.demand, job.placement or ()
    for release in books.releases.values():
        yield release.job.demand, release.unclaimed


def _check_classes(books: Books) -> None:
    """Which classes of jobs hold GPUs of each node, where a strategy goes by that."""
    if not isinstance(books.capacity, WatchedCapacity):
        return
    held: list[dict[int, int]] = [{} for _ in range(books.topology.size)]
    for demand, placement in _users(books):
        for node, mask in placement:
            if mask:
                kind = class_of(demand)
                held[node][kind] = held[node].get(kind, 0) + mask.bit_count()
    assert [dict(each) for each in books.capacity.held] == held, "classes of jobs on a node"


def _charged(books: Books) -> Iterator[tuple[Job, Option | None, int]]:
    for job in [*books.running.values(), *(each.job for each in books.reserved.values())]:
        yield job, job.option, job.demand.gpu_milli
    for release in books.releases.values():
        if release.charged:
            count = sum(mask.bit_count() for _, mask in release.unclaimed)
            yield release.job, release.option, count * release.job.demand.share


def _check_accounts(books: Books) -> None:
    if not books.tree.bounded:
        return  # nothing is charged: the root's usage is what is not free
    own: dict[Account, int] = defaultdict(int)
    for job, option, amount in _charged(books):
        leaf = job.demand.leaf
        own[leaf.total] += amount
        assert option is not None
        if option.gpu_type in leaf.by_type:
            own[leaf.by_type[option.gpu_type]] += amount
    usage: dict[Account, int] = defaultdict(int)
    claimed: dict[Account, int] = defaultdict(int)
    for leaf in reversed(books.tree.all):  # children before parents
        for account in (leaf.total, *leaf.by_type.values()):
            usage[account] += own[account]
            claimed[account] += own[account]
            assert account.usage == usage[account], f"usage of {leaf.name}"
            assert account.claimed == claimed[account], f"claims in {leaf.name}"
            if account.parent is not None:
                usage[account.parent] += usage[account]
                claimed[account.parent] += max(usage[account], account.floor)


def _check_holders(books: Books) -> None:
    expected: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for job, _, amount in _charged(books):
        for leaf, kind, _ in job.demand.leaf.limited:
            held = expected[leaf.name, kind, job.user if kind == "user" else job.tenant]
            held[0] += amount
            held[1] += 1
    for leaf in books.tree.all:
        for (kind, name), held in leaf.held.items():
            assert list(held) == expected[leaf.name, kind, name], f"what {kind} {name} holds in {leaf.name}"
