"""Defragment: nodes and racks are emptied when it pays, fragmented jobs get room, all or nothing, within a budget."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import pytest

from analysim.config.cluster import ClusterConfig
from analysim.policy import Consolidation, MoveBudget, Plan, move_price
from tests.builders import (
    SECOND,
    Outcome,
    cluster,
    flat_cluster,
    job,
    run,
    same_tables,
    timetable,
    trace,
)
from tests.unit.engine_steps import start_all

NODES = [f"r-n{node:02d}" for node in range(4)]
ROUND = {"every": 100, "candidates": 0, "rest": 0}
"""Rounds only, each 100 s."""


def defragment(*rows: dict[str, Any], on: ClusterConfig, options: dict[str, Any] = ROUND, **config: Any) -> Outcome:
    """Run the policy; jobs go to the emptiest node, so that there is something to put in order."""
    return run(trace(*rows), on, "defragment", options=options, **{"placement": "spread", **config})


def moves(outcome: Outcome) -> list[tuple[float, str]]:
    """(time, job) of each move."""
    return [(time, name) for time, name, _, _ in outcome.decisions("migrate")]


# -- rounds ------------------------------------------------------------------------------------------------------


def test_a_round_empties_the_node_that_costs_least_into_the_fullest_that_has_room() -> None:
    """a, b and c are on a node each. At 100, moving a costs 90 GPU-s, b and c 180 each: a goes to b's node, the first
    of the fullest. Then nodes 1 (a and b) and 2 (c) are in use, with 1 and 2 free GPUs: no more fits."""
    outcome = defragment(job("a", 0, 300, 1), job("b", 0, 300, 2), job("c", 0, 300, 2), on=flat_cluster(3, 4))
    assert moves(outcome) == [(100, "a")]
    assert outcome.segments("a") == [
        ("a", "run", 0, 100, NODES[0], "0", 100),
        ("a", "checkpoint", 100, 130, NODES[0], "0", 0),
        ("a", "hold", 100, 130, NODES[1], "2", 0),
        ("a", "restart", 130, 190, NODES[1], "2", 0),
        ("a", "run", 190, 390, NODES[1], "2", 200),
    ]
    assert outcome.times("b") == outcome.times("c") == (0, 300)


def test_a_node_is_emptied_when_that_costs_no_more_than_it_is_worth() -> None:
    rows = [job("a", 0, 300, 1), job("b", 0, 300, 3)]
    for worth, expected in ((90, [(100, "a")]), (89, [])):
        outcome = defragment(*rows, on=flat_cluster(2, 4), options={**ROUND, "worth_per_node": worth})
        assert moves(outcome) == expected
    dear = [job("a", 0, 300, 1, checkpoint=31), job("b", 0, 300, 3)]
    assert moves(defragment(*dear, on=flat_cluster(2, 4), options={**ROUND, "worth_per_node": 90})) == []


def test_no_job_moves_into_an_empty_node() -> None:
    outcome = defragment(job("a", 0, 300, 3), job("b", 0, 300, 2), on=flat_cluster(3, 4))
    assert moves(outcome) == []


def test_a_node_is_emptied_of_all_its_jobs_or_of_none() -> None:
    """The last node's two jobs of 2 GPUs find 3 and 1 free GPUs on the others: one of them would fit."""
    rows = [job("a", 0, 500, 5, preemptible=False), job("b", 0, 500, 7, preemptible=False)]
    rows += [job("c", 0, 500, 2), job("d", 0, 500, 2)]
    assert moves(defragment(*rows, on=flat_cluster(3, 8))) == []
    assert moves(defragment(*rows[:3], on=flat_cluster(3, 8))) == [(100, "c")]


def test_the_largest_are_placed_first() -> None:
    """2 and 3 GPUs are free on the others. In order of arrival c's GPU would take one of the 2, and e find no place."""
    rows = [job("a", 0, 500, 6, preemptible=False), job("b", 0, 500, 5, preemptible=False)]
    rows += [job("c", 0, 500, 1), job("d", 0, 500, 2), job("e", 0, 500, 2)]
    outcome = defragment(*rows, on=flat_cluster(3, 8))
    assert sorted(moves(outcome)[:3]) == [(100, "c"), (100, "d"), (100, "e")]
    there = {(name, node) for name, kind, _, _, node, *_ in outcome.segments() if kind == "restart"}
    assert {("d", NODES[0]), ("e", NODES[1]), ("c", NODES[1])} <= there


