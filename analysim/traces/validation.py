"""All that is wrong with a trace file, counted by kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysim.errors import TraceError
from analysim.traces.draft import Draft
from analysim.traces.problems import Problem, file_problem
from analysim.traces.reading import find_log, read_trace
from analysim.traces.trace import Trace


def find_problems(path: str | Path, columns: Mapping[str, str] | None = None) -> list[Problem]:
    """List every kind of problem of a file in the schema with its count and first cells; empty for a good file.

    A file that is no table at all has one problem. Raises ``MissingExtraError`` where pyarrow is missing.
    """
    try:
        return Draft(path, columns or {}).problems()
    except TraceError as error:
        return [file_problem(error)]


def check_trace(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    format: str | None = None,
    timezone: str | None = None,
) -> tuple[list[Problem], Trace | None]:
    """List the problems of a file as ``find_problems`` does; a log has one where it cannot be read.

    A log that can be read comes as a trace too, whose account says what was set aside and repaired: that is
    no problem. Arguments and other errors are those of ``read_trace``.
    """
    try:
        if find_log(Path(path), columns, format) is not None:
            return [], read_trace(path, columns, format=format, timezone=timezone)
    except TraceError as error:
        return [file_problem(error)], None
    return find_problems(path, columns), None
