"""The tables of a run as files: CSV for everyone, parquet for large ones; both read back alike."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysim.errors import MissingExtraError
from analysim.run.csv_table import write_csv
from analysim.tables import TableFormat
from analysim.units import MICROSECONDS

Kinds = dict[str, str]
"""Column -> ``integer``, ``number``, ``text`` or ``boolean``, in column order."""


def column_kinds(frame: pd.DataFrame) -> Kinds:
    """Say what each column holds, so that a CSV reads back as the table that was written."""
    return {str(name): _kind(frame[name].dtype) for name in frame.columns}


def _kind(dtype: Any) -> str:
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_integer_dtype(dtype):
        return "integer"
    return "number" if pd.api.types.is_float_dtype(dtype) else "text"


def check_format(table_format: TableFormat) -> None:
    """Raise ``MissingExtraError`` when parquet is asked for and pyarrow is not installed."""
    if table_format == "parquet" and find_spec("pyarrow") is None:
        raise MissingExtraError(
            "--format parquet needs pyarrow, which is not installed.",
            "Install it: pip install 'analysim[parquet]'.",
        )


def write_table(frame: pd.DataFrame, folder: Path, name: str, table_format: TableFormat) -> None:
    """Write one table into ``folder`` as ``name.csv`` or ``name.parquet``."""
    path = folder / f"{name}.{table_format}"
    if table_format == "parquet":
        frame.to_parquet(path, index=False)
    else:
        write_csv(frame, path)


def read_table(folder: Path, name: str, table_format: TableFormat, kinds: Kinds) -> pd.DataFrame:
    """Read one table back with the kinds that ``run.json`` recorded for it."""
    path = folder / f"{name}.{table_format}"
    if table_format == "parquet":
        return pd.read_parquet(path)
    numbers = [column for column, kind in kinds.items() if kind == "number"]
    types = {"integer": np.int64, "number": np.float64, "boolean": bool, "text": str}
    frame = pd.read_csv(
        path,
        dtype={column: types[kind] for column, kind in kinds.items()},
        keep_default_na=False,
        na_values={column: [""] for column in numbers},
    )
    for column in numbers:
        if column.endswith("_s"):  # decimal text may parse one unit in the last place off
            frame[column] = np.rint(frame[column] * MICROSECONDS) / MICROSECONDS
    return frame
