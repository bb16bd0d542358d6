"""One simulation with what is told about it: understanding, progress, rejected and starved jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from analysim.cli.progress import shown_progress
from analysim.cli.talk import Talk

if TYPE_CHECKING:
    from analysim.config.run import RunConfig
    from analysim.run.inputs import Inputs
    from analysim.study.runs import Run
    from analysim.study.timing import Stopwatch
    from analysim.tables import TableFormat


def load_checked(run_config: RunConfig, keep: Keep, out: Path | None, stopwatch: Stopwatch) -> Inputs:
    """Load what a run is made of, once it is sure that its folder can be written. Raises ``UserError``."""
    from analysim.run.folder import check_target
    from analysim.run.inputs import load_inputs
    from analysim.run.table_files import check_format

    check_format(keep.table_format)
    if out is not None:
        check_target(out, force=keep.force)
    with stopwatch.timing("read"):
        return load_inputs(run_config)


def tell_written(run: Run, keep: Keep, talk: Talk) -> None:
    """Say where the run is kept, and where its figures are."""
    talk.say(f"wrote {run.folder}" + (f", figures in {run.folder}/figures" if keep.figures else ""))


def tell_understanding(inputs: Inputs, talk: Talk) -> None:
    """Say what the inputs were understood to be, before anything runs."""
    from analysim.run.understanding import understand

    understanding = understand(inputs)
    for line in understanding.lines:
        talk.say(line)
    for note in understanding.notes:
        talk.say(f"note: {note}")
    for warning in understanding.warnings:
        talk.warn(warning)


@dataclass(frozen=True)
class Keep:
    """How a run folder is written; ``force`` and ``numbered`` as in ``NewRunFolder``."""

    table_format: TableFormat
    figures: bool
    force: bool = False
    numbered: bool = False


def run_into(
    target: Path, inputs: Inputs, stopwatch: Stopwatch, talk: Talk, keep: Keep, *, check: bool, tell: bool = True
) -> Run:
    """Simulate into a new run folder; with ``tell`` say first what the inputs were understood to be."""
    from analysim.run.folder import NewRunFolder

    with NewRunFolder(target, force=keep.force, numbered=keep.numbered) as folder:
        if tell:
            tell_understanding(inputs, talk)
        run = run_shown(inputs, stopwatch, talk, check=check)
        run = run.write(folder, table_format=keep.table_format, figures=keep.figures)
    tell_rejected(run, talk)
    return run


def run_shown(inputs: Inputs, stopwatch: Stopwatch, talk: Talk, *, check: bool) -> Run:
    """Simulate and show how far it is."""
    from analysim.run.execution import execute
    from analysim.study.runs import Run
    from analysim.units import to_seconds

    start_s = to_seconds(int(inputs.trace.frame["submit_us"].iloc[0]))
    with shown_progress(talk, inputs.policy.name, start_s) as report, stopwatch.timing("simulate"):
        execution = execute(inputs, check=check, report=report)
    waiting = execution.facts["initial_waiting"]
    if waiting:
        ran = len(inputs.trace.initial)
        talk.warn(f"{waiting:,} of {ran:,} jobs that ran when the trace begins do not fit: they wait")
    jobs, spent = len(execution.tables.jobs), execution.facts["engine_seconds"]
    rate = jobs / max(spent, 1e-9)
    talk.say(f"{inputs.policy.name}: simulated {jobs:,} jobs in {spent:.2f} s, {rate:,.0f} jobs/s")
    return Run.of(execution, stopwatch)


def tell_rejected(run: Run, talk: Talk) -> None:
    """Say how many jobs can never run on this cluster, and why."""
    rejected = run.tables.rejected
    for reason, count in rejected["reason"].value_counts(sort=False).items():
        talk.warn(f"{run.policy}: {count:,} of {len(run.jobs):,} jobs rejected: {reason}")


def fail_if_starved(runs: list[Run], talk: Talk) -> None:
    """Leave with exit code 1 where jobs wait for ever, a line for each demand; the runs are kept."""
    for run in runs:
        for line in run.starved:
            talk.complain(f"{run.policy} starves its jobs: {line}")
    if any(run.starved for run in runs):
        raise typer.Exit(1)
