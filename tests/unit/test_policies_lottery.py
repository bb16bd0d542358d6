"""The lottery: chances by tickets, the same draw for the same seed, and nobody who waits longer has worse chances."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from tests.builders import SECOND, flat_cluster, job, run, trace

ONE = flat_cluster(1, 1)


def order(rows: list[dict[str, Any]], **options: Any) -> list[Any]:
    """Jobs in the order in which they start on one GPU."""
    return run(trace(*rows), ONE, "lottery", options=options).jobs["first_start_time_s"].sort_values().index.tolist()


def test_the_same_seed_is_the_same_draw_and_another_is_another() -> None:
    rows = [job(number, 0, 1) for number in range(30)]
    assert order(rows, seed=3) == order(rows, seed=3)
    assert order(rows, seed=3) != order(rows, seed=4)
    assert order(rows) != list(range(30))


def within(count: int, trials: int, chance: float) -> bool:
    """Whether a count is within 3.3 standard deviations of the binomial: one in a thousand is not."""
    return abs(count - trials * chance) <= 3.3 * math.sqrt(trials * chance * (1 - chance))


ROUNDS = 600


def rounds(*rows: dict[str, Any], **options: Any) -> list[list[str]]:
    """Play the same arrivals again and again, a minute apart, in one run; names in the order of starts in each round."""
    again = [
        {**row, "job_id": f"{row['job_id']} {place}", "submit_us": row["submit_us"] + place * 60 * SECOND}
        for place in range(ROUNDS)
        for row in rows
    ]
    played: list[list[str]] = [[] for _ in range(ROUNDS)]
    for name in order(again, **options):
        played[int(name.split()[1])].append(name.split()[0])
    return played


@pytest.mark.parametrize("tickets", ["equal", "priority"])
def test_the_first_is_drawn_by_tickets(tickets: str) -> None:
    """Tickets 1, 2 and 3 (priorities 0, 1 and 2), or one each."""
    rows = [job("first", 0, 1), *(job(f"p{priority}", 0.5, 1, priority=priority) for priority in (0, 1, 2))]
    won = Counter(each[1] for each in rounds(*rows, tickets=tickets))
    names = ("p0", "p1", "p2")
    shares = (1 / 6, 2 / 6, 3 / 6) if tickets == "priority" else (1 / 3, 1 / 3, 1 / 3)
    assert all(within(won[name], ROUNDS, share) for name, share in zip(names, shares, strict=True))


def test_who_lost_before_has_the_chances_of_who_just_came() -> None:
    """Two wait for the first draw; the loser and a newcomer are drawn next: each wins half of the times."""
    played = rounds(job("running", 0, 10), job("a", 1, 10), job("b", 1, 10), job("new", 15, 10))
    assert within(sum(each[2] == "new" for each in played), ROUNDS, 1 / 2)


def test_who_was_drawn_and_does_not_fit_closes_its_partition() -> None:
    rows = trace(job("running", 0, 10, 3), job("wide", 1, 5, 4), *(job(f"n{number}", 1, 5, 1) for number in range(6)))
    seen = set()
    for seed in range(30):
        ran = run(rows, flat_cluster(1, 4), "lottery", options={"seed": seed})
        starts = dict(ran.jobs["first_start_time_s"].items())
        passed = [name for name, start in starts.items() if name.startswith("n") and start < starts["wide"]]
        seen.add(len(passed))
        if not passed:
            assert starts["wide"] == 10  # drawn first: the GPU that is free stays so
    assert 0 in seen and len(seen) > 3
