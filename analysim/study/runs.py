"""A finished run in memory: its tables, what decided it, its figures; saved and read as a folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from analysim.config.run import RunConfig
from analysim.metrics import make_timeline, summarise
from analysim.run.csv_table import write_csv
from analysim.run.execution import Execution
from analysim.run.folder import (
    ACCOUNT_FILE,
    FIGURES,
    POLICY_FILE,
    RUN_FILE,
    TIMING_FILE,
    NewRunFolder,
    default_target,
    read_account,
    read_policy_source,
    read_run,
    read_timing,
    write_json,
    write_tables,
)
from analysim.run.specification import describe_run
from analysim.study.timing import Stopwatch
from analysim.tables import RunTables, TableFormat
from analysim.traces import parse_window
from analysim.units import to_seconds

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """One finished run.

    ``record`` is what ``run.json`` holds, ``timing`` what ``timing.json`` holds, ``folder`` where the run
    is kept (None while it is in memory only), ``account`` what became of the trace's rows that are no jobs or had to
    be mended. The tables are described in ``docs/reference/run-folder.md``.
    """

    record: dict[str, Any]
    tables: RunTables
    timing: dict[str, Any]
    policy_source: bytes
    folder: Path | None = None
    account: pd.DataFrame | None = None

    @classmethod
    def of(cls, execution: Execution, stopwatch: Stopwatch) -> Self:
        """Make a run of what a simulation gave: adds the timeline and the headline metrics."""
        with stopwatch.timing("metrics"):
            tables = replace(execution.tables, timeline=make_timeline(execution.tables))
            metrics = summarise(tables, _measured(execution.inputs.config, tables))
        stopwatch.seconds["engine"] = execution.facts["engine_seconds"]
        record = {**describe_run(execution), "metrics": metrics}
        account = execution.inputs.trace.account.table()
        return cls(record, tables, stopwatch.report(), execution.policy_source, account=account)

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """Read a run folder. Raises ``RunFolderError`` when it is no finished run."""
        folder = Path(folder)
        record, tables = read_run(folder)
        return cls(record, tables, read_timing(folder), read_policy_source(folder), folder, read_account(folder))

    @property
    def jobs(self) -> pd.DataFrame:
        """One row a submitted job, times in seconds."""
        return self.tables.jobs

    @property
    def segments(self) -> pd.DataFrame:
        """One row a job, node and interval in which the job held GPUs there."""
        return self.tables.segments

    @property
    def timeline(self) -> pd.DataFrame:
        """Time averages over at most 2,000 equal intervals."""
        return self.tables.timeline

    @property
    def config(self) -> RunConfig:
        """The configuration of the run, defaults included."""
        return RunConfig.model_validate(self.record["config"])

    @property
    def measure(self) -> tuple[float, float] | None:
        """The measured interval in seconds on the trace's clock; None is the whole run."""
        return _measured(self.config, self.tables)

    @property
    def policy(self) -> str:
        """Name of the policy."""
        return str(self.record["policy"]["name"])

    @property
    def trace(self) -> str:
        """Name of the trace."""
        return str(self.record["trace"]["name"])

    @property
    def label(self) -> str:
        """Policy and what it may know of durations, for tables and legends: ``sjf (oracle)``."""
        return f"{self.policy} ({self.record['policy']['knowledge']})"

    @property
    def starved(self) -> list[str]:
        """One line for each demand that waits for ever; empty for a run that went well."""
        return list(self.record["starved"])

    @property
    def summary(self) -> dict[str, Any]:
        """The headline figures, with the names of policy, trace and topology before them."""
        return {
            "policy": self.policy,
            "knowledge": self.record["policy"]["knowledge"],
            "trace": self.trace,
            "topology": self.record["topology"]["name"],
            "inferred": self.record["topology"]["inferred"],
            **self.record["metrics"],
        }

    @property
    def report(self) -> dict[str, Any]:
        """The summary with the folder before it and what the run took of this machine behind it."""
        return {
            "run": None if self.folder is None else str(self.folder),
            **self.summary,
            "engine_seconds": self.timing.get("seconds", {}).get("engine"),
            "peak_memory_mb": self.timing.get("peak_memory_mb"),
        }

    def plot(self, out: Path | str | None = None) -> list[Path]:
        """Draw the figures into ``out`` (default: ``figures`` in the run's folder, or here).

        Returns their paths. Raises ``RunFolderError`` when they cannot be written.
        """
        from analysim.report import draw_run

        target = Path(out) if out is not None else (self.folder or Path()) / FIGURES
        title = f"{self.policy}, {self.trace} on {self.record['topology']['name']}"
        return draw_run(self.tables, self.record["metrics"], title, target, caption(self))

    def save(
        self,
        out: Path | str | None = None,
        *,
        force: bool = False,
        table_format: TableFormat = "csv",
        figures: bool = True,
    ) -> Run:
        """Write a run folder (default: a new one under ``runs/``) and return the run that is kept there.

        Raises ``RunFolderError`` when ``out`` exists (unless ``force``) or cannot be written.
        """
        target = Path(out) if out is not None else default_target(self.trace, self.policy)
        with NewRunFolder(target, force=force, numbered=out is None) as folder:
            return self.write(folder, table_format=table_format, figures=figures)

    def write(self, folder: NewRunFolder, *, table_format: TableFormat, figures: bool) -> Run:
        """Fill and finish a run folder that was begun; returns the run that is kept there."""
        stopwatch = Stopwatch()
        with stopwatch.timing("write"):
            folder.write(lambda partial: self._write_data(partial, table_format))
        if figures:
            with stopwatch.timing("figures"):
                self.plot(folder.partial / FIGURES)
        seconds = {**self.timing.get("seconds", {}), **stopwatch.seconds}
        timing = {**stopwatch.report(), "seconds": seconds}
        folder.write(lambda partial: write_json(timing, partial / TIMING_FILE))
        return replace(self, timing=timing, folder=folder.finish())

    def _write_data(self, partial: Path, table_format: TableFormat) -> None:
        stored = write_tables(self.tables, partial, table_format)
        write_json({**self.record, "tables": stored}, partial / RUN_FILE)
        (partial / POLICY_FILE).write_bytes(self.policy_source)
        if self.account is not None and len(self.account):
            write_csv(self.account, partial / ACCOUNT_FILE)


def caption(*runs: Run) -> str:
    """Say under a figure what its reader must know of the runs in it."""
    knowledge = ", ".join(dict.fromkeys(f"{run.policy}: {run.record['policy']['knowledge']}" for run in runs))
    lines = [f"Knowledge of durations: {knowledge}."]
    lines += dict.fromkeys(
        f"Cluster {run.record['topology']['name']} is inferred: {run.record['topology']['inferred']}."
        for run in runs
        if run.record["topology"]["inferred"]
    )
    return " ".join(lines)


def _measured(config: RunConfig, tables: RunTables) -> tuple[float, float] | None:
    if config.measure is None or not len(tables.jobs):
        return None
    start_us, stop_us = parse_window(config.measure)
    first_s = float(tables.jobs["submit_time_s"].iloc[0])
    stop_s = float("inf") if stop_us is None else first_s + to_seconds(stop_us)
    return first_s + to_seconds(start_us), stop_s
