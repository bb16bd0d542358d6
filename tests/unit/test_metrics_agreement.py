"""Agreement of two schedules: against SciPy, and against integrals worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysim.metrics.agreement import Busy, Spans, kolmogorov_smirnov, quantiles_s, wasserstein_s
from analysim.metrics.job_figures import mean_s

SAMPLES = st.lists(st.integers(0, 10**9) | st.integers(0, 5), min_size=1, max_size=40)
NOBODY = np.array([], np.int64)


@given(one=SAMPLES, other=SAMPLES)
def test_distances_are_those_of_scipy(one: list[int], other: list[int]) -> None:
    left, right = np.array(one, np.int64), np.array(other, np.int64)
    assert kolmogorov_smirnov(left, right) == pytest.approx(stats.ks_2samp(one, other, method="asymp").statistic)
    expected = stats.wasserstein_distance(np.array(one, float), np.array(other, float)) / 1e6
    assert wasserstein_s(left, right) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(values=SAMPLES)
def test_quantiles_are_those_of_numpy(values: list[int]) -> None:
    found = quantiles_s(np.array(values, np.int64))
    for name, value in found.items():
        assert value == pytest.approx(np.quantile(values, int(name[1:]) / 100) / 1e6, abs=1e-9)
    assert mean_s(np.array(values, np.int64)) == pytest.approx(np.mean(values) / 1e6)


def test_nothing_has_no_distance() -> None:
    assert kolmogorov_smirnov(NOBODY, np.array([1])) is None
    assert wasserstein_s(np.array([1]), NOBODY) is None
    assert quantiles_s(NOBODY)["p50"] is None
    assert mean_s(NOBODY) is None


def spans(*rows: tuple[int, int, int]) -> Spans:
    """(start, end, GPUs) in microseconds."""
    return Spans(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def test_busy_gpus_are_compared_over_the_stretch_by_time() -> None:
    busy = Busy.of(spans((0, 10, 4), (10, 30, 2), (5, 5, 9)), spans((5, 15, 4), (90, 99, 7)), 0, 40)
    # 0-5: 4 against 0; 5-10: equal; 10-15: 2 against 4; 15-30: 2 against 0; then nothing
    assert busy.mean_absolute_difference == (5 * 4 + 5 * 2 + 15 * 2) / 40
    assert busy.means == ((10 * 4 + 20 * 2) / 40, 10 * 4 / 40)
    edges, recorded, simulated = busy.averages(4)
    assert edges.tolist() == [0, 1e-5, 2e-5, 3e-5, 4e-5]
    assert recorded.tolist() == pytest.approx([4, 2, 2, 0])
    assert simulated.tolist() == pytest.approx([2, 2, 0, 0])


def test_a_stretch_without_length_has_no_mean() -> None:
    busy = Busy.of(spans((5, 5, 4)), spans((5, 9, 4)), 5, 5)
    assert busy.mean_absolute_difference is None
