"""``analysim trace``: describe, validate and generate; the commands that shape traces are put beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysim.cli import options, shaping
from analysim.cli.configuration import read_columns
from analysim.cli.describing import print_description, print_rows
from analysim.cli.reading import read_source, tell_source
from analysim.cli.talk import Talk, print_json
from analysim.errors import UserError

if TYPE_CHECKING:
    from analysim.traces import Trace

trace = typer.Typer(
    help="Traces: describe, validate, convert, shape, and generate synthetic ones.", no_args_is_help=True
)

TraceArgument = Annotated[str, typer.Argument(metavar="TRACE", help="A path or a name on the shelf.")]


@trace.command()
def describe(
    name: TraceArgument,
    topology: Annotated[
        str | None, typer.Option(metavar="C", help="Cluster to hold the demand against: a path or a name on the shelf.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw a page of figures: .png or .svg.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="List the rows that were set aside or repaired.")] = False,
    column: options.Columns = [],  # noqa: B006  # Typer copies it
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Sum a trace up: how much it is, whose, how it arrives, and what became of its rows."""
    from analysim.traces import describe, describe_rows
    from analysim.units import parse_timezone

    if figure is not None:
        _check_figure(figure)
    cluster_gpus = shaping.count_gpus(topology) if topology is not None else None
    loaded, talk = read_source(name, column, trace_format, timezone), Talk(quiet=quiet)
    tell_source(loaded, talk)
    zone = parse_timezone(timezone) if timezone is not None else None
    facts = describe(loaded, timezone=zone, cluster_gpus=cluster_gpus)
    if as_json:
        print_json(facts | describe_rows(loaded))
    else:
        print_description(facts)
        if rows:
            print_rows(loaded)
    if figure is not None:
        _draw(loaded, facts, figure)
        talk.say(f"wrote {figure}")


def _draw(loaded: Trace, facts: dict[str, Any], figure: Path) -> None:
    from analysim.report.trace_page import draw_trace
    from analysim.traces import trace_arrays

    draw_trace(facts, trace_arrays(loaded), figure)


def _check_figure(path: Path) -> None:
    from analysim.report.trace_page import check_name

    check_name(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UserError(f"{path}: there is no folder for it, or it is one.", "Name a file in a folder that is there.")


@trace.command()
def validate(
    name: TraceArgument,
    column: options.Columns = [],  # noqa: B006
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """List all problems of a trace file, counted by kind (exit code 2 when there are any).

    Of a log in another format than our schema it tells what was set aside and repaired, which is no problem.
    """
    from dataclasses import asdict

    from analysim import shelf
    from analysim.traces import check_trace

    path = shelf.find("traces", name)
    problems, log = check_trace(path, read_columns(column), format=trace_format, timezone=timezone)
    if log is not None:
        _print_account(log, as_json)
    elif as_json:
        print_json([asdict(problem) for problem in problems])
    elif not problems:
        print(f"{path}: no problems")
    for problem in problems if not as_json else ():
        print(f"{problem.count:>9,}  {problem.kind}: {problem.message} {problem.remedy}")
    if problems:
        raise typer.Exit(2)


def _print_account(log: Trace, as_json: bool) -> None:
    from analysim.traces import describe_rows, tell_first_rows, tell_rows

    books = (("set aside", log.set_aside), ("repaired", log.account.repairs()))
    if as_json:
        counts: dict[str, Any] = {what.replace(" ", "_"): book for what, book in books}
        print_json({"format": log.format, "rows": log.rows, "jobs": len(log.frame), **counts, **describe_rows(log)})
        return
    print(f"{log.path}: no problems; {log.format}, {tell_rows(log)}")
    for what, book in books:
        for reason, count in book.items():
            print(f"{count:>9,}  {what}: {reason} ({tell_first_rows(log, what, reason)})")


trace.command("convert")(shaping.convert)
trace.command("slice")(shaping.slice_)
trace.command("scale")(shaping.scale)
trace.command("anonymise")(shaping.anonymise)


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
    elastic: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Share of jobs that are elastic: 1 GPU to twice their own.")
    ] = None,
    settings: options.Settings = [],  # noqa: B006
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Make a synthetic trace; the same arguments give the same file."""
    from analysim.config.loading import apply_settings
    from analysim.traces import generate, write_trace

    shaping.refuse_existing(out, force)
    fields = apply_settings({}, [f"policy.{setting}" for setting in settings])
    replaced = dict(fields.get("options") or {})
    if elastic is not None:
        replaced["elastic_share"] = elastic
    frame = generate(profile, jobs=jobs, seed=seed, gpus=gpus, load=load, span=span, options=replaced)
    write_trace(frame, out)
    Talk(quiet=quiet).say(f"wrote {out}: {len(frame):,} jobs")
