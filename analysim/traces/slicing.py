"""A part of a trace: of some time, of some tenants, of some sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import UserError
from analysim.spelling import suggest
from analysim.traces.shaping import window as keep_window
from analysim.traces.trace import Trace
from analysim.units import GPU_MILLI

Mask = npt.NDArray[np.bool_]


def slice_trace(
    trace: Trace,
    window: str | None = None,
    tenants: Sequence[str] = (),
    min_gpus: int | None = None,
    max_gpus: int | None = None,
) -> Trace:
    """Keep the jobs submitted in ``window`` (as ``shaping.window``), of ``tenants``, with so many GPUs.

    A tenant includes those below it: ``org`` keeps ``org/team``. No tenants means all. The clock stays as it
    is; the others are counted in ``left_out``. Raises ``UserError`` for a bad window or bounds, a tenant that
    the trace does not have, and where no job is left.
    """
    check_bounds(min_gpus, max_gpus)
    if window is not None:
        trace = keep_window(trace, window)
    if tenants:
        trace = _keep(trace, _of_tenants(trace, tenants), f"not of {', '.join(tenants)}")
    gpus = trace.frame["gpu_milli"].to_numpy()
    if min_gpus is not None:
        trace = _keep(trace, gpus >= min_gpus * GPU_MILLI, f"fewer than {min_gpus} GPUs")
        gpus = trace.frame["gpu_milli"].to_numpy()
    if max_gpus is not None:
        trace = _keep(trace, gpus <= max_gpus * GPU_MILLI, f"more than {max_gpus} GPUs")
    return trace


def check_bounds(min_gpus: int | None, max_gpus: int | None) -> None:
    """Raise ``UserError`` for numbers of GPUs that no job can lie between."""
    for bound in (min_gpus, max_gpus):
        if bound is not None and bound < 0:
            raise UserError(f"No job has {bound} GPUs.", "Give a whole number, 0 or more.")
    if min_gpus is not None and max_gpus is not None and min_gpus > max_gpus:
        raise UserError(f"No job has {min_gpus} GPUs or more and {max_gpus} or fewer.", "Exchange the two numbers.")


def _of_tenants(trace: Trace, tenants: Sequence[str]) -> Mask:
    codes, paths = pd.factorize(trace.frame["tenant"])
    known = np.zeros(len(paths), bool)
    for tenant in tenants:
        below = np.array([path == tenant or path.startswith(f"{tenant}/") for path in paths], bool)
        if not below.any():
            raise UserError(f"{trace.path} has no jobs of the tenant {tenant!r}.", _similar(tenant, paths))
        known |= below
    return np.asarray(known[codes])


def _similar(tenant: str, paths: pd.Index) -> str:
    """Name tenants of the trace, at any level, that are like one."""
    levels = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 2)}
    return suggest(tenant, sorted(levels - {""}), 40)


def _keep(trace: Trace, wanted: Mask, reason: str) -> Trace:
    """Keep some jobs and count the others as left out for a reason."""
    others = int((~wanted).sum())
    if others == 0:
        return trace
    if others == len(wanted):
        raise UserError(f"No job of {trace.path} is left: all are {reason}.", "Ask for less.")
    left_out = {**trace.left_out, reason: trace.left_out.get(reason, 0) + others}
    return replace(trace, frame=trace.frame[wanted].reset_index(drop=True), left_out=left_out)
