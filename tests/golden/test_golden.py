"""Whole tables of a tiny run under each policy, and what of them can be checked by hand.

``pytest tests/golden --update-golden`` writes the tables anew; read the difference before it is committed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analysim.clusters import load_cluster
from analysim.traces import read_trace
from tests.builders import SECOND, Outcome, run, shipped

HERE = Path(__file__).parent
OPTIONS: dict[str, dict[str, Any]] = {
    "fifo": {},
    "sjf": {},
    "srtf": {"minimum_run": 60},
    "preempt": {"thresholds": [400, 2000], "minimum_run": 60, "patience": 600, "look_every": 60},
    "migrate": {},
    "afs": {"interval": 60, "minimum_run": 60},
    "optimus": {"interval": 60, "minimum_run": 60},
    "defragment": {"every": 100, "rest": 0},
    "easy": {},
    "conservative": {},
    "srsf": {"minimum_run": 60},
    "lsf": {},
    "las": {"thresholds": [400, 2000], "minimum_run": 60, "promote": 2},
    "gittins": {"thresholds": [400, 2000], "minimum_run": 60, "promote": 2, "completions": 3, "levels": 4},
    "lottery": {},
    "deadline": {},
    "gandiva": {"quantum": 60, "swaps": 8, "look_every": 60},
    "themis": {"lease": 120},
}
ELASTIC = ("afs", "optimus")
"""Policies under which every job may run on one GPU to twice what it asks for, by Amdahl's law with 0.9."""
DEADLINES_S = {"d": 850, "e": 700, "h": 1000}
TABLES = {
    "jobs": [
        "job_id",
        "first_start_time_s",
        "end_time_s",
        "state",
        "wait_s",
        "total_wait_s",
        "jct_s",
        "preemptions",
        "migrations",
        "held_s",
    ],
    "segments": ["job_id", "start_s", "end_s", "node", "gpu_ids", "kind", "progress_s"],
    "decisions": ["time_s", "job_id", "action", "reason"],
}


@cache
def outcome(policy: str) -> Outcome:
    """Run a policy over the tiny trace."""
    rows = read_trace(HERE / "trace.csv").frame
    rows["estimate_us"] = rows["duration_us"]  # for those who go by estimates
    if policy in ELASTIC:
        gpus = rows["gpu_milli"] // 1000
        rows = rows.assign(min_gpus=gpus.clip(upper=1), max_gpus=2 * gpus, throughput="amdahl:0.9", gpus_per_node=0)
    if policy == "deadline":  # h, the most important, and e have to end soon; d cannot
        rows = rows.assign(
            deadline_us=[DEADLINES_S.get(name, -1e-6) * SECOND for name in rows["job_id"]],
        ).astype({"deadline_us": int})
    return run(rows, load_cluster(HERE / "topology.yaml"), shipped(policy)(OPTIONS[policy]))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("policy", OPTIONS)
def test_tables_are_as_expected(policy: str, table: str, request: pytest.FixtureRequest) -> None:
    found = getattr(outcome(policy).tables, table)[TABLES[table]].to_csv(index=False, lineterminator="\n")
    file = HERE / "expected" / f"{policy}.{table}.csv"
    if request.config.getoption("--update-golden"):
        file.write_text(found)
    assert found == file.read_text()


# -- by hand ---------------------------------------------------------------------------------------------------


def test_fifo_by_hand() -> None:
    """a takes node 0, b and c share node 1, d follows on node 0 and c's end leaves two GPUs on either node.

    e needs four on one node: d ends at 902, b at 900, so e starts at 900 on node 1, and all behind it wait.
    """
    ran = outcome("fifo")
    expected = {
        "a": (0, 100),
        "b": (0, 900),
        "c": (5, 105),
        "d": (102, 902),
        "e": (900, 1020),
        "f": (900, 960),  # on node 0 beside d
        "g": (1020, 1070),  # needs both nodes: e is the last to leave
        "h": (1070, 1270),
        "i": (1070, 1100),
        "j": (1070, 1070),
    }
    assert {name: ran.times(name) for name in expected} == expected
    starts = ran.jobs["first_start_time_s"].tolist()
    assert starts == sorted(starts)


