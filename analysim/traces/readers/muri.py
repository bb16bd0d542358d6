"""Job tables of Muri's simulator: those of Tiresias with profiles of four resources, in milliseconds.

Columns ``job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,
resource_time_0,resource_time_1,resource_time_2,priority`` (https://github.com/Rivendile/Muri, ``simulator/jobs.py``).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from analysim.traces.log import UNKNOWN, Log
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.simulator_jobs import REQUIRED, read_jobs
from analysim.traces.readers.tables import has_columns

_MILLISECOND_US = 1_000
_MARKS = {*REQUIRED, "iteration_time", "resource_time_0"}


def _recognises(sample: Sample) -> bool:
    return has_columns(sample.header, *_MARKS)


def _read(path: Path, options: ReadOptions) -> Log:
    log, table = read_jobs(path, _MILLISECOND_US, {"priority": "number"})
    classes = table.scaled("priority", 1)
    # 0 is a job with a guarantee, 1 one that only runs on what is left: the smaller, the more important.
    log.columns["priority"] = np.where(classes == UNKNOWN, UNKNOWN, -classes)
    log.notes.append("Opportunistic jobs (priority 1 in the file) have priority -1, those with a guarantee 0.")
    return log


FORMAT = Format("muri", "Muri's simulator (job table in milliseconds)", _recognises, _read)
