"""What Tiresias' job tables and those that descend from them have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysim.traces.log import Account, Log
from analysim.traces.readers.tables import Kind, Table, read_table
from analysim.units import GPU_MILLI

REQUIRED: Mapping[str, Kind] = {"job_id": "id", "num_gpu": "number", "submit_time": "number", "duration": "number"}
"""Columns that all of them have."""


def read_jobs(path: Path, unit_us: int, further: Mapping[str, Kind] | None = None) -> tuple[Log, Table]:
    """Read a job a row, times in units of ``unit_us`` microseconds on the trace's own clock.

    The table comes along for the ``further`` columns, which may be missing. Raises ``TraceError``.
    """
    others: dict[str, Kind] = {"model_name": "text", **(further or {})}
    table = read_table(path, {**REQUIRED, **others}, optional=others)
    columns = {
        "job_id": table.ids("job_id"),
        "submit_us": table.scaled("submit_time", unit_us),
        "duration_us": table.scaled("duration", unit_us),
        "gpu_milli": table.scaled("num_gpu", GPU_MILLI),
        "model": table.text("model_name"),
    }
    return Log(columns, table.row, Account(rows=table.rows), dated=False), table
