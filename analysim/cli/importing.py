"""``analysim topologies import``: cluster files from what other systems say of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from analysim.cli import options
from analysim.cli.talk import Talk


def import_topology(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="slurm, kubernetes, nvidia-smi, philly, pai, openb, lingjun, helios-quota, tiresias, or auto.",
        ),
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="All files that describe the cluster.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="Cluster file to write.")],
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Make a cluster file of what another system says: Slurm, Kubernetes, nvidia-smi, published traces."""
    from analysim.clusters import write_cluster
    from analysim.clusters.importing import import_cluster

    name = out.name.removesuffix(out.suffix).removesuffix(".topology")
    cluster, notes = import_cluster(kind, files, name)
    write_cluster(cluster, out, force=force, notes=notes)
    talk = Talk(quiet=quiet)
    for note in notes:
        talk.say(f"note: {note}")
    talk.say(f"wrote {out}")
