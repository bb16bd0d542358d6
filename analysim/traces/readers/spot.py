"""Alibaba's spot GPU trace (v2026): ``job_info_df.csv``.

https://github.com/alibaba/clusterdata/tree/master/cluster-trace-v2026-spot-gpu
"""

from __future__ import annotations

from pathlib import Path

from analysim.traces.log import Account, Log
from analysim.traces.readers.amounts import scale
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.tables import Kind, has_columns, read_table
from analysim.units import CPU_MILLI, GPU_MILLI, MICROSECONDS

_KINDS: dict[str, Kind] = {
    "job_name": "id",
    "organization": "text",
    "gpu_model": "text",
    "cpu_request": "number",
    "gpu_request": "number",
    "worker_num": "number",
    "submit_time": "number",
    "duration": "number",
    "job_type": "text",
}
_HIGH, _SPOT = "hp", "spot"


def _recognises(sample: Sample) -> bool:
    return has_columns(sample.header, *_KINDS)


def _read(path: Path, options: ReadOptions) -> Log:
    table = read_table(path, _KINDS)
    workers = table.number("worker_num")
    cpus = scale(table.number("cpu_request") * workers, CPU_MILLI)
    kind = table.text("job_type").str.lower()
    high = (kind == _HIGH).to_numpy()
    columns = {
        "job_id": table.ids("job_name"),
        "submit_us": table.scaled("submit_time", MICROSECONDS),
        "duration_us": table.scaled("duration", MICROSECONDS),
        "gpu_milli": scale(table.number("gpu_request") * workers, GPU_MILLI),
        "gpu_type": table.text("gpu_model"),
        "cpu_milli": cpus.clip(min=0),
        "tenant": table.text("organization"),
        "priority": high.astype("int64"),
        "preemptible": ~high,
    }
    neither = int((~high & (kind != _SPOT).to_numpy()).sum())
    notes = [f"{neither:,} jobs are neither HP nor Spot: they count as Spot."] if neither else []
    return Log(columns, table.row, Account(table.rows), dated=False, notes=notes)


FORMAT = Format("alibaba-spot", "Alibaba spot GPU trace v2026, job_info_df.csv", _recognises, _read)
