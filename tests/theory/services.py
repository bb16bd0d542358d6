"""Service times of mean 1 that theory is held against, with their second moments."""

from __future__ import annotations

import numpy as np

from tests.theory.replications import Numbers

SMALL, LARGE = 0.5, 5.5
"""The two sizes of ``two_points``."""


def exponential(numbers: np.random.Generator, count: int) -> Numbers:
    """Service of mean 1 and second moment 2."""
    return numbers.exponential(1.0, count)


def two_points(numbers: np.random.Generator, count: int) -> Numbers:
    """Nine in ten take 1/2, one in ten takes 5.5: mean 1, second moment 3.25."""
    return np.where(numbers.random(count) < 0.9, SMALL, LARGE)


SECOND_MOMENT = {exponential: 2.0, two_points: 3.25}
