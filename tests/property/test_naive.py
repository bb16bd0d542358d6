"""The engine against a second, plain simulator: every start and end, on random traces, clusters and quotas."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings

from analysim.config.cluster import ClusterConfig
from tests.builders import SECOND, flat_cluster, job, run, trace
from tests.property.cases import clusters, traces
from tests.property.naive import Naive

pytestmark = pytest.mark.slow

EXAMPLES = settings(max_examples=4 * settings.default.max_examples)


def compare(rows: pd.DataFrame, cluster: ClusterConfig, policy: str, skip: bool) -> None:
    """Run both; jobs that the engine rejects are not offered to the other."""
    if not cluster.partitions:
        rows = rows.assign(partition="")
    jobs = run(rows, cluster, policy, options={"skip": skip}, placement="first", check=False).tables.jobs
    started = jobs[jobs["first_start_time_s"].notna()]
    columns = started[["job_id", "first_start_time_s", "end_time_s"]].itertuples(index=False)
    found = sorted((job_id, round(start * SECOND), round(end * SECOND)) for job_id, start, end in columns)
    accepted = rows[~rows["job_id"].isin(jobs.loc[jobs["state"] == "rejected", "job_id"])]
    assert found == (Naive(accepted, cluster, policy == "sjf", skip).run() if len(accepted) else [])


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("policy", ["fifo", "sjf"])
@EXAMPLES
@given(rows=traces(most=25), cluster=clusters(speeds=False))
def test_every_job_starts_and_ends_as_in_the_plain_simulator(
    policy: str, skip: bool, rows: pd.DataFrame, cluster: ClusterConfig
) -> None:
    compare(rows, cluster, policy, skip)


def test_a_difference_would_be_found() -> None:
    rows = trace(job(1, 0, 10, 3), job(2, 1, 10, 2), job(3, 2, 10, 1))
    compare(rows, flat_cluster(1, 4), "fifo", skip=True)
    with pytest.raises(AssertionError):
        found = run(rows, flat_cluster(1, 4), options={"skip": False}).jobs
        expected = Naive(rows, flat_cluster(1, 4), False, True).run()
        assert found["first_start_time_s"].tolist() == [start / SECOND for _, start, _ in expected]
