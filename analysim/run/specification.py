"""What ``run.json`` says of a run: everything that decides it, so that it can be made again."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from analysim.config.dumping import as_written
from analysim.run.execution import Execution
from analysim.run.folder import SCHEMA_VERSION


def describe_run(execution: Execution) -> dict[str, Any]:
    """Say what decides a run: the configuration, the inputs and their hashes, and the engine's counts.

    Nothing in it depends on the machine or the day; paths are as the user gave them.
    """
    inputs, facts = execution.inputs, execution.facts
    trace = inputs.trace
    return {
        "schema_version": SCHEMA_VERSION,
        "config": as_written(inputs.config),
        "trace": {
            "name": trace.name,
            "format": trace.format,
            "rows": trace.rows,
            "jobs": len(trace.frame),
            "set_aside": trace.set_aside,
            "repaired": trace.account.repairs(),
            "sha256": trace.sha256,
        },
        "time_origin": trace.time_origin,
        "policy": {
            "name": inputs.policy.name,
            "knowledge": inputs.policy.knowledge,
            "options": execution.options,
            "sha256": sha256(execution.policy_source).hexdigest(),
        },
        "topology": {
            "name": inputs.cluster.name,
            "origin": inputs.cluster_origin,
            "inferred": inputs.cluster.inferred,
            "cluster": as_written(inputs.cluster),
        },
        "counts": {name: facts[name] for name in ("events", "passes", "placements")},
        "initial": {"jobs": len(trace.initial), "waiting": facts["initial_waiting"]},
        "starved": facts["starved"],
    }
