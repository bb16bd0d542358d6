"""What an importer finds: nodes, partitions and notes, before they are folded into a cluster file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from analysim.config.cluster import GpuAmount, RunningLimit


@dataclass(slots=True)
class FoundNode:
    """One machine. GPU and main memory in GB of 1,024 MB; None where the source does not say.

    ``rack`` and ``pod`` are empty where they are not known; a rack is one within its pod.
    """

    name: str
    gpu_type: str | None = None
    gpus: int = 0
    gpu_memory_gb: float | None = None
    cpus: float | None = None
    memory_gb: float | None = None
    nvlink: bool = False
    rack: str = ""
    pod: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class QuotaEvent:
    """The quota that holds from ``time_s`` (seconds after the first submit) on."""

    time_s: int
    guarantee: int
    borrow: int | None = None


@dataclass(slots=True)
class FoundPartition:
    """A logical partition; ``parent`` is empty at the top, ``nodes`` None where it has those of its parent."""

    name: str
    parent: str = ""
    nodes: list[str] | None = None
    guarantee: GpuAmount = 0
    limit: GpuAmount | None = None
    borrow: GpuAmount | None = None
    lend: GpuAmount | None = None
    reclaim: bool = False
    time_limit_s: int | None = None
    max_gpus_per_job: int | None = None
    priority_tier: int = 0
    user: RunningLimit | None = None
    tenant: RunningLimit | None = None
    events: list[QuotaEvent] = field(default_factory=list)


@dataclass(slots=True)
class Found:
    """All that the files of one import say. Notes tell what was read, assumed and left out, and why."""

    nodes: list[FoundNode] = field(default_factory=list)
    partitions: list[FoundPartition] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    name: str = ""
    source: str = ""


class Tally:
    """Counts what is left out or assumed, so that each kind is one note; a few examples are kept."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}

    def add(self, what: str, example: str = "", count: int = 1) -> None:
        """Count one more of a kind, told as ``what``."""
        self._counts[what] += count
        examples = self._examples.setdefault(what, [])
        if example and example not in examples and len(examples) < 4:
            examples.append(example)

    def notes(self) -> list[str]:
        """Say one line a kind, in the order in which the kinds first occurred."""
        lines = []
        for what, count in self._counts.items():
            examples = self._examples[what]
            more = ", ..." if 0 < len(examples) < count else ""
            lines.append(f"{what}: {count:,}" + (f" ({', '.join(examples)}{more})" if examples else ""))
        return lines