def test_no_job_moves_to_a_node_that_others_are_leaving() -> None:
    """a leaves node 0 at 100; that node still holds its GPU until 130, and is no place for c, of 2 GPUs."""
    outcome = defragment(job("a", 0, 300, 1), job("b", 0, 300, 2), job("c", 0, 300, 3), on=flat_cluster(3, 4))
    assert moves(outcome) == [(100, "a")]
    assert outcome.segments("a")[-1][4] == NODES[2]


def test_moves_in_any_hour_are_bounded() -> None:
    """Three nodes of one GPU each could be emptied at 100; one move an hour makes the second at 3,700."""
    rows = [job(name, 0, 9000, 1) for name in "abcd"]
    on = flat_cluster(4, 8)
    assert [at for at, _ in moves(defragment(*rows, on=on))] == [100, 100, 100]
    assert [at for at, _ in moves(defragment(*rows, on=on, options={**ROUND, "moves_per_hour": 1}))] == [100, 3700, 7300]
    assert moves(defragment(*rows, on=on, options={**ROUND, "moves_per_hour": 0})) == []


@pytest.mark.parametrize(
    ("row", "options"),
    [
        (job("a", 0, 500, 1, preemptible=False), {}),
        (job("a", 0, 500, 1, priority=2), {"fixed_priority": 2}),
        (job("a", 0, 500, 1, priority=3), {"fixed_priority": 2}),
        (job("a", 0, 500, 1), {"largest": 0}),
    ],
)
def test_who_may_not_move_stays(row: dict[str, Any], options: dict[str, Any]) -> None:
    """b could move beside a, too, but costs more; a movable a goes."""
    other = job("b", 0, 500, 2, preemptible=False)
    assert moves(defragment(row, other, on=flat_cluster(2, 4), options={**ROUND, **options})) == []
    free = job("a", 0, 500, 1, priority=1)
    assert moves(defragment(free, other, on=flat_cluster(2, 4), options={**ROUND, "fixed_priority": 2, "largest": 1})) == [
        (100, "a")
    ]


def test_a_moved_job_rests() -> None:
    """At 100, a joins b, the first of two. At 150, b ends; a may join c at 200, or when it has rested for 250 s."""
    rows = [job("a", 0, 900, 1), job("b", 0, 150, 2), job("c", 0, 900, 2, preemptible=False)]
    on = flat_cluster(3, 4)
    assert moves(defragment(*rows, on=on)) == [(100, "a"), (200, "a")]
    assert moves(defragment(*rows, on=on, options={**ROUND, "rest": 250})) == [(100, "a"), (400, "a")]


def test_a_rack_is_emptied_into_racks_in_use() -> None:
    """x has one full node, y one full and one empty: only by racks is the move into y's empty node a gain."""
    racks = cluster({"n": {"gpus": 4, "gpu_type": "V100"}}, {"x": [("n", 2)], "y": [("n", 2)], "z": [("n", 1)]})
    rows = [job("a", 0, 500, 4), job("b", 0, 10, 4), job("c", 0, 500, 4)]
    by_rack = {**ROUND, "free": "rack", "worth_per_node": "3m"}
    outcome = defragment(*rows, on=racks, options=by_rack, placement="first")
    assert moves(outcome) == [(100, "a")] and outcome.segments("a")[-1][4] == "y-n01"
    assert moves(defragment(*rows, on=racks, options=ROUND, placement="first")) == []
    # 4 GPUs for 90 s are 360 GPU-s; a rack of two nodes is worth twice what a node is.
    by_rack["worth_per_node"] = 179
    assert moves(defragment(*rows, on=racks, options=by_rack, placement="first")) == []


def test_nobody_moves_to_where_it_is_slower() -> None:
    types = {"a": {"gpus": 4, "gpu_type": "A"}, "b": {"gpus": 4, "gpu_type": "B"}}
    rows = [job("a", 0, 500, 1, gpu_type="A"), job("b", 0, 500, 2, gpu_type="B", preemptible=False)]
    rows[0]["gpu_type"] = "A|B"
    for speed, expected in ((0.5, []), (1.0, [(100, "a")])):
        on = cluster(types, {"r": [("a", 1), ("b", 1)]}, speeds={"A": 1.0, "B": speed})
        assert moves(defragment(*rows, on=on)) == expected


# -- on demand -----------------------------------------------------------------------------------------------------

DEMAND = {"every": 0}


