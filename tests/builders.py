"""Small traces, clusters and policies in code, and a run of them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysim.config.cluster import ClusterConfig, Costs
from analysim.config.run import RunConfig
from analysim.engine import Simulation
from analysim.policy import Order, Plan, Policy
from analysim.tables import RunTables
from analysim.traces.schema import OPTIONAL

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = (
    *("fifo", "preempt", "migrate", "defragment", "sjf", "srtf", "srsf", "lsf", "las", "gittins", "lottery"),
    *("afs", "optimus"),
)
SHARING = ("gandiva", "themis")
"""Ours, too: they tick while jobs wait, so a large run of them takes a minute or two; themis needs estimates."""
FREE = Costs(checkpoint_s=0, restart_s=0)
"""Stopping and moving cost nothing."""

SECOND = 1_000_000


def shared_file(name: str) -> Path:
    """Find a real file that is not part of the repository; the test is skipped where it is not at hand."""
    path = ROOT.parent / "shared" / name
    if not path.exists():
        pytest.skip(f"{path} is not there: real traces are not part of the repository")
    return path


def frame(**columns: Any) -> pd.DataFrame:
    """A trace in memory from arrays or single values of the canonical columns; ids are 0, 1, ... if not given."""
    count = len(columns["submit_us"])
    given = {"job_id": np.arange(count), **OPTIONAL, **columns}
    table = pd.DataFrame(given)
    for name in ("submit_us", "duration_us", "gpu_milli"):
        table[name] = table[name].astype(np.int64)
    return table.sort_values(["submit_us", "job_id"], ignore_index=True)


def job(job_id: Any, submit: float, duration: float, gpus: float = 1, **given: Any) -> dict[str, Any]:
    """A row of a trace. Times in seconds: also ``estimate``, ``cancel``, ``checkpoint``, ``restart``,
    ``deadline``, ``topology_wait``."""
    row: dict[str, Any] = {
        "job_id": job_id,
        "submit_us": round(submit * SECOND),
        "duration_us": round(duration * SECOND),
        "gpu_milli": round(gpus * 1000),
    }
    for name, value in given.items():
        if name in ("estimate", "cancel", "checkpoint", "restart", "deadline", "topology_wait"):
            row[f"{name}_us"] = round(value * SECOND)
        elif name == "cpus":
            row["cpu_milli"] = round(value * 1000)
        else:
            row[name] = value
    return row


def trace(*rows: dict[str, Any]) -> pd.DataFrame:
    """A trace in memory from rows of ``job``."""
    names = dict.fromkeys(name for row in rows for name in row)
    return frame(**{name: [row.get(name, OPTIONAL.get(name)) for row in rows] for name in names})


def flat_cluster(nodes: int, gpus: int, **fields: Any) -> ClusterConfig:
    """One rack ``r`` of equal nodes r-n00, r-n01, ...; further fields of the cluster file as they stand there."""
    return cluster({"n": {"gpus": gpus, "gpu_type": "V100"}}, {"r": [("n", nodes)]}, **fields)


def cluster(
    node_types: Mapping[str, Mapping[str, Any]], racks: Mapping[str, list[tuple[str, int]]], **fields: Any
) -> ClusterConfig:
    """A cluster of racks with (node type, count) each."""
    return ClusterConfig.model_validate(
        {
            "name": "test",
            "node_types": node_types,
            "racks": [
                {"name": name, "nodes": [{"type": kind, "count": count} for kind, count in groups]}
                for name, groups in racks.items()
            ],
            **fields,
        }
    )


@cache
def shipped(name: str) -> type[Policy]:
    """The class of a policy file of ours."""
    spec = importlib.util.spec_from_file_location(f"shipped_{name}", ROOT / "policies" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Policy)]
    return next(value for value in found if value.name == name)


def scripted(schedule: Callable[[Plan], object], **attributes: Any) -> Policy:
    """A policy from one function; class attributes such as ``knowledge`` or an order may be given."""

    class Scripted(Policy):
        name = "scripted"

        def schedule(self, plan: Plan) -> Any:
            return schedule(plan)

    for name, value in attributes.items():
        setattr(Scripted, name, value)
        if isinstance(value, Order):
            value.__set_name__(Scripted, name)
    return Scripted()


def timetable(steps: Mapping[float, Callable[[Plan], object]], **attributes: Any) -> Policy:
    """A policy that does one thing at each instant (seconds) it names, waking itself up, and nothing else."""
    times = {round(when * SECOND): step for when, step in steps.items()}

    def schedule(plan: Plan) -> None:
        step = times.get(plan.now)
        if step is not None:
            step(plan)
        later = min((when for when in times if when > plan.now), default=None)
        if later is not None:
            plan.wake_at(later)

    return scripted(schedule, idle_passes=True, **attributes)


@dataclass
class Outcome:
    """A finished run."""

    simulation: Simulation
    tables: RunTables

    @property
    def jobs(self) -> pd.DataFrame:
        """The table of jobs by id."""
        return self.tables.jobs.set_index("job_id")

    def segments(self, *ids: Any) -> list[tuple[Any, ...]]:
        """(job, kind, start, end, node, GPUs, progress) of each segment, of all jobs or of some."""
        columns = ["job_id", "kind", "start_s", "end_s", "node", "gpu_ids", "progress_s"]
        rows = self.tables.segments[columns].itertuples(index=False, name=None)
        return [row for row in rows if not ids or row[0] in ids]

    def decisions(self, *actions: str) -> list[tuple[Any, ...]]:
        """(time, job, action, reason) of each decision, of all kinds or of some."""
        rows = self.tables.decisions[["time_s", "job_id", "action", "reason"]].itertuples(index=False, name=None)
        return [row for row in rows if not actions or row[2] in actions]

    def times(self, job_id: Any) -> tuple[float, float]:
        """First start and end of a job in seconds."""
        row = self.jobs.loc[job_id]
        return float(row["first_start_time_s"]), float(row["end_time_s"])

    def state(self, job_id: Any) -> str:
        """How a job ended."""
        return str(self.jobs.loc[job_id, "state"])


def run(
    rows: pd.DataFrame,
    cluster: ClusterConfig,
    policy: Policy | str = "fifo",
    *,
    options: Mapping[str, Any] | None = None,
    check: bool = True,
    skip_shapes: bool = True,
    **config: Any,
) -> Outcome:
    """Run a policy (one of ours by name) over a trace; costs and other fields of the run configuration as named."""
    chosen = shipped(policy)(options) if isinstance(policy, str) else policy
    settings = RunConfig(trace="test", **config)
    simulation = Simulation(rows, cluster, chosen, settings, check=check, skip_shapes=skip_shapes)
    return Outcome(simulation, simulation.run())


def same_tables(left: RunTables, right: RunTables) -> list[str]:
    """Names of the tables that differ in any cell."""
    names = ("jobs", "segments", "capacity", "decisions", "rejected", "notes")
    return [name for name in names if not getattr(left, name).equals(getattr(right, name))]
