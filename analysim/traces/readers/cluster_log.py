"""What the job logs of Helios and Acme share: the same columns, states and zone, one row a job."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from analysim.traces.log import UNKNOWN
from analysim.traces.readers.amounts import difference, spread_over_nodes, witness
from analysim.traces.readers.tables import Table
from analysim.units import CPU_MILLI, GPU_MILLI, MICROSECONDS

ZONE = "Asia/Shanghai"
"""Where both clusters stand."""

_UNFINISHED = ("RUNNING", "SUSPENDED")


def read_columns(table: Table) -> dict[str, Any]:
    """Read what both logs tell of a job, under the names of a ``Log``; the run time is for each to say."""
    gpus = table.scaled("gpu_num", GPU_MILLI)
    return {
        "job_id": table.ids("job_id"),
        "submit_us": table.moment("submit_time"),
        "gpu_milli": gpus,
        "gpus_per_node": spread_over_nodes(gpus, table.number("node_num")),
        "cpu_milli": table.amount("cpu_num", CPU_MILLI),
        "user": table.text("user"),
        "status": table.text("state"),
        "recorded_start_us": table.moment("start_time"),
        "recorded_end_us": table.moment("end_time"),
    }


def find_running(columns: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Mark the jobs that had not ended when the log did."""
    unfinished = columns["status"].isin(_UNFINISHED).to_numpy()
    running: npt.NDArray[np.bool_] = unfinished & (columns["recorded_end_us"] == UNKNOWN)
    return running


def check_queue(table: Table, columns: dict[str, Any]) -> list[str]:
    """Compare the seconds told in ``queue`` with the recorded wait; a note where they differ."""
    waited = difference(columns["recorded_start_us"], columns["submit_us"])
    return witness("queue", table.scaled("queue", MICROSECONDS), waited, "start_time - submit_time")
