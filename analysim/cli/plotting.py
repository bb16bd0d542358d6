"""``analysim plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from analysim.cli import options
from analysim.cli.talk import Talk
from analysim.errors import UserError


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Finished run folders.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the figures. Default: figures in each RUN."),
    ] = None,
    chrome_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a timeline for Perfetto (ui.perfetto.dev) instead; .json or .json.gz."
        ),
    ] = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Draw the figures of finished runs; the paths of what was written go to stdout."""
    from analysim.study.runs import Run

    talk = Talk(quiet=quiet)
    if chrome_trace is not None:
        if len(runs) > 1:
            raise UserError("--chrome-trace writes one run to one file.", "Name one run folder.")
        from analysim.report import write_chrome_trace

        talk.say(write_chrome_trace(Run.read(runs[0]).tables, chrome_trace))
        print(chrome_trace)
        return
    for folder in runs:
        own = out / folder.resolve().name if out is not None and len(runs) > 1 else out
        for path in Run.read(folder).plot(own):
            print(path)
