"""srsf, which goes by remaining time times GPUs, and lsf, which goes by GPUs."""

from __future__ import annotations

from math import isqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysim.policy import RemainingService
from tests.builders import FREE, cluster, flat_cluster, job, run, trace

EAGER = {"factor": 1.0, "minimum_run": 0}
FOUR = flat_cluster(1, 4)
EIGHT = flat_cluster(8, 1)


def srsf(*rows: dict[str, Any], on: Any = FOUR, **options: Any) -> Any:
    return run(trace(*rows), on, "srsf", options={**EAGER, **options}, costs=FREE, placement="any")


def test_a_gang_is_as_long_as_its_gpus_make_it() -> None:
    """Of 3 GPUs for 10 s and 1 GPU for 20 s, the second has less service, though the longer time."""
    ran = srsf(job("first", 0, 5, 4), job("wide", 1, 10, 3), job("narrow", 2, 20, 1), job("all", 3, 1, 4))
    # 4, 20 and 30 GPU-seconds wait at 5 s; "all" takes what is free, then "narrow" and "wide" run together.
    assert [ran.times(name) for name in ("all", "narrow", "wide")] == [(3, 4), (6, 26), (6, 16)]
    assert ran.decisions("preempt") == [(3, "first", "preempt", "")]  # it has 8 left, "all" has 4


def test_who_has_the_most_left_changes_as_time_passes() -> None:
    """a has 4 x 25 and b 1 x 60 left at first; at 20 s a has 4 x 5 and b 40: then b makes way for c, not a."""
    rows = [job("a", 0, 25, 4), job("b", 0, 60, 1)]
    on = flat_cluster(5, 1)
    assert srsf(*rows, job("c", 0.5, 10, 1), on=on).decisions("preempt") == [(0.5, "a", "preempt", "")]
    assert srsf(*rows, job("c", 20, 10, 1), on=on).decisions("preempt") == [(20, "b", "preempt", "")]


def test_nobody_is_stopped_who_has_no_more_than_factor_times_as_much() -> None:
    """c has 10 x 1; b has 20 x 1 left at 5 s, which is not above twice that; a second earlier it is."""
    on = flat_cluster(1, 1)
    assert srsf(job("b", 0, 25, 1), job("c", 5, 10, 1), on=on, factor=2).decisions("preempt") == []
    stopped = srsf(job("b", 0, 25, 1), job("c", 4, 10, 1), on=on, factor=2).decisions("preempt")
    assert stopped == [(4, "b", "preempt", "")]


def test_on_equal_gangs_it_is_srtf() -> None:
    rows = trace(*(job(number, number * 3 % 17, 1 + number * 7 % 23, 2) for number in range(40)))
    left, right = (
        run(rows, flat_cluster(2, 4), name, options=EAGER, costs=FREE).jobs["end_time_s"] for name in ("srsf", "srtf")
    )
    assert sorted(left) == sorted(right)
    assert left.sum() == right.sum()


@given(service=st.integers(1, 10**18))
def test_classes_cut_at_powers_of_the_root_of_two(service: int) -> None:
    class_of = RemainingService(least=0).class_of
    found = class_of(service)
    assert 2 ** (found - 1) <= service**2 < 2**found
    assert class_of(2 * service) == found + 2
    least = isqrt((1 << found - 1) - 1) + 1
    assert class_of(least) == found
    assert class_of(least - 1) < found or least == 1
    assert RemainingService(least=service).class_of(service // 2) == found


def victims_have_enough(rows: Any, factor: float) -> None:
    """Every victim had more than ``factor`` times the service left that the job had which came in its place."""
    ran = run(rows, EIGHT, "srsf", options={"factor": factor, "minimum_run": 0}, costs=FREE, placement="any")
    table = ran.tables.segments
    runs = table[table["kind"] == "run"].drop_duplicates(["job_id", "start_s"])
    asked = (ran.jobs["duration_s"] * ran.jobs["num_gpus"]).to_dict()
    gpus = ran.jobs["num_gpus"].to_dict()

    def left(job_id: Any, when: float) -> float:
        had = runs[(runs["job_id"] == job_id) & (runs["start_s"] < when)]
        time = (had["end_s"].clip(upper=when) - had["start_s"]).sum()
        return float(asked[job_id] - gpus[job_id] * time)

    for when, victim, _, _ in ran.decisions("preempt"):
        begun = [name for name in runs.loc[runs["start_s"] == when, "job_id"] if left(name, when) > 0]
        assert min(left(name, when) for name in begun) * factor < left(victim, when) + 1e-6


@pytest.mark.parametrize("factor", [1.0, 1.5])
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 30), st.integers(1, 8)), min_size=2, max_size=25, unique=True
    )
)
def test_every_victim_has_more_left_than_who_takes_its_place(factor: float, jobs: list[tuple[int, int, int]]) -> None:
    victims_have_enough(trace(*(job(number, *row) for number, row in enumerate(jobs))), factor)


def test_fewest_gpus_first_equal_ones_in_arrival_order() -> None:
    rows = [
        job("running", 0, 10, 4),
        job("four", 1, 10, 4),
        job("two", 2, 10, 2),
        job("one", 3, 10, 1),
        job("other", 4, 10, 1),
        job("three", 5, 5, 3),
    ]
    ran = run(trace(*rows), FOUR, "lsf")
    # At 10 s: one, other and two; three does not fit and closes the queue until they end; then four.
    names = ("one", "other", "two", "three", "four")
    assert [ran.times(name)[0] for name in names] == [10, 10, 10, 20, 25]


def test_a_larger_job_passes_only_where_it_may() -> None:
    """The small job waits for an A; the large one asks for Bs, which are free."""
    on = cluster({"a": {"gpus": 1, "gpu_type": "A"}, "b": {"gpus": 4, "gpu_type": "B"}}, {"r": [("a", 1), ("b", 1)]})
    rows = trace(
        job("running", 0, 10, 1, gpu_type="A"), job("small", 1, 5, 1, gpu_type="A"), job("large", 2, 5, 4, gpu_type="B")
    )
    strict, loose = (run(rows, on, "lsf", options={"skip": skip}).times("large")[0] for skip in (False, True))
    assert (strict, loose) == (10, 2)
