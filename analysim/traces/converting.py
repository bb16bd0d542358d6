"""Write a trace as a file of the kind that its name tells: our schema, or SWF."""

from __future__ import annotations

from pathlib import Path

from analysim.errors import UserError
from analysim.traces.swf_writing import write_swf
from analysim.traces.telling import require_gpus
from analysim.traces.trace import Trace
from analysim.traces.writing import SUFFIXES, write_trace

_SWF = (".swf", ".swf.gz")


def check_suffix(path: str | Path) -> None:
    """Raise ``UserError`` for a name that does not say what to write."""
    if not str(path).endswith((*SUFFIXES, *_SWF)):
        raise UserError(
            f"{path}: its name does not say what to write.", "End it in .csv, .csv.gz, .parquet, .swf or .swf.gz."
        )


def convert_trace(trace: Trace, path: str | Path) -> list[str]:
    """Write a trace as ``.csv``, ``.csv.gz``, ``.parquet`` or ``.swf``, ``.swf.gz``; return what could not be held.

    Read again, a file in our schema gives the same frame; where the trace has dates and does not begin with its
    first job, as slices do not, all times are less by that. Raises ``UserError`` for another suffix,
    ``TraceError`` where GPUs are not told, ``AnalysimError`` where it cannot be written.
    """
    check_suffix(path)
    require_gpus(trace)
    if str(path).endswith(_SWF):
        return write_swf(trace, path)
    return write_trace(trace.frame, path, trace.time_origin)
