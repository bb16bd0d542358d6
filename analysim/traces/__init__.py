"""Job traces: read, checked, described, shaped, generated and written."""

from analysim.traces.description import describe, offered_load
from analysim.traces.generation import generate
from analysim.traces.log import Account
from analysim.traces.problems import Cell, Problem
from analysim.traces.profiles import PROFILES
from analysim.traces.reading import read_trace
from analysim.traces.shaping import fill_estimates, parse_window, scale_to_load, window
from analysim.traces.trace import Trace
from analysim.traces.validation import find_problems
from analysim.traces.writing import write_trace

__all__ = [
    "PROFILES",
    "Account",
    "Cell",
    "Problem",
    "Trace",
    "describe",
    "fill_estimates",
    "find_problems",
    "generate",
    "offered_load",
    "parse_window",
    "read_trace",
    "scale_to_load",
    "window",
    "write_trace",
]
