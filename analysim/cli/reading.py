"""Traces that commands name: found, read, and told about on stderr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysim.cli.configuration import read_columns
from analysim.cli.talk import Talk

if TYPE_CHECKING:
    from analysim.traces import Trace


def read_source(name: str, column: Sequence[str], trace_format: str | None, timezone: str | None) -> Trace:
    """Read a trace, a path or a name on the shelf, as the flags of a command say. Raises ``UserError``."""
    from analysim import shelf
    from analysim.traces import read_trace

    return read_trace(shelf.find("traces", name), read_columns(column), format=trace_format, timezone=timezone)


def tell_source(trace: Trace, talk: Talk) -> None:
    """Say as what a trace was read, and what was set aside, repaired or taken for granted."""
    from analysim.traces import tell_account, tell_reading

    for line in tell_reading(trace):
        talk.say(line)
    for line in (*tell_account(trace), *trace.notes):
        talk.say(f"note: {line}")
