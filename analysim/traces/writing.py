"""Write a trace in the schema: the same bytes each time, and never half a file."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import MissingExtraError, UserError
from analysim.traces.cells import LARGEST
from analysim.traces.moments import microseconds_of
from analysim.traces.schema import COLUMNS, Column
from analysim.units import MICROSECONDS
from analysim.whole_file import write_whole

SUFFIXES = (".csv", ".csv.gz", ".parquet")
"""What the names of traces in the schema end in."""


def write_trace(frame: pd.DataFrame, path: str | Path, time_origin: str | None = None) -> list[str]:
    """Write a frame in the canonical columns as ``.csv``, ``.csv.gz`` or ``.parquet``.

    Columns that say nothing are left out. Times are seconds on the trace's clock; with the date of its time 0,
    ``time_origin``, they are dates, exact to the microsecond. Returns lines about what could not be written.
    The file appears under its name when it is complete. Raises ``UserError`` for another suffix,
    ``AnalysimError`` when it cannot be written, ``MissingExtraError`` where pyarrow is missing.
    """
    target = Path(path)
    if not target.name.endswith(SUFFIXES):
        raise UserError(
            f"{path}: traces are written as CSV or Parquet.", "End the name in .csv, .csv.gz or .parquet."
        )
    columns, losses = _to_file_columns(frame), list[str]()
    if time_origin is not None:
        losses = _put_dates(columns, frame, time_origin)
    table = pd.DataFrame(columns, copy=False)
    data = _to_parquet(table, target) if target.name.endswith(".parquet") else _to_csv(table)
    write_whole(target, gzip.compress(data, mtime=0) if target.name.endswith(".gz") else data)
    return losses


def _to_file_columns(frame: pd.DataFrame) -> dict[str, object]:
    """Name the columns as a file does, in its units; those that only hold their default are left out."""
    columns = {}
    for column in COLUMNS:
        values = frame[column.target]
        if column.required or column.kind == "id" or bool((values != column.default).any()):
            columns[column.name] = _to_file_units(values, column)
    return columns


def _to_file_units(values: pd.Series, column: Column) -> object:
    if column.kind in ("id", "text"):
        return values
    if column.kind == "flag":
        return values.map({True: "true", False: "false"})
    integers = values.to_numpy()
    absent = integers == column.default if column.default == -1 else np.zeros(integers.size, bool)
    whole, rest = np.divmod(np.where(absent, 0, integers), column.scale)
    if rest.any():
        return np.where(absent, np.nan, integers / column.scale)
    return pd.arrays.IntegerArray(whole, absent) if absent.any() else whole


def _put_dates(columns: dict[str, object], frame: pd.DataFrame, origin: str) -> list[str]:
    """Put dates in the place of seconds; say what the dates of a file cannot hold.

    A file with dates begins at its first submission: a moment before that could not be read back.
    """
    zero, zoned = microseconds_of(origin), datetime.fromisoformat(origin).tzinfo is not None
    submit = frame["submit_us"].to_numpy()
    first = int(submit.min())
    if zero + first < 0 or zero + int(submit.max()) > LARGEST:
        return [f"Dates before 1970 or after 2255 are written as seconds since time 0, which is {origin}."]
    losses = []
    for column in COLUMNS:
        if column.kind != "time" or column.name not in columns:
            continue
        moments = frame[column.target].to_numpy()
        told = moments >= 0
        held = told & (moments >= first) & (moments + zero <= LARGEST)
        columns[column.name] = _dates(moments + zero, held, zoned)
        if (told & ~held).any():
            lost = int((told & ~held).sum())
            losses.append(f"{lost:,} of {column.name} before the first submission or after 2255 are left out.")
    return losses


def _dates(moments: npt.NDArray[np.int64], held: npt.NDArray[np.bool_], zoned: bool) -> pd.Series:
    stamps = pd.Series(np.where(held, moments, np.iinfo(np.int64).min).view("datetime64[us]"))
    return stamps.dt.tz_localize(UTC) if zoned else stamps


def _to_csv(table: pd.DataFrame) -> bytes:
    texts = {name: _as_text(table[name]) if _is_date(table[name]) else table[name] for name in table}
    odd = any(_is_odd(values) for values in texts.values())
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if odd else csv.QUOTE_MINIMAL
    text = pd.DataFrame(texts, copy=False).to_csv(index=False, lineterminator="\n", quoting=quoting)
    return text.encode("utf-8", "replace")  # JSON may hold halves of characters, which are no text


def _is_odd(values: pd.Series) -> bool:
    """Whether a column has text that a reader would change were it not between quotation marks."""
    if not pd.api.types.is_string_dtype(values.dtype):
        return False
    words = pd.Series(pd.unique(values), dtype="str")
    return bool(words.str.contains(r"^\s|\r", regex=True).any())


def _is_date(values: pd.Series) -> bool:
    return bool(pd.api.types.is_datetime64_any_dtype(values.dtype))


def _as_text(dates: pd.Series) -> pd.Series:
    """Write dates in ISO 8601, to the second where that is exact."""
    zoned = isinstance(dates.dtype, pd.DatetimeTZDtype)
    stamps = (dates.dt.tz_localize(None) if zoned else dates).to_numpy("datetime64[us]")
    exact = not (stamps[~np.isnat(stamps)].astype(np.int64) % MICROSECONDS).any()
    words = np.datetime_as_string(stamps, unit="s" if exact else "us")
    texts = pd.Series(words, dtype="str")
    return (texts + "Z" if zoned else texts).where(~np.isnat(stamps), "")


def _to_parquet(table: pd.DataFrame, target: Path) -> bytes:
    buffer = io.BytesIO()
    try:
        table.to_parquet(buffer, engine="pyarrow", index=False)
    except ImportError as error:
        raise MissingExtraError(
            f"{target} is to be a Parquet file, which needs pyarrow.",
            "Install it with: pip install 'analysim[parquet]'",
        ) from error
    return buffer.getvalue()
