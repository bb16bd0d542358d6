"""KTH-SP2, whose scheduler was EASY: what ours makes of it, against the waits that the archive recorded."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from analysim.study.fidelity import assess
from analysim.study.runs import Run
from analysim.study.simulating import simulate
from tests.builders import flat_cluster, shared_file

pytestmark = pytest.mark.slow
LOG = "traces/swf/KTH-SP2-1996-2.1-cln.swf.gz"


@cache
def run(policy: str) -> Run:
    """A policy over the whole log, on the machine that its header describes: 100 processors."""
    return simulate(shared_file(LOG), policy, flat_cluster(100, 1), placement="any")


def report(policy: str) -> dict[str, Any]:
    """What ``fidelity`` says."""
    return assess(run(policy)).report


def test_recorded_waits_are_those_of_the_archive() -> None:
    """Field 3 of the log: 15,296 s in the mean over all 28,476 jobs; one of them tells no processors."""
    found = report("easy")
    assert found["jobs"] == 28_475
    assert found["mean_wait_s"]["recorded"] == pytest.approx(15_296, rel=1e-3)
    assert found["wait_quantiles_s"]["recorded"]["p50"] == 300


def test_the_record_fits_the_machine_but_for_a_few_jobs() -> None:
    """The log has up to 104 of the 100 processors busy, in 0.07 % of the time; 57 jobs are late for it."""
    found = report("replay")
    assert found["replay"]["late"] == 57
    assert found["replay"]["peak"]["busy"] == 104
    assert found["ks"] < 0.005
    assert found["busy_gpus_mae"] < 0.1


def test_easy_agrees_where_waits_come_from_the_queue() -> None:
    """Measured: KS 0.313, Wasserstein 2.3 h; first come, first served is off by days."""
    easy, fifo = report("easy"), report("fifo")
    assert easy["ks"] < 0.35 and easy["wasserstein_s"] < 3 * 3_600
    assert fifo["ks"] > 0.6 and fifo["wasserstein_s"] > 3 * 86_400
    jobs = run("easy").jobs
    recorded = (jobs["recorded_start_time_s"] - jobs["submit_time_s"]).to_numpy()
    simulated = jobs["wait_s"].to_numpy()
    for minutes in (15, 30, 60, 120):  # shares of jobs that waited less: within three points of a hundred
        assert np.mean(simulated <= minutes * 60) == pytest.approx(np.mean(recorded <= minutes * 60), abs=0.03)
    assert 0.3 < easy["mean_wait_s"]["simulated"] / easy["mean_wait_s"]["recorded"] < 0.6
