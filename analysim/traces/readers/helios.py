"""SenseTime Helios (2020): the job logs of its clusters, and the derived list of Venus' GPU jobs.

Native ``cluster_log.csv`` (https://github.com/S-Lab-System-Group/HeliosData) and the derived columns
``job_id, arrival_s, service_sec, gpu_count``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.readers.amounts import difference, witness
from analysim.traces.readers.cluster_log import ZONE, check_queue, find_running, read_columns
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.tables import Kind, has_columns, read_table
from analysim.traces.readers.zones import name_zone
from analysim.units import GPU_MILLI, MICROSECONDS

_KINDS: dict[str, Kind] = {
    "job_id": "id",
    "user": "text",
    "vc": "text",
    "gpu_num": "number",
    "cpu_num": "number",
    "node_num": "number",
    "state": "text",
    "submit_time": "moment",
    "start_time": "moment",
    "end_time": "moment",
    "duration": "number",
    "queue": "number",
}
_OPTIONAL = ("user", "cpu_num", "node_num", "duration", "queue")

_DERIVED: dict[str, Kind] = {
    "job_id": "id",
    "arrival_s": "number",
    "service_sec": "number",
    "gpu_count": "number",
}
_CLAMP_US = 48 * 3_600 * MICROSECONDS


def _recognises(sample: Sample) -> bool:
    needed = [name for name in _KINDS if name not in _OPTIONAL]
    return has_columns(sample.header, *needed, "queue")


def _read(path: Path, options: ReadOptions) -> Log:
    table = read_table(path, _KINDS, timezone=options.timezone, optional=_OPTIONAL)
    columns = read_columns(table)
    told = table.scaled("duration", MICROSECONDS)
    between = difference(columns["recorded_end_us"], columns["recorded_start_us"])
    columns |= {
        "duration_us": np.where(between == UNKNOWN, told, between),
        "tenant": table.text("vc"),
        "partition": table.text("vc"),
    }
    notes = [
        *name_zone(max(table.naive.values()), options.timezone, "Helios'", ZONE),
        *witness("duration", told, between, "end_time - start_time"),
        *check_queue(table, columns),
    ]
    running = find_running(columns)
    return Log(columns, table.row, Account(table.rows), dated=True, running=running, notes=notes)


def _recognises_derived(sample: Sample) -> bool:
    return has_columns(sample.header, *_DERIVED)


def _read_derived(path: Path, options: ReadOptions) -> Log:
    table = read_table(path, _DERIVED)
    duration = table.scaled("service_sec", MICROSECONDS)
    columns = {
        "job_id": table.ids("job_id"),
        "submit_us": table.scaled("arrival_s", MICROSECONDS),
        "duration_us": duration,
        "gpu_milli": table.scaled("gpu_count", GPU_MILLI),
    }
    clamped = int((duration == _CLAMP_US).sum())
    notes = [f"{clamped:,} jobs run 48 h exactly: that is where their service time was clamped."] if clamped else []
    return Log(columns, table.row, Account(table.rows), dated=False, notes=notes)


FORMAT = Format("helios", "SenseTime Helios, cluster_log.csv", _recognises, _read)
DERIVED = Format("helios-derived", "SenseTime Helios, derived list of GPU jobs", _recognises_derived, _read_derived)
