"""What a run is made of: the trace, the cluster and the policy that its configuration names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysim import shelf
from analysim.clusters import find_cluster
from analysim.config.cluster import ClusterConfig
from analysim.config.loading import validate
from analysim.config.nodes import gpus_by_type, nodes_of
from analysim.config.run import RunConfig
from analysim.policy import Policy
from analysim.policy.loading import load_policy
from analysim.traces import Trace, fill_estimates, parse_window, read_trace, require_gpus, scale_to_load, window


@dataclass(frozen=True)
class Inputs:
    """All that a run needs, resolved; ``trace`` holds the jobs after window, load and estimates.

    ``cluster_origin`` says in a few words where the cluster came from.
    """

    config: RunConfig
    trace: Trace
    cluster: ClusterConfig
    cluster_origin: str
    policy: type[Policy]

    @property
    def gpus(self) -> int:
        """GPUs of the cluster, all types together."""
        return sum(gpus_by_type(nodes_of(self.cluster)).values())


def load_inputs(
    config: RunConfig,
    *,
    policy: type[Policy] | None = None,
    cluster: ClusterConfig | None = None,
    trace: Trace | None = None,
) -> Inputs:
    """Find and read what ``config`` names; what is handed in is not looked for.

    Raises ``ShelfError``, ``PolicyFileError``, ``TraceError`` or ``ConfigError``; the mistakes that are
    found fastest come first.
    """
    policy = policy or load_policy(config.policy)
    check_options(policy, config.options)
    for interval in (config.window, config.measure):
        parse_window(interval or ":")
    if config.topology is not None and cluster is None:
        shelf.find("topologies", config.topology)
    trace = trace or read_named(config, shelf.find("traces", config.trace))
    origin = "named"
    if cluster is None:
        cluster, found = find_cluster(trace, config.topology)
        origin = origin if config.topology else found
    inputs = Inputs(config, trace, cluster, origin, policy)
    return replace(inputs, trace=_prepare(trace, config, inputs.gpus))


def read_named(config: RunConfig, path: Path) -> Trace:
    """Read the trace of a run from where it was found; raises ``TraceError`` where it cannot be simulated."""
    return require_gpus(read_trace(path, config.columns, format=config.trace_format, timezone=config.timezone))


def check_options(policy: type[Policy], options: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` for an option that the policy does not have, or a value that it cannot take."""
    validate(policy.Options, dict(options), f"options of policy {policy.name!r}")


def source_of(policy: type[Policy]) -> bytes:
    """Read the file that defines a policy; empty for one defined in a notebook or at a prompt."""
    try:
        return Path(inspect.getfile(policy)).read_bytes()
    except (OSError, TypeError):
        return b""


def _prepare(trace: Trace, config: RunConfig, gpus: int) -> Trace:
    if config.window is not None or config.initial:
        trace = window(trace, config.window or ":", config.initial)
    if config.load is not None:
        trace = scale_to_load(trace, config.load, gpus)
    if config.estimates is not None:
        trace = replace(trace, frame=fill_estimates(trace.frame, config.estimates, config.seed))
    return trace
