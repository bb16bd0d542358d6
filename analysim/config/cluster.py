"""The cluster file: node types, racks, links, speeds and logical partitions."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from analysim.config.fields import DurationUs, Model

GpuAmount = NonNegativeInt | dict[str, NonNegativeInt]
"""GPUs in all, or per GPU type."""


class NodeType(Model):
    """One kind of machine. ``gpus: 0`` is a CPU-only node; CPUs and memory are checked only when given."""

    gpu_type: str | None = None
    gpus: NonNegativeInt = 0
    gpu_memory_gb: PositiveFloat | None = None
    cpus: PositiveFloat | None = None
    memory_gb: PositiveFloat | None = None
    nvlink: bool = False
    nvlink_nodes: PositiveInt = Field(default=1, description="nodes of a rack that one NVLink domain spans")
    features: list[str] = Field(default=[], description="what jobs may ask for by name")
    intra_node_gbps: PositiveFloat | None = None


class NodeGroup(Model):
    """Nodes of one type in a rack: a ``count``, or ``names`` in bracket notation (``gpu[001-008]``)."""

    type: str
    count: PositiveInt | None = None
    names: str | None = None


class Rack(Model):
    """A rack, or many alike: ``name: rack[00-11]`` makes twelve with these nodes each.

    ``pod`` may use the same notation; it is then paired rack by rack, or repeated when it names one pod.
    """

    name: str
    pod: str | None = None
    nodes: list[NodeGroup] = Field(min_length=1)


class Links(Model):
    """Bandwidth between nodes, described now and used by later models only."""

    rack_gbps: PositiveFloat | None = None
    pod_gbps: PositiveFloat | None = None
    core_gbps: PositiveFloat | None = None
    oversubscription: PositiveFloat | None = None


class SpanPenalty(Model):
    """Speed of a gang inside one node, inside one rack, and across racks; 1 is no penalty."""

    node: PositiveFloat = 1.0
    rack: PositiveFloat = 1.0
    cluster: PositiveFloat = 1.0


class RunningLimit(Model):
    """What one user or tenant may have running in a partition at a time."""

    gpus: NonNegativeInt | None = None
    jobs: NonNegativeInt | None = None


class Limits(Model):
    """Limits per user and per tenant inside a partition."""

    user: RunningLimit | None = None
    tenant: RunningLimit | None = None


class Quota(Model):
    """GPUs that a partition may use: in all, or per GPU type. Absent limit or borrow: no bound."""

    guarantee: GpuAmount = 0
    limit: GpuAmount | None = None
    borrow: GpuAmount | None = None
    lend: GpuAmount | None = None


class QuotaChange(Quota):
    """The quota that holds from ``time`` on (since the first submit); ``nodes`` may change with it."""

    time: DurationUs
    guarantee: GpuAmount = 0
    nodes: str | list[str] | None = None


class Partition(Quota):
    """A logical partition: a node set, a quota in a shared pool, or both; children make a tree.

    ``nodes`` names nodes or racks, in bracket notation; absent: those of the parent.
    """

    name: str = Field(min_length=1)
    nodes: str | list[str] | None = None
    reclaim: bool = False
    borrow_nonpreemptible: bool = False
    time_limit: DurationUs | None = None
    max_gpus_per_job: PositiveInt | None = None
    priority_tier: int = 0
    limits: Limits = Limits()
    changes: list[QuotaChange] = []
    children: list[Partition] = []


class ClusterConfig(Model):
    """A whole cluster file."""

    name: str = Field(min_length=1)
    description: str = ""
    source: str = ""
    node_types: dict[str, NodeType] = Field(min_length=1)
    racks: list[Rack] = Field(min_length=1)
    links: Links = Links()
    speeds: dict[str, PositiveFloat] = {}
    span_penalty: SpanPenalty = SpanPenalty()
    partitions: list[Partition] = []
    inferred: str = Field(default="", description="How this cluster was inferred; empty when it was written.")


class Costs(Model):
    """What starting, stopping and moving a job costs, where the trace does not say it per job."""

    start_s: DurationUs = Field(default=0, description="before every first start")
    checkpoint_s: DurationUs = Field(default=30_000_000, description="GPUs held while state is saved")
    restart_s: DurationUs = Field(default=60_000_000, description="GPUs held while state is loaded")
    checkpoint_interval_s: DurationUs | None = Field(default=None, description="periodic checkpoints")
    size_gb: NonNegativeFloat | None = Field(default=None, description="state to save and load")
    bandwidth_gb_per_s: PositiveFloat | None = Field(default=None, description="how fast it is saved and loaded")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.size_gb is None) != (self.bandwidth_gb_per_s is None):
            given, missing = ("size_gb", "bandwidth_gb_per_s")[:: -1 if self.size_gb is None else 1]
            raise ValueError(f"{given} is given without {missing}; their quotient is the cost, so give both or neither")
        if self.checkpoint_interval_s == 0:
            raise ValueError("checkpoint_interval_s is 0; leave it out where there are no periodic checkpoints")
        return self


PlacementName = Literal[
    "pack",
    "first",
    "spread",
    "random",
    "rack",
    "any",
    "fgd",
    "bestfit",
    "dotprod",
    "gpupacking",
    "gpuclustering",
]