def test_a_fragmented_job_gets_a_node_at_once() -> None:
    """c asks for a node when two GPUs are free on each. a moves beside b, and c has its GPUs when a has saved."""
    rows = [job("a", 0, 500, 2), job("b", 0, 500, 2), job("c", 50, 100, 4)]
    outcome = defragment(*rows, on=flat_cluster(2, 4), options=DEMAND)
    assert outcome.decisions("migrate", "reserve") == [(50, "a", "migrate", ""), (50, "c", "reserve", "")]
    assert outcome.times("c") == (80, 180)
    assert outcome.times("a") == (0, 590)


def test_a_gang_gets_as_many_nodes_as_it_needs() -> None:
    rows = [*(job(name, 0, 500, 2) for name in "abcd"), job("e", 50, 100, 8)]
    outcome = defragment(*rows, on=flat_cluster(4, 4), options=DEMAND)
    assert outcome.times("e") == (80, 180)
    assert len(moves(outcome)) == 2


@pytest.mark.parametrize(
    "options",
    [{"worth_per_node": 179}, {"moves_per_hour": 1}, {"largest": 1}, {"fixed_priority": 0}, {"candidates": 1}],
)
def test_a_gang_gets_all_its_nodes_or_nobody_moves(options: dict[str, Any]) -> None:
    """Two nodes are needed, each at 180 GPU-s and one move."""
    rows = [*(job(name, 0, 500, 2) for name in "abcd"), job("e", 50, 100, 8)]
    outcome = defragment(*rows, on=flat_cluster(4, 4), options={**DEMAND, **options})
    alone = run(trace(*rows), flat_cluster(4, 4), "fifo", placement="spread")
    assert same_tables(outcome.tables, alone.tables) == []


def test_room_is_looked_for_again() -> None:
    """At 50, a makes room for c. At 101, a and e stand in f's way, and the hour's move is spent until 3,650.

    Looks are two minutes apart: at 101 + 30 x 120 = 3,701 e moves, and f has its GPUs when e has saved.
    """
    rows = [job("a", 0, 9000, 2), job("b", 0, 100, 2), job("c", 50, 10, 4), job("e", 91, 9000, 2), job("f", 101, 10, 4)]
    outcome = defragment(*rows, on=flat_cluster(2, 4), options={**DEMAND, "moves_per_hour": 1})
    assert outcome.times("c") == (80, 90)
    assert moves(outcome) == [(50, "a"), (3701, "e")]
    assert outcome.times("f") == (3731, 3741)


def test_who_may_pass_is_an_option() -> None:
    rows = [job("a", 0, 100, 3), job("b", 1, 100, 4), job("c", 2, 10, 1)]
    on = flat_cluster(1, 4)
    assert defragment(*rows, on=on, options=DEMAND).times("c") == (200, 210)
    assert defragment(*rows, on=on, options={**DEMAND, "skip": True}).times("c") == (2, 12)


# -- what policies share -----------------------------------------------------------------------------------------------


def test_a_budget_holds_in_every_hour() -> None:
    budget, minute = MoveBudget(3), 60 * SECOND
    assert budget.left(0) == 3
    budget.spend(0, 1)
    budget.spend(59 * minute, 2)
    assert [budget.left(when * minute) for when in (59, 60, 118, 119)] == [0, 1, 1, 3]
    assert MoveBudget(None).left(0) > 10**6


def test_the_cheapest_to_leave_are_found_as_by_trying_all_sets() -> None:
    dice = Random(7)
    for _ in range(60):
        rows = [
            job(f"{number}", 0, 500, dice.choice([1, 1, 2, 3]), checkpoint=dice.randint(0, 4), preemptible=dice.random() < 0.9)
            for number in range(dice.randint(1, 7))
        ]

        def compare(plan: Plan) -> None:
            jobs = [each for each in plan.jobs_on(0) if plan.freeable(each)]
            for missing in range(1, 13):
                for most in (1, 2, 3, 9):
                    sets = [
                        (move_price(plan, chosen), count, chosen)
                        for count in range(1, min(len(jobs), most) + 1)
                        for chosen in combinations(jobs, count)
                        if sum(each.gpus for each in chosen) >= missing
                    ]
                    expected = list(min(sets, key=lambda each: each[:2])[2]) if sets else None
                    assert Consolidation(plan).cheapest(0, missing, most) == expected

        run(trace(*rows), flat_cluster(1, 16), timetable({0: start_all, 5: compare}))
