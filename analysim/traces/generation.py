"""Synthetic traces from a profile and a seed, with a stream of random numbers of its own for each purpose."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.config.loading import validate
from analysim.elastic import parse_curve
from analysim.errors import UserError
from analysim.traces.profiles import DurationPart, Profile, Tenant, find_profile
from analysim.traces.trace import make_frame
from analysim.units import GPU_MILLI, MICROSECONDS, seconds

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_HOUR_S = 3_600.0
_WEEK_S = 7 * 24 * _HOUR_S
_STEP_S = 600.0


def generate(
    profile: str = "philly",
    *,
    jobs: int | None = None,
    seed: int = 0,
    gpus: int | None = None,
    load: float | None = None,
    span: str | float | None = None,
    options: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Make ``jobs`` jobs in the canonical columns; the same arguments give the same jobs.

    With ``load`` (on ``gpus`` GPUs) the offered load is met exactly, to the resolution of the profile; with
    ``span`` the first and the last submission lie so far apart; else the profile's ``jobs_per_hour`` holds
    on average. Jobs larger than ``gpus`` are left out of the mix. ``options`` replace fields of the profile.
    Raises ``UserError`` or ``ConfigError``.
    """
    wanted = _merge(find_profile(profile), profile, {"jobs": jobs, "gpus": gpus, "load": load}, options or {})
    draw = Streams(seed)
    leader = _find_leaders(draw("bursts").random(wanted.jobs) < wanted.burst_share)
    sizes = _pick(draw("sizes"), _fitting_sizes(wanted), wanted.jobs)[leader]
    durations = _draw_durations(draw("durations"), wanted, sizes)
    span_s = None if span is None else seconds(span) / MICROSECONDS
    if span_s is None and wanted.load is not None:
        span_s = (
            float(sizes.astype(np.float64) @ durations) / MICROSECONDS / (_capacity(wanted) * wanted.load)
        )
    values = {
        "submit_us": _draw_submits(draw("arrivals"), wanted, leader, span_s),
        "duration_us": durations,
        "gpu_milli": sizes * GPU_MILLI,
        **_draw_owners(draw, wanted, leader),
        **_draw_traits(draw, wanted, leader),
        **_draw_sizes(draw, wanted, leader, sizes),
    }
    order = np.argsort(values["submit_us"], kind="stable")
    ids = {"job_id": np.arange(1, wanted.jobs + 1)}
    return make_frame(ids | {name: column[order] for name, column in values.items()}, wanted.jobs)


class Streams:
    """Independent streams of random numbers from one seed, one for each purpose."""

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise UserError(f"The seed {seed} is negative.", "Give a whole number, 0 or more.")
        self.seed = seed

    def __call__(self, purpose: str) -> np.random.Generator:
        key = int.from_bytes(blake2b(purpose.encode(), digest_size=4).digest(), "big")
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(key,))))


