"""Jobs, their states and the only transition table, and what a job asks of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from analysim.elastic import Elasticity
from analysim.errors import KnowledgeError
from analysim.tables import STATES
from analysim.units import GPU_MILLI, SPEED_ONE

if TYPE_CHECKING:
    import pandas as pd

    from analysim.cluster.partitions import Account, Leaf

Placement = tuple[tuple[int, int], ...]
"""Where a gang runs: pairs of (node index, bit mask of GPU indices on that node)."""

Domains = tuple[tuple[int, ...], ...]
"""Levels of the tree that are tried one after the other, each as the masks of its nodes, racks or pods."""

NOWHERE = -1
"""Node index of a job that takes nothing which the cluster models."""

Integers = npt.NDArray[np.int64]


class State(Enum):
    """Where a job is in its life; ``code`` is its place among ``tables.STATES``, -1 while it lives."""

    PENDING = "pending"
    RESERVED = "reserved"
    RUNNING = "running"
    CHECKPOINTING = "checkpointing"
    COMPLETED = "completed"
    KILLED = "killed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"
    UNFINISHED = "unfinished"

    def __init__(self, label: str) -> None:
        self.code = STATES.index(label) if label in STATES else -1


_LAST = frozenset({State.UNFINISHED})
TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PENDING: frozenset({State.RUNNING, State.RESERVED, State.CANCELLED, State.REJECTED}) | _LAST,
    State.RESERVED: frozenset({State.RUNNING}) | _LAST,
    # A restarting job is RUNNING with its ``run_from`` still to come: both hold their GPUs.
    State.RUNNING: frozenset({State.CHECKPOINTING, State.PENDING, State.COMPLETED, State.KILLED}) | _LAST,
    State.CHECKPOINTING: frozenset({State.PENDING}) | _LAST,
    State.COMPLETED: frozenset(),
    State.KILLED: frozenset(),
    State.CANCELLED: frozenset(),
    State.REJECTED: frozenset(),
    State.UNFINISHED: frozenset(),
}
"""The only transition table: which state may follow which."""


class Option:
    """One GPU type that a demand may use: the eligible nodes and the accounts a start is charged to.

    ``mask`` has a bit for each eligible node, ``allowed`` for those that would be but for the partition,
    ``largest`` is the most GPUs on one of them, ``node_types`` are (GPUs a node, mask of the nodes with that many),
    largest first, ``chains`` are the paths of accounts from the job's own partition up to the root, and
    ``bounded`` tells whether any of them can refuse.
    """

    __slots__ = ("allowed", "bounded", "chains", "gpu_type", "largest", "mask", "node_types")

    def __init__(
        self,
        gpu_type: int,
        mask: int,
        node_types: tuple[tuple[int, int], ...],
        chains: tuple[tuple[Account, ...], ...],
        bounded: bool,
        allowed: int,
    ) -> None:
        self.gpu_type = gpu_type
        self.allowed = allowed
        self.mask = mask
        self.node_types = node_types
        self.largest = max((size for size, _ in node_types), default=0)
        self.chains = chains
        self.bounded = bounded


class Family:
    """Demands that differ only in how much they ask: where one fails, every larger one fails too.

    ``blocked_from`` is the smallest gang that failed for want of GPUs or quota (thousandths of GPUs), ``lacking`` are
    demands that failed for want of CPUs or memory; both hold while ``token`` is the books' own.
    """

    __slots__ = ("blocked_from", "lacking", "token")

    _MOST = 8

    def __init__(self) -> None:
        self.token = -1
        self.blocked_from = 0
        self.lacking: tuple[Demand, ...] = ()

    def mark(self, demand: Demand, token: int, for_gpus: bool) -> None:
        """Remember a failure."""
        if self.token != token:
            self.token = token
            self.blocked_from = 1 << 62
            self.lacking = ()
        if for_gpus:
            if demand.gpu_milli < self.blocked_from:
                self.blocked_from = demand.gpu_milli
        elif len(self.lacking) < self._MOST:
            self.lacking += (demand,)

    def stops(self, demand: Demand) -> bool:
        """Tell whether a demand asks at least as much as one that failed."""
        if demand.gpu_milli >= self.blocked_from:
            return True
        return any(demand.asks_as_much_as(other) for other in self.lacking)

    def marks(self) -> tuple[int, int, tuple[Demand, ...]]:
        """Return what is remembered, for ``restore``."""
        return self.token, self.blocked_from, self.lacking

    def restore(self, marks: tuple[int, int, tuple[Demand, ...]]) -> None:
        """Remember what was remembered before."""
        self.token, self.blocked_from, self.lacking = marks


class Demand:
    """What a job asks for; jobs with the same demand (the same *shape*) fit or fail together.

    ``gpus`` counts GPUs, ``share`` the thousandths taken of each (below 1000 only of one GPU),
    ``per_node`` GPUs on each node (0: the gang rule decides),
    ``cpu_milli`` and ``memory_mb`` are per GPU (of the whole job when it has no GPUs).
    ``plain`` tells that there is one GPU type to try and no quota to ask, ``simple`` that only whole GPUs count and
    the gang rule decides, ``sharing`` that a share of one GPU is asked. ``blocked``, ``blocked_epoch``
    and ``token`` are the plan's memory of its last failure. ``domains`` are the sets of nodes of which the gang has to
    stay within one, by the levels tried in turn; after ``relax_us`` of waiting ``relaxed`` takes the demand's place.

    ``elastic`` tells on which other numbers of GPUs the job may run, None for a rigid one; ``sized`` gives the
    demand of a job that runs on so many. ``base`` is the demand that the job has when it waits again,
    ``asked`` the GPUs that the trace asks for.
    """

    __slots__ = (
        "_twins",
        "asked",
        "base",
        "blocked",
        "blocked_epoch",
        "cpu_milli",
        "domains",
        "elastic",
        "family",
        "gpu_milli",
        "gpus",
        "index",
        "leaf",
        "memory_mb",
        "options",
        "per_node",
        "pinned",
        "plain",
        "preemptible",
        "relax_us",
        "relaxed",
        "resources",
        "share",
        "sharing",
        "simple",
        "tenant",
        "token",
        "user",
    )

    def __init__(
        self,
        index: int,
        gpus: int,
        leaf: Leaf,
        options: tuple[Option, ...],
        family: Family,
        *,
        share: int = GPU_MILLI,
        per_node: int = 0,
        cpu_milli: int = 0,
        memory_mb: int = 0,
        preemptible: bool = True,
        user: str = "",
        tenant: str = "",
        domains: Domains | None = None,
    ) -> None:
        self.index = index
        self.gpus = gpus
        self.share = share
        self.gpu_milli = gpus * share
        self.per_node = per_node
        self.cpu_milli = cpu_milli
        self.memory_mb = memory_mb
        self.sharing = gpus > 0 and share < GPU_MILLI
        self.resources = cpu_milli > 0 or memory_mb > 0
        self.simple = gpus > 0 and not (self.sharing or self.resources or per_node)
        self.preemptible = preemptible
        self.leaf = leaf
        self.options = options
        self.family = family
        self.user = user
        self.tenant = tenant
        self.pinned: Placement | None = None
        self.domains = domains
        self.relaxed: Demand | None = None
        self.relax_us = 0
        self.elastic: Elasticity | None = None
        self.asked = gpus
        self.base = self
        self._twins: dict[int, Demand] = {}
        self.plain = len(options) == 1 and not options[0].bounded and domains is None
        self.blocked: Any = None
        self.blocked_epoch = -1
        self.token = -1

    def pin(self, placement: Placement) -> Demand:
        """Make the demand of a suspended job, which fits only where it was."""
        twin = self._twin(self.gpus)
        twin.pinned = placement
        twin.plain = False
        return twin

    def sized(self, gpus: int) -> Demand:
        """Return the demand of the same job on so many GPUs, the same one each time; CPUs go with GPUs."""
        base = self.base
        if gpus == base.gpus:
            return base
        twin = base._twins.get(gpus)
        if twin is None:
            twin = base._twins[gpus] = self._twin(gpus)
            twin.base = base
        return twin

    def _twin(self, gpus: int) -> Demand:
        twin = Demand(
            self.index,
            gpus,
            self.leaf,
            self.options,
            Family(),
            share=self.share,
            per_node=self.per_node,
            cpu_milli=self.cpu_milli,
            memory_mb=self.memory_mb,
            preemptible=self.preemptible,
            user=self.user,
            tenant=self.tenant,
            domains=self.domains,
        )
        twin.elastic = self.elastic
        twin.asked = self.asked
        if self.relaxed is not None:
            twin.relaxed, twin.relax_us = self.relaxed.sized(gpus), self.relax_us
        return twin

    def asks_as_much_as(self, other: Demand) -> bool:
        """Tell whether this demand asks at least as much of everything as one of the same family."""
        return (
            self.gpu_milli >= other.gpu_milli
            and self.cpu_milli >= other.cpu_milli
            and self.memory_mb >= other.memory_mb
        )


class Workload:
    """The columns of a trace as the engine reads them, one row a job in rank order.

    ``work_us`` is the productive time after which the job ends, ``demands`` the distinct shapes and
    ``demand_of`` the shape of each row (-1: rejected, see ``rejections``); ``elastic`` tells whether any job is.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.count = len(frame)
        self.submit_us: Integers = frame["submit_us"].to_numpy(np.int64)
        self.duration_us: Integers = frame["duration_us"].to_numpy(np.int64)
        self.priority: list[int] = frame["priority"].tolist()
        self.work_us: Integers = self.duration_us
        self.demand_of: Integers = np.full(self.count, -1, np.int64)
        self.demands: list[Demand] = []
        self.leaf_names: list[str] = []
        self.leaf_of: Integers = np.zeros(self.count, np.int64)
        self.rejections: dict[int, str] = {}
        self.relaxes = False
        self.elastic = False
        self.has_cancels = bool((frame["cancel_us"].to_numpy() >= 0).any())
        self._columns: dict[str, npt.NDArray[Any]] = {}

    @property
    def shortened(self) -> bool:
        """Whether any job ends before its duration, by a limit or a wrong estimate."""
        return self.work_us is not self.duration_us

    def value(self, column: str, rank: int) -> Any:
        """Return one cell of the trace as a Python value."""
        values = self._columns.get(column)
        if values is None:
            values = self._columns[column] = self.frame[column].to_numpy(dtype=object)
        return values[rank]

    def amount(self, column: str, rank: int) -> int:
        """Return one integer cell of the trace; -1 where it is absent."""
        return int(self.value(column, rank))


