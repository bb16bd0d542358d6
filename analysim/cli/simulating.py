"""``analysim simulate``."""

from __future__ import annotations

from typing import Annotated

import typer

from analysim.cli import options
from analysim.cli.configuration import make_config, merge_fields
from analysim.cli.figures import print_summary
from analysim.cli.running import Keep, fail_if_starved, load_checked, run_into, tell_written
from analysim.cli.talk import Talk, print_json


def simulate(
    trace: options.TraceName = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="P", help="Policy: a name on the shelf, a file, or module:Class. Default: fifo."
        ),
    ] = None,
    topology: options.Topology = None,
    placement: options.Placement = None,
    out: options.Out = None,
    seed: options.Seed = None,
    load: options.Load = None,
    window: options.Window = None,
    initial: options.Initial = None,
    measure: options.Measure = None,
    until: options.Until = None,
    estimates: options.Estimates = None,
    unknown_partition: options.UnknownPartition = None,
    settings: options.Settings = [],  # noqa: B006  # Typer copies it
    config: options.ConfigFile = None,
    column: options.Columns = [],  # noqa: B006
    trace_format: options.FormatName = None,
    timezone: options.Timezone = None,
    table_format: options.Format = "csv",
    check: options.Check = False,
    no_figures: options.NoFigures = False,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Simulate one policy on a trace and write a run folder: the schedule, its metrics and its figures."""
    flags = options.run_fields(locals())
    from analysim.run.folder import default_target
    from analysim.study.timing import Stopwatch

    talk, stopwatch = Talk(quiet=quiet), Stopwatch()
    run_config = make_config(merge_fields(config, flags, column, settings))
    keep = Keep(table_format, figures=not no_figures, force=force, numbered=out is None)
    inputs = load_checked(run_config, keep, out, stopwatch)
    target = out or default_target(inputs.trace.name, inputs.policy.name)
    run = run_into(target, inputs, stopwatch, talk, keep, check=check)
    if as_json:
        print_json(run.report)
    else:
        print_summary(run)
    tell_written(run, keep, talk)
    fail_if_starved([run], talk)
