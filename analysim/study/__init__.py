"""Runs and comparisons of runs, as Python calls: what the command line does, without a terminal."""

from analysim.study.comparing import compare, pair_jobs
from analysim.study.runs import Run
from analysim.study.simulating import simulate

__all__ = ["Run", "compare", "pair_jobs", "simulate"]
