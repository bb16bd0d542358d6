"""Job tables of Chronus: those of Tiresias with users and deadlines, in minutes.

Columns ``job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,
expect_value_list,best_effort,job_type`` (https://github.com/S-Lab-System-Group/ChronusArtifact, ``code/data/exp``).
"""

from __future__ import annotations

from pathlib import Path

from analysim.traces.log import Log
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.simulator_jobs import REQUIRED, read_jobs
from analysim.traces.readers.tables import has_columns
from analysim.units import MICROSECONDS

_MINUTE_US = 60 * MICROSECONDS
_MARKS = {*REQUIRED, "user", "expect_time_list"}


def _recognises(sample: Sample) -> bool:
    return has_columns(sample.header, *_MARKS)


def _read(path: Path, options: ReadOptions) -> Log:
    log, table = read_jobs(path, _MINUTE_US, {"user": "text", "best_effort": "number"})
    log.columns["user"] = table.text("user")
    deadlines = int((table.number("best_effort") == 0).sum())
    if deadlines:
        log.notes.append(f"{deadlines:,} jobs have deadlines (expect_time_list), which are not read.")
    return log


FORMAT = Format("chronus", "Chronus (job table in minutes)", _recognises, _read)
