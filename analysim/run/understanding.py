"""What a run understood of its inputs, told in three lines before it starts."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from analysim.clusters.finding import sidecar_of
from analysim.config.nodes import gpus_by_type, nodes_of, walk_partitions
from analysim.run.inputs import Inputs
from analysim.traces import offered_load, tell_account, tell_rows
from analysim.units import format_duration

SWAMPED, IDLE = 1.0, 0.3
"""Offered loads above and below which a run is told to swamp or to idle its cluster."""


@dataclass(frozen=True)
class Understanding:
    """Lines for people: the three of every run, notes on the inputs, and warnings."""

    lines: list[str]
    notes: list[str]
    warnings: list[str]


def understand(inputs: Inputs) -> Understanding:
    """Say what the trace, the cluster and the load between them are."""
    load = offered_load(inputs.trace.frame, inputs.gpus)
    lines = [
        f"trace    {_trace_line(inputs)}",
        f"cluster  {_cluster_line(inputs)}",
        f"load     {_load_line(load)}",
    ]
    warnings = [*_initial_warnings(inputs), *_load_warnings(load)]
    return Understanding(lines, [*_trace_notes(inputs), *_cluster_notes(inputs)], warnings)


def _trace_line(inputs: Inputs) -> str:
    frame = inputs.trace.frame
    with_gpus = int((frame["gpu_milli"] > 0).sum())
    span_us = int(frame["submit_us"].iloc[-1] - frame["submit_us"].iloc[0]) if len(frame) else 0
    tenants = frame["tenant"][frame["tenant"] != ""].nunique()
    jobs = f"{with_gpus:,} GPU jobs"
    if with_gpus < len(frame):
        jobs += f" and {len(frame) - with_gpus:,} CPU jobs"
    owners = {0: "no tenants named", 1: "1 tenant"}.get(tenants, f"{tenants:,} tenants")
    window = f" (--window {inputs.config.window})" if inputs.config.window else ""
    return f"{inputs.config.trace}: {jobs} submitted over {format_duration(span_us)}, {owners}{window}"


def _cluster_line(inputs: Inputs) -> str:
    nodes = nodes_of(inputs.cluster)
    types = " + ".join(f"{count:,} {gpu_type}" for gpu_type, count in gpus_by_type(nodes).items())
    partitions = sum(1 for _ in walk_partitions(inputs.cluster.partitions))
    parts = f", {partitions} partitions" if partitions else ""
    return f"{inputs.cluster.name}: {len(nodes):,} nodes, {inputs.gpus:,} GPUs ({types or 'none'}){parts}"


def _load_line(load: float) -> str:
    if math.isnan(load):
        return "not defined: all jobs are submitted at one time, or there are no GPUs"
    return f"the jobs ask for {load:.2f} of the GPU-time there is between first and last submit"


def _trace_notes(inputs: Inputs) -> list[str]:
    trace = inputs.trace
    if not trace.set_aside and not trace.account.repaired:
        return trace.notes
    return [f"read as {trace.format}: {tell_rows(trace)}", *tell_account(trace), *trace.notes]


def _initial_warnings(inputs: Inputs) -> list[str]:
    if not inputs.config.initial or inputs.trace.initial:
        return []
    begins = "the window begins" if inputs.config.window else "the trace begins (there is no --window)"
    return [f"--initial changes nothing: no job is recorded as running when {begins}"]


def _load_warnings(load: float) -> list[str]:
    if load > SWAMPED:
        return [
            f"the trace swamps its cluster (load {load:.2f}): the queue grows until the last job is submitted"
        ]
    if load < IDLE:
        return [f"the cluster idles (load {load:.2f}): jobs will hardly wait under any policy"]
    return []


def _cluster_notes(inputs: Inputs) -> list[str]:
    if not inputs.cluster.inferred:
        return []
    inferred = f"the cluster is inferred, not yours: {inputs.cluster.inferred.rstrip('.')}"
    sidecar = sidecar_of(inputs.trace.path)
    file = inputs.config.topology or (sidecar if sidecar.is_file() else None)
    if file is not None:
        return [inferred, f"correct it in {file}, then delete the line `inferred` there"]
    return [inferred, f"to write it to a file and edit it: {infer_command(inputs)}"]


def infer_command(inputs: Inputs) -> str:
    """Give the command that writes an inferred cluster to the file in which the next run finds it."""
    trace = inputs.config.trace
    reading = [word for name, own in inputs.config.columns.items() for word in ("--column", f"{name}={own}")]
    for flag, value in (("--trace-format", inputs.config.trace_format), ("--timezone", inputs.config.timezone)):
        reading += [flag, value] if value is not None else []
    sidecar = sidecar_of(trace) if Path(trace).suffix else f"{trace}.topology.yaml"
    return shlex.join(["analysim", "topologies", "infer", trace, *reading, "-o", str(sidecar)])
