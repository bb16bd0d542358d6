"""One server, two classes: waits when nobody is stopped, times in system when the important class stops the other."""

from __future__ import annotations

import numpy as np
import pytest

from analysim.policy import Order, Plan, Policy
from tests.theory.formulas import nonpreemptive_waits, preemptive_responses
from tests.theory.replications import Drawn, Queue, Verdict, jobs_needed, judge
from tests.theory.services import SECOND_MOMENT, exponential, two_points

pytestmark = pytest.mark.slow

LOADS = (0.35, 0.35)
SPREAD = 2
"""The other class waits longer and is half of the jobs: twice as many as one class would need."""


class ImportantFirst(Policy):
    """The important class first; nobody is stopped."""

    name = "important-first"
    important = Order(lambda job: -job.priority)

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending_by(self.important):
            plan.start(job)


class ImportantStops(ImportantFirst):
    """The important class stops the other, which goes on where it was stopped."""

    name = "important-stops"

    def schedule(self, plan: Plan) -> None:
        for job in plan.pending_by(self.important):
            if not plan.start(job):
                for victim in plan.room(job, by=self.important, above=-job.priority) or ():
                    plan.preempt(victim)
                plan.start(job)


def classes(
    policy: type[Policy],
    column: str,
    tolerance: float,
    replications: int,
    slower: float = 1.0,
    service: Drawn = exponential,
) -> tuple[Verdict, Verdict]:
    """Hold the mean of a column of jobs, for each class, against theory."""
    queue = Queue(1, sum(LOADS), slower=slower)
    jobs = SPREAD * jobs_needed(1, sum(LOADS), tolerance, replications)
    means: tuple[list[float], list[float]] = ([], [])
    for seed in range(1, replications + 1):
        rows = queue.draw(seed, jobs, cut_end=True, service=service)
        # One Poisson stream whose jobs are important by a coin of their own is two independent ones.
        rows["priority"] = np.random.default_rng([seed, 1]).integers(0, 2, len(rows))
        table = queue.measured(queue.simulate(rows, policy()).tables.jobs, cut_end=True)
        for found, priority in zip(means, (1, 0), strict=True):
            found.append(float(table.loc[table["priority"] == priority, column].mean()))
    theory = nonpreemptive_waits(LOADS) if policy is ImportantFirst else preemptive_responses(LOADS, SECOND_MOMENT[service])
    verdicts = judge(means[0], theory[0]), judge(means[1], theory[1])
    print(f"{policy.name}: {replications} x {jobs} jobs; important: {verdicts[0]}; other: {verdicts[1]}")
    return verdicts


CASES = [(ImportantFirst, "wait_s"), (ImportantStops, "jct_s")]


@pytest.mark.parametrize(("policy", "column"), CASES)
def test_both_classes_are_as_theory_says(policy: type[Policy], column: str) -> None:
    for verdict in classes(policy, column, 0.15, 24):
        assert verdict.faults(0.15) == []


@pytest.mark.theory
@pytest.mark.parametrize(("policy", "column"), CASES)
def test_both_classes_are_as_theory_says_to_three_per_cent(policy: type[Policy], column: str) -> None:
    for verdict in classes(policy, column, 0.03, 128):
        assert verdict.faults(0.03) == []


def test_both_classes_are_as_theory_says_for_service_of_two_sizes() -> None:
    """M/G/1, preemptive resume; the formula of exponential service is found to be another one."""
    for verdict, wrong in zip(
        classes(ImportantStops, "jct_s", 0.15, 24, service=two_points), preemptive_responses(LOADS), strict=True
    ):
        assert verdict.faults(0.15) == []
        assert len(Verdict(verdict.mean, verdict.half_width, wrong).faults(1e9)) == 1


@pytest.mark.theory
@pytest.mark.parametrize(("policy", "column"), CASES)
def test_longer_service_is_found(policy: type[Policy], column: str) -> None:
    for verdict in classes(policy, column, 0.05, 64, slower=1.05):
        assert len(verdict.faults(1e9)) == 1
