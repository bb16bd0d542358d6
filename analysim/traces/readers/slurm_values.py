"""The ways in which Slurm writes resources, memory, spans of time, states, job ids and lists of nodes.

They are those of sacct (https://slurm.schedmd.com/sacct.html), whatever the version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from analysim.config.nodes import expand_names
from analysim.errors import ConfigError
from analysim.traces.cells import LARGEST
from analysim.traces.log import UNKNOWN
from analysim.units import CPU_MILLI, GPU_MILLI, MICROSECONDS

ABSENT = frozenset({"", "unknown", "none", "(null)", "null", "n/a", "none assigned", "invalid"})
"""What sacct writes, in any case, where there is nothing to tell."""

RUNNING = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "STOPPED", "SIGNALING", "STAGE_OUT"})
"""States of jobs that have not ended."""

UNREADABLE = -1
"""Number of GPUs that is told, but is none."""

PENDING = "PENDING"
"""State of jobs that have not started."""

_NO_VALUES = (0xFFFFFFFE, 0xFFFFFFFF)
_LARGEST_COUNT = 1 << 40
_MEGABYTES = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,9})?)"
_MEMORY = re.compile(_NUMBER + r"([KMGTP]?)B?([cn]?)", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,12}")
_SPAN = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?(?:\.([0-9]{1,6}))?")
_GPU_PER_NODE = re.compile(
    r"(?:gres[:/])?(?:gpu|7696487)"  # the number is what sacct writes for gpu where it does not know the plugin
    r"(?::([^:()]*[^:()0-9][^:()]*))?(?::([0-9]{1,9}))?(?:\(.*)?",
    re.IGNORECASE,
)
_OUTSIDE_PARENTHESES = re.compile(r",(?![^()]*\))")
_JOB = re.compile(r"([0-9]{1,15})(?:_([0-9]{1,15})|\+([0-9]{1,15})|_(\[[^\]]*\]?|[A-Z]\S*))?")
_TASKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


@dataclass(frozen=True)
class Resources:
    """What a record says of its resources: thousandths of a GPU and a CPU, MB, nodes; UNKNOWN if it does not.

    ``shares`` tells that parts of GPUs (shard, MPS) are among them, which are not counted.
    """

    gpu_milli: int = UNKNOWN
    gpu_type: str = ""
    cpu_milli: int = UNKNOWN
    memory_mb: int = UNKNOWN
    nodes: int = UNKNOWN
    shares: bool = False


NOTHING = Resources()
"""A record that does not tell its resources."""


def read_tres(text: str) -> Resources:
    """Read trackable resources: ``cpu=8,mem=64G,node=2,gres/gpu:a100=8``.

    The untyped number of GPUs is their total where typed ones stand beside it; without it the typed ones are
    added. Jobs with several types have none.
    """
    return read_counts(tuple(part.rpartition("=")[::2] for part in text.split(",")))


def read_counts(parts: tuple[tuple[str, Any], ...]) -> Resources:
    """Read trackable resources as pairs of name and amount, as in ``("gres/gpu", "8")``."""
    found = NOTHING
    untyped: int | None = None
    typed: dict[str, int] = {}
    for name, amount in parts:
        if name == "cpu":
            found = replace(found, cpu_milli=_times(read_count(amount), CPU_MILLI))
        elif name == "mem":
            found = replace(found, memory_mb=read_memory(str(amount))[0])
        elif name == "node":
            found = replace(found, nodes=read_count(amount))
        elif name == "gres/gpu":
            untyped = read_count(amount)
        elif name.startswith("gres/gpu:"):
            typed[name.removeprefix("gres/gpu:")] = read_count(amount)
        elif name.startswith(("gres/shard", "gres/mps")):
            found = replace(found, shares=True)
    return replace(found, **_gpus(untyped, typed))


def _gpus(untyped: int | None, typed: dict[str, int]) -> dict[str, Any]:
    if untyped is None and not typed:
        return {}
    counts = list(typed.values()) if untyped is None else [untyped]
    kinds = [kind for kind, count in typed.items() if count]
    total = UNKNOWN if UNKNOWN in counts else bounded(sum(counts))
    return {
        "gpu_milli": UNREADABLE if total == UNKNOWN else total * GPU_MILLI,
        "gpu_type": kinds[0] if len(kinds) == 1 else "",
    }


def read_gres(text: str, nodes: int) -> Resources:
    """Read generic resources of each node, as Slurm wrote them before 21.08: ``gpu:a100:2`` on ``nodes`` nodes."""
    untyped: int | None = None
    typed: dict[str, int] = {}
    for part in _OUTSIDE_PARENTHESES.split(text):
        match = _GPU_PER_NODE.fullmatch(part.strip())
        if match:
            count = bounded(int(match[2] or 1) * max(nodes, 1))
            if match[1]:
                typed[match[1]] = typed.get(match[1], 0) + count
            else:
                untyped = (untyped or 0) + count
    return replace(NOTHING, **_gpus(untyped, typed))


def read_count(amount: Any) -> int:
    """Read a whole number, 0 or more; UNKNOWN for what is none."""
    if isinstance(amount, str):
        return bounded(int(amount)) if _COUNT.fullmatch(amount) else UNKNOWN
    return bounded(amount) if isinstance(amount, int) and not isinstance(amount, bool) else UNKNOWN


def bounded(amount: int) -> int:
    """Return an amount; UNKNOWN beyond 2^40, which no cluster has of anything: that is a damaged cell."""
    return amount if 0 <= amount <= _LARGEST_COUNT else UNKNOWN


def first_known(*amounts: int) -> int:
    """Return the first amount that is told and not 0; Slurm writes 0 before a job has its nodes."""
    return next((amount for amount in amounts if amount > 0), UNKNOWN)


def _times(count: int, factor: int) -> int:
    return UNKNOWN if count == UNKNOWN else count * factor


def known_priority(priority: int) -> int:
    """Return a priority; UNKNOWN for the two numbers by which Slurm says that there is none."""
    return UNKNOWN if priority in _NO_VALUES else priority


def read_memory(text: str) -> tuple[int, str]:
    """Read memory into MB (a number alone is MB) and ``c`` or ``n`` where it is that of each CPU or node."""
    match = _MEMORY.fullmatch(text.strip())
    if not match:
        return UNKNOWN, ""
    megabytes = float(match[1]) * _MEGABYTES[match[2].upper()]
    return bounded(round(megabytes)), match[3].lower()


def requested_memory(text: str, cpu_milli: int, nodes: int) -> int:
    """Read ReqMem into MB of the whole job: ``2800Mc`` is for each CPU, ``2800Mn`` for each node."""
    memory, each = read_memory(text)
    if memory in (UNKNOWN, 0):  # 0 is all memory of the nodes, whatever that is
        return UNKNOWN
    if each == "c":
        return UNKNOWN if cpu_milli == UNKNOWN else bounded(memory * cpu_milli // CPU_MILLI)
    if each == "n":
        return UNKNOWN if nodes == UNKNOWN else bounded(memory * nodes)
    return memory


def read_span(text: str, alone: int = MICROSECONDS) -> int:
    """Read ``1-02:03:04``, ``02:03:04`` or ``03:04`` into microseconds; a number alone is of unit ``alone``.

    UNKNOWN for UNLIMITED, Partition_Limit and whatever is no span.
    """
    match = _SPAN.fullmatch(text.strip())
    if not match:
        return UNKNOWN
    days, first, second, third, fraction = match.groups()
    if days is not None:
        seconds = 86_400 * int(days) + 3_600 * int(first) + 60 * int(second or 0) + int(third or 0)
    elif third is not None:
        seconds = 3_600 * int(first) + 60 * int(second) + int(third)
    elif second is not None:
        seconds = 60 * int(first) + int(second)
    else:
        return _within(int(first) * alone)
    return _within(seconds * MICROSECONDS + int((fraction or "").ljust(6, "0")))


def _within(span: int) -> int:
    return span if span <= LARGEST else UNKNOWN


def epoch(seconds: float) -> int:
    """Turn seconds since 1970 into microseconds; UNKNOWN for 0, which Slurm writes for no time."""
    known = isfinite(seconds) and 0 < seconds <= LARGEST // MICROSECONDS
    return round(seconds * MICROSECONDS) if known else UNKNOWN


def read_state(text: str) -> str:
    """Return the state without who caused it: ``CANCELLED by 1000`` is CANCELLED."""
    return text.split(" ", 1)[0].rstrip("+").upper()


def read_nodes(text: str) -> tuple[str, int]:
    """Return a list of nodes as it is written and count them; nothing and UNKNOWN for none or bad notation."""
    stripped = text.strip()
    if stripped.lower() in ABSENT:
        return "", UNKNOWN
    try:
        return stripped, len(expand_names(stripped))
    except ConfigError:
        return "", UNKNOWN


def read_job(text: str) -> tuple[int, int, int, str] | None:
    """Take a job id apart: its number, its task or else -1, its component or else -1, its pending tasks.

    ``123_4`` is task 4 of an array, ``123+1`` is component 1 of a heterogeneous job, ``123_[5-9%2]`` stands
    for tasks that are pending. None for what is no job id.
    """
    match = _JOB.fullmatch(text.strip())
    if not match:
        return None
    task, component = (-1 if group is None else int(group) for group in match.group(2, 3))
    return int(match[1]), task, component, match[4] or ""


def count_tasks(pending: str) -> int:
    """Count the tasks that ``[5-9,12%2]`` stands for, at least 1."""
    count = 0
    for part in pending.strip("[]").partition("%")[0].split(","):
        match = _TASKS.fullmatch(part)
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1) or 1
            count += max(0, (last - first) // step + 1)
    return max(count, 1)
