"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from analysim._version import __version__
from analysim.cli.comparing import compare
from analysim.cli.failures import Commands
from analysim.cli.fidelity import fidelity
from analysim.cli.placing import place
from analysim.cli.plotting import plot
from analysim.cli.policies import policies
from analysim.cli.rerunning import rerun
from analysim.cli.simulating import simulate
from analysim.cli.topologies import topologies
from analysim.cli.traces import trace


def build() -> typer.Typer:
    """Put the command line together; nothing heavy is imported before a command runs."""
    application = typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    application.callback()(_root)
    for command in (simulate, compare, place, fidelity, plot, rerun):
        application.command()(command)
    for name, group in (("policies", policies), ("topologies", topologies), ("trace", trace)):
        application.add_typer(group, name=name)
    return application


def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Show the version.")
    ] = False,
) -> None:
    """Simulate a scheduling policy on your own GPU jobs: a trace in, the schedule and what it did out."""


def _tell_version(asked: bool) -> None:
    if asked:
        print(f"analysim {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line and leave with exit code 0, 1 (a run failed), 2 (a mistake in the input) or a signal's."""
    build()()
