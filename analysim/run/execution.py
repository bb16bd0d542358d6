"""Run a simulation over loaded inputs and keep what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analysim.config.dumping import as_written
from analysim.engine import Progress, Simulation
from analysim.run.inputs import Inputs, source_of
from analysim.tables import RunTables

Report = Callable[[Progress], None]
"""Called by the engine a few times a second of wall time."""


@dataclass(frozen=True)
class Execution:
    """What a run gave: its tables (``timeline`` still empty) and the engine's own facts.

    ``policy_source`` is the policy's file, ``options`` are its options, defaults included. ``facts`` has
    the counts of events, passes and
    placements, ``engine_seconds``, and one line for each demand that was ``starved``.
    """

    inputs: Inputs
    policy_source: bytes
    options: dict[str, Any]
    tables: RunTables
    facts: dict[str, Any]


def execute(inputs: Inputs, *, check: bool = False, report: Report | None = None) -> Execution:
    """Simulate the jobs of ``inputs`` on its cluster under its policy.

    ``check`` runs the engine's invariants after each instant. Raises ``PolicyFailure`` when the policy is
    at fault, ``InvariantError`` when the engine is, ``ConfigError`` when the inputs do not go together.
    """
    policy = inputs.policy(inputs.config.options)
    source = source_of(inputs.policy)
    simulation = Simulation(
        inputs.trace.frame,
        inputs.cluster,
        policy,
        inputs.config,
        check=check,
        report=report,
        initial=inputs.trace.initial,
    )
    tables = simulation.run()
    return Execution(inputs, source, as_written(policy.options), tables, simulation.facts)
