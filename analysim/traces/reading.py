"""Read a trace file, in the schema or in a format that people already have, or say why it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import file_digest
from pathlib import Path

from analysim.errors import UserError
from analysim.traces.draft import Draft
from analysim.traces.log import Account
from analysim.traces.problems import to_error
from analysim.traces.readers import Format, ReadOptions, find_format
from analysim.traces.settling import settle
from analysim.traces.trace import Trace
from analysim.units import parse_timezone

_SUFFIXES = (".gz", ".csv", ".json", ".yaml", ".yml", ".txt", ".swf", ".trace")


def read_trace(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    format: str | None = None,
    timezone: str | None = None,
) -> Trace:
    """Read a trace: a file in a format of ``readers.FORMATS``, told by its content, or else in the schema.

    ``columns`` maps schema names to the file's own and says that it is CSV or Parquet; ``format`` names a
    format, ``timezone`` (``Europe/Berlin``) is that of naive times. Numeric times of the schema stay on the
    trace's own clock; dates become microseconds since the first submission.
    Raises ``TraceError`` for the first mistake in the file, ``UserError`` for an unknown format or zone,
    ``MissingExtraError`` where pyarrow is missing.
    """
    options = ReadOptions(parse_timezone(timezone) if timezone is not None else None)
    found = find_log(Path(path), columns, format)
    return _read_schema(path, columns or {}, options) if found is None else _read_log(Path(path), found, options)


def find_log(path: Path, columns: Mapping[str, str] | None, format: str | None) -> Format | None:
    """Find the format of a log, as ``read_trace`` does; None for a file in the schema.

    Raises ``UserError`` for an unknown format or one that takes no ``columns``, ``TraceError`` for a file that
    two formats claim or that holds no jobs.
    """
    found = None if columns and format is None else find_format(path, format)
    if found is not None and columns:
        raise UserError(f"--column is for CSV and Parquet; {path} is read as {found.name}.", "Leave one of them out.")
    return found


def _read_log(path: Path, found: Format, options: ReadOptions) -> Trace:
    log = found.read(path, options)
    settled = settle(log, str(path))
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return Trace(
        frame=settled.frame,
        name=_stem(path.name),
        path=str(path),
        format=found.name,
        time_origin=settled.time_origin,
        account=log.account,
        notes=log.notes,
        sha256=digest,
        lacks=log.lacks,
    )


def _stem(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _read_schema(path: str | Path, columns: Mapping[str, str], options: ReadOptions) -> Trace:
    draft = Draft(path, columns, options.timezone)
    if draft.findings:
        raise to_error(draft.problems())
    return Trace(
        frame=draft.frame(),
        name=draft.file.name,
        path=draft.file.path,
        format=draft.file.format,
        time_origin=draft.time_origin,
        account=Account(rows=draft.table.rows),
        notes=draft.notes,
        sha256=draft.file.sha256,
    )
