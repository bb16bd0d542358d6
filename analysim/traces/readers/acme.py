"""Shanghai AI Lab's Acme (2023): job logs of its clusters Seren and Kalos, and a conversion of Kalos.

Native ``trace_seren.csv`` and ``trace_kalos.csv`` (https://github.com/InternLM/AcmeTrace), and the converted
``job_id, arrival_time, num_iteration, iteration_computing_time, ..., gpu_workers, gpu_per_worker``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.readers.amounts import Integers, count_differing, difference, scale, witness
from analysim.traces.readers.cluster_log import ZONE, check_queue, find_running, read_columns
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.tables import Kind, Table, has_columns, read_table
from analysim.traces.readers.zones import name_zone
from analysim.units import GPU_MILLI, MEGABYTES, MICROSECONDS

_KINDS: dict[str, Kind] = {
    "job_id": "id",
    "user": "text",
    "node_num": "number",
    "gpu_num": "number",
    "cpu_num": "number",
    "mem_per_pod_GB": "number",
    "type": "text",
    "state": "text",
    "submit_time": "moment",
    "start_time": "moment",
    "end_time": "moment",
    "duration": "number",
    "queue": "number",
    "gpu_time": "number",
}
_OPTIONAL = ("user", "cpu_num", "mem_per_pod_GB", "duration", "queue", "gpu_time")

_CONVERTED: dict[str, Kind] = {
    "job_id": "id",
    "arrival_time": "number",
    "num_iteration": "number",
    "iteration_computing_time": "number",
    "gpu_workers": "number",
    "gpu_per_worker": "number",
}


def _recognises(sample: Sample) -> bool:
    needed = [name for name in _KINDS if name not in _OPTIONAL]
    return has_columns(sample.header, *needed, "queue") and "vc" not in sample.header


def _read(path: Path, options: ReadOptions) -> Log:
    table = read_table(path, _KINDS, timezone=options.timezone, optional=_OPTIONAL)
    columns = read_columns(table)
    submit, start, end = (columns[name] for name in ("submit_us", "recorded_start_us", "recorded_end_us"))
    columns |= {
        "duration_us": difference(end, start),
        "memory_mb": _memory(table),
        "model": table.text("type"),
    }
    notes = [
        *name_zone(max(table.naive.values()), options.timezone, "Acme's", ZONE),
        *_check_duration(table, submit, start, end),
        *check_queue(table, columns),
        *_check_gpu_time(table),
    ]
    running = find_running(columns)
    return Log(columns, table.row, Account(table.rows), dated=True, running=running, notes=notes)


def _memory(table: Table) -> Integers:
    """Memory is told for each pod, and a pod fills a node's share of the job."""
    whole = scale(table.number("mem_per_pod_GB") * np.maximum(table.number("node_num"), 1), MEGABYTES)
    return np.where(whole < 0, UNKNOWN, whole)


def _check_duration(table: Table, submit: Integers, start: Integers, end: Integers) -> list[str]:
    """Kalos counts ``duration`` from the submission: it is never what a job ran."""
    told = table.scaled("duration", MICROSECONDS)
    ran, both = count_differing(told, difference(end, start))
    stayed, _ = count_differing(told, difference(end, submit))
    if ran and stayed < ran:
        return [f"duration is end_time - submit_time (as in Kalos): {both:,} jobs run from start_time to end_time."]
    return witness("duration", told, difference(end, start), "end_time - start_time")


def _check_gpu_time(table: Table) -> list[str]:
    told = table.scaled("gpu_time", MICROSECONDS)
    computed = scale(table.number("duration") * table.number("gpu_num"), MICROSECONDS)
    return witness("gpu_time", told, computed, "duration * gpu_num", then="")


def _recognises_converted(sample: Sample) -> bool:
    return has_columns(sample.header, *_CONVERTED)


def _read_converted(path: Path, options: ReadOptions) -> Log:
    table = read_table(path, _CONVERTED)
    gpus = table.number("gpu_workers") * table.number("gpu_per_worker")
    seconds = table.number("num_iteration") * table.number("iteration_computing_time")
    columns = {
        "job_id": table.ids("job_id"),
        "submit_us": table.scaled("arrival_time", MICROSECONDS),
        "duration_us": scale(seconds, MICROSECONDS),
        "gpu_milli": scale(gpus, GPU_MILLI),
        "gpus_per_node": np.maximum(scale(table.number("gpu_per_worker"), 1), 0),
    }
    notes = ["A job runs num_iteration * iteration_computing_time seconds; its network time is left out."]
    return Log(columns, table.row, Account(table.rows), dated=False, notes=notes)


FORMAT = Format("acme", "Shanghai AI Lab Acme, trace_seren.csv and trace_kalos.csv", _recognises, _read)
CONVERTED = Format("acme-converted", "Acme Kalos, converted to iterations", _recognises_converted, _read_converted)
