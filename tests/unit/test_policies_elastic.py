"""AFS and Optimus against figures found without them: closed forms, exhaustive search, and logs made by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest

from analysim.config.cluster import Costs
from tests.builders import FREE, SECOND, Outcome, flat_cluster, job, run, trace

AT_ONCE = {"interval": 0, "minimum_run": 0}
EACH = pytest.mark.parametrize("policy", ["afs", "optimus"])


def elastic(name: str, submit: float, duration: float, gpus: int, least: int, most: int, curve: str = "") -> Any:
    return job(name, submit, duration, gpus, min_gpus=least, max_gpus=most, throughput=curve)


def amdahl(parallel: float) -> Callable[[int], float]:
    """Speedup on so many GPUs."""
    return lambda gpus: 1 / (1 - parallel + parallel / gpus)


def first_gpus(outcome: Outcome) -> dict[str, int]:
    """GPUs on which each job first runs."""
    rows = outcome.tables.segments.sort_values("start_s", kind="stable")
    total = rows.groupby(["job_id", "start_s"], sort=False)["gpus"].sum().reset_index()
    return dict(total.groupby("job_id", sort=False)["gpus"].first())


# -- one job, and equal jobs -----------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(("curve", "end"), [("", 25), ("amdahl:0.9", 32.5), ("amdahl:0", 100), ("1=1 2=1.6 4=1.5", 62.5)])
def test_a_job_alone_runs_on_as_many_gpus_as_help_it(policy: str, curve: str, end: float) -> None:
    """Of a job that is fastest on two GPUs the others stay free; by Amdahl's law 100 s with F = 0.9 take 32.5 on four."""
    outcome = run(trace(elastic("a", 0, 100, 1, 1, 4, curve)), flat_cluster(1, 4), policy, options=AT_ONCE)
    assert outcome.times("a")[1] == pytest.approx(end, abs=1e-4)
    assert outcome.decisions() == [(0, "a", "start", "")]