def _merge(base: Profile, name: str, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> Profile:
    """Replace fields of a profile by options, and those by arguments that are given."""
    given = {key: value for key, value in arguments.items() if value is not None}
    merged = validate(Profile, {**base.model_dump(), **options, **given}, f"profile {name}")
    if merged.load is not None:
        _capacity(merged)
    return merged


def _capacity(profile: Profile) -> int:
    if profile.gpus is None:
        raise UserError(
            "A load needs a cluster to be a load of.", "Give the number of its GPUs too (--gpus)."
        )
    return profile.gpus


def _fitting_sizes(profile: Profile) -> dict[int, float]:
    largest = profile.gpus or max(profile.sizes)
    fitting = {size: share for size, share in profile.sizes.items() if size <= largest}
    if not fitting:
        raise UserError(f"No job size of the profile fits {largest} GPUs.", "Give smaller sizes.")
    return fitting


def _find_leaders(follows: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Tell for each job which one it is like: itself, or the first of its burst."""
    follows[0] = False
    own = np.arange(follows.size)
    leader: npt.NDArray[np.intp] = np.maximum.accumulate(np.where(follows, 0, own))
    return leader


def _pick_index(random: np.random.Generator, shares: list[float], count: int) -> npt.NDArray[np.intp]:
    """Draw positions in a list of weights."""
    edges = np.cumsum(shares)
    if not edges[-1] > 0:
        raise UserError("The shares of a mix are all zero.", "Give at least one of them a positive share.")
    picked: npt.NDArray[np.intp] = np.searchsorted(edges[:-1], random.random(count) * edges[-1], side="right")
    return picked


def _pick(random: np.random.Generator, mix: Mapping[int, float], count: int) -> Integers:
    return np.array(list(mix), np.int64)[_pick_index(random, list(mix.values()), count)]


def _texts(words: list[str], index: npt.NDArray[np.intp]) -> Any:
    return pd.array(words, dtype="str").take(index)


def _draw_durations(random: np.random.Generator, profile: Profile, sizes: Integers) -> Integers:
    """Draw run times in microseconds from the mix, longer for larger jobs, cut to the profile's bounds."""
    part = _pick_index(random, [each.share for each in profile.durations], sizes.size)
    durations = np.empty(sizes.size)
    for index, each in enumerate(profile.durations):
        mine = part == index
        durations[mine] = _draw_part(random, each, int(mine.sum()))
    durations *= sizes.astype(np.float64) ** profile.size_exponent
    durations = np.clip(durations, profile.shortest_s, profile.longest_s)
    return _round_up(durations, profile.resolution_s)


def _draw_part(random: np.random.Generator, part: DurationPart, count: int) -> Floats:
    if part.shape == "exponential":
        return random.exponential(part.scale_s, count)
    return part.scale_s * np.exp(part.sigma * random.standard_normal(count))


def _round_up(times_s: Floats, resolution_s: float) -> Integers:
    step_us = seconds(resolution_s)
    steps: Integers = np.ceil(times_s * MICROSECONDS / step_us).astype(np.int64)
    return steps * step_us


def _draw_submits(
    random: np.random.Generator, profile: Profile, leader: npt.NDArray[np.intp], span_s: float | None
) -> Integers:
    """Draw submissions in microseconds: bursts that begin as a Poisson process whose rate swings."""
    own = np.arange(leader.size)
    begins = own == leader
    work = np.cumsum(random.exponential(1.0, int(begins.sum())))
    week = _week_rate(profile)
    if span_s is None:
        rate = profile.jobs_per_hour / _HOUR_S * (1 - profile.burst_share)
        starts = _at_rate(work / rate, week)
    else:
        whole = span_s // _WEEK_S * week[-1] + np.interp(span_s % _WEEK_S, *_week_grid(week))
        starts = _at_rate((work - work[0]) / max(work[-1] - work[0], 1.0) * whole, week)
    gaps = np.where(begins, 0.0, random.exponential(profile.burst_gap_s, leader.size))
    since = np.cumsum(gaps)
    times = np.repeat(starts, np.diff(np.append(np.flatnonzero(begins), leader.size))) + since - since[leader]
    times -= times.min()
    if span_s is not None and times.max() > 0:
        times *= span_s / times.max()
    step_us = seconds(profile.resolution_s)
    steps: Integers = np.rint(times * MICROSECONDS / step_us).astype(np.int64)
    return steps * step_us


def _week_rate(profile: Profile) -> Floats:
    """Integrate the arrival rate over a week, in seconds at the mean rate: a value each ten minutes."""
    times = np.arange(0.0, _WEEK_S, _STEP_S) + _STEP_S / 2
    hour = times / _HOUR_S % 24
    rate = 1 + profile.daily_swing * np.cos((hour - profile.busiest_hour) * 2 * np.pi / 24)
    rate[times > 5 * 24 * _HOUR_S] *= profile.weekend
    passed: Floats = np.cumsum(rate / rate.mean() * _STEP_S)
    return np.insert(passed, 0, 0.0)


def _week_grid(week: Floats) -> tuple[Floats, Floats]:
    return np.arange(week.size, dtype=np.float64) * _STEP_S, week


def _at_rate(work: Floats, week: Floats) -> Floats:
    """Find the times by which so much of the rate has passed."""
    times, passed = _week_grid(week)
    reached: Floats = np.floor(work / week[-1]) * _WEEK_S + np.interp(work % week[-1], passed, times)
    return reached


def _draw_owners(draw: Streams, profile: Profile, leader: npt.NDArray[np.intp]) -> dict[str, Any]:
    """Draw tenant, partition and user; all jobs of a burst have the same."""
    tenants = profile.tenants or [Tenant(name="", share=1)]
    tenant = _pick_index(draw("tenants"), [each.share for each in tenants], leader.size)[leader]
    ranks = [1 / rank for rank in range(1, profile.users_per_tenant + 1)]
    user = _pick_index(draw("users"), ranks, leader.size)[leader]
    teams = [each.name.rpartition("/")[2] or "user" for each in tenants]
    names = [f"{team}-{rank:02d}" for team in teams for rank in range(1, len(ranks) + 1)]
    return {
        "tenant": _texts([each.name for each in tenants], tenant),
        "partition": _texts([each.partition for each in tenants], tenant),
        "user": _texts(names, tenant * len(ranks) + user),
    }


def _draw_sizes(
    draw: Streams, profile: Profile, leader: npt.NDArray[np.intp], sizes: Integers
) -> dict[str, Any]:
    """Draw which jobs are elastic, alike in a burst: from 1 GPU to twice what they ask for."""
    if not profile.elastic_share:
        return {}
    try:
        parse_curve(profile.elastic_curve)
    except UserError as error:
        raise UserError(f"elastic_curve {profile.elastic_curve!r} {error.message}.", error.remedy) from error
    elastic = draw("elastic").random(leader.size)[leader] < profile.elastic_share
    most = 2 * sizes if profile.gpus is None else np.minimum(2 * sizes, np.maximum(sizes, profile.gpus))
    return {
        "min_gpus": np.where(elastic, 1, 0),
        "max_gpus": np.where(elastic, most, 0),
        "throughput": _texts(["", profile.elastic_curve], elastic.astype(np.intp)),
    }


def _draw_traits(draw: Streams, profile: Profile, leader: npt.NDArray[np.intp]) -> dict[str, Any]:
    """Draw priority, preemptibility and GPU type, alike in a burst, and status."""
    traits: dict[str, Any] = {
        "priority": _pick(draw("priorities"), profile.priorities, leader.size)[leader],
        "preemptible": draw("preemptible").random(leader.size)[leader] >= profile.nonpreemptible_share,
    }
    if profile.statuses:
        index = _pick_index(draw("status"), list(profile.statuses.values()), leader.size)
        traits["status"] = _texts(list(profile.statuses), index)
    if profile.gpu_types:
        index = _pick_index(draw("gpu_type"), list(profile.gpu_types.values()), leader.size)[leader]
        traits["gpu_type"] = _texts(list(profile.gpu_types), index)
    return traits
