"""``analysim place``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysim.cli import options
from analysim.cli.figures import NOTHING
from analysim.cli.reading import read_source, tell_source
from analysim.cli.talk import Talk, print_json, print_table
from analysim.errors import UserError

if TYPE_CHECKING:
    from analysim.study.placing import Course

MOST_SEEDS = 10_000
"""More seeds are a slip of the pen."""

FIGURES = (
    ("allocated_percent", "GPUs allocated"),
    ("fragmented_percent_of_capacity", "GPUs fragmented"),
)
"""Figures of the printed table, and what it calls them."""


def place(
    trace: options.TraceName = None,
    topology: options.Topology = None,
    placements: Annotated[
        list[str],
        typer.Option(
            "--placement", metavar="NAME", help="A strategy, once for each. Default: pack and fgd. As in simulate."
        ),
    ] = [],  # noqa: B006  # Typer copies it
    seed: Annotated[int | None, typer.Option(help="Seed of every random choice. Default: 0.")] = None,
    seeds: Annotated[int | None, typer.Option(metavar="K", help="Seeds 1 to K instead: means and bands.")] = None,
    load: Annotated[
        float | None,
        typer.Option(metavar="X", help="GPUs that arrive in all, to those of the cluster. Default: 1.3."),
    ] = None,
    no_inflate: Annotated[
        bool, typer.Option("--no-inflate", help="Jobs come as in the trace, each once: not shuffled, no load.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to write. Default: a new one under runs/.")
    ] = None,
    column: options.Columns = [],  # noqa: B006
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    no_figures: options.NoFigures = False,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Compare placement strategies alone: jobs arrive, never leave, and are tried once each."""
    names = _check_names(placements)
    chosen = _check_seeds(seed, seeds)
    if no_inflate and load is not None:
        raise UserError("--no-inflate takes the jobs as they are, and --load adds to them.", "Leave one of them out.")
    if trace is None:
        raise UserError("No trace is named.", "Add --trace FILE, or --trace demo for the example.")
    from analysim import shelf
    from analysim.clusters import find_cluster
    from analysim.run.folder import NewRunFolder, check_target, default_target
    from analysim.study.placing import DEFAULT_LOAD, PLACING_FILE, Experiment, check_load, run_all, save, summarise
    from analysim.traces import require_gpus

    check_load(load)
    if out is not None:
        check_target(out, force=force, marker=PLACING_FILE)
    if topology is not None:
        shelf.find("topologies", topology)
    talk = Talk(quiet=quiet)
    loaded = require_gpus(read_source(trace, column, trace_format, timezone))
    tell_source(loaded, talk)
    cluster, origin = find_cluster(loaded, topology)
    wanted = None if no_inflate else DEFAULT_LOAD if load is None else load
    experiment = Experiment(loaded.frame, cluster, wanted)
    nodes, gpus = experiment.topology.size, experiment.topology.gpus
    talk.say(f"cluster {cluster.name} ({origin}): {nodes:,} nodes, {gpus:,} GPUs")
    facts: dict[str, Any] = {
        "trace": loaded.name,
        "trace_sha256": loaded.sha256,
        "topology": cluster.name,
        "gpus": gpus,
        "load": wanted,
    }
    target = out or default_target("place", loaded.name)
    with NewRunFolder(target, force=force, numbered=out is None, marker=PLACING_FILE) as folder:
        courses = run_all(experiment, names, chosen, lambda course: talk.say(_told(course)))
        folder.write(lambda partial: save(courses, facts, partial, figures=not no_figures))
        written = folder.finish()
    results = summarise(courses)
    if as_json:
        print_json({"folder": str(written), **facts, "results": results})
    else:
        _print(results, facts)
    talk.say(f"wrote {written}" + ("" if no_figures else f", figures in {written}/figures"))


def _check_names(placements: Sequence[str]) -> list[str]:
    from analysim.policy.placers import PLACERS
    from analysim.spelling import suggest

    for name in placements:
        if name not in PLACERS:
            raise UserError(f"There is no placement {name!r}.", suggest(name, list(PLACERS)))
    if len(set(placements)) < len(placements):
        raise UserError("A placement is named twice.", "Name each once.")
    return list(placements) or ["pack", "fgd"]


def _check_seeds(seed: int | None, seeds: int | None) -> list[int]:
    if seed is not None and seeds is not None:
        raise UserError("--seed and --seeds were both given.", "Name one seed, or how many.")
    if seed is not None and seed < 0:
        raise UserError(f"The seed {seed} is negative.", "Give a whole number, 0 or more.")
    if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
        raise UserError(f"--seeds is {seeds}.", f"Give a number of seeds from 1 to {MOST_SEEDS:,}.")
    return list(range(1, seeds + 1)) if seeds is not None else [seed or 0]


def _told(course: Course) -> str:
    name, placed = f"{course.placement}, seed {course.seed}", course.jobs - course.failed
    return f"{name}: placed {placed:,} of {course.jobs:,} jobs in {course.seconds:.2f} s"


def _print(results: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    seeds = results[0]["seeds"]
    told = f"seed {seeds[0]}" if len(seeds) == 1 else f"mean of {len(seeds)} seeds"
    print(f"{facts['trace']} on {facts['topology']} ({facts['gpus']:,} GPUs), {told}\n")
    loads = list(results[0]["allocated_percent"])
    for number, (name, title) in enumerate(FIGURES):
        if number:
            print()
        rows = [[f"{title}, by arrived load", *(f"{load}%" for load in loads)]]
        for result in results:
            values = (result[name][load] for load in loads)
            rows.append([result["placement"], *(NOTHING if value is None else f"{value:.2f}%" for value in values)])
        print_table(rows)
