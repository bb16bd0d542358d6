"""How far a run is: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from analysim.cli.talk import Talk
from analysim.units import format_duration, seconds

if TYPE_CHECKING:
    from analysim.engine import Progress

_SECONDS_BETWEEN_LINES = 5.0


Report = Callable[["Progress"], None]
"""What the engine calls a few times a second."""


@contextmanager
def shown_progress(talk: Talk, title: str, start_s: float) -> Iterator[Report | None]:
    """Yield what the engine shall report to; ``start_s`` is the first submit, from which time is shown."""
    if talk.quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(title, start_s) as report:
            yield report
    else:
        yield _lines(talk, title, start_s)


@contextmanager
def _bar(title: str, start_s: float) -> Iterator[Report]:
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn(title, markup=False),
        rich.BarColumn(bar_width=None),
        rich.TextColumn("{task.fields[told]}"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, told="")
        began = time.perf_counter()

        def report(progress: Progress) -> None:
            told = _told(progress, start_s, time.perf_counter() - began)
            bar.update(task, total=progress.jobs_total, completed=progress.jobs_done, told=told)

        yield report


def _lines(talk: Talk, title: str, start_s: float) -> Report:
    began = last = time.perf_counter()

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            talk.say(f"{title}: {_told(progress, start_s, now - began)}, {_left(progress, now - began)} left")

    return report


def _told(progress: Progress, start_s: float, elapsed_s: float) -> str:
    simulated = format_duration(seconds(progress.now_s - start_s))
    rate = progress.jobs_done / max(elapsed_s, 1e-9)
    return (
        f"{simulated} simulated, {progress.jobs_done:,} of {progress.jobs_total:,} jobs, {rate:,.0f} jobs/s"
    )


def _left(progress: Progress, elapsed_s: float) -> str:
    to_do = progress.jobs_total - progress.jobs_done
    return f"about {format_duration(seconds(elapsed_s / max(progress.jobs_done, 1) * to_do))}"