@EACH
@pytest.mark.parametrize("count", [2, 4, 8])
def test_equal_jobs_get_equal_shares(policy: str, count: int) -> None:
    rows = trace(*(elastic(name, 0, 100, 1, 1, 8) for name in "abcdefgh"[:count]))
    outcome = run(rows, flat_cluster(1, 8), policy, options=AT_ONCE)
    assert set(first_gpus(outcome).values()) == {8 // count}
    assert outcome.jobs["end_time_s"].tolist() == [100 * count / 8] * count


@EACH
def test_on_twice_the_gpus_a_linear_job_takes_half_its_time(policy: str) -> None:
    outcome = run(trace(elastic("a", 0, 100, 4, 1, 8)), flat_cluster(1, 8), policy)
    assert outcome.times("a") == (0, 50)


# -- optimus: the least sum of remaining times -----------------------------------------------------------------

MIXES = [
    [(100, 0.9), (100, 0.5), (10, 0.99)],
    [(50, 1.0), (200, 0.8), (7, 0.3), (300, 0.95)],
    [(1000, 0.6), (10, 1.0)],
    [(30, 0.9), (30, 0.9), (31, 0.9)],
]


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("gpus", [5, 8, 12])
def test_optimus_finds_the_least_sum_of_remaining_times(mix: list[tuple[float, float]], gpus: int) -> None:
    """Remaining times are convex in GPUs under Amdahl's law, so that one GPU at a time leads to the best of all ways."""
    jobs = [elastic(f"j{n}", 0, seconds, 1, 1, 6, f"amdahl:{part}") for n, (seconds, part) in enumerate(mix)]
    found = first_gpus(run(trace(*jobs), flat_cluster(1, gpus), "optimus", options=AT_ONCE))

    def total(shares: tuple[int, ...]) -> float:
        return sum(seconds / amdahl(part)(share) for (seconds, part), share in zip(mix, shares, strict=True))

    ways = [way for way in product(range(1, 7), repeat=len(mix)) if sum(way) <= gpus]
    assert total(tuple(found[f"j{n}"] for n in range(len(mix)))) == pytest.approx(min(map(total, ways)))


# -- afs: who of two gets the one GPU that is left -------------------------------------------------------------


def mean_completion(short: float, long: float, parts: tuple[float, float], extra: int) -> float:
    """Mean completion time of two jobs on three GPUs, where one has two of them; both, when it is alone."""
    left, speeds = [short, long], [amdahl(part)(2) for part in parts]
    rates = [speeds[0] if extra == 0 else 1.0, speeds[1] if extra == 1 else 1.0]
    first = min((0, 1), key=lambda each: left[each] / rates[each])
    end = left[first] / rates[first]
    other = 1 - first
    return (2 * end + (left[other] - end * rates[other]) / speeds[other]) / 2


@pytest.mark.parametrize("short", [10, 30])
@pytest.mark.parametrize("times", [2, 5])
@pytest.mark.parametrize("parts", list(product([0.2, 0.6, 0.8, 0.95, 1.0], repeat=2)))
def test_afs_gives_the_gpu_to_whom_the_mean_completion_time_wants(
    short: float, times: int, parts: tuple[float, float]
) -> None:
    """The paper's comparison is exact for two jobs of which the longer remains the longer, and a GPU that is left."""
    rows = trace(
        elastic("l", 0, short * times, 1, 1, 2, f"amdahl:{parts[1]}"),
        elastic("s", 0, short, 1, 1, 2, f"amdahl:{parts[0]}"),
    )
    outcome = run(rows, flat_cluster(1, 3), "afs", options={**AT_ONCE, "worth": 0}, costs=FREE)
    best = min(mean_completion(short, short * times, parts, extra) for extra in (0, 1))
    assert outcome.jobs["jct_s"].mean() == pytest.approx(best, rel=1e-5)


def test_afs_by_hand_the_longer_job_wins_if_it_scales_better() -> None:
    """From one GPU to two: the short one gains 5 % of what it has, the long one 47 % of what it will have."""
    rows = trace(elastic("s", 0, 10, 1, 1, 4, "amdahl:0.1"), elastic("l", 0, 100, 1, 1, 4, "amdahl:0.95"))
    assert first_gpus(run(rows, flat_cluster(1, 3), "afs", options=AT_ONCE)) == {"s": 1, "l": 2}


def test_afs_of_linear_jobs_shares_about_evenly_rather_than_by_length() -> None:
    """1/m of the shorter against 1/(m+1) of the longer: it leads by one GPU at most, however short it is."""
    rows = trace(elastic("s", 0, 10, 1, 1, 9), elastic("l", 0, 1000, 1, 1, 9))
    assert first_gpus(run(rows, flat_cluster(1, 9), "afs", options=AT_ONCE)) == {"s": 5, "l": 4}


def shortest_first(jobs: list[tuple[int, int]]) -> list[int]:
    """Ends of jobs (submit, duration) on one GPU, the one with the least left going on at each whole second."""
    left = {number: duration for number, (_, duration) in enumerate(jobs)}
    ends, now = {}, 0
    while left:
        ready = [number for number in left if jobs[number][0] <= now]
        now += 1
        if ready:
            chosen = min(ready, key=lambda number: (left[number], number))
            left[chosen] -= 1
            if not left[chosen]:
                del left[chosen]
                ends[chosen] = now
    return [ends[number] for number in sorted(ends)]


@pytest.mark.parametrize("seed", range(6))
def test_afs_of_more_jobs_than_gpus_is_shortest_remaining_time_first(seed: int) -> None:
    dice = Random(seed)
    jobs = sorted((dice.randint(0, 30), dice.randint(1, 20)) for _ in range(12))
    rows = trace(*(job(n, submit, duration, 1) for n, (submit, duration) in enumerate(jobs)))
    outcome = run(rows, flat_cluster(1, 1), "afs", options=AT_ONCE, costs=FREE)
    expected = shortest_first(jobs)
    assert outcome.jobs["end_time_s"].sum() == sum(expected)  # of equals either may go first


# -- from one allocation to the next ---------------------------------------------------------------------------


@EACH
def test_growing_has_to_pay(policy: str) -> None:
    """b ends at 10. Twice the GPUs save a the half of what is left: 45 s are less than the move's 90, 495 s are not."""
    pool = flat_cluster(1, 4)
    for duration, end, resizes in ((100, 100, 0), (1000, 10 + 90 + 495, 1)):
        rows = trace(elastic("a", 0, duration, 2, 2, 4), job("b", 0, 10, 2))
        outcome = run(rows, pool, policy, options=AT_ONCE)
        assert outcome.times("a") == (0, end)
        assert outcome.jobs.loc["a", "resizes"] == resizes


@EACH
def test_a_job_shrinks_for_one_that_arrives(policy: str) -> None:
    """At 100, when a may be resized again, the fourth GPU would save 30 s, which does not pay."""
    rows = trace(elastic("a", 0, 400, 1, 1, 4), job("b", 10, 10, 1))
    outcome = run(rows, flat_cluster(1, 4), policy, options=AT_ONCE)
    assert outcome.segments() == [
        ("a", "run", 0, 10, "r-n00", "0-3", 40),
        ("a", "checkpoint", 10, 40, "r-n00", "3", 0),
        ("a", "checkpoint", 10, 40, "r-n00", "0-2", 0),
        ("b", "run", 40, 50, "r-n00", "3", 10),
        ("a", "restart", 40, 100, "r-n00", "0-2", 0),
        ("a", "run", 100, 220, "r-n00", "0-2", 360),
    ]


@EACH
def test_a_young_job_keeps_its_gpus_until_it_may_be_resized(policy: str) -> None:
    rows = trace(elastic("a", 0, 4000, 1, 1, 4), job("b", 10, 10, 1))
    outcome = run(rows, flat_cluster(1, 4), policy, options={"interval": 0, "minimum_run": 300})
    assert outcome.decisions("resize", "reserve")[:2] == [(300, "a", "resize", ""), (300, "b", "reserve", "")]


@EACH
def test_between_allocations_jobs_start_on_what_is_free(policy: str) -> None:
    """c asks for four GPUs and gets the two that are left at once; the next allocation is at 300 s."""
    rows = trace(job("a", 0, 1000, 2), elastic("c", 10, 1000, 4, 1, 4))
    outcome = run(rows, flat_cluster(1, 4), policy, options={"interval": 300})
    assert outcome.decisions("start") == [(0, "a", "start", ""), (10, "c", "start", "")]
    assert first_gpus(outcome) == {"a": 2, "c": 2}


@EACH
def test_jobs_that_are_not_preemptible_stay_as_they_are(policy: str) -> None:
    fixed = {**elastic("a", 0, 500, 1, 1, 4), "preemptible": False}
    outcome = run(trace(fixed, job("b", 10, 10, 1)), flat_cluster(1, 4), policy, options=AT_ONCE)
    assert outcome.segments("a") == [("a", "run", 0, 125, "r-n00", "0-3", 500)]
    assert outcome.times("b") == (125, 135)


def test_optimus_gives_rigid_jobs_all_or_nothing_in_order_of_arrival() -> None:
    rows = trace(elastic("a", 0, 1000, 4, 2, 8), job("b", 1, 5, 8), job("c", 2, 5, 4))
    outcome = run(rows, flat_cluster(1, 8), "optimus", options=AT_ONCE, costs=FREE)
    assert outcome.times("c") == (2, 7)  # a shrinks for it; b never fits beside two GPUs of a
    assert outcome.times("b")[0] == outcome.times("a")[1]


def test_sizes_may_be_powers_of_two() -> None:
    for gpus, expected in ((8, 7), (6, 4), (3, 3), (2, 2)):
        rows = trace(elastic("a", 0, 100, min(3, gpus), 1, 7))
        assert first_gpus(run(rows, flat_cluster(1, gpus), "optimus", options={"powers": True})) == {"a": expected}


@EACH
def test_a_gang_that_cannot_be_placed_gets_fewer_gpus(policy: str) -> None:
    """Four GPUs are free, two on each node: the job gets two of the four it should have."""
    rows = trace(job("x", 0, 500, 2), job("y", 0, 500, 2), elastic("a", 1, 100, 4, 1, 4))
    outcome = run(rows, flat_cluster(2, 4), policy, options=AT_ONCE, placement="spread")
    assert first_gpus(outcome)["a"] == 2


@EACH
def test_no_resize_without_a_reason(policy: str) -> None:
    rows = trace(*(elastic(f"{n}", n, 5000, 2, 1, 6, "amdahl:0.9") for n in range(6)))
    outcome = run(rows, flat_cluster(2, 8), policy, costs=Costs(checkpoint_s=1, restart_s=1))
    assert outcome.tables.jobs["resizes"].max() <= 1 + 5_000 // 600
    assert (outcome.tables.jobs["state"] == "completed").all()
    done = outcome.tables.segments.drop_duplicates(["job_id", "start_s", "kind"]).groupby("job_id")["progress_s"].sum()
    assert (done * SECOND).round().tolist() == [5_000 * SECOND] * 6
