"""Logical partitions: node sets and quotas in a tree, and what each account has in use.

An *account* is one quota of one partition, over all GPUs or over one GPU type. A start of g GPUs is
legal when, on the whole path to the root, usage + g stays within min(limit, guarantee + borrow), and
what the children of each ancestor claim, max(usage, guarantee - lend), stays within the ancestor's own cap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analysim.cluster.topology import Topology
from analysim.config.cluster import GpuAmount, Partition, Quota, RunningLimit
from analysim.config.nodes import ROOT, select_nodes
from analysim.jobs import Demand, Job, Option
from analysim.units import GPU_MILLI

UNBOUNDED = 1 << 60
"""A bound that never binds, in thousandths of a GPU."""


class Account:
    """Usage and bounds of one partition in one scope, in thousandths of a GPU.

    ``claimed`` is the account's own jobs' usage plus, over its children, max(usage, floor) where floor is the
    part of a child's guarantee that it does not lend.
    """

    __slots__ = (
        "cap",
        "claimed",
        "floor",
        "guarantee",
        "parent",
        "partition",
        "reserving",
        "stated",
        "usage",
    )

    def __init__(self, partition: Leaf, parent: Account | None) -> None:
        self.partition = partition
        self.parent = parent
        self.usage = 0
        self.claimed = 0
        self.cap = UNBOUNDED
        self.guarantee = 0
        self.floor = 0
        self.stated = False
        self.reserving = False

    def set_bounds(self, guarantee: int, limit: int, borrow: int, lend: int, stated: bool) -> None:
        """Put new bounds in force; running jobs stay, whatever they say."""
        before = max(self.usage, self.floor)
        self.guarantee = guarantee
        self.cap = min(limit, guarantee + borrow)
        self.floor = max(0, guarantee - lend)
        self.stated = stated
        if self.parent is not None:
            self.parent.claimed += max(self.usage, self.floor) - before
            self.parent.reserving = self.parent.reserving or self.floor > 0


def charge(chain: tuple[Account, ...], amount: int) -> None:
    """Add ``amount`` (negative: release) to every account of a path, leaf first."""
    chain[0].claimed += amount
    for account in chain:
        before = account.usage
        account.usage = after = before + amount
        parent = account.parent
        if parent is not None:
            floor = account.floor
            parent.claimed += (after if after > floor else floor) - (before if before > floor else floor)


def admits(chain: tuple[Account, ...], amount: int, preemptible: bool) -> bool:
    """Tell whether a start of ``amount`` is legal on a path (leaf first)."""
    growth = amount
    for account in chain:
        usage = account.usage + amount
        if usage > account.cap or (account.reserving and account.claimed + growth > account.cap):
            return False
        if (
            not preemptible
            and account.stated
            and usage > account.guarantee
            and not account.partition.borrow_nonpreemptible
        ):
            return False
        floor = account.floor
        growth = max(usage, floor) - max(account.usage, floor)
    return True


class Leaf:
    """A partition at run time (a leaf takes jobs); ``nodes`` is the mask of its node set.

    ``closed`` is the number of the last pass in which a policy closed it, ``closer`` the job that had failed then.
    """

    def __init__(self, config: Partition | None, parent: Leaf | None, nodes: int, order: int) -> None:
        self.config = config
        self.own_nodes = config is not None and config.nodes is not None
        self.name = config.name if config is not None else ROOT
        self.parent = parent
        self.nodes = nodes
        self.order = order
        self.children: list[Leaf] = []
        self.total: Account = Account(self, parent.total if parent else None)
        self.by_type: dict[int, Account] = {}
        self.borrow_nonpreemptible = config is not None and config.borrow_nonpreemptible
        self.reclaim = config is not None and config.reclaim
        self.priority_tier = config.priority_tier if config is not None else 0
        self.time_limit = config.time_limit if config is not None else None
        self.closed = -1
        self.closer: Job | None = None
        self.limited = tuple(self._limits())
        self.held: dict[tuple[str, str], list[int]] = {}
        if parent is not None:
            parent.children.append(self)

    @property
    def path(self) -> Iterator[Leaf]:
        """This partition, its parent, and so on up to the root."""
        node: Leaf | None = self
        while node is not None:
            yield node
            node = node.parent

    def accounts(self, gpu_type: int) -> tuple[Account, ...]:
        """What a job on a GPU type counts in here: all types together, and its own where a quota names it."""
        typed = self.by_type.get(gpu_type)
        return (self.total,) if typed is None else (self.total, typed)

    @property
    def below(self) -> Iterator[Leaf]:
        """This partition and all below it."""
        yield self
        for child in self.children:
            yield from child.below

    @property
    def full_name(self) -> str:
        """Names from the top down, joined by ``/``."""
        return "/".join(node.name for node in reversed(list(self.path)) if node.parent is not None) or ROOT

    def _limits(self) -> Iterator[tuple[Leaf, str, RunningLimit]]:
        """Limits per user and tenant that bind a job here: (partition, "user"|"tenant", limit)."""
        for node in self.path:
            if node.config is not None:
                limits = node.config.limits
                for kind, limit in (("user", limits.user), ("tenant", limits.tenant)):
                    if limit is not None:
                        yield node, kind, limit


def admits_holder(demand: Demand) -> bool:
    """Tell whether the limits per user and tenant allow one more job of this demand."""
    for leaf, kind, limit in demand.leaf.limited:
        gpu_milli, jobs = leaf.held.get((kind, demand.user if kind == "user" else demand.tenant), (0, 0))
        if limit.gpus is not None and gpu_milli + demand.gpu_milli > limit.gpus * GPU_MILLI:
            return False
        if limit.jobs is not None and jobs + 1 > limit.jobs:
            return False
    return True


def charge_holder(demand: Demand, amount: int, jobs: int) -> None:
    """Count GPUs (thousandths) and jobs of a user or tenant where a limit binds; negative: less."""
    for leaf, kind, _ in demand.leaf.limited:
        held = leaf.held.setdefault((kind, demand.user if kind == "user" else demand.tenant), [0, 0])
        held[0] += amount
        held[1] += jobs


def _bounds(config: Partition | None) -> bool:
    """Tell whether a partition states any quota, now or later."""
    quotas = (config, *config.changes) if config is not None else ()
    stated = {"guarantee", "limit", "borrow", "lend"}
    return any(quota.model_fields_set & stated for quota in quotas)


def within_guarantee(leaf: Leaf, gpu_type: int, amount: int) -> bool:
    """Tell whether so much more on a GPU type stays within what a partition states as its guarantees."""
    stated = [account for account in leaf.accounts(gpu_type) if account.stated]
    return bool(stated) and all(account.usage + amount <= account.guarantee for account in stated)


def borrows(leaf: Leaf, gpu_type: int, given: int = 0) -> bool:
    """Tell whether a partition would still use more than it is guaranteed after giving so much back."""
    stated = [account for account in leaf.accounts(gpu_type) if account.stated]
    if not stated:
        return leaf.total.usage - given > 0
    return any(account.usage - given > account.guarantee for account in stated)


class PartitionTree:
    """All partitions of a cluster, parents before children; ``all`` and ``by_name`` include the root."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.root = Leaf(None, None, topology.all_nodes, 0)
        self.all: list[Leaf] = [self.root]
        self.typed = self._types_named(topology.config.partitions)
        self._build(topology.config.partitions, self.root)
        self.by_name = {leaf.name: leaf for leaf in self.all}
        self.by_path = {leaf.full_name: leaf for leaf in self.all}
        self.bounded = any(leaf.limited or _bounds(leaf.config) for leaf in self.all)
        self.has_partitions = len(self.all) > 1
        self.reclaims = any(leaf.reclaim for leaf in self.all)
        self.changes = any(leaf.config is not None and leaf.config.changes for leaf in self.all)
        self._open_accounts()

    def _types_named(self, partitions: Iterable[Partition]) -> list[int]:
        named: set[str] = set()
        waiting = list(partitions)
        while waiting:
            partition = waiting.pop()
            waiting.extend(partition.children)
            for quota in (partition, *partition.changes):
                for amount in (quota.guarantee, quota.limit, quota.borrow, quota.lend):
                    if isinstance(amount, dict):
                        named.update(amount)
        return [number for number, name in enumerate(self.topology.gpu_types) if name in named]

    def _build(self, partitions: Iterable[Partition], parent: Leaf) -> None:
        for partition in partitions:
            leaf = Leaf(partition, parent, self.node_mask(partition.nodes, parent.nodes), len(self.all))
            self.all.append(leaf)
            self._build(partition.children, leaf)

    def node_mask(self, nodes: str | list[str] | None, inherited: int) -> int:
        """Resolve a node set of the file to a bit mask; absent: the parent's."""
        if nodes is None:
            return inherited
        return sum(1 << node for node in select_nodes(self.topology.nodes, nodes))

    def _open_accounts(self) -> None:
        for leaf in self.all:
            for number in self.typed:
                parent = leaf.parent.by_type[number] if leaf.parent else None
                leaf.by_type[number] = Account(leaf, parent)
        for leaf in self.all:
            if leaf.config is None:
                leaf.total.cap = leaf.total.guarantee = self.topology.gpus * GPU_MILLI
                for number, account in leaf.by_type.items():
                    held = self.topology.gpus_in(self.topology.all_nodes, number)
                    account.cap = account.guarantee = held * GPU_MILLI
            else:
                self.apply(leaf, leaf.config)

    def apply(self, leaf: Leaf, quota: Quota) -> None:
        """Put a quota in force, at the start or at a change in time."""
        bounds = (quota.guarantee, quota.limit, quota.borrow, quota.lend)
        states_guarantee = "guarantee" in quota.model_fields_set
        for scope, account in ((None, leaf.total), *leaf.by_type.items()):
            guarantee, limit, borrow, lend = (self._amount(bound, scope) for bound in bounds)
            account.set_bounds(
                guarantee or 0,
                UNBOUNDED if limit is None else limit,
                UNBOUNDED if borrow is None else borrow,
                UNBOUNDED if lend is None else lend,
                states_guarantee and guarantee is not None,
            )

    def _amount(self, amount: GpuAmount | None, scope: int | None) -> int | None:
        """Thousandths of GPUs that a bound states in a scope; None where it says nothing there."""
        if isinstance(amount, dict):
            if scope is None:
                return None
            stated = amount.get(self.topology.gpu_types[scope])
            return None if stated is None else stated * GPU_MILLI
        return None if amount is None or scope is not None else amount * GPU_MILLI

    def largest(self, account: Account) -> tuple[int, int, bool]:
        """Return the most an account may ever use, its largest guarantee, and whether it states one."""
        config = account.partition.config
        if config is None:
            return account.cap, account.guarantee, False
        scope = next((number for number, typed in account.partition.by_type.items() if typed is account), None)
        cap = guarantee = 0
        stated = False
        for quota in (config, *config.changes):
            own, limit, borrow = (self._amount(bound, scope) for bound in (quota.guarantee, quota.limit, quota.borrow))
            reach = UNBOUNDED if borrow is None else (own or 0) + borrow
            cap = max(cap, min(UNBOUNDED if limit is None else limit, reach))
            guarantee = max(guarantee, own or 0)
            stated = stated or ("guarantee" in quota.model_fields_set and own is not None)
        return cap, guarantee, stated

    def change_nodes(self, leaf: Leaf, nodes: str | list[str]) -> None:
        """Give a partition, and those below it that name no nodes of their own, another node set."""
        leaf.own_nodes = True
        self._set_nodes(leaf, self.node_mask(nodes, leaf.nodes))

    def _set_nodes(self, leaf: Leaf, nodes: int) -> None:
        leaf.nodes = nodes
        for child in leaf.children:
            if not child.own_nodes:
                self._set_nodes(child, nodes)

    def narrow(self, option: Option, leaf: Leaf) -> None:
        """Let an option use the nodes that its partition has now."""
        option.mask = leaf.nodes & option.allowed

    def ever_nodes(self, leaf: Leaf) -> int:
        """Nodes that a partition has at any time."""
        nodes = leaf.nodes
        if leaf.config is not None and leaf.parent is not None:
            if leaf.config.nodes is None:
                nodes |= self.ever_nodes(leaf.parent)
            for change in leaf.config.changes:
                nodes |= self.node_mask(change.nodes, 0)
        return nodes

    def time_limit(self, leaf: Leaf) -> int:
        """The shortest time limit on a partition's path, in microseconds."""
        limits = (node.time_limit for node in leaf.path)
        return min((limit for limit in limits if limit is not None), default=UNBOUNDED)

    def chains(self, leaf: Leaf, gpu_type: int) -> tuple[tuple[Account, ...], ...]:
        """Paths of accounts, leaf to root, that a job of a leaf on a GPU type is charged to; none without quotas."""
        if not self.bounded:
            return ()
        totals = tuple(node.total for node in leaf.path)
        if gpu_type not in self.typed:
            return (totals,)
        return (totals, tuple(node.by_type[gpu_type] for node in leaf.path))
