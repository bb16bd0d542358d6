"""Job tables of Tiresias' simulator: one row a job, in seconds.

Columns ``job_id,num_gpu,submit_time,iterations,model_name,duration,interval``, of which the last is the time to
the next submission (https://github.com/SymbioticLab/Tiresias/tree/master/simulator). Its ``tf_job.csv`` has
``start_time,model_size,aggr_interval,model_scale`` instead of the iterations; its simulator leaves that start out.
"""

from __future__ import annotations

from pathlib import Path

from analysim.traces.log import Log
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.simulator_jobs import REQUIRED, read_jobs
from analysim.units import MICROSECONDS

_MARKS = ({"iterations", "model_name", "interval"}, {"model_name", "model_scale", "aggr_interval"})
_DESCENDANTS = {"expect_time_list", "resource_time_0", "iteration_time"}
"""Columns of tables that descend from Tiresias' and count time otherwise."""


def _recognises(sample: Sample) -> bool:
    header = set(sample.header)
    known = any(header.issuperset(marks) for marks in _MARKS)
    return known and header.issuperset(REQUIRED) and header.isdisjoint(_DESCENDANTS)


def _read(path: Path, options: ReadOptions) -> Log:
    log, _ = read_jobs(path, MICROSECONDS)
    return log


FORMAT = Format("tiresias", "Tiresias' simulator (job table in seconds)", _recognises, _read)
