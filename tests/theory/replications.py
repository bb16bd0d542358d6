"""Replications of a queue in the simulator, and the check of their mean against theory.

Rules, fixed before the first run: seeds 1 to n; every replication starts empty and is cut at ``WARM_UP``
relaxation times (where later arrivals matter to a job, as much is cut at the end); n and the lengths follow from
the variance that theory gives (``jobs_needed``), with as much to spare as the estimate of a variance from n values
may be too large (its 99.9 % quantile, chi-square). Seeds are never changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from analysim.config.cluster import ClusterConfig
from analysim.policy import Policy
from tests.builders import FREE, Outcome, flat_cluster, frame, run
from tests.theory.formulas import mean_wait, relaxation_time, variance_of_a_mean_wait

CONFIDENCE = 0.999
WARM_UP = 10
SERVICE_US = 1_000_000
"""Mean service time; rounding to microseconds moves the mean of an exponential by 4e-14 of itself."""

Numbers = npt.NDArray[np.float64]
Drawn = Callable[[np.random.Generator, int], Numbers]


@dataclass(frozen=True)
class Verdict:
    """Mean of the replications, half the width of its interval, and theory."""

    mean: float
    half_width: float
    theory: float

    def __str__(self) -> str:
        off = (self.mean / self.theory - 1) * 100
        return (
            f"simulated {self.mean:.6g} ± {self.half_width / self.theory:.2%}, "
            f"theory {self.theory:.6g}, difference {off:+.2f} %"
        )

    def faults(self, tolerance: float) -> list[str]:
        """What is wrong: theory outside the interval, or an interval too wide to tell."""
        found = []
        if abs(self.mean - self.theory) > self.half_width:
            found.append(f"theory is outside the interval: {self}")
        if self.half_width > tolerance * self.theory:
            found.append(f"the interval is wider than {tolerance:.0%} of theory: {self}")
        return found


def judge(samples: Iterable[float], theory: float) -> Verdict:
    """Student's interval of the mean of independent replications."""
    values = np.fromiter(samples, float)
    quantile = stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)
    return Verdict(float(values.mean()), quantile * float(values.std(ddof=1)) / math.sqrt(len(values)), theory)


def jobs_needed(servers: int, load: float, tolerance: float, replications: int) -> int:
    """Jobs after the warm-up in each replication, so that the interval is as narrow as asked."""
    relative = variance_of_a_mean_wait(servers, load) / mean_wait(servers, load) ** 2
    quantile = stats.t.ppf(0.5 + CONFIDENCE / 2, replications - 1)
    spare = stats.chi2.ppf(CONFIDENCE, replications - 1) / (replications - 1)
    return math.ceil(spare * relative * (quantile / tolerance) ** 2 / replications)


@dataclass(frozen=True)
class Queue:
    """A queue to simulate: Poisson arrivals at ``load`` per server, service of mean 1 times ``slower``."""

    servers: int
    load: float
    slower: float = 1.0
    missing: int = 0

    @property
    def warm_up(self) -> float:
        """Time that is cut."""
        return WARM_UP * relaxation_time(self.servers, self.load)

    def cluster(self) -> ClusterConfig:
        """One GPU a server: nodes of 8, or one smaller node."""
        count = self.servers - self.missing
        return flat_cluster(count // 8, 8) if count % 8 == 0 else flat_cluster(1, count)

    def draw(self, seed: int, jobs: int, cut_end: bool = False, service: Drawn | None = None) -> pd.DataFrame:
        """Draw a trace with so many jobs to measure."""
        cut = round(self.warm_up * self.servers * self.load)
        count = jobs + cut * (2 if cut_end else 1)
        numbers = np.random.default_rng(seed)
        arrivals = np.cumsum(numbers.exponential(SERVICE_US / (self.servers * self.load), count))
        drawn = numbers.exponential(1.0, count) if service is None else service(numbers, count)
        return frame(
            submit_us=np.rint(arrivals).astype(np.int64),
            duration_us=np.rint(drawn * SERVICE_US * self.slower).astype(np.int64),
            gpu_milli=1000,
        )

    def simulate(self, rows: pd.DataFrame, policy: Policy | str = "fifo", **config: object) -> Outcome:
        """Run a policy at no cost for stopping."""
        return run(rows, self.cluster(), policy, check=False, costs=FREE, **config)  # type: ignore[arg-type]  # fields of the configuration

    def measured(self, jobs: pd.DataFrame, cut_end: bool = False) -> pd.DataFrame:
        """The jobs that count: submitted after the warm-up (and before what is cut at the end)."""
        submit = jobs["submit_time_s"]
        last = submit.max() - self.warm_up if cut_end else np.inf
        return jobs[(submit >= self.warm_up) & (submit <= last)]
