"""Conservative backfilling by hand: who is promised what, beside EASY; wrong estimates; the options of both."""

from __future__ import annotations

from typing import Any

import pytest

from analysim.errors import IllegalDecision
from analysim.policy import Plan
from tests.builders import cluster, flat_cluster, job, run, scripted, trace

TEN = flat_cluster(10, 1)


def starts(policy: str, *rows: dict[str, Any], on: Any = TEN, **config: Any) -> dict[str, float]:
    """First starts in seconds."""
    config.setdefault("placement", "any")
    outcome = run(trace(*rows), on, policy, **config)
    return {str(name): float(start) for name, start in outcome.jobs["first_start_time_s"].items()}


def exact(name: str, submit: int, duration: int, gpus: int, **given: Any) -> dict[str, Any]:
    """A job whose estimate is right."""
    return job(name, submit, duration, gpus, estimate=duration, **given)


# -- the two of the literature ---------------------------------------------------------------------------------

CLASSICAL = [
    exact("running", 0, 100, 6),
    exact("first", 1, 100, 8),  # starts at 100 and leaves two GPUs
    exact("second", 2, 100, 4),  # starts at 200, when the first ends
    exact("filler", 3, 300, 2),  # fits now and beside the first at 100
]


def test_easy_delays_the_second_that_waits_and_conservative_does_not() -> None:
    """Mu'alem and Feitelson, figure 2: EASY protects the head of the queue only.

    Beside filler until 303, eight GPUs are left at 200: the second fits. With one GPU more it does not.
    """
    wide = [*CLASSICAL[:2], exact("second", 2, 100, 9), *CLASSICAL[3:]]
    assert starts("easy", *wide) == {"running": 0, "first": 100, "filler": 3, "second": 303}
    assert starts("conservative", *wide) == {"running": 0, "first": 100, "second": 200, "filler": 300}


def test_both_let_go_first_who_is_in_nobodys_way() -> None:
    expected = {"running": 0, "first": 100, "filler": 3, "second": 200}
    assert starts("easy", *CLASSICAL) == expected == starts("conservative", *CLASSICAL)


def test_a_hole_between_two_promises_is_filled() -> None:
    found = starts(
        "conservative",
        exact("running", 0, 100, 6),
        exact("first", 1, 100, 8),
        exact("second", 2, 100, 10),
        exact("short", 3, 97, 4),  # until 100, beside the running
        exact("narrow", 4, 100, 2),  # now is taken by short; beside the first from 100 on
    )
    assert found == {"running": 0, "first": 100, "second": 200, "short": 3, "narrow": 100}


def test_promises_are_of_nodes_and_whole_gangs() -> None:
    """Four GPUs are free at 50, but two on each node: the gang of four waits for a whole node."""
    rows = [exact("a", 0, 50, 2), exact("b", 0, 100, 2), exact("c", 0, 200, 2), exact("d", 0, 50, 2)]
    found = starts("conservative", *rows, exact("gang", 1, 10, 4), exact("small", 2, 90, 2), on=flat_cluster(2, 4),
                   placement="first")  # fmt: skip
    assert found["gang"] == 100  # a and b share the first node, c and d the second
    assert found["small"] == 50  # beside c


def test_depth_is_counted_by_partition_and_who_has_no_promise_delays_none() -> None:
    wide = [*CLASSICAL[:2], exact("second", 2, 100, 9), *CLASSICAL[3:]]
    found = starts("conservative", *wide, options={"depth": 1})
    assert found == {"running": 0, "first": 100, "filler": 3, "second": 303}  # as EASY
    assert starts("conservative", *wide, options={"depth": 2})["filler"] == 300


def test_heads_of_all_partitions_are_protected_from_all() -> None:
    parts = [{"name": "p"}, {"name": "q"}]
    rows = [
        exact("running", 0, 100, 6, partition="p"),
        exact("head", 1, 50, 10, partition="p"),
        exact("other", 2, 200, 4, partition="q"),
    ]
    pool = flat_cluster(10, 1, partitions=parts)
    assert starts("conservative", *rows, on=pool, options={"depth": 1})["head"] == 100
    assert starts("easy", *rows, on=pool)["head"] == 202  # EASY's promise binds its own partition


def test_quota_is_kept_for_whom_it_was_promised() -> None:
    parts = [{"name": "p", "limit": 4}]
    found = starts(
        "conservative",
        exact("a", 0, 100, 3, partition="p"),
        exact("b", 1, 50, 4, partition="p"),
        exact("long", 2, 200, 1, partition="p"),
        exact("short", 3, 50, 1, partition="p"),
        on=flat_cluster(10, 1, partitions=parts),
    )
    assert found == {"a": 0, "b": 100, "long": 150, "short": 3}


# -- wrong estimates -------------------------------------------------------------------------------------------


