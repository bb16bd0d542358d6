"""The measured interval: which jobs count, and to what the integrals are clipped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysim.metrics.integers import Flags, Record
from analysim.units import MICROSECONDS


@dataclass(frozen=True)
class Interval:
    """The measured part of a run and the jobs submitted in it."""

    from_us: int
    to_us: int
    jobs: Flags

    @classmethod
    def of(cls, record: Record, measure: tuple[float, float] | None) -> Interval:
        """Clip ``measure`` (seconds on the trace's clock, half open) to first submit .. last end.

        None is the whole run with every job of it.
        """
        first, last = record.first_submit_us, record.last_end_us
        if measure is None:
            return cls(first, last, np.ones(len(record.jobs), np.bool_))
        submit_s = record.jobs.submit_us / MICROSECONDS
        chosen = (submit_s >= measure[0]) & (submit_s < measure[1])
        from_us = round(min(max(measure[0], first / MICROSECONDS), last / MICROSECONDS) * MICROSECONDS)
        to_us = round(min(max(measure[1], from_us / MICROSECONDS), last / MICROSECONDS) * MICROSECONDS)
        return cls(from_us, to_us, chosen)
