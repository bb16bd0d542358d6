"""Whatever a policy does, the books hold: GPUs are conserved, work done is work asked, times add up."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysim.config.cluster import ClusterConfig, Costs
from analysim.metrics import summarise
from analysim.tables import RunTables
from tests.builders import Outcome, run
from tests.property.cases import PLACEMENTS, clusters, traces
from tests.property.chaos import Chaos
from tests.property.independent_metrics import (
    check_jobs,
    check_no_gpu_held_twice,
    check_state_sum,
    check_work_done,
    recompute,
)
from tests.property.test_independent_metrics import differences

pytestmark = pytest.mark.slow

EXAMPLES = settings(max_examples=max(settings.default.max_examples, 100))
SEEDS = st.integers(0, 2**32)
COSTS = st.sampled_from(
    [
        Costs(checkpoint_s=0, restart_s=0),
        Costs(checkpoint_s=1, restart_s=2),
        Costs(checkpoint_s=1.5, restart_s=0, start_s=1, checkpoint_interval_s=3),
        Costs(checkpoint_s=0, restart_s=1, checkpoint_interval_s=2),
    ]
)


def stir(rows: pd.DataFrame, cluster: ClusterConfig, seed: int, **given: object) -> Outcome:
    if not cluster.partitions:
        rows = rows.assign(partition="")
    options = {"seed": seed, **given.pop("options", {})}  # type: ignore[dict-item]  # a mapping of options
    return run(rows, cluster, Chaos(options), **given)  # type: ignore[arg-type]  # fields of the configuration


@EXAMPLES
@given(traces(requests=True), clusters(), SEEDS, PLACEMENTS, COSTS)
def test_the_books_hold_whatever_a_policy_does(
    rows: pd.DataFrame, cluster: ClusterConfig, seed: int, placement: str, costs: Costs
) -> None:
    outcome = stir(rows, cluster, seed, placement=placement, costs=costs)
    tables = outcome.tables
    assert faults_of(tables) == []
    if not len(unseen(tables)):
        assert differences(summarise(tables), recompute(tables)) == []


def unseen(tables: RunTables) -> pd.Series:
    """Jobs of no duration that were stopped or moved: their last stint takes no time and leaves no segment."""
    jobs = tables.jobs
    return jobs.loc[(jobs["duration_s"] == 0) & (jobs["preemptions"] + jobs["migrations"] > 0), "job_id"]


def faults_of(tables: RunTables) -> list[str]:
    """What the checks find."""
    faults = [*check_jobs(tables), *check_state_sum(tables), *check_no_gpu_held_twice(tables), *check_work_done(tables)]
    return [fault for fault in faults if not any(fault.startswith(f"job {job_id}:") for job_id in unseen(tables))]
