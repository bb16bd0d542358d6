"""Small tables of runs, written by hand, for the tests of the metrics."""

from __future__ import annotations

from typing import Any

import pandas as pd

from analysim.tables import RunTables

NAN = float("nan")


def node(name: str, gpus: int, **columns: Any) -> dict[str, Any]:
    """A row of ``capacity``, at time 0 unless said otherwise."""
    given = {"time_s": 0.0, "node": name, "node_type": "n", "gpu_type": "T4", "rack": "r", "pod": ""}
    return {**given, "gpus": gpus, "cpus": NAN, "memory_gb": NAN, **columns}


def job(job_id: int, submit_s: float, gpus: int, duration_s: float, **columns: Any) -> dict[str, Any]:
    """A row of ``jobs``; ``start_s`` and ``end_s`` make it a completed one that waited in between only."""
    start, end = columns.pop("start_s", NAN), columns.pop("end_s", NAN)
    waited = columns.pop("total_wait_s", start - submit_s)
    return {
        "job_id": job_id,
        "submit_time_s": submit_s,
        "first_start_time_s": start,
        "end_time_s": end,
        "num_gpus": gpus,
        "tenant": "red",
        "partition": "p",
        "state": "completed",
        "wait_s": start - submit_s,
        "total_wait_s": waited,
        "jct_s": end - submit_s,
        "preemptions": 0,
        "migrations": 0,
        "duration_s": duration_s,
        "gpus_per_node": 0,
        "gpu_type": "",
        "cpus": 0.0,
        "memory_gb": 0.0,
        **columns,
    }


def row(
    job_id: int, where: str, gpus: int, start_s: float, end_s: float, kind: str = "run", **columns: Any
) -> dict[str, Any]:
    """A row of ``segments``; a run row makes progress at speed 1."""
    runs = kind == "run"
    return {
        "job_id": job_id,
        "start_s": start_s,
        "end_s": end_s,
        "node": where,
        "gpus": gpus,
        "gpu_ids": "",
        "kind": kind,
        "speed": 1.0 if runs else 0.0,
        "progress_s": end_s - start_s if runs else 0.0,
        "cpus": 0.0,
        "memory_gb": 0.0,
        **columns,
    }


def tables(nodes: list[dict[str, Any]], jobs: list[dict[str, Any]], rows: list[dict[str, Any]]) -> RunTables:
    """Put rows together to the tables of a run."""
    empty = pd.DataFrame()
    return RunTables(
        pd.DataFrame(jobs, columns=list(jobs[0] if jobs else job(0, 0, 0, 0))),
        pd.DataFrame(rows, columns=list(row(0, "", 0, 0, 0))),
        pd.DataFrame(nodes),
        empty,
        empty,
        empty,
        empty,
    )


def six_jobs() -> RunTables:
    """Two nodes of 4 GPUs, six jobs: one waits, one is preempted, one rejected, one withdrawn, one on CPUs.

    ==========  ====================  =============================================
    time in s   node a                node b
    ==========  ====================  =============================================
    0-100       job 1 (4 GPUs)
    10-50                             job 3 (2 GPUs): runs to 40, checkpoint to 50
    60-90                             job 3: restart to 70, runs to 90
    100-130     job 4 (4 GPUs)
    ==========  ====================  =============================================
    """
    jobs = [
        job(1, 0, 4, 100, start_s=0, end_s=100),
        job(2, 5, 0, 20, start_s=5, end_s=25),
        job(3, 10, 2, 50, start_s=10, end_s=90, total_wait_s=10, preemptions=1),
        job(4, 20, 4, 30, start_s=100, end_s=130, tenant="blue"),
        job(5, 30, 16, 10, state="rejected", tenant="green"),
        job(6, 40, 1, 60, state="cancelled", end_s=45, jct_s=NAN, partition="q"),
    ]
    rows = [
        row(2, "", 0, 5, 25),
        row(3, "b", 2, 10, 40),
        row(3, "b", 2, 40, 50, "checkpoint"),
        row(3, "b", 2, 60, 70, "restart"),
        row(3, "b", 2, 70, 90),
        row(1, "a", 4, 0, 100),
        row(4, "a", 4, 100, 130),
    ]
    return tables([node("a", 4), node("b", 4)], jobs, rows)
