"""``analysim compare``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysim.cli import options
from analysim.cli.configuration import make_config, merge_fields
from analysim.cli.figures import print_comparison, print_sizes
from analysim.cli.running import Keep, fail_if_starved, run_into
from analysim.cli.talk import Talk, print_json
from analysim.errors import UserError

if TYPE_CHECKING:
    from analysim.run.inputs import Inputs
    from analysim.study.runs import Run


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="[RUN]...", help="Finished run folders, instead of --policy.")
    ] = [],  # noqa: B006  # Typer copies it
    trace: options.TraceName = None,
    policies: Annotated[
        list[str],
        typer.Option(
            "--policy", metavar="P", help="A policy, once for each; all are compared with the first."
        ),
    ] = [],  # noqa: B006
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
    settings: options.Settings = [],  # noqa: B006
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
    """Compare policies on one trace, or finished runs: each figure against the first, also by job size."""
    flags = options.run_fields(locals())
    from analysim.run.folder import default_target, file_name
    from analysim.run.table_files import check_format
    from analysim.study import comparing
    from analysim.study.runs import Run
    from analysim.study.timing import Stopwatch

    talk, figures = Talk(quiet=quiet), not no_figures
    if bool(runs) == bool(policies):
        raise UserError(
            "compare takes either finished run folders or policies.",
            "Name run folders, or --trace T and --policy P once for each policy.",
        )
    check_format(table_format)
    if out is not None:
        comparing.check_folder(out, force=force)
    finished = [Run.read(run) for run in runs]
    candidates = [] if runs else _load_candidates(merge_fields(config, flags, column, settings), policies)
    folder = out or default_target("compare", finished[0].trace if runs else candidates[0].trace.name)
    keep = Keep(table_format, figures=figures, force=force)
    with comparing.new_folder(folder, force=force), _finished_named(finished):
        for inputs in candidates:
            target = folder / file_name(inputs.policy.name)
            finished.append(run_into(target, inputs, Stopwatch(), talk, keep, check=check, tell=not finished))
        comparing.save(finished, folder, figures=figures)
    _print(finished, as_json=as_json)
    talk.say(f"wrote {folder}" + (f", figures in {folder}/figures" if figures else ""))
    fail_if_starved(finished, talk)


@contextmanager
def _finished_named(finished: list[Run]) -> Iterator[None]:
    """Add to the line of an error which runs were finished before it: they are whole, and kept."""
    given = len(finished)
    try:
        yield
    except BaseException as error:
        if finished[given:]:
            error.add_note(f"Finished before and kept: {', '.join(str(run.folder) for run in finished[given:])}.")
        raise


def _load_candidates(fields: dict[str, Any], policies: list[str]) -> list[Inputs]:
    """Read the trace once for all policies; an option goes to the policies that have it."""
    from analysim.policy.loading import load_policy
    from analysim.run.inputs import check_options, load_inputs

    classes = [load_policy(name) for name in policies]
    if len({policy.name for policy in classes}) < len(classes):
        raise UserError(
            "Two of the policies have one name.", "Name each policy once, and give each a name of its own."
        )
    chosen = fields.pop("options", {})
    known = {key for policy in classes for key in policy.Options.model_fields}
    configs = []
    for name, policy in zip(policies, classes, strict=True):
        own = {key: chosen[key] for key in chosen if key in policy.Options.model_fields or key not in known}
        configs.append(make_config({**fields, "policy": name, "options": own}))
        check_options(policy, own)
    first = load_inputs(configs[0], policy=classes[0])
    return [
        replace(first, config=config, policy=policy) for config, policy in zip(configs, classes, strict=True)
    ]


def _print(runs: list[Run], *, as_json: bool) -> None:
    from analysim.study import comparing

    if as_json:
        print_json([{**run.report, "paired": comparing.pair_jobs(runs[0], run)} for run in runs])
        return
    print_comparison(comparing.labels(runs), runs, comparing.compare(runs))
    print()
    print_sizes(comparing.size_table(runs))
