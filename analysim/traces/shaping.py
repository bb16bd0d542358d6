"""What a run makes of a trace before it starts: a window of it, another load, estimates."""

from __future__ import annotations

import math
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.errors import UserError
from analysim.traces.cells import LARGEST
from analysim.traces.description import offered_load
from analysim.traces.trace import MOVED_COLUMNS, Trace, sort_jobs
from analysim.units import format_duration, parse_duration

_RULES = "Write exact, factor:F (factor:1.5) or lognormal:S (lognormal:0.5)."


def parse_window(text: str) -> tuple[int, int | None]:
    """Read ``"a:b"`` as microseconds since the first submission; an empty side is the trace's own edge.

    Raises ``UserError``.
    """
    begin, colon, end = text.partition(":")
    try:
        start = parse_duration(begin) if begin.strip() else 0
        stop = parse_duration(end) if end.strip() else None
    except UserError as error:
        raise UserError(f"The window {text!r} is not an interval.", "Write from:to, as in 7d:30d.") from error
    if not colon or start < 0 or (stop is not None and stop <= start):
        raise UserError(f"The window {text!r} is not an interval.", "Write from:to, the earlier time first.")
    return start, stop


def window(trace: Trace, interval: str, initial: bool = False) -> Trace:
    """Keep the jobs submitted in ``[a, b)`` since the first submission; the clock stays as it is.

    With ``initial``, jobs submitted before and recorded as running at ``a`` are kept too, submitted then for what is
    left of them. The others are counted in ``left_out``. Raises ``UserError`` for a bad interval, for one without
    jobs, and where ``initial`` finds no recorded starts.
    """
    start, stop = parse_window(interval)
    since = trace.frame["submit_us"] - trace.frame["submit_us"].min()
    inside = since >= start if stop is None else (since >= start) & (since < stop)
    kept = trace.frame[inside].reset_index(drop=True)
    running = _running_at(trace, start) if initial else kept.iloc[:0]
    if kept.empty:
        raise UserError(
            f"No job of {trace.path} is submitted in the window {interval}.",
            f"Its submissions span {format_duration(int(since.max()))}.",
        )
    left = len(trace.frame) - len(kept) - len(running)
    left_out = {**trace.left_out, f"submitted outside {interval}": left} if left else trace.left_out
    if len(running):
        kept = sort_jobs(pd.concat([running, kept], ignore_index=True))
    return replace(trace, frame=kept, left_out=left_out, initial=frozenset(running["job_id"]))


def _running_at(trace: Trace, start: int) -> pd.DataFrame:
    """Jobs recorded as running ``start`` microseconds after the first submission, as what is left of them then."""
    frame = trace.frame
    began = frame["recorded_start_us"]
    if not (began >= 0).any():
        raise UserError(
            f"--initial needs recorded starts, and {trace.path} has none.", "Leave it out, or map start_time."
        )
    at = int(frame["submit_us"].min()) + start
    end = frame["recorded_end_us"].where(frame["recorded_end_us"] >= 0, began + frame["duration_us"])
    running = (frame["submit_us"] < at) & (began >= 0) & (began <= at) & (end > at)
    jobs = frame[running]
    left, estimate = end[running] - at, jobs["estimate_us"]
    told = (estimate - (at - began[running])).clip(lower=left)
    return jobs.assign(
        submit_us=np.int64(at), duration_us=left, cancel_us=np.int64(-1), estimate_us=told.where(estimate >= 0, -1)
    )


def scale_to_load(trace: Trace, load: float, gpus: int) -> Trace:
    """Scale the times between submissions so that the offered load on ``gpus`` GPUs becomes ``load``.

    Withdrawals and recorded times move with their job's submission. Raises ``UserError`` where there is
    no load to scale, and where times would pass the largest one that a trace may have.
    """
    if not (load > 0 and math.isfinite(load)):
        raise UserError(
            f"The load {load} is not a positive number.", "Write it as a fraction of the cluster: 0.9."
        )
    present = offered_load(trace.frame, gpus)
    if not (present > 0 and math.isfinite(present)):
        raise UserError(
            f"{trace.path} offers no load that could be scaled.",
            "It takes GPU jobs that are submitted at two times at least, and a cluster with GPUs.",
        )
    submit = trace.frame["submit_us"]
    first, factor = int(submit.min()), present / load
    span_us = int(submit.max()) - first
    if span_us * factor > LARGEST:
        raise _beyond(load)
    moved = np.rint((submit - first) * factor).astype(np.int64) + first
    scaled = {"submit_us": moved}
    for name in MOVED_COLUMNS:
        times = trace.frame[name]
        scaled[name] = times.where(times < 0, times + moved - submit)
    if any((times > LARGEST).any() for times in scaled.values()):
        raise _beyond(load)
    # Two submissions may meet in one microsecond now: they stand in the order of their ids.
    return replace(trace, frame=sort_jobs(trace.frame.assign(**scaled)))


def _beyond(load: float) -> UserError:
    return UserError(f"The load {load:g} makes times beyond 285 years.", "Choose a larger load, or fewer GPUs.")


def fill_estimates(frame: pd.DataFrame, rule: str, seed: int) -> pd.DataFrame:
    """Give the jobs without an estimate one made of their duration d.

    ``exact`` is d, ``factor:F`` is F d, ``lognormal:S`` is d exp(S z) with z standard normal: a hash of
    seed and job id, so that the order of rows does not matter. Raises ``UserError``.
    """
    kind, _, number = rule.partition(":")
    factor: float | npt.NDArray[np.float64] = 1.0
    if kind in ("factor", "lognormal"):
        factor = _positive(number, rule)
    elif rule != "exact":
        raise UserError(f"{rule!r} is no rule for estimates.", _RULES)
    given = frame["estimate_us"].to_numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "lognormal":
            factor = np.exp(factor * _draw_normal(frame["job_id"], seed))
        made = np.where(given < 0, np.rint(frame["duration_us"].to_numpy() * factor), given)
    if not (made < LARGEST).all():
        raise UserError(f"{rule!r} makes estimates beyond 285 years.", "Choose a smaller number.")
    return frame.assign(estimate_us=made.astype(np.int64))


def _positive(text: str, rule: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise UserError(f"{rule!r} needs a positive number after the colon.", _RULES)
    return value


def _draw_normal(ids: pd.Series, seed: int) -> npt.NDArray[np.float64]:
    """Make a standard normal number of each id by hashing (Box and Muller's transform)."""
    hashes = b"".join(blake2b(f"{seed}:estimate:{job}".encode(), digest_size=16).digest() for job in ids)
    uniform = (np.frombuffer(hashes, "<u8").reshape(-1, 2) >> np.uint64(11)) * 2.0**-53
    normal: npt.NDArray[np.float64] = np.sqrt(-2 * np.log1p(-uniform[:, 0])) * np.cos(
        2 * np.pi * uniform[:, 1]
    )
    return normal
