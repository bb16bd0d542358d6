"""What was understood of a trace's file, in lines for people."""

from __future__ import annotations

from analysim.errors import TraceError
from analysim.traces.readers import title_of
from analysim.traces.trace import Trace
from analysim.units import format_duration

_SHOWN_RANGES = 5


def require_gpus(trace: Trace) -> Trace:
    """Return the trace, or raise ``TraceError`` where its file does not tell how many GPUs jobs ask for."""
    if trace.lacks:
        raise TraceError(
            f"{trace.path} does not tell how many GPUs its jobs ask for.",
            f"What would tell is missing: {trace.lacks}.",
        )
    return trace


def tell_reading(trace: Trace) -> list[str]:
    """Say in two lines as what a file was read, how much of it are jobs, over which time, and where time 0 is."""
    submit = trace.frame["submit_us"]
    span = format_duration(int(submit.max() - submit.min())) if len(submit) else "no time"
    zero = f"time 0 is {trace.time_origin}" if trace.time_origin else "time 0 is that of the file's own clock"
    return [
        f"trace    {trace.path}, read as {title_of(trace.format)} ({trace.format}): {tell_rows(trace)}",
        f"times    submitted over {span}; {zero}",
    ]


def tell_rows(trace: Trace) -> str:
    """Say where the rows went: ``12 rows = 10 jobs + 2 set aside``."""
    aside = sum(trace.account.counts().values())
    return f"{trace.rows:,} rows = {trace.rows - aside:,} jobs + {aside:,} set aside"


def tell_account(trace: Trace) -> list[str]:
    """Say what was set aside and what was repaired, a line for each reason."""
    lines = [f"{count:,} set aside: {reason}" for reason, count in trace.set_aside.items()]
    lines += [f"{count:,} kept, though repaired: {reason}" for reason, count in trace.account.repairs().items()]
    return lines + ([f"GPUs are not told; what would tell is missing: {trace.lacks}"] if trace.lacks else [])


def tell_first_rows(trace: Trace, what: str, reason: str) -> str:
    """Name the first rows that were set aside or repaired (``what``) for a reason: ``rows 3, 8-10 and more``."""
    table = trace.account.table()
    ranges = table[(table["what"] == what) & (table["reason"] == reason)]
    pairs = ranges[["first_row", "last_row"]].head(_SHOWN_RANGES).to_numpy().tolist()
    shown = ", ".join(f"{first:,}" if first == last else f"{first:,}-{last:,}" for first, last in pairs)
    more = " and more" if len(ranges) > _SHOWN_RANGES else ""
    return f"{'row' if len(ranges) == 1 and '-' not in shown else 'rows'} {shown}{more}"