def test_sjf_by_hand() -> None:
    """No shorter job waits when one starts, as the first that does not fit closes the pass."""
    jobs = outcome("sjf").tables.jobs
    for row in jobs.itertuples():
        waiting = jobs[
            (jobs["submit_time_s"] <= row.first_start_time_s) & (jobs["first_start_time_s"] > row.first_start_time_s)
        ]
        assert (waiting["duration_s"] >= row.duration_s).all()


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_backfilling_by_hand(policy: str) -> None:
    """As fifo until e waits for a whole node, which is promised it at 900, when b ends.

    f, i and j have ended by then, on the two GPUs that b leaves. g needs both nodes: 1020, when e ends; h would be in
    its way from 900 on, beside e, if it ran for 120 s at most.
    """
    passed = {"f": (300, 360), "i": (410, 440), "j": (600, 600)}
    names = ("a", "b", "c", "d", "e", "g", "h")
    expected = {name: outcome("fifo").times(name) for name in names} | passed
    assert {name: outcome(policy).times(name) for name in expected} == expected


@pytest.mark.parametrize("policy", ["srtf", "preempt"])
def test_preemption_by_hand(policy: str) -> None:
    ran = outcome(policy)
    jobs = ran.jobs
    # h is the most important and among the shortest: it waits for a minimum run and a checkpoint at most.
    assert jobs.loc["h", "wait_s"] <= 60 + 30
    assert jobs["preemptions"].sum() >= 1
    assert jobs.loc["i", "preemptions"] == 0
    # Every stop costs 30 s of checkpoint and 60 s of restart, and nothing else is added to the time held.
    extra = jobs["held_s"] - jobs["duration_s"]
    assert (extra == 90 * jobs["preemptions"] + 90 * jobs["migrations"]).all()


def test_migration_by_hand() -> None:
    """From 110 on, e fits in total and on no node; moving b or d, two GPUs at 90 s, is paid by 45 s of its wait.

    It looks again at 230, two minutes on: the move begins, GPUs are free at 260, when e starts.
    """
    ran = outcome("migrate")
    assert ran.times("e")[0] == 260 < outcome("fifo").times("e")[0]
    moved = ran.decisions("migrate")
    assert moved[0][0] == 230 and moved[0][1] in ("b", "d")
    assert (ran.jobs["held_s"] - ran.jobs["duration_s"] == 90 * ran.jobs["migrations"]).all()


def test_defragmentation_by_hand() -> None:
    """At 110, e fits in total and on no node; b and d have two GPUs each, and a move of either costs 180 GPU-s of 600.

    Both hold GPUs of a node that has two free. The first that lacks the fewest is node 0, where d is: it moves at
    once to b's node, and e has its GPUs when d has saved, at 140.
    """
    ran = outcome("defragment")
    assert ran.decisions("migrate")[0][:2] == (110, "d")
    assert ran.times("e")[0] == 140
    assert (ran.jobs["held_s"] - ran.jobs["duration_s"] == 90 * ran.jobs["migrations"]).all()


def test_turns_by_hand() -> None:
    """e needs four GPUs at 110, when c (ended at 105) left two beside b and a (ended at 100) two beside d.

    Both b and d hold two of a node: b, there since 0, has had its minute, d has not.
    """
    ran = outcome("gandiva")
    assert ran.times("e")[0] == 110 and ran.segments("b")[1][1:4] == ("suspend", 110, 170)
    jobs = ran.jobs
    suspended = jobs["preemptions"] > 0
    assert suspended.any() and (jobs["held_s"] - jobs["duration_s"] == 90 * jobs["migrations"]).all()


def test_auctions_by_hand() -> None:
    """Leases end at 120, when e has waited for 10 s, rho (10 + 120) / 120 and more, and b and d hold a node each.

    Three are in the cluster on 8 GPUs: e's third is 2 2/3 GPUs of the 4 it asks, rho (10 + 120) / (120 x 1.5); b's
    is (120 + 780) / 900 and d's (18 + 782) / 800: 1. Of three, one takes part: b, the first of the two.
    e is left; at 240 its rho is 250 / 180, the largest, and d, the later of the two, has to go: for 30 s it saves.
    """
    ran = outcome("themis")
    assert ran.decisions("preempt")[0][:2] == (240, "d") and ran.times("e")[0] == 270
    stops = ran.jobs["preemptions"]
    assert all(time % 120 == 0 for time, *_ in ran.decisions("preempt")) and stops["i"] == 0
    assert (ran.jobs["held_s"] - ran.jobs["duration_s"] == 90 * stops).all()


@pytest.mark.parametrize("policy", OPTIONS)
def test_times_add_up(policy: str) -> None:
    jobs = outcome(policy).jobs
    assert (jobs["jct_s"] == jobs["total_wait_s"] + jobs["held_s"]).all()
    assert (jobs["state"] == "completed").all()
    done = (
        outcome(policy)
        .tables.segments.drop_duplicates(["job_id", "start_s", "kind"])
        .groupby("job_id")["progress_s"]
        .sum()
    )
    assert (done.reindex(jobs.index).fillna(0) == jobs["duration_s"]).all()
