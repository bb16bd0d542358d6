"""Graham's bound: jobs of one GPU, all there at the start, end by (2 - 1/m) times the optimum on m GPUs, in any order.

Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied Mathematics 17, 1969.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysim.policy import Plan
from tests.builders import flat_cluster, job, run, scripted, trace


def makespan(policy: str, gpus: int, durations: list[int]) -> int:
    """Last end in seconds, in the order given by the ids."""
    rows = trace(*(job(number, 0, duration) for number, duration in enumerate(durations)))
    return round(float(run(rows, flat_cluster(1, gpus), policy).jobs["end_time_s"].max()))


@pytest.mark.parametrize("gpus", [2, 3, 4, 8])
def test_grahams_own_instance_attains_the_bound(gpus: int) -> None:
    """m (m - 1) jobs of 1 and then one of m: 2 m - 1 in that order, m with the long one first, which is the optimum."""
    durations = [1] * (gpus * (gpus - 1)) + [gpus]
    assert makespan("fifo", gpus, durations) == 2 * gpus - 1
    assert makespan("fifo", gpus, durations[::-1]) == gpus == sum(durations) / gpus


@pytest.mark.parametrize("policy", ["fifo", "sjf"])
@given(gpus=st.integers(1, 6), durations=st.lists(st.integers(1, 40), min_size=1, max_size=30))
@example(gpus=3, durations=[1, 1, 1, 1, 1, 1, 3])
def test_no_list_is_longer_than_the_bound(policy: str, gpus: int, durations: list[int]) -> None:
    """A last job of duration x starts when all GPUs were busy so far: by (sum - x) / m, so it ends by that and x."""
    end = makespan(policy, gpus, durations)
    assert gpus * end <= sum(durations) + (gpus - 1) * max(durations)
    assert gpus * gpus * end <= (2 * gpus - 1) * max(sum(durations), gpus * max(durations))
    assert end >= max(sum(durations) / gpus, *durations)


def test_a_policy_that_leaves_a_gpu_idle_would_be_found() -> None:
    """One job at a time on two GPUs: no list schedule."""
    rows = trace(*(job(number, 0, 1) for number in range(6)))

    def one_at_a_time(plan: Plan) -> None:
        if not len(plan.running):
            plan.start(next(iter(plan.pending)))

    end = float(run(rows, flat_cluster(1, 2), scripted(one_at_a_time)).jobs["end_time_s"].max())
    assert 2 * end > 6 + 1 * 1
