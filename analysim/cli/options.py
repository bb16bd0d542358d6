"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from analysim.cli.failures import remember_debug
from analysim.tables import TableFormat

TraceName = Annotated[
    str | None, typer.Option("--trace", metavar="T", help="Trace: a path or a name on the shelf.")
]
Topology = Annotated[
    str | None,
    typer.Option(
        metavar="C",
        help="Cluster: a path or a name on the shelf. Default: T.topology.yaml, recorded nodes, or inferred.",
    ),
]
Placement = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Where gangs go: pack, first, spread, random, rack, any, fgd, bestfit, dotprod, gpupacking or"
        " gpuclustering.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of every random choice. Default: 0.")]
Load = Annotated[
    float | None, typer.Option(metavar="X", help="Scale the times between arrivals to this offered load.")
]
Window = Annotated[
    str | None, typer.Option(metavar="A:B", help="Only jobs submitted in it, since the first submit: 0d:30d.")
]
Initial = Annotated[
    bool | None,
    typer.Option("--initial", help="Jobs recorded as running when the window begins hold GPUs from then on."),
]
Measure = Annotated[
    str | None,
    typer.Option(
        metavar="A:B", help="Count only jobs submitted in it, since the run's first submit: 7d:30d."
    ),
]
Until = Annotated[str | None, typer.Option(metavar="T", help="Stop then, since the run's first submit.")]
Estimates = Annotated[
    str | None, typer.Option(metavar="RULE", help="Estimates from durations: exact, factor:F or lognormal:S.")
]
UnknownPartition = Annotated[
    str | None, typer.Option(metavar="WHAT", help="Jobs of a partition the cluster lacks: reject, or root.")
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Policy option (policy.max_moves=4) or run field (costs.restart_s=90).",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Run configuration in YAML; flags win over it."),
]
Columns = Annotated[
    list[str],
    typer.Option("--column", metavar="NAME=OWN", help="A column of the schema and what the file calls it."),
]
FormatName = Annotated[
    str | None,
    typer.Option("--trace-format", metavar="NAME", help="How to read the trace, where its content does not tell."),
]
Timezone = Annotated[
    str | None, typer.Option(metavar="ZONE", help="Zone of times without one: Europe/Berlin. Default: UTC.")
]
Check = Annotated[
    bool, typer.Option("--check", help="Check the engine's invariants after each instant (slow).")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Folder to write. Default: a new one under runs/.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
Format = Annotated[TableFormat, typer.Option("--format", help="How the tables are stored.")]
NoFigures = Annotated[bool, typer.Option("--no-figures", help="Leave out the figures.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing on stderr but errors.")]
Debug = Annotated[
    bool, typer.Option("--debug", callback=remember_debug, help="Show the traceback of an error.")
]

_RUN_FIELDS = (
    "trace",
    "policy",
    "topology",
    "placement",
    "seed",
    "load",
    "window",
    "initial",
    "measure",
    "until",
    "estimates",
    "unknown_partition",
    "trace_format",
    "timezone",
)


def run_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Pick those arguments of a command that are fields of a run configuration."""
    return {name: arguments[name] for name in _RUN_FIELDS if name in arguments}
