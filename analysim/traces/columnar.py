"""Parquet files as columns; they need pyarrow."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from analysim.errors import MissingExtraError, TraceError
from analysim.traces.opening import TraceFile
from analysim.traces.problems import Cell


class ColumnarTable:
    """The columns of a Parquet file.

    Raises ``MissingExtraError`` without pyarrow, ``TraceError`` for a damaged file, repeated column names
    or no rows.
    """

    def __init__(self, file: TraceFile) -> None:
        self.file = file
        self.path = file.path
        self._frame = _read(file)
        file.release()
        self.header = [str(name) for name in self._frame.columns]
        self.rows = len(self._frame)
        repeated = [name for name in self.header if self.header.count(name) > 1]
        if repeated:
            raise TraceError(f'{self.path}: two columns are called "{repeated[0]}".', "Rename or remove one.")
        if self.rows == 0:
            raise TraceError(f"{self.path} has column names but no rows.", "A trace has a row for each job.")

    def column(self, name: str) -> pd.Series:
        """Return a column with its own type; decimals and dates become text."""
        series = self._frame[name]
        return self.text(name) if series.dtype == object else series

    def text(self, name: str) -> pd.Series:
        """Return a column as text, NaN where absent."""
        series = self._frame[name]
        return series.astype("str").where(series.notna())

    def ids(self, name: str) -> pd.Series:
        """Return a column as int64 if it is one, else as text."""
        series = self._frame[name]
        integers = pd.api.types.is_integer_dtype(series.dtype) and series.dtype != np.uint64
        return series.astype(np.int64) if integers else self.text(name)

    def keep(self, mapped: Mapping[str, str]) -> None:
        """Let go of the columns that are not mapped."""
        self._frame = self._frame[list(dict.fromkeys(mapped.values()))]

    def drop(self, name: str) -> None:
        """Let go of a column; its cells can still be looked up."""
        del self._frame[name]

    def cells(self, wanted: Iterable[tuple[int, str]]) -> dict[tuple[int, str], Cell]:
        """Look up cells by (row from 0, column)."""
        frame = _read(self.file)
        return {(row, name): Cell(row + 1, None, _written(frame[name].iloc[row])) for row, name in wanted}


def _written(value: object) -> str:
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)


def _read(file: TraceFile) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = pd.read_parquet(io.BytesIO(file.contents), engine="pyarrow")
    except ImportError as error:
        raise MissingExtraError(
            f"{file.path} is a Parquet file, which needs pyarrow.",
            "Install it with: pip install 'analysim[parquet]'",
        ) from error
    except (OSError, ValueError, NotImplementedError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise TraceError(f"{file.path}: the Parquet file is damaged ({reason}).", "Make it again.") from error
    named = any(name is not None for name in frame.index.names)
    return frame.reset_index() if named else frame
