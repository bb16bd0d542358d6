"""The trace schema: which columns a file may have, and what becomes of each in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analysim.units import CPU_MILLI, GPU_MILLI, MEGABYTES, MICROSECONDS

Kind = Literal["id", "time", "duration", "gpus", "count", "amount", "integer", "flag", "text"]
"""How the cells of a column are read."""

ABSENT = -1
"""What stands in an integer column where the file says nothing."""


@dataclass(frozen=True)
class Column:
    """One column of the schema: its name in a file, its name and unit in the frame, its meaning.

    ``scale`` is the number of frame units in one file unit (a second is 1,000,000 microseconds), ``choices`` are
    the words that may stand in the column, if only some may.
    """

    name: str
    target: str
    kind: Kind
    meaning: str
    default: int | bool | str = ABSENT
    scale: int = 1
    required: bool = False
    choices: tuple[str, ...] = ()


TOPOLOGY_LEVELS = ("node", "nvlink", "rack", "pod")
"""Parts of the physical tree that a gang can be asked to stay within."""

COLUMNS = (
    Column("job_id", "job_id", "id", "unique; integers if all are, else text"),
    Column("submit_time", "submit_us", "time", "when the job was submitted", 0, MICROSECONDS, True),
    Column("duration", "duration_us", "duration", "run time at speed 1", 0, MICROSECONDS, True),
    Column("num_gpus", "gpu_milli", "gpus", "GPUs in all, or a share of one; 0 is a CPU job", 0, GPU_MILLI, True),
    Column(
        "gpus_per_node", "gpus_per_node", "count", "exactly so many GPUs on each node; divides num_gpus", 0
    ),
    Column("gpu_type", "gpu_type", "text", "GPU type; alternatives A|B are tried in the order written", ""),
    Column("features", "features", "text", "features of nodes: A&B asks for both, A|B for either", ""),
    Column("cpus", "cpu_milli", "amount", "CPUs of the whole job", 0, CPU_MILLI),
    Column("memory_gb", "memory_mb", "amount", "memory of the whole job, GB", 0, MEGABYTES),
    Column("tenant", "tenant", "text", "who pays, as a path: org/team", ""),
    Column("user", "user", "text", "who submitted", ""),
    Column("partition", "partition", "text", "leaf partition (queue, virtual cluster)", ""),
    Column("priority", "priority", "integer", "larger is more important", 0),
    Column("preemptible", "preemptible", "flag", "may be stopped once it runs", True),
    Column("estimated_duration", "estimate_us", "duration", "what the user expected", scale=MICROSECONDS),
    Column("cancel_time", "cancel_us", "time", "withdrawn if still pending then", scale=MICROSECONDS),
    Column("checkpoint_s", "checkpoint_us", "duration", "cost of saving its state", scale=MICROSECONDS),
    Column("restart_s", "restart_us", "duration", "cost of loading its state", scale=MICROSECONDS),
    Column("deadline", "deadline_us", "time", "when it should have ended", scale=MICROSECONDS),
    Column("min_gpus", "min_gpus", "count", "an elastic job runs on so many GPUs at least", 0),
    Column("max_gpus", "max_gpus", "count", "an elastic job runs on so many GPUs at most", 0),
    Column("throughput", "throughput", "text", "how an elastic job's speed follows its GPUs", ""),
    Column(
        "topology_required", "topology_required", "text", "level the gang must stay within", "", choices=TOPOLOGY_LEVELS
    ),
    Column(
        "topology_preferred", "topology_preferred", "text", "level it would rather stay within", "",
        choices=TOPOLOGY_LEVELS,
    ),
    Column("topology_wait", "topology_wait_us", "duration", "how long it waits for that level", scale=MICROSECONDS),
    Column("status", "status", "text", "how it ended when it was recorded", ""),
    Column("model", "model", "text", "what it trains or serves", ""),
    Column("start_time", "recorded_start_us", "time", "recorded start", scale=MICROSECONDS),
    Column("end_time", "recorded_end_us", "time", "recorded end", scale=MICROSECONDS),
    Column("node", "recorded_node", "text", "recorded node or nodes", ""),
)
"""All columns of the schema, in the order in which they are written."""

BY_NAME = {column.name: column for column in COLUMNS}
"""The columns by their name in a file."""

OPTIONAL = {column.target: column.default for column in COLUMNS if not column.required and column.kind != "id"}
"""What stands in each optional column of a frame where a trace says nothing."""

FRAME_COLUMNS = tuple(column.target for column in COLUMNS)
"""The columns of a trace in memory, all always present, in this order."""
