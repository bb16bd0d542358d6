"""A trace file read column by column, with all that is wrong with it, before anything is decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysim.elastic import COLUMNS as ELASTIC
from analysim.elastic import find_faults
from analysim.traces.cells import Mask, Reading, find_cells, read_flags, read_integers
from analysim.traces.columnar import ColumnarTable
from analysim.traces.delimited import DelimitedTable
from analysim.traces.identity import check_ids, number_rows
from analysim.traces.mapping import ignored_note, map_columns
from analysim.traces.moments import date_of
from analysim.traces.opening import TraceFile, open_trace_file
from analysim.traces.problems import Finding, Problem, locate
from analysim.traces.schema import BY_NAME, COLUMNS, Column
from analysim.traces.trace import make_frame
from analysim.units import GPU_MILLI

Table = DelimitedTable | ColumnarTable

_OTHER_TIMES = ("cancel_time", "deadline", "start_time", "end_time")


class Draft:
    """The columns of a file as arrays in the unit of the frame, in file order.

    Raises ``TraceError`` when the file is no table or lacks a required column; mistakes in cells are
    collected in ``findings`` instead.
    """

    def __init__(self, path: str | Path, columns: Mapping[str, str], timezone: tzinfo | None = None) -> None:
        self._timezone = timezone
        self.file: TraceFile = open_trace_file(path)
        self.table: Table = (
            ColumnarTable(self.file) if self.file.format == "parquet" else DelimitedTable(self.file)
        )
        self.mapped = map_columns(self.file.path, self.table.header, columns)
        self.table.keep(self.mapped)
        self.findings: list[Finding] = []
        self.time_origin: str | None = None
        self.notes = ignored_note(self.table.header, self.mapped)
        self._values: dict[str, Any] = {}
        self._readings: dict[str, Reading] = {}
        uses = Counter(self.mapped.values())
        for column in COLUMNS:
            self._read(column)
            own = self.mapped.get(column.name, "")
            uses[own] -= 1
            if uses[own] == 0:
                self.table.drop(own)
        self._check_gangs()
        self._check_elastic()
        self._set_clock()
        self._check_withdrawals()

    def problems(self) -> list[Problem]:
        """Look up the first cells of each finding and say what is wrong with them."""
        return locate(self.findings, self.table)

    def frame(self) -> pd.DataFrame:
        """Return the jobs in the canonical columns and in their one order."""
        for name, reading in self._readings.items():
            column = BY_NAME[name]
            reading.integers[reading.absent] = column.default
            self._values[column.target] = reading.integers
        return make_frame(self._values, self.table.rows)

    def _read(self, column: Column) -> None:
        name = self.mapped.get(column.name)
        if name is None:
            if column.kind == "id":
                self._values[column.target] = number_rows(self.table.rows)
                self.notes.append("There is no job_id column: jobs are numbered by row, from 1.")
            return
        findings: list[Finding] = []
        if column.kind == "id":
            ids = self.table.ids(name)
            self._values[column.target], findings = ids, check_ids(ids, name)
        elif column.kind == "text":
            texts = _tidy(self.table.text(name).fillna(""), column)
            self._values[column.target] = texts
            if column.choices:
                bad = ~texts.isin(["", *column.choices]).to_numpy(bool)
                what, remedy = f"is none of {', '.join(column.choices)}", "Write one of them, or leave the cell empty."
                findings = [find_cells(f"unknown {column.name}", name, bad, what, remedy)] if bad.any() else []
        elif column.kind == "flag":
            series = self.table.column(name)
            series = series if series.dtype == bool else self.table.text(name)
            self._values[column.target], findings = read_flags(column, series, name)
        else:
            series = self.table.column(name)
            series = series if _is_measure(series) else self.table.text(name)
            self._readings[column.name], findings = read_integers(column, series, name, self._timezone)
        self.findings += findings

    def _check_gangs(self) -> None:
        per_node = self._readings.get("gpus_per_node")
        if per_node is None:
            return
        gpus = self._readings["num_gpus"].integers // GPU_MILLI
        each = per_node.integers
        bad = (each > 0) & (gpus % np.where(each > 0, each, 1) != 0)
        if bad.any():
            self.findings.append(
                Finding(
                    "gpus_per_node does not divide",
                    self.mapped["gpus_per_node"],
                    np.flatnonzero(bad),
                    lambda row: f"does not divide the job's {gpus[row]} GPUs",
                    "Write how many GPUs the gang has on each of its nodes, or leave the cell empty.",
                )
            )
        each[gpus == 0] = 0

    def _check_elastic(self) -> None:
        if not any(name in self.mapped for name in ELASTIC):
            return
        whole = {name: self._readings.get(name) for name in ("num_gpus", "gpus_per_node", "min_gpus", "max_gpus")}
        columns: dict[str, Any] = {
            BY_NAME[name].target: 0 if reading is None else reading.integers for name, reading in whole.items()
        }
        columns["throughput"] = self._values.get("throughput", "")
        for fault in find_faults(pd.DataFrame(columns, index=pd.RangeIndex(self.table.rows))):
            own = self.mapped[fault.column if fault.column in self.mapped else "num_gpus"]
            self.findings.append(Finding(fault.kind, own, fault.rows, fault.what, fault.remedy))

    def _set_clock(self) -> None:
        """Put dates on a clock that starts at the first submission; all times must be of one kind."""
        submit = self._readings["submit_time"]
        present = submit.present
        first = int(submit.integers[present].min()) if submit.dates and present.any() else 0
        if submit.dates:
            self._note_zones(submit, first)
            submit.integers = np.where(present, submit.integers - first, 0)
        for name in _OTHER_TIMES:
            reading = self._readings.get(name)
            if reading is None or not reading.present.any():
                continue
            if reading.dates != submit.dates:
                one, two = ("dates", "numbers") if submit.dates else ("numbers", "dates")
                self._find(
                    "another clock",
                    name,
                    reading.present,
                    f"is no time on the clock of submit_time, which holds {one}",
                    f"Write all times as {one}, or all as {two}.",
                )
                continue
            reading.integers = np.where(reading.present, reading.integers - first, 0)
            self._find(
                f"{name} before the trace",
                name,
                reading.integers < 0,
                "is before the first submission",
                "Correct it, or leave the cell empty.",
            )

    def _note_zones(self, submit: Reading, first: int) -> None:
        dated = int(submit.present.sum())
        moment = date_of(first)
        if submit.zones < dated and self._timezone is not None:
            self.notes.append(f"Times without a time zone are read as {self._timezone}.")
        elif submit.zones == 0:
            moment = moment.replace(tzinfo=None)
        elif submit.zones < dated:
            self.notes.append(
                f"Submit times without a time zone ({dated - submit.zones:,} of {dated:,}) are read as UTC."
            )
        self.time_origin = moment.isoformat()

    def _check_withdrawals(self) -> None:
        cancel = self._readings.get("cancel_time")
        if cancel is not None:
            submit = self._readings["submit_time"]
            early = cancel.present & submit.present & (cancel.integers < submit.integers)
            self._find(
                "cancel_time before submit_time",
                "cancel_time",
                early,
                "is before the job's submit_time",
                "Correct it, or leave the cell empty.",
            )

    def _find(self, kind: str, name: str, bad: Mask, what: str, remedy: str) -> None:
        if bad.any():
            self.findings.append(find_cells(kind, self.mapped[name], bad, what, remedy))


def _is_measure(series: pd.Series) -> bool:
    """Tell whether a column holds numbers, dates or time spans throughout."""
    kinds = pd.api.types
    return not kinds.is_bool_dtype(series.dtype) and (
        kinds.is_numeric_dtype(series.dtype)
        or kinds.is_datetime64_any_dtype(series.dtype)
        or kinds.is_timedelta64_dtype(series.dtype)
    )


def _tidy(texts: pd.Series, column: Column) -> pd.Series:
    """Take the blanks out of ``A100 | H100``; leave other text as it is."""
    if column.name != "gpu_type":
        return texts
    codes, words = pd.factorize(texts)
    tidy = ["|".join(part.strip() for part in word.split("|")) for word in words]
    return pd.Series(pd.array(tidy, dtype="str").take(codes))
