"""``analysim trace``: convert, slice, scale and anonymise, which make a new trace file of another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysim.cli import options
from analysim.cli.reading import read_source, tell_source
from analysim.cli.talk import Talk
from analysim.errors import UserError

if TYPE_CHECKING:
    from analysim.traces import Trace

Source = Annotated[str, typer.Argument(metavar="A", help="Trace to read: a path or a name on the shelf.")]
Target = Annotated[
    Path, typer.Argument(metavar="B", help="File to write: .csv, .csv.gz, .parquet, .swf or .swf.gz.")
]


def convert(
    source: Source,
    target: Target,
    column: options.Columns = [],  # noqa: B006  # Typer copies it
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write a trace of any format in the schema (CSV, Parquet) or as SWF."""
    talk = Talk(quiet=quiet)
    trace = _read(source, [target], column, trace_format, timezone, force)
    tell_source(trace, talk)
    _write(trace, target, talk, f"{trace.format} converted")


def slice_(
    source: Source,
    target: Target,
    window: options.Window = None,
    tenant: Annotated[
        list[str], typer.Option(metavar="X", help="Only its jobs, and those of tenants below it; repeatable.")
    ] = [],  # noqa: B006
    min_gpus: Annotated[int | None, typer.Option(help="Only jobs with so many GPUs or more.")] = None,
    max_gpus: Annotated[int | None, typer.Option(help="Only jobs with so many GPUs or fewer.")] = None,
    column: options.Columns = [],  # noqa: B006
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Keep the jobs of some time, of some tenants, of some sizes."""
    from analysim.traces import check_bounds, parse_window, slice_trace

    if window is None and not tenant and min_gpus is None and max_gpus is None:
        raise UserError("Nothing says which jobs to keep.", "Add --window, --tenant, --min-gpus or --max-gpus.")
    check_bounds(min_gpus, max_gpus)
    parse_window(window or ":")
    talk = Talk(quiet=quiet)
    trace = _read(source, [target], column, trace_format, timezone, force)
    kept = slice_trace(trace, window, tenant, min_gpus, max_gpus)
    tell_source(trace, talk)
    left_out = "; ".join(f"{count:,} {reason}" for reason, count in kept.left_out.items())
    what = f"of {len(trace.frame):,}, left out: {left_out}" if left_out else f"of {len(trace.frame):,}"
    _write(kept, target, talk, what)


def scale(
    source: Source,
    target: Target,
    load: options.Load = None,
    topology: Annotated[
        str | None, typer.Option(metavar="C", help="Cluster that --load is about: a path or a name on the shelf.")
    ] = None,
    gpus: Annotated[int | None, typer.Option(help="GPUs that --load is about, instead of --topology.")] = None,
    resample: Annotated[bool, typer.Option("--resample", help="Draw whole days again, with replacement.")] = False,
    days: Annotated[int | None, typer.Option(help="How many days to draw. Default: as many as there are.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the days drawn; further copies count up from it.")] = 0,
    copies: Annotated[int | None, typer.Option(metavar="K", help="Write K draws: B-1.csv to B-K.csv.")] = None,
    column: options.Columns = [],  # noqa: B006
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Change the offered load, or draw the days of a trace again (bootstrap); with both, the days come first."""
    from analysim.traces import resample_days, scale_to_load

    _check_scaling(load, topology, gpus, resample, days, copies)
    cluster_gpus = count_gpus(topology) if topology is not None else gpus
    targets = [target] if copies is None else [_numbered(target, number) for number in range(1, copies + 1)]
    trace, talk = _read(source, targets, column, trace_format, timezone, force), Talk(quiet=quiet)
    for number, each in enumerate(targets):
        made, what = trace, []
        if resample:
            made = resample_days(made, seed + number, days)
            what.append(made.notes[-1][0].lower() + made.notes[-1][1:].rstrip("."))
        if load is not None and cluster_gpus is not None:
            made = scale_to_load(made, load, cluster_gpus)
            what.append(f"scaled to an offered load of {load:g} on {cluster_gpus:,} GPUs")
        if number == 0:  # a refusal is one line
            tell_source(trace, talk)
        _write(made, each, talk, "; ".join(what))


def anonymise(
    source: Source,
    target: Target,
    key: Annotated[
        str, typer.Option(metavar="TEXT", help="Secret: without it anybody can try names out. Same key, same hashes.")
    ] = "",
    column: options.Columns = [],  # noqa: B006
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Replace names (users, tenants, partitions, models, nodes, text ids) by hashes; numbers and times stay."""
    from analysim.traces import anonymise

    talk = Talk(quiet=quiet)
    trace = _read(source, [target], column, trace_format, timezone, force)
    tell_source(trace, talk)
    keyed = "with your key" if key else "without a key: who guesses a name can check it, --key prevents that"
    _write(anonymise(trace, key), target, talk, f"names are hashes, {keyed}")


def refuse_existing(path: Path, force: bool) -> None:
    """Raise ``UserError`` for a file that is there, unless it may be replaced."""
    if path.is_dir():
        raise UserError(f"{path} is a folder.", "Name a file in it.")
    if path.exists() and not force:
        raise UserError(f"{path} is there already.", "Choose another name, or replace it with --force.")


def _read(
    source: str, targets: list[Path], column: list[str], format: str | None, timezone: str | None, force: bool
) -> Trace:
    """Read the trace to be shaped, once it is sure that the targets may be written."""
    from analysim.traces import check_suffix, require_gpus

    for target in targets:
        check_suffix(target)
        refuse_existing(target, force)
    return require_gpus(read_source(source, column, format, timezone))


def _write(trace: Trace, target: Path, talk: Talk, what: str) -> None:
    """Write a trace and say in one line what it is; then what the file could not hold."""
    from analysim.traces import convert_trace

    losses = convert_trace(trace, target)
    jobs = f"{len(trace.frame):,} {'job' if len(trace.frame) == 1 else 'jobs'}"
    talk.say(f"wrote {target}: {jobs} ({what})")
    for loss in losses:
        talk.say(f"note: {loss}")


def _check_scaling(
    load: float | None, topology: str | None, gpus: int | None, resample: bool, days: int | None, copies: int | None
) -> None:
    if load is None and not resample:
        raise UserError("Nothing says how to scale.", "Add --load 0.9 --gpus 64, or --resample.")
    if load is None and (topology is not None or gpus is not None):
        raise UserError("--topology and --gpus say what --load is about.", "Add --load 0.9, or leave them out.")
    if load is not None and (topology is None) == (gpus is None):
        raise UserError("A load is one on a cluster.", "Add either --topology C or --gpus N.")
    if not resample and (days is not None or copies is not None):
        raise UserError("--days and --copies are about --resample.", "Add it, or leave them out.")
    if copies is not None and not 1 <= copies <= 10_000:
        raise UserError(f"{copies:,} copies cannot be made.", "Make 1 to 10,000.")


def count_gpus(topology: str) -> int:
    """Count the GPUs of a cluster, a path or a name on the shelf. Raises ``ConfigError``."""
    from analysim import shelf
    from analysim.clusters import describe_cluster, load_cluster

    return int(describe_cluster(load_cluster(shelf.find("topologies", topology)))["gpus"])


def _numbered(target: Path, number: int) -> Path:
    """Put a number behind the name: ``week.csv.gz`` becomes ``week-2.csv.gz``."""
    suffix = "".join(target.suffixes[-2:]) if target.suffix == ".gz" else target.suffix
    return target.with_name(f"{target.name.removesuffix(suffix)}-{number}{suffix}")
