"""Simulate one policy on one trace, as a Python call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysim.config.cluster import ClusterConfig
from analysim.config.loading import validate
from analysim.config.run import RunConfig
from analysim.policy import Policy
from analysim.run.execution import Report, execute
from analysim.run.inputs import load_inputs
from analysim.study.runs import Run
from analysim.study.timing import Stopwatch


def simulate(
    trace: str | Path,
    policy: str | Path | type[Policy] = "fifo",
    topology: str | Path | ClusterConfig | None = None,
    *,
    check: bool = False,
    report: Report | None = None,
    out: str | Path | None = None,
    **fields: Any,
) -> Run:
    """Simulate a policy on a trace and return the run; a run folder is written only where ``out`` is given.

    ``trace``, ``policy`` and ``topology`` are paths or names on the shelves, or the class or cluster itself;
    ``fields`` are those of ``RunConfig`` (``load=1.2``, ``until="7d"``, ``options={"max_moves": 4}``).
    ``report`` is called with the progress a few times a second. Raises ``UserError`` for a mistake in these,
    ``PolicyFailure`` when the policy fails, ``RunFolderError`` when ``out`` cannot be written.
    """
    stopwatch = Stopwatch()
    named = {"trace": str(trace), "policy": _policy_name(policy), "topology": _topology_name(topology)}
    config = validate(RunConfig, {**fields, **named}, "simulate()")
    with stopwatch.timing("read"):
        inputs = load_inputs(
            config,
            policy=policy if isinstance(policy, type) else None,
            cluster=topology if isinstance(topology, ClusterConfig) else None,
        )
    with stopwatch.timing("simulate"):
        execution = execute(inputs, check=check, report=report)
    run = Run.of(execution, stopwatch)
    return run if out is None else run.save(out)


def _policy_name(policy: str | Path | type[Policy]) -> str:
    return f"{policy.__module__}:{policy.__qualname__}" if isinstance(policy, type) else str(policy)


def _topology_name(topology: str | Path | ClusterConfig | None) -> str | None:
    if isinstance(topology, ClusterConfig):
        return topology.name
    return None if topology is None else str(topology)
