"""Who is moved is placed again, who is stopped had to be; budgets, quotas and GPUs hold under every strategy of placement."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.config.cluster import ClusterConfig, Costs
from tests.builders import SECOND, Outcome, run
from tests.property.cases import PLACEMENTS, clusters, traces
from tests.property.test_chaos import COSTS, faults_of
from tests.property.test_invariance import POLICIES
from tests.property.witness import Stopper, watched

pytestmark = pytest.mark.slow

ALL: dict[str, tuple[str, dict[str, Any]]] = {
    **POLICIES,
    "defragment, rack": ("defragment", {**POLICIES["defragment"][1], "free": "rack", "skip": True}),
    "easy": ("easy", {}),
    "replay": ("replay", {}),
}
EXAMPLES = settings(max_examples=2 * settings.default.max_examples)
MANY = settings(max_examples=8 * settings.default.max_examples)


def checked(name: str, rows: pd.DataFrame, cluster: ClusterConfig, **config: Any) -> Outcome:
    """Run a policy under watch; the books are recomputed before and after each pass and after each instant."""
    if not cluster.partitions:
        rows = rows.assign(partition="")
    if name == "replay":
        rows = rows.assign(recorded_start_us=rows["submit_us"] + rows["duration_us"] // 2)
    file, options = ALL[name]
    return run(rows, cluster, watched(file, options), **config)


@pytest.mark.parametrize("name", ALL)
@EXAMPLES
@given(rows=traces(), cluster=clusters(), placement=PLACEMENTS, costs=COSTS)
def test_capacity_and_quota_hold_under_every_strategy(
    name: str, rows: pd.DataFrame, cluster: ClusterConfig, placement: str, costs: Costs
) -> None:
    assert faults_of(checked(name, rows, cluster, placement=placement, costs=costs).tables) == []


@pytest.mark.parametrize("name", ["preempt", "srtf", "migrate", "defragment"])
@MANY
@given(rows=traces(most=30), cluster=clusters(), placement=PLACEMENTS, costs=COSTS)
def test_nobody_is_stopped_or_moved_in_vain(
    name: str, rows: pd.DataFrame, cluster: ClusterConfig, placement: str, costs: Costs
) -> None:
    checked(name, rows, cluster, placement=placement, costs=costs)


@MANY
@given(rows=traces(most=30), cluster=clusters(), placement=PLACEMENTS, costs=COSTS)
def test_whoever_is_named_to_go_had_to(
    rows: pd.DataFrame, cluster: ClusterConfig, placement: str, costs: Costs
) -> None:
    if not cluster.partitions:
        rows = rows.assign(partition="")
    run(rows, cluster, Stopper(), placement=placement, costs=costs)


def movements(outcome: Outcome) -> pd.DataFrame:
    """When who was moved, with what the trace says of the job."""
    decisions = outcome.tables.decisions
    moved = decisions[decisions["action"] == "migrate"]
    return moved[["time_s", "job_id"]].merge(outcome.tables.jobs, on="job_id", how="left")


@MANY
@given(
    rows=traces(most=30),
    cluster=clusters(),
    costs=COSTS,
    per_hour=st.integers(0, 4),
    rest=st.sampled_from([0, 2.5, 6]),
    fixed=st.sampled_from([None, 1, 2]),
    largest=st.sampled_from([None, 1, 2, 4]),
    skip=st.booleans(),
    free=st.sampled_from(["node", "rack"]),
)
def test_the_budget_holds_and_the_unmovable_stay(
    rows: pd.DataFrame, cluster: ClusterConfig, costs: Costs, per_hour: int, rest: float, fixed: int | None,
    largest: int | None, skip: bool, free: str,
) -> None:  # fmt: skip
    """An hour is 5 s here, which these traces are long enough for."""
    if not cluster.partitions:
        rows = rows.assign(partition="")
    options = {"every": 1, "look_every": 0.5, "worth_per_node": 3600, "rest": rest, "moves_per_hour": per_hour}
    options |= {"fixed_priority": fixed, "largest": largest, "skip": skip, "free": free}
    with patch("analysim.policy.consolidation.HOUR", 5 * SECOND):
        outcome = run(rows, cluster, watched("defragment", options), placement="spread", costs=costs)
    moved = movements(outcome)
    times = np.round(moved["time_s"].to_numpy() * SECOND).astype(np.int64)
    assert all(np.sum((times >= first) & (times < first + 5 * SECOND)) <= per_hour for first in times)
    given_of = rows.set_index("job_id").loc[moved["job_id"]]
    assert given_of["preemptible"].all()
    assert fixed is None or (given_of["priority"] < fixed).all()
    assert largest is None or (given_of["gpu_milli"] <= largest * 1000).all()
    gaps = moved.groupby("job_id")["time_s"].diff().dropna()
    assert (gaps >= rest).all()


def test_there_is_something_to_check() -> None:
    """Victims and moves occur in the random cases, and a victim too many would be noticed."""
    from tests.property.test_invariance import example

    found = {}
    for name in ("preempt", "srtf", "migrate", "defragment"):
        policy: Any = watched(ALL[name][0], ALL[name][1])
        for seed in range(12):
            rows, cluster = example(seed=seed)
            run(rows, cluster, policy, placement="spread", costs=Costs(checkpoint_s=1, restart_s=2))
        found[name] = (policy.victims_seen, policy.moves_seen)
    assert found["preempt"][0] > 0 and found["srtf"][0] > 0, found
    assert found["migrate"][1] > 0 and found["defragment"][1] > 0, found