def test_who_ends_early_brings_the_promises_forward() -> None:
    rows = [job("running", 0, 40, 6, estimate=100), exact("first", 1, 50, 8), exact("second", 2, 20, 10)]
    assert starts("conservative", *rows) == {"running": 0, "first": 40, "second": 90}
    assert starts("easy", *rows) == {"running": 0, "first": 40, "second": 90}


def test_no_promise_moves_back_when_another_moves_forward() -> None:
    """At 10 the wide one could have 20 if the narrow one, promised 20, were not in its way: it stays where it was."""
    rows = [
        job("a", 0, 10, 5, estimate=50),
        exact("b", 0, 20, 5),
        exact("wide", 1, 100, 10),  # 50, as a is to end then
        exact("narrow", 2, 30, 5),  # 20 to 50, beside a; 10 to 40 when a has ended
    ]
    assert starts("conservative", *rows) == {"a": 0, "b": 0, "narrow": 10, "wide": 50}


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_who_outlives_an_estimate_ends_any_moment(policy: str) -> None:
    found = starts(
        policy,
        job("running", 0, 200, 6, estimate=10),
        exact("head", 1, 50, 8),
        exact("filler", 20, 5, 4),
        exact("beside", 21, 500, 2),
    )
    assert found == {"running": 0, "head": 200, "beside": 21, "filler": 250}


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_who_is_killed_at_the_estimate_breaks_no_promise(policy: str) -> None:
    rows = [job("running", 0, 200, 6, estimate=100), exact("head", 1, 50, 8), exact("filler", 2, 98, 4)]
    outcome = run(trace(*rows), TEN, policy, placement="any", overrun="kill")
    assert outcome.state("running") == "killed"
    assert outcome.jobs["first_start_time_s"].to_dict() == {"running": 0, "head": 100, "filler": 2}


# -- options ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_beyond_the_window_nothing_is_promised(policy: str) -> None:
    rows = [exact("running", 0, 1000, 6), exact("wide", 1, 50, 8), exact("long", 2, 5000, 3)]
    assert starts(policy, *rows, options={"window": "2000s"})["long"] == 1050
    assert starts(policy, *rows, options={"window": "500s"})["long"] == 2


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_resolution_rounds_up(policy: str) -> None:
    """95 is rounded to 120: the filler, until 110, is in nobody's way then; in truth it delays the head to 110."""
    rows = [exact("running", 0, 95, 6), exact("head", 1, 50, 10), exact("filler", 2, 108, 4)]
    assert starts(policy, *rows)["filler"] == 145
    found = starts(policy, *rows, options={"resolution": 60})
    assert found == {"running": 0, "head": 110, "filler": 2}


def test_a_pass_tries_so_many_jobs() -> None:
    """EASY meets the head in each pass, conservative only those without a promise."""
    rows = [exact("running", 0, 100, 6), exact("head", 1, 50, 8), exact("a", 2, 10, 1), exact("b", 2, 20, 1)]
    for policy in ("easy", "conservative"):
        found = starts(policy, *rows)
        assert found["a"] == found["b"] == 2
    assert starts("easy", *rows, options={"test": 1}) == {"running": 0, "head": 100, "a": 150, "b": 160}
    found = starts("easy", *rows, options={"test": 2})
    assert found["a"] == 2 and found["b"] == 12
    found = starts("conservative", *rows, options={"test": 1})
    assert found["a"] == 2 and found["b"] == 12


def test_withdrawn_jobs_give_their_promise_back() -> None:
    rows = [exact("running", 0, 100, 6), exact("wide", 1, 50, 10, cancel=30), exact("filler", 2, 200, 4)]
    assert starts("conservative", *rows)["filler"] == 30


def test_passes_at_multiples_only_keep_the_order() -> None:
    rows = [exact("running", 0, 95, 6), exact("first", 1, 50, 8), exact("second", 2, 30, 10)]
    outcome = run(trace(*rows), TEN, "conservative", placement="any", schedule_every=30)
    assert outcome.jobs["first_start_time_s"].to_dict() == {"running": 0, "first": 120, "second": 180}


def test_node_sets_that_change_are_looked_at_anew() -> None:
    parts = [{"name": "p", "nodes": "x", "changes": [{"time": 50, "nodes": "y"}]}]
    there = cluster({"n": {"gpus": 4}}, {"x": [("n", 1)], "y": [("n", 1)]}, partitions=parts)
    rows = [exact("running", 0, 100, 4, partition="p"), exact("next", 1, 10, 4, partition="p")]
    assert starts("conservative", *rows, on=there, placement="pack") == {"running": 0, "next": 50}


def test_the_calendar_is_no_part_of_a_what_if() -> None:
    def schedule(plan: Plan) -> None:
        with plan.trial():
            plan.calendar()

    with pytest.raises(IllegalDecision, match="cannot be used in a trial"):
        run(trace(exact("a", 0, 1, 1)), TEN, scripted(schedule, knowledge="estimate"))
