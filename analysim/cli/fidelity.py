"""``analysim fidelity``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from analysim.cli import options
from analysim.cli.configuration import make_config, merge_fields
from analysim.cli.figures import NOTHING, show_share
from analysim.cli.running import (
    Keep,
    fail_if_starved,
    load_checked,
    run_shown,
    tell_rejected,
    tell_understanding,
    tell_written,
)
from analysim.cli.talk import Talk, print_json, print_table
from analysim.units import format_number, format_seconds


def fidelity(
    trace: options.TraceName = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="P", help="Policy; replay starts every job when it really started. Default: fifo."),
    ] = None,
    topology: options.Topology = None,
    placement: options.Placement = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Run folder to write. Default: none is written.")
    ] = None,
    seed: options.Seed = None,
    window: options.Window = None,
    initial: options.Initial = None,
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
    """Simulate, and compare waits and busy GPUs with the recorded starts of the trace."""
    flags = options.run_fields(locals())
    from analysim.run.folder import NewRunFolder
    from analysim.study.fidelity import assess, check_recorded, write
    from analysim.study.timing import Stopwatch

    talk, stopwatch = Talk(quiet=quiet), Stopwatch()
    run_config = make_config(merge_fields(config, flags, column, settings))
    keep = Keep(table_format, figures=not no_figures, force=force)
    inputs = load_checked(run_config, keep, out, stopwatch)
    check_recorded(inputs)
    with ExitStack() as stack:
        folder = None if out is None else stack.enter_context(NewRunFolder(out, force=keep.force))
        tell_understanding(inputs, talk)
        run = run_shown(inputs, stopwatch, talk, check=check)
        found = assess(run)
        if folder is not None:
            folder.write(lambda partial: write(found, run, partial, figures=keep.figures))
            run = run.write(folder, table_format=keep.table_format, figures=keep.figures)
    tell_rejected(run, talk)
    for line in found.report["warnings"]:
        talk.warn(line)
    if as_json:
        print_json(found.report)
    else:
        _print(found.report)
    if out is not None:
        tell_written(run, keep, talk)
    fail_if_starved([run], talk)


def _print(report: Mapping[str, Any]) -> None:
    print(f"{report['policy']} ({report['knowledge']}), {report['trace']} on {report['topology']}\n")
    print_table([["", "recorded", "simulated"], *_figures(report)])
    difference, share = report["busy_gpus_mae"], report["busy_share_mae"]
    rows = [
        ["Kolmogorov-Smirnov distance of waits", _shown(report["ks"], lambda value: f"{value:.3f}")],
        ["Wasserstein distance of waits", _shown(report["wasserstein_s"], format_seconds)],
        ["busy GPUs apart, mean over time", _shown(difference, format_number)],
        ["the same, of all GPUs", _shown(share, show_share)],
    ]
    rows += [[f"jobs left out: {what}", f"{report[key]:,}"] for key, what in _LEFT_OUT.items() if report[key]]
    print()
    print_table(rows, header=False)
    if report["partitions"]:
        print()
        print_table(list(_partitions(report["partitions"])))
    if report["replay"]:
        print()
        _print_replay(report["replay"], report["jobs"])


_LEFT_OUT = {
    "without_recorded_start": "no recorded start",
    "started_before_submission": "recorded start before submission",
    "without_start": "no start in the simulation",
    "rejected": "of these rejected, not among recorded busy GPUs either",
}
"""Counts of jobs that are not compared, and what the table calls them."""


def _shown(value: float | None, show: Any) -> str:
    return NOTHING if value is None else str(show(value))


def _figures(report: Mapping[str, Any]) -> Iterator[list[str]]:
    sides = ("recorded", "simulated")
    yield ["jobs compared", f"{report['jobs']:,}", f"{report['jobs']:,}"]
    for name in report["wait_quantiles_s"]["recorded"]:
        yield [f"wait, {name}", *(_shown(report["wait_quantiles_s"][side][name], format_seconds) for side in sides)]
    yield ["wait, mean", *(_shown(report["mean_wait_s"][side], format_seconds) for side in sides)]
    busy = (_shown(report["busy_gpus"][side], format_number) for side in sides)
    yield [f"busy GPUs of {report['gpus']:,}, mean", *busy]


def _partitions(partitions: list[dict[str, Any]]) -> Iterator[list[str]]:
    yield ["partition", "jobs", "median wait", "simulated", "mean wait", "simulated", "KS", "Wasserstein", "GPUs apart"]
    for each in partitions:
        quantiles, means = each["wait_quantiles_s"], each["mean_wait_s"]
        waits = (quantiles["recorded"]["p50"], quantiles["simulated"]["p50"], means["recorded"], means["simulated"])
        yield [
            each["partition"],
            f"{each['jobs']:,}",
            *(_shown(value, format_seconds) for value in waits),
            _shown(each["ks"], lambda value: f"{value:.3f}"),
            _shown(each["wasserstein_s"], format_seconds),
            _shown(each["busy_gpus_mae"], format_number),
        ]


def _print_replay(replay: Mapping[str, Any], jobs: int) -> None:
    peak, nodes = replay["peak"], replay["nodes"]
    if replay["late"]:
        delay = f"by {format_seconds(replay['mean_delay_s'])} in the mean"
        print(f"{replay['late']:,} of {jobs:,} jobs could not start when they did: they start later {delay}")
    else:
        print("no job started later than it did")
    for reason, count in replay["by_reason"].items():
        print(f"  {count:,}: {reason}")
    if replay["never_started"]:
        print(f"{replay['never_started']:,} never started")
    if replay["on_other_nodes"]:
        print(f"{replay['on_other_nodes']:,} found their recorded nodes taken and started on others")
    above = f", more than there are in {peak['share_of_time_above']:.2%} of the time"
    over = above if peak["busy"] > peak["gpus"] else ""
    print(f"most GPUs busy at one time by the record: {peak['busy']:,} of {peak['gpus']:,}{over}")
    for each in replay["partitions_over"]:
        print(f"  in partition {each['partition']}: {each['peak']:,} of {each['gpus']:,}")
    if nodes["over"]:
        print(f"{nodes['over']:,} of {nodes['known']:,} recorded nodes hold more than they have:")
        for each in nodes["worst"]:
            print(f"  {each['node']}: {each['peak']:,} of {each['gpus']:,}")
    if replay["first_late"]:
        print()
        print_table([["first late jobs", "GPUs", "recorded start", "delay", "reason"], *_late(replay["first_late"])])


def _late(jobs: list[dict[str, Any]]) -> Iterator[list[str]]:
    for job in jobs:
        start, delay = f"{job['recorded_start_s']:,.0f} s", format_seconds(job["delay_s"])
        yield [str(job["job_id"]), f"{job['num_gpus']:,}", start, delay, job["reason"]]