_SCHEMA_NAMES = {
    "job_id": "id",
    "submit_time": "submit",
    "num_gpus": "gpus",
    "gpus_per_node": "per_node",
    "estimated_duration": "estimate",
}
_NEEDS = {"duration": "oracle", "estimate": "estimate"}


class Job:
    """A job as a policy sees it: what it asks for, and where it is in its life.

    Times are integer microseconds on the trace's clock. Durations are not here: a policy reads
    them through the plan, as far as its declared ``knowledge`` allows. Every field but ``rank``,
    ``submit``, ``demand``, ``state`` and ``placement`` belongs to the plan and the engine.
    """

    __slots__ = (
        "_done",
        "_work",
        "barred",
        "demand",
        "ends",
        "first_start",
        "hold_from",
        "hold_until",
        "migrations",
        "option",
        "placement",
        "preemptions",
        "rank",
        "run_from",
        "shared",
        "since",
        "source",
        "speed",
        "state",
        "stint",
        "submit",
        "waited",
    )

    def __init__(self, rank: int, submit: int, work: int, demand: Demand, source: Workload) -> None:
        self.rank = rank
        self.submit = submit
        self.demand = demand
        self.source = source
        self.state = State.PENDING
        self._work = work
        self._done = 0
        self.barred = -1
        self.since = submit
        self.waited = 0
        self.first_start = -1
        self.stint = 0
        self.placement: Placement | None = None
        self.option: Option | None = None
        self.shared: Placement = ()
        self.speed = SPEED_ONE
        self.hold_from = 0
        self.hold_until = 0
        self.run_from = 0
        self.ends = -1
        self.preemptions = 0
        self.migrations = 0

    def __repr__(self) -> str:
        return f"{self.id} ({self.demand.gpus} GPUs, {self.state.value})"

    def __getattr__(self, name: str) -> Any:
        if name in _SCHEMA_NAMES:
            return getattr(self, _SCHEMA_NAMES[name])
        if name in _NEEDS:
            raise KnowledgeError(
                f"job.{name} needs knowledge = {_NEEDS[name]!r} on the policy's class; it is hidden now."
            )
        raise AttributeError(f"a job has no {name!r}")

    @property
    def id(self) -> Any:
        """The job's id as the trace has it: an integer, or text."""
        return self.source.value("job_id", self.rank)

    @property
    def gpus(self) -> int:
        """GPUs the gang asks for, 1 for a share of one (``gpu_milli``); ``plan.gpus`` tells what an elastic job has."""
        return self.demand.asked

    @property
    def elastic(self) -> bool:
        """Whether the job may run on other numbers of GPUs than it asks for."""
        return self.demand.elastic is not None

    @property
    def min_gpus(self) -> int:
        """The fewest GPUs the job may run on."""
        elastic = self.demand.elastic
        return self.demand.asked if elastic is None else elastic.least

    @property
    def max_gpus(self) -> int:
        """The most GPUs the job may run on."""
        elastic = self.demand.elastic
        return self.demand.asked if elastic is None else elastic.most

    @property
    def gpu_milli(self) -> int:
        """Thousandths of GPUs asked for: 1000 for each GPU, fewer for a share of one."""
        return self.demand.gpu_milli

    @property
    def per_node(self) -> int:
        """GPUs asked for on each node; 0 where the gang rule decides."""
        return self.demand.per_node

    @property
    def gpu_type(self) -> str:
        """GPU types asked for, alternatives separated by ``|``; empty for any."""
        return str(self.source.value("gpu_type", self.rank))

    @property
    def partition(self) -> str:
        """Name of the leaf partition that the job counts in; ``root`` where there is none."""
        return self.demand.leaf.name

    @property
    def tier(self) -> int:
        """Priority tier of the job's partition; larger goes first."""
        return self.demand.leaf.priority_tier

    @property
    def tenant(self) -> str:
        """Tenant path as the trace has it."""
        return str(self.source.value("tenant", self.rank))

    @property
    def user(self) -> str:
        """User as the trace has it."""
        return str(self.source.value("user", self.rank))

    @property
    def model(self) -> str:
        """Model name as the trace has it."""
        return str(self.source.value("model", self.rank))

    @property
    def priority(self) -> int:
        """Priority as the trace has it; larger is more important."""
        return self.source.priority[self.rank]

    @property
    def preemptible(self) -> bool:
        """Whether the job may be stopped or moved."""
        return self.demand.preemptible


class EstimatedJob(Job):
    """A job as a policy with knowledge of estimates sees it."""

    __slots__ = ()

    @property
    def estimate(self) -> int:
        """The user's estimate of the productive run time, in microseconds."""
        return self.source.amount("estimate_us", self.rank)


class OracleJob(EstimatedJob):
    """A job as a policy that knows the true durations sees it."""

    __slots__ = ()

    @property
    def estimate(self) -> int:
        """The user's estimate where there is one, else the true duration, in microseconds."""
        estimate = super().estimate
        return estimate if estimate >= 0 else self._work

    @property
    def duration(self) -> int:
        """The productive run time on the recorded GPU type, in microseconds."""
        return self._work


JOB_VIEWS: Mapping[str, type[Job]] = {
    "none": Job,
    "history": Job,
    "estimate": EstimatedJob,
    "oracle": OracleJob,
    "record": OracleJob,
}
"""What a policy of each declared knowledge is handed."""
