"""Read a trace file in the schema, or say in one line why it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysim.traces.draft import Draft
from analysim.traces.problems import to_error
from analysim.traces.trace import Trace


def read_trace(path: str | Path, columns: Mapping[str, str] | None = None) -> Trace:
    """Read a trace from CSV (plain or gzip) or Parquet; ``columns`` maps schema names to the file's own.

    Numeric times stay on the trace's own clock; dates become microseconds since the first submission.
    Raises ``TraceError`` for the first mistake in the file, ``MissingExtraError`` where pyarrow is missing.
    """
    draft = Draft(path, columns or {})
    if draft.findings:
        raise to_error(draft.problems())
    return Trace(
        frame=draft.frame(),
        name=draft.file.name,
        path=draft.file.path,
        format=draft.file.format,
        time_origin=draft.time_origin,
        rows=draft.table.rows,
        notes=draft.notes,
        sha256=draft.file.sha256,
    )
