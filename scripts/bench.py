"""Measure the engine against a bare SimPy loop, in one process.

``python scripts/bench.py`` prints a table, ``--json`` the list that machines read; ``--case`` and ``--policy`` may be
repeated. CPU time, best of ``--repeat``; the bare loop runs before and after, and its best is what ratios refer to.
The Venus and Philly cases need the public traces (``--venus FILE``, ``--philly FILE``); without them they are left out,
and it is said. Policies that go by estimates are given exact ones. ``ratio_to_fifo`` is there where fifo ran too.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import simpy
from simpy.events import Timeout

from analysim.clusters import load_cluster
from analysim.config.cluster import ClusterConfig
from analysim.config.run import RunConfig
from analysim.engine import Simulation
from analysim.policy.loading import load_policy
from analysim.shelf import find, list_shelf
from analysim.traces import read_trace
from analysim.traces.schema import OPTIONAL

POLICIES = ("fifo", "sjf", "srtf", "preempt", "migrate")
VENUS = Path(__file__).resolve().parents[2] / "shared/traces/helios/venus_gpu_jobs.csv.gz"
PHILLY = VENUS.parents[1] / "philly/philly_sia.csv.gz"
PHILLY_COLUMNS = {"submit_time": "timestamp"}
VENUS_COLUMNS = {"submit_time": "arrival_s", "duration": "service_sec", "num_gpus": "gpu_count"}


@dataclass(frozen=True)
class Case:
    """A trace and a cluster, made when the case runs."""

    name: str
    says: str
    make: Callable[[argparse.Namespace], tuple[pd.DataFrame, ClusterConfig]]
    every_policy: bool = False


def flat_cluster(gpus: int, cpus: int | None = None, memory_gb: int | None = None) -> ClusterConfig:
    """One pool of 8-GPU nodes in racks of 8."""
    node = {"gpus": 8, "cpus": cpus, "memory_gb": memory_gb}
    racks = [{"name": f"rack[000-{gpus // 64 - 1:03d}]", "nodes": [{"type": "node", "count": 8}]}]
    return ClusterConfig.model_validate({"name": f"flat-{gpus}", "node_types": {"node": node}, "racks": racks})


def synthetic(
    jobs: int, load: float, sizes: dict[int, float], durations: Callable[[Any, int], Any], shapes: int = 0
) -> pd.DataFrame:
    """Poisson arrivals of jobs of these sizes and durations at a load on 4,096 GPUs, from a fixed seed."""
    random = np.random.default_rng(20261129)
    gpus = random.choice(list(sizes), jobs, p=list(sizes.values()))
    duration_s = np.maximum(1.0, durations(random, jobs))
    gaps = random.exponential(1.0, jobs)
    gaps *= (gpus * duration_s).sum() / (4_096 * load) / gaps.sum()
    frame = pd.DataFrame({"job_id": np.arange(jobs), "submit_us": (np.cumsum(gaps) * 1e6).astype(np.int64)})
    frame["duration_us"] = (duration_s * 1e6).astype(np.int64)
    frame["gpu_milli"] = gpus * 1_000
    for column, value in OPTIONAL.items():
        frame[column] = value
    if shapes:
        # Requests per GPU of up to 8 CPUs and 64 GB on nodes with room for them: GPUs decide, shapes abound.
        kind = random.integers(0, shapes, jobs)
        frame["cpu_milli"] = gpus * (1_000 + kind % 100 * 70)
        frame["memory_mb"] = gpus * (1_024 + kind // 100 * 1_024)
    return frame


def _heavy(random: Any, jobs: int) -> Any:
    return random.lognormal(6.5, 1.5, jobs)


def _narrow(random: Any, jobs: int) -> Any:
    return random.uniform(900.0, 1_100.0, jobs)


MIX = {1: 0.60, 2: 0.15, 4: 0.10, 8: 0.10, 16: 0.03, 32: 0.02}
PAIR = {4: 0.5, 8: 0.5}
"""Two sizes and narrow durations: whichever policy, what waits is counted in tens of thousands of jobs."""


def _venus(topology: str) -> Callable[[argparse.Namespace], tuple[pd.DataFrame, ClusterConfig]]:
    def make(arguments: argparse.Namespace) -> tuple[pd.DataFrame, ClusterConfig]:
        frame = read_trace(arguments.venus, VENUS_COLUMNS).frame
        return frame, load_cluster(find("topologies", topology))

    return make


def _philly(arguments: argparse.Namespace) -> tuple[pd.DataFrame, ClusterConfig]:
    return read_trace(arguments.philly, PHILLY_COLUMNS).frame, load_cluster(find("topologies", "philly-640"))


def _flat(
    jobs: int, load: float, sizes: dict[int, float], durations: Callable[[Any, int], Any], shapes: int = 0
) -> Callable[[argparse.Namespace], tuple[pd.DataFrame, ClusterConfig]]:
    def make(_: argparse.Namespace) -> tuple[pd.DataFrame, ClusterConfig]:
        cluster = flat_cluster(4_096, 64, 512) if shapes else flat_cluster(4_096)
        return synthetic(jobs, load, sizes, durations, shapes), cluster

    return make


CASES = {
    case.name: case
    for case in (
        Case("venus", "125,303 jobs of Venus, 1,064 GPUs: no queue to speak of", _venus("helios-venus")),
        Case("venus-640", "125,303 jobs of Venus, 640 GPUs: a real queue", _venus("venus-640"), True),
        Case("philly-640", "82,247 jobs of Philly, 640 GPUs: a real queue", _philly, True),
        Case("million", "1,000,000 jobs, heavy tails, 4,096 GPUs, load 0.9", _flat(1_000_000, 0.9, MIX, _heavy)),
        Case("half-million", "the same with half the jobs", _flat(500_000, 0.9, MIX, _heavy)),
        Case("calm", "200,000 jobs, narrow durations, load 0.9", _flat(200_000, 0.9, PAIR, _narrow)),
        Case("overload", "the same at load 1.2", _flat(200_000, 1.2, PAIR, _narrow)),
        Case("double-overload", "the same with twice the jobs", _flat(400_000, 1.2, PAIR, _narrow)),
        Case("calm-shapes", "calm with 5,000 distinct requests", _flat(200_000, 0.9, PAIR, _narrow, 5_000)),
        Case("overload-shapes", "overload with 5,000 distinct requests", _flat(200_000, 1.2, PAIR, _narrow, 5_000)),
    )
}


def bare_loop(frame: pd.DataFrame) -> float:
    """CPU microseconds a job of SimPy alone: callbacks on Timeouts, one armed arrival, one Timeout a job."""
    environment = simpy.Environment()
    submits = frame["submit_us"].tolist()
    durations = frame["duration_us"].tolist()
    position = 0

    def finish(_: Any) -> None:
        pass

    def arrive(_: Any) -> None:
        nonlocal position
        Timeout(environment, durations[position]).callbacks.append(finish)
        position += 1
        if position < len(submits):
            Timeout(environment, submits[position] - submits[position - 1]).callbacks.append(arrive)

    Timeout(environment, submits[0]).callbacks.append(arrive)
    began = time.process_time()
    environment.run()
    return (time.process_time() - began) / len(submits) * 1e6


def backlog(jobs: pd.DataFrame) -> int:
    """The most jobs that waited for their first start at one instant."""
    submits = jobs["submit_time_s"].to_numpy()
    starts = np.sort(jobs["first_start_time_s"].to_numpy())
    arrived = np.searchsorted(submits, starts, side="left")
    return int((arrived - np.arange(len(starts))).max(initial=0))


def every_policy() -> list[str]:
    """All policies on the shelf but ``replay``, which repeats what was recorded; fifo first."""
    names = [name for name, _ in list_shelf("policies") if name != "replay"]
    return sorted(names, key=lambda name: (name != "fifo", name))


def policies_of(case: Case) -> list[str]:
    """The policies that a case runs: a few, or every one."""
    return every_policy() if case.every_policy else list(POLICIES)


def measure(case: Case, policies: list[str], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Run one case under several policies; the bare loop before and after each."""
    frame, cluster = case.make(arguments)
    frame["estimate_us"] = frame["duration_us"]  # for policies that go by estimates
    bare = [bare_loop(frame) for _ in range(2)]
    rows = []
    for name in policies:
        best: Simulation | None = None
        for _ in range(arguments.repeat):
            simulation = Simulation(frame, cluster, load_policy(name)(), RunConfig(trace=case.name))
            tables = simulation.run()
            bare.append(bare_loop(frame))
            if best is None or simulation.cpu_seconds < best.cpu_seconds:
                best = simulation
        assert best is not None
        rows.append(
            {
                "case": case.name,
                "policy": name,
                "jobs": len(frame),
                "gpus": best.topology.gpus,
                "seconds": round(best.cpu_seconds, 4),
                "jobs_per_second": round(len(frame) / best.cpu_seconds),
                "bare_loop_us_per_job": 0.0,
                "ratio_to_bare_loop": 0.0,
                "events": best.events,
                "passes": best.passes,
                "us_per_pass": round(best.cpu_seconds / max(best.passes, 1) * 1e6, 1),
                "placements": best.books.placements,
                "ledger_rows": len(tables.segments),
                "preemptions": int(tables.jobs["preemptions"].sum()),
                "migrations": int(tables.jobs["migrations"].sum()),
                "backlog": backlog(tables.jobs),
                "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024),
            }
        )
    fifo = next((row["seconds"] for row in rows if row["policy"] == "fifo"), None)
    for row in rows:
        row["ratio_to_fifo"] = round(row["seconds"] / fifo, 2) if fifo else None
        row["bare_loop_us_per_job"] = round(min(bare), 3)
        row["ratio_to_bare_loop"] = round(row["seconds"] / row["jobs"] * 1e6 / min(bare), 2)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    columns = (
        *("case", "policy", "jobs", "seconds", "jobs_per_second", "bare_loop_us_per_job", "ratio_to_bare_loop"),
        *("ratio_to_fifo", "passes", "us_per_pass", "ledger_rows", "preemptions", "backlog", "peak_memory_mb"),
    )
    widths = [max(len(name), *(len(str(row[name])) for row in rows)) for name in columns]
    print("  ".join(name.rjust(width) for name, width in zip(columns, widths, strict=True)))
    for row in rows:
        print("  ".join(str(row[name]).rjust(width) for name, width in zip(columns, widths, strict=True)), flush=True)


def main() -> int:
    """Read the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="default: all")
    parser.add_argument("--policy", action="append", help="default: those of the case")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--venus", type=Path, default=VENUS, help="the Venus job list, gzipped CSV")
    parser.add_argument("--philly", type=Path, default=PHILLY, help="the Philly job list, gzipped CSV")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in arguments.case or list(CASES):
        needed = {"venus": arguments.venus, "philly": arguments.philly}.get(name.split("-")[0])
        if needed is not None and not needed.exists():
            print(f"{name} is left out: {needed} is not there", file=sys.stderr)
            continue
        measured = measure(CASES[name], arguments.policy or policies_of(CASES[name]), arguments)
        rows.extend(measured)
        if not arguments.json:
            print(f"\n{name}: {CASES[name].says}")
            show(measured)
    if arguments.json:
        print(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
