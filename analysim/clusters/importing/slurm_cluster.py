"""What all files of a Slurm cluster say together, while they are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from analysim.clusters.importing.found import Tally
from analysim.clusters.importing.slurm_texts import Record


@dataclass(slots=True)
class Host:
    """A node by its host name; None where no file has said it yet."""

    name: str
    gpus: dict[str, int] | None = None
    cpus: float | None = None
    memory_mb: float | None = None
    partitions: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    rack: str = ""
    pod: str = ""


@dataclass(slots=True)
class Queue:
    """A Slurm partition; ``nodes`` is None where only the nodes name it."""

    name: str
    nodes: list[str] | None = None
    time_limit_s: int | None = None
    priority_tier: int = 0
    qos: str = ""


@dataclass(slots=True)
class Switch:
    """A switch of the tree: hosts below it, and switches below it."""

    nodes: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slurm:
    """Everything found so far."""

    name: str = ""
    hosts: dict[str, Host] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    switches: dict[str, Switch] = field(default_factory=dict)
    blocks: dict[str, list[str]] = field(default_factory=dict)
    block_sizes: list[int] = field(default_factory=list)
    gres: list[Record] = field(default_factory=list)
    qos: list[Record] = field(default_factory=list)
    associations: list[Record] = field(default_factory=list)
    nodes_of_host: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    def host(self, name: str) -> Host:
        """The host of a name, new where no file has named it yet."""
        return self.hosts.setdefault(name, Host(name))

    def describe(self, host: Host, gpus: dict[str, int] | None, cpus: float | None, memory_mb: float | None) -> None:
        """Add what a file says of a host; where another has said otherwise the first counts."""
        differs = False
        if gpus is not None:
            differs |= host.gpus is not None and host.gpus != gpus
            host.gpus = gpus if host.gpus is None else host.gpus
        if cpus is not None:
            differs |= host.cpus is not None and host.cpus != cpus
            host.cpus = cpus if host.cpus is None else host.cpus
        if memory_mb is not None:
            differs |= host.memory_mb is not None and host.memory_mb != memory_mb
            host.memory_mb = memory_mb if host.memory_mb is None else host.memory_mb
        if differs:
            self.tally.add("descriptions of nodes that differ from an earlier one, which counts", host.name)

    def queue(self, name: str) -> Queue:
        """The partition of a name, new where no file has named it yet."""
        return self.queues.setdefault(name, Queue(name))
