"""A run that takes no time, for tests of the command line."""

from __future__ import annotations

from collections.abc import Callable

from typer.testing import Result

TRACE = """\
job_id,submit_time,duration,num_gpus,tenant
1,0,100,4,red
2,10,50,8,blue
3,20,400,2,red
4,30,10,1,blue
5,40,60,16,red
6,600,30,4,blue
"""
"""Six jobs for the cluster ``tiny`` (16 GPUs on 4 nodes)."""

SIMULATE = ("simulate", "--trace", "prod.csv", "--topology", "tiny", "--no-figures")

Command = Callable[..., Result]
"""Runs a command line; gives exit code, stdout and stderr."""
