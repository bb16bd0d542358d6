"""All that is wrong with a trace file, counted by kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysim.errors import TraceError
from analysim.traces.draft import Draft
from analysim.traces.problems import Problem, file_problem


def find_problems(path: str | Path, columns: Mapping[str, str] | None = None) -> list[Problem]:
    """List every kind of problem of a trace file with its count and first cells; empty for a good file.

    A file that is no table at all has one problem. Raises ``MissingExtraError`` where pyarrow is missing.
    """
    try:
        return Draft(path, columns or {}).problems()
    except TraceError as error:
        return [file_problem(error)]
