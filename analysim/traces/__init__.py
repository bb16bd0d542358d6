"""Job traces: read, checked, described, shaped, generated and written."""

from analysim.traces.anonymising import anonymise
from analysim.traces.converting import check_suffix, convert_trace
from analysim.traces.description import describe, describe_rows, offered_load, trace_arrays
from analysim.traces.generation import generate
from analysim.traces.log import Account
from analysim.traces.problems import Cell, Problem
from analysim.traces.profiles import PROFILES
from analysim.traces.reading import read_trace
from analysim.traces.resampling import resample_days
from analysim.traces.shaping import fill_estimates, parse_window, scale_to_load, window
from analysim.traces.slicing import check_bounds, slice_trace
from analysim.traces.telling import require_gpus, tell_account, tell_first_rows, tell_reading, tell_rows
from analysim.traces.trace import Trace
from analysim.traces.validation import check_trace, find_problems
from analysim.traces.writing import write_trace

__all__ = [
    "PROFILES",
    "Account",
    "Cell",
    "Problem",
    "Trace",
    "anonymise",
    "check_bounds",
    "check_suffix",
    "check_trace",
    "convert_trace",
    "describe",
    "describe_rows",
    "fill_estimates",
    "find_problems",
    "generate",
    "offered_load",
    "parse_window",
    "read_trace",
    "require_gpus",
    "resample_days",
    "scale_to_load",
    "slice_trace",
    "tell_account",
    "tell_first_rows",
    "tell_reading",
    "tell_rows",
    "trace_arrays",
    "window",
    "write_trace",
]
