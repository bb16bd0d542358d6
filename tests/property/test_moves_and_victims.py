"""Who is moved is placed again, who is stopped had to be; budgets, quotas and GPUs hold under every strategy of placement."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.config.cluster import ClusterConfig, Costs
from analysim.policy import PLACERS
from tests.builders import SECOND, Outcome, run
from tests.property.cases import PLACEMENTS, clusters, traces
from tests.property.test_chaos import COSTS, faults_of
from tests.property.test_invariance import POLICIES
from tests.property.witness import watched

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


@pytest.mark.parametrize("placement", PLACERS)
@pytest.mark.parametrize("name", ALL)
@EXAMPLES
@given(rows=traces(), cluster=clusters(), costs=COSTS)
def test_capacity_and_quota_hold_under_every_strategy(
    name: str, placement: str, rows: pd.DataFrame, cluster: ClusterConfig, costs: Costs
) -> None:
    assert faults_of(checked(name, rows, cluster, placement=placement, costs=costs).tables) == []


@pytest.mark.parametrize("name", ["preempt", "srtf", "migrate", "defragment"])
@MANY
@given(rows=traces(most=30), cluster=clusters(), placement=PLACEMENTS, costs=COSTS)
def test_nobody_is_stopped_or_moved_in_vain(
    name: str, rows: pd.DataFrame, cluster: ClusterConfig, placement: str, costs: Costs
) -> None:
    checked(name, rows, cluster, placement=placement, costs=costs)
