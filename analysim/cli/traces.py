"""``analysim trace``: describe, validate and generate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from analysim.cli import options
from analysim.cli.configuration import read_columns
from analysim.cli.figures import NOTHING, show_share
from analysim.cli.talk import Talk, print_json, print_table
from analysim.errors import UserError
from analysim.units import format_number, format_seconds

trace = typer.Typer(help="Traces: describe, validate, and generate synthetic ones.", no_args_is_help=True)

TraceArgument = Annotated[str, typer.Argument(metavar="TRACE", help="A path or a name on the shelf.")]


@trace.command()
def describe(
    name: TraceArgument,
    column: options.Columns = [],  # noqa: B006  # Typer copies it
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Sum a trace up: how much it is, whose, and how it arrives."""
    from analysim import shelf
    from analysim.traces import describe, read_trace

    loaded = read_trace(shelf.find("traces", name), read_columns(column))
    facts = describe(loaded)
    talk = Talk(quiet=False)
    for note in loaded.notes:
        talk.say(f"note: {note}")
    if as_json:
        print_json(facts)
        return
    rows = [[key, _show(key, value)] for key, value in facts.items() if not isinstance(value, (list, dict))]
    rows += [[f"set aside: {reason}", f"{count:,}"] for reason, count in facts["set_aside"].items()]
    print_table(rows, header=False)
    print()
    sizes = [
        [row["gpus"], f"{row['jobs']:,}", show_share(row["jobs_share"]), show_share(row["gpu_time_share"])]
        for row in facts["sizes"]
    ]
    print_table([["GPUs", "jobs", "share of jobs", "of GPU-time"], *sizes])


def _show(key: str, value: object) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, (int, float)):
        show = format_seconds if key.endswith("_s") else show_share if key.endswith("_share") else format_number
        return show(value)
    return str(value)


@trace.command()
def validate(
    name: TraceArgument,
    column: options.Columns = [],  # noqa: B006
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """List all problems of a trace file, counted by kind (exit code 2 when there are any)."""
    from dataclasses import asdict

    from analysim import shelf
    from analysim.traces import find_problems

    path = shelf.find("traces", name)
    problems = find_problems(path, read_columns(column))
    if as_json:
        print_json([asdict(problem) for problem in problems])
    elif not problems:
        print(f"{path}: no problems")
    for problem in problems if not as_json else ():
        print(f"{problem.count:>9,}  {problem.kind}: {problem.message} {problem.remedy}")
    if problems:
        raise typer.Exit(2)


@trace.command()
def generate(
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="File to write: .csv, .csv.gz or .parquet.")
    ],
    profile: Annotated[str, typer.Option(help="Profile: philly, helios or poisson.")] = "philly",
    jobs: Annotated[int | None, typer.Option(help="How many jobs. Default: the profile's.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    gpus: Annotated[
        int | None, typer.Option(help="GPUs of the cluster that --load is about; no job asks for more.")
    ] = None,
    load: Annotated[float | None, typer.Option(help="Offered load on --gpus.")] = None,
    span: Annotated[
        str | None, typer.Option(help="Time between the first and the last submission: 7d.")
    ] = None,
    settings: options.Settings = [],  # noqa: B006
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Make a synthetic trace; the same arguments give the same file."""
    from analysim.config.loading import apply_settings
    from analysim.traces import generate, write_trace

    if out.exists() and not force:
        raise UserError(f"{out} is there already.", "Choose another name, or replace it with --force.")
    fields = apply_settings({}, [f"policy.{setting}" for setting in settings])
    frame = generate(
        profile, jobs=jobs, seed=seed, gpus=gpus, load=load, span=span, options=fields.get("options")
    )
    write_trace(frame, out)
    Talk(quiet=quiet).say(f"wrote {out}: {len(frame):,} jobs")
