"""Small runs, placed by hand or by a plain first-come rule, for the tests of figures and exports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from analysim.metrics import make_timeline
from analysim.tables import RunTables

Row = dict[str, Any]

JOB_COLUMNS: Row = {
    "job_id": 0,
    "submit_time_s": 0.0,
    "first_start_time_s": np.nan,
    "end_time_s": np.nan,
    "num_gpus": 1.0,
    "tenant": "",
    "partition": "",
    "state": "completed",
    "wait_s": np.nan,
    "total_wait_s": np.nan,
    "jct_s": np.nan,
    "preemptions": 0,
    "migrations": 0,
    "held_s": np.nan,
    "duration_s": 0.0,
    "gpus_per_node": np.nan,
    "gpu_type": "",
    "cpus": np.nan,
    "memory_gb": np.nan,
}
SEGMENT_COLUMNS: Row = {
    "job_id": 0,
    "start_s": 0.0,
    "end_s": 0.0,
    "node": "",
    "gpus": 1.0,
    "gpu_ids": "0",
    "kind": "run",
    "speed": 1.0,
    "progress_s": 0.0,
    "cpus": 0.0,
    "memory_gb": 0.0,
}
CAPACITY_COLUMNS: Row = {
    "time_s": 0.0,
    "node": "",
    "node_type": "n",
    "gpu_type": "V100",
    "rack": "r0",
    "pod": "",
    "gpus": 8.0,
    "cpus": np.nan,
    "memory_gb": np.nan,
}


def fill(rows: list[Row], columns: Row) -> pd.DataFrame:
    """Make a table of rows that name only what differs from the defaults."""
    table = pd.DataFrame([{**columns, **row} for row in rows], columns=list(columns))
    return table.astype({name: type(value) for name, value in columns.items() if name != "job_id"})


def make_tables(jobs: list[Row], segments: list[Row], capacity: list[Row]) -> RunTables:
    """Make the tables of a run, with its timeline."""
    empty = pd.DataFrame()
    tables = RunTables(
        fill(jobs, JOB_COLUMNS),
        fill(segments, SEGMENT_COLUMNS),
        fill(capacity, CAPACITY_COLUMNS),
        empty,
        empty,
        empty,
        empty,
    )
    tables.timeline = make_timeline(tables)
    return tables


def node_names(nodes: int, in_rack: int = 8) -> list[tuple[str, str]]:
    """Name nodes and their racks."""
    return [(f"r{i // in_rack:03d}-n{i % in_rack}", f"r{i // in_rack:03d}") for i in range(nodes)]


def simulate(jobs: int, nodes: int, tenants: list[str], seed: int = 0) -> RunTables:
    """Run jobs of 1, 2, 4 or 8 GPUs, each alone on the node that is free first.

    Every fourth job is checkpointed and restarted half way.
    """
    random = np.random.default_rng(seed)
    submit = np.sort(random.integers(0, 40 * jobs, jobs)).astype(float)
    duration = np.ceil(np.exp(random.normal(6, 2, jobs)))
    gpus = random.choice([1, 2, 4, 8], jobs)
    places = node_names(nodes)
    free_at = np.zeros(nodes)
    job_rows: list[Row] = []
    segment_rows: list[Row] = []
    for job in range(jobs):
        node = int(free_at.argmin())
        start = max(submit[job], free_at[node])
        ids = {"node": places[node][0], "gpus": float(gpus[job]), "gpu_ids": f"0-{gpus[job] - 1}"}
        pieces = intervals(job, start, duration[job], stopped=job % 4 == 0)
        segment_rows += [{**piece, **ids} for piece in pieces]
        free_at[node] = pieces[-1]["end_s"]
        asked = {
            "num_gpus": float(gpus[job]),
            "duration_s": duration[job],
            "tenant": tenants[job % len(tenants)],
        }
        job_rows.append({**completed(job, submit[job], start, free_at[node]), **asked})
    capacity = [{"time_s": float(submit[0]), "node": node, "rack": rack} for node, rack in places]
    return make_tables(job_rows, segment_rows, capacity)


def intervals(job: int, start_s: float, duration_s: float, *, stopped: bool) -> list[Row]:
    """Run a job in one go, or stop it half way for a checkpoint and a restart."""
    half = float(duration_s // 2)
    pieces = [("run", half), ("checkpoint", 30.0), ("restart", 60.0), ("run", duration_s - half)]
    rows: list[Row] = []
    for kind, length in pieces if stopped else [("run", duration_s)]:
        progress = length if kind == "run" else 0.0
        rows.append(
            {
                "job_id": job,
                "start_s": start_s,
                "end_s": start_s + length,
                "kind": kind,
                "progress_s": progress,
            }
        )
        start_s += length
    return rows


def completed(job: int, submit_s: float, start_s: float, end_s: float) -> Row:
    """Write the times of a completed job."""
    wait = start_s - submit_s
    return {
        "job_id": job,
        "submit_time_s": submit_s,
        "first_start_time_s": start_s,
        "end_time_s": end_s,
        "wait_s": wait,
        "total_wait_s": wait,
        "jct_s": end_s - submit_s,
        "held_s": end_s - start_s,
    }


def one_job() -> RunTables:
    """One job of 4 GPUs for an hour on one node, from second 5 on."""
    return make_tables(
        [{**completed(0, 5.0, 5.0, 3605.0), "num_gpus": 4.0, "duration_s": 3600.0, "tenant": "ann"}],
        [
            {**row, "node": "n0", "gpus": 4.0, "gpu_ids": "0-3"}
            for row in intervals(0, 5.0, 3600.0, stopped=False)
        ],
        [{"time_s": 5.0, "node": "n0"}],
    )


def all_rejected() -> RunTables:
    """Twenty jobs, all too large for the one node."""
    asked = {"num_gpus": 64.0, "duration_s": 9.0, "state": "rejected"}
    jobs = [{"job_id": i, "submit_time_s": float(i), **asked} for i in range(20)]
    return make_tables(jobs, [], [{"node": "n0"}])


def nothing() -> RunTables:
    """No job at all, on one node."""
    return make_tables([], [], [{"node": "n0"}])
