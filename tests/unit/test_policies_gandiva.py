"""Turns on small clusters: who runs when, on which GPUs, what bounds it, and which moves are made."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysim.config.cluster import Costs
from tests.builders import FREE, Outcome, cluster, flat_cluster, job, run, trace

ONE = flat_cluster(1, 1)
TWO = flat_cluster(1, 2)


def sliced(*rows: dict[str, Any], on: Any = ONE, costs: Costs = FREE, **options: Any) -> Outcome:
    """A run with a quantum of 10 s."""
    return run(trace(*rows), on, "gandiva", options={"quantum": 10, "swaps": 8, **options}, costs=costs)


def test_two_jobs_take_turns() -> None:
    ran = sliced(job("a", 0, 25), job("b", 0, 15))
    assert ran.segments("a") == [
        ("a", "run", 0, 10, "r-n00", "0", 10),
        ("a", "suspend", 10, 20, "r-n00", "0", 0),
        ("a", "run", 20, 30, "r-n00", "0", 10),
        ("a", "suspend", 30, 35, "r-n00", "0", 0),
        ("a", "run", 35, 40, "r-n00", "0", 5),
    ]
    assert ran.segments("b") == [
        ("b", "run", 10, 20, "r-n00", "0", 10),
        ("b", "suspend", 20, 30, "r-n00", "0", 0),
        ("b", "run", 30, 35, "r-n00", "0", 5),
    ]


def test_a_newcomer_takes_its_turn_after_those_that_wait_and_at_once_from_a_job_that_had_its_quantum() -> None:
    ran = sliced(job("a", 0, 100), job("b", 50, 30), job("c", 51, 10))
    assert ran.times("b") == (50, 110)  # a at 60, which has waited longer than c, c at 70, b at 80, a at 90, b at 100
    assert ran.times("c") == (70, 80)


def test_nothing_ticks_while_nobody_waits() -> None:
    ran = sliced(job("a", 0, 100_000), job("b", 0, 15), on=TWO)
    assert ran.simulation.facts["passes"] == 1 and ran.times("a") == (0, 100_000)
    ran = sliced(job("a", 0, 100_000, preemptible=False), job("b", 0, 15))
    assert ran.simulation.facts["passes"] <= 3 and ran.times("b") == (100_000, 100_015)


def test_newcomers_share_the_gpus_that_the_fewest_share() -> None:
    ran = sliced(job("a", 0, 100), job("b", 0, 100), job("c", 1, 100), job("d", 2, 100), on=TWO)
    first = {name: ran.segments(name)[0][2:6] for name in ("a", "b", "c", "d")}
    assert {first[name][0] for name in ("c", "d")} == {10}
    assert first["c"][3] != first["d"][3]
    for name in ("a", "b", "c", "d"):  # each resumes where it was
        assert len({segment[5] for segment in ran.segments(name)}) == 1


def test_so_many_share_a_gpu_and_no_more() -> None:
    rows = [job("a", 0, 50), job("b", 1, 50), job("c", 2, 50)]
    assert sliced(*rows, share=1).times("b") == (50, 100)
    limited = sliced(*rows, share=2)
    assert limited.times("b") == (10, 110) and limited.times("c")[0] == 90  # a ends first, at 90
    assert sliced(*rows).times("c")[0] == 20


def test_turns_given_at_one_instant_are_bounded() -> None:
    on = flat_cluster(1, 4)
    rows = [job(number, 0, 100) for number in range(8)]
    starts = sliced(*rows, on=on, swaps=1).jobs["first_start_time_s"].tolist()
    assert starts == [0, 0, 0, 0, 10, 20, 30, 40]
    assert sliced(*rows, on=on).jobs["first_start_time_s"].tolist() == [0] * 4 + [10] * 4


def test_a_gang_whose_turn_is_refused_for_a_quantum_stops_whoever_is_there() -> None:
    """Short jobs come and go so that never two have had their quantum at once."""
    short = [job(f"s{number:02}", 4 * number, 8) for number in range(40)]
    ran = sliced(*short, job("gang", 1, 30, 2), on=TWO)
    assert ran.times("gang")[0] <= 30
    assert (ran.jobs["state"] == "completed").all()


def test_who_shares_is_moved_to_vacated_gpus_where_that_pays() -> None:
    """b and c share a GPU from 10 on; a leaves the other at 50, when both have run for longer than a move costs."""
    rows = [job("a", 0, 50), job("b", 0, 100), job("c", 1, 100)]
    costs = Costs(checkpoint_s=1, restart_s=2)
    ran = run(trace(*rows), TWO, "gandiva", options={"quantum": 10, "look_every": 10}, costs=costs)
    assert ran.jobs["migrations"].sum() == 1
    assert max(ran.times("b")[1], ran.times("c")[1]) < 140  # two of 100 s, from 0 to 50 on one GPU and then on two
    dear = run(trace(*rows), TWO, "gandiva", options={"quantum": 10, "look_every": 10, "worth": 1e6}, costs=costs)
    assert dear.jobs["migrations"].sum() == 0
    assert max(dear.times("b")[1], dear.times("c")[1]) == 200  # suspended jobs stay at their GPU


def test_who_resumes_on_the_gpus_it_had_is_brought_together_later() -> None:
    """gang is spread, at half speed, and suspended from 10 to 20; then rack z is free, which the pass at 35 sees.

    By 35 it has had 5 + 7.5 of its 100 s; the other 87.5 take as long in one rack.
    """
    racks = {name: [("n", 2)] for name in ("x", "y", "z")}
    penalty = {"node": 1, "rack": 1, "cluster": 0.5}
    three = cluster({"n": {"gpus": 2, "gpu_type": "V100"}}, racks, span_penalty=penalty)
    fixed = {"preemptible": False}
    rows = [job("a", 0, 300, 2, **fixed), job("gang", 0, 100, 4), job("h", 0, 300, 2, **fixed)]
    rows += [job("z", 0, 20, 4, **fixed), job("short", 1, 5, 4), job("without GPUs", 35, 1, 0)]
    ran = run(trace(*rows), three, "gandiva", options={"quantum": 10, "look_every": 10}, costs=FREE)
    placed = [(kind, start, end, node) for _, kind, start, end, node, *_ in ran.segments("gang")]
    assert placed == [
        ("run", 0, 10, "x-n01"),
        ("run", 0, 10, "y-n00"),
        ("suspend", 10, 20, "x-n01"),
        ("suspend", 10, 20, "y-n00"),
        ("run", 20, 35, "x-n01"),
        ("run", 20, 35, "y-n00"),
        ("run", 35, 122.5, "z-n00"),
        ("run", 35, 122.5, "z-n01"),
    ]


def test_a_job_kept_out_by_fragmentation_gets_room_by_a_move() -> None:
    """Two jobs of one GPU on two nodes of two; nobody waits long enough for a turn, as the quantum is an hour; looks are at 0 and 10."""
    rows = [job("a", 0, 1000), job("b", 0, 1000), job("gang", 1, 100, 2)]
    options = {"quantum": 3600, "look_every": 10}
    ran = run(trace(*rows), flat_cluster(2, 2), "gandiva", options=options, costs=FREE, placement="spread")
    assert ran.times("gang")[0] == 10 and ran.jobs["migrations"].sum() == 1


def test_by_checkpoint_a_turn_costs_and_the_job_resumes_anywhere() -> None:
    rows = [job("a", 0, 100), job("b", 0, 100), job("c", 0, 35), job("d", 0, 35)]
    costs = Costs(checkpoint_s=2, restart_s=3)
    ran = sliced(*rows, on=TWO, costs=costs, mode="checkpoint", quantum=30)
    assert ran.jobs["preemptions"].sum() > 0
    assert (ran.jobs["held_s"] - ran.jobs["duration_s"] == 5 * ran.jobs["preemptions"]).all()


@pytest.mark.slow
@given(
    sizes=st.lists(st.sampled_from([1, 1, 1, 2, 2, 3, 4, 8]), min_size=1, max_size=12),
    gaps=st.lists(st.integers(0, 25), min_size=12, max_size=12),
    lengths=st.lists(st.integers(1, 600), min_size=12, max_size=12),
    swaps=st.integers(1, 8),
)
def test_every_job_gets_its_turns_within_rounds(sizes: list[int], gaps: list[int], lengths: list[int], swaps: int) -> None:
    """Nobody waits for a turn longer than three quanta for each job there is: one to be refused, two to be served."""
    submit = 0
    rows = []
    for number, gpus in enumerate(sizes):
        submit += gaps[number]
        rows.append(job(number, submit, lengths[number], gpus))
    ran = sliced(*rows, on=flat_cluster(2, 4), swaps=swaps)
    longest = 3 * 10 * len(rows)
    assert (ran.jobs["wait_s"] <= longest).all()
    suspended = [end - start for _, kind, start, end, *_ in ran.segments() if kind == "suspend"]
    assert max(suspended, default=0) <= longest
