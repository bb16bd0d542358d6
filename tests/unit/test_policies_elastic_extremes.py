"""Elastic jobs that no cluster can satisfy, and curves that nobody measured."""

from __future__ import annotations

import pytest

from analysim.elastic import parse_curve
from analysim.errors import UserError
from tests.builders import flat_cluster, job, run, trace


@pytest.mark.parametrize("policy", ["afs", "optimus"])
def test_a_job_that_may_have_more_gpus_than_there_are_costs_no_memory(policy: str) -> None:
    """A list of all its sizes would fill it."""
    outcome = run(trace(job("a", 0, 100, 1, min_gpus=1, max_gpus=10**11)), flat_cluster(1, 4), policy)
    assert outcome.times("a")[1] == 25


@pytest.mark.parametrize("text", ["1=1e-300 4=1e300", "1=1e300 2=1", "1=1 2=1e-13"])
def test_throughputs_beyond_reason_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="choose another unit"):
        parse_curve(text)
