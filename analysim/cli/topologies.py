"""``analysim topologies``: list, show, validate and infer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from analysim.cli import options
from analysim.cli.importing import import_topology
from analysim.cli.reading import read_source
from analysim.cli.talk import Talk, print_json, print_table
from analysim.errors import AnalysimError

topologies = typer.Typer(
    help="Clusters: list, show, validate, and infer one from a trace.", no_args_is_help=True
)
topologies.command("import")(import_topology)


@topologies.command("list")
def list_topologies(as_json: options.Json = False, debug: options.Debug = False) -> None:
    """List the topology files on the shelves."""
    from analysim import shelf

    rows = [_row(name, path) for name, path in shelf.list_shelf("topologies")]
    if as_json:
        print_json(rows)
    else:
        shown = [[row["name"], row["about"], f"{row['nodes']:,}", f"{row['gpus']:,}"] for row in rows]
        print_table([["name", "what it is", "nodes", "GPUs"], *shown], left=2)


def _row(name: str, path: Path) -> dict[str, Any]:
    from analysim.clusters import describe_cluster, load_cluster

    try:
        facts = describe_cluster(load_cluster(path))
    except AnalysimError as error:
        return {"name": name, "nodes": 0, "gpus": 0, "about": f"broken: {error.message}", "path": str(path)}
    return {
        "name": name,
        "nodes": facts["nodes"],
        "gpus": facts["gpus"],
        "about": facts["description"],
        "path": str(path),
    }


@topologies.command()
def show(
    name: Annotated[str, typer.Argument(help="A path or a name on the shelf.")],
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Draw a cluster as text: racks, nodes and partitions."""
    from analysim import shelf
    from analysim.clusters import describe_cluster, draw_cluster, load_cluster

    cluster = load_cluster(shelf.find("topologies", name))
    if as_json:
        print_json(describe_cluster(cluster))
    else:
        print(draw_cluster(cluster))


@topologies.command()
def validate(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Paths or names on the shelf.")],
    debug: options.Debug = False,
) -> None:
    """Check topology files; the first mistake of each is told in one line (exit code 2)."""
    from analysim import shelf
    from analysim.clusters import describe_cluster, load_cluster

    broken = False
    for name in names:
        try:
            facts = describe_cluster(load_cluster(shelf.find("topologies", name)))
        except AnalysimError as error:
            Talk(quiet=False).complain(str(error))
            broken = True
        else:
            print(f"{name}: valid, {facts['nodes']:,} nodes, {facts['gpus']:,} GPUs")
    if broken:
        raise typer.Exit(2)


@topologies.command()
def infer(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A path or a name on the shelf.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write. Default: stdout.")
    ] = None,
    column: options.Columns = [],  # noqa: B006
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write the cluster that a trace runs on without --topology, as a file to edit."""
    from analysim.clusters import cluster_of_nodes, cluster_text, infer_cluster, write_cluster
    from analysim.traces import require_gpus

    talk = Talk(quiet=quiet)
    loaded = require_gpus(read_source(trace, column, trace_format, timezone))
    cluster = cluster_of_nodes(loaded) or infer_cluster(loaded)
    if out is not None:
        write_cluster(cluster, out, force=force)
        talk.say(f"wrote {out}: {cluster.inferred}")
        return
    print(cluster_text(cluster), end="")
