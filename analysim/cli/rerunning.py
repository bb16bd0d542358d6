"""``analysim rerun``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from analysim.cli import options
from analysim.cli.running import Keep, run_into
from analysim.cli.talk import Talk, print_json


def rerun(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder to write. Default: RUN-rerun, or the next free."),
    ] = None,
    check: options.Check = False,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Make a run again from its folder and tell, file by file, whether the bytes are the same."""
    from analysim.run.folder import FIGURES, read_record
    from analysim.study.reproducing import compare_files, load_again
    from analysim.study.timing import Stopwatch

    talk, stopwatch = Talk(quiet=quiet), Stopwatch()
    record = read_record(run)
    with stopwatch.timing("read"):
        inputs = load_again(run)
    named = run if run.name not in ("", "..") else run.resolve()
    target = out or named.with_name(f"{run.resolve().name}-rerun")
    keep = Keep(record["tables"]["format"], (run / FIGURES).is_dir(), force=force, numbered=out is None)
    again = run_into(target, inputs, stopwatch, talk, keep, check=check)
    same = compare_files(run, Path(again.folder or target))
    if as_json:
        print_json(
            {"run": str(run), "rerun": str(again.folder), "identical": all(same.values()), "files": same}
        )
    else:
        for name, identical in same.items():
            print(f"{'identical' if identical else 'DIFFERENT'}  {name}")
    if not all(same.values()):
        talk.complain(f"{again.folder} differs from {run}; see versions in the timing.json of both.")
        raise typer.Exit(1)
    talk.say(f"wrote {again.folder}: the same bytes as {run} in all files but timing.json")
