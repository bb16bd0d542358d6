"""Write a trace in the schema: the same bytes each time, and never half a file."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd

from analysim.errors import MissingExtraError, UserError
from analysim.traces.schema import COLUMNS, Column
from analysim.whole_file import write_whole


def write_trace(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a frame in the canonical columns as ``.csv``, ``.csv.gz`` or ``.parquet``.

    Columns that say nothing are left out; times are seconds on the trace's clock. The file appears under its
    name when it is complete. Raises ``UserError`` for another suffix, ``AnalysimError`` when it cannot be
    written, ``MissingExtraError`` where pyarrow is missing.
    """
    target = Path(path)
    table = _to_file_columns(frame)
    if target.name.endswith(".csv"):
        data = _to_csv(table)
    elif target.name.endswith(".csv.gz"):
        data = gzip.compress(_to_csv(table), mtime=0)
    elif target.name.endswith(".parquet"):
        data = _to_parquet(table, target)
    else:
        raise UserError(
            f"{path}: traces are written as CSV or Parquet.", "End the name in .csv, .csv.gz or .parquet."
        )
    write_whole(target, data)


def _to_file_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Name the columns as a file does, in its units; those that only hold their default are left out."""
    columns = {}
    for column in COLUMNS:
        values = frame[column.target]
        if column.required or column.kind == "id" or bool((values != column.default).any()):
            columns[column.name] = _to_file_units(values, column)
    return pd.DataFrame(columns, copy=False)


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


def _to_csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


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
