"""What became of the GPU-time that jobs held: useful progress, or lost, and to what."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysim.metrics.integers import Integers, Record, Rows, exact_sum
from analysim.tables import CHECKPOINT, HOLD, RESTART, RUN
from analysim.units import MICROSECONDS, SPEED_ONE

GPU_HOUR_US = 3_600_000_000
"""GPU-microseconds in a GPU-hour."""


@dataclass(frozen=True)
class Work:
    """GPU-microseconds, in ``parts`` of a GPU, inside an interval: ``held`` = ``productive`` + the sum of five losses.

    Integers unless a run row straddles an end of the interval: its progress is linear in time.
    """

    up: int
    held: int
    productive: float
    checkpoint: int
    restart: int
    hold: int
    redone: float
    speed: float
    parts: int = 1

    @property
    def lost(self) -> float:
        """What was held and brought no progress that was kept."""
        return self.held - self.productive

    @classmethod
    def of(cls, record: Record, from_us: int, to_us: int) -> Work:
        """Account for the GPU-time between two instants."""
        rows = record.rows
        inside = np.maximum(np.minimum(rows.end_us, to_us) - np.maximum(rows.start_us, from_us), 0)

        def held(kind: int | None = None) -> int:
            chosen = slice(None) if kind is None else rows.kind == kind
            return exact_sum((rows.gpus * inside)[chosen])

        def clipped(gpu_time: Integers) -> float:
            """Sum the GPU-time of each row, as far as it falls inside."""
            elapsed = rows.elapsed_us
            cut = np.flatnonzero((inside > 0) & (inside < elapsed))
            whole = exact_sum(gpu_time[inside == elapsed])
            parts = gpu_time[cut] * (inside[cut] / elapsed[cut])
            return whole + math.fsum(parts) if len(cut) else whole

        progress_us = rows.read("progress_s", MICROSECONDS)
        gross_us = gross_progress(rows, progress_us)
        counted = rows.work_gpus(record.jobs)
        return cls(
            gpu_time_up(record, from_us, to_us),
            held(),
            clipped(counted * progress_us),
            held(CHECKPOINT),
            held(RESTART),
            held(HOLD),
            redone=clipped(counted * (gross_us - progress_us)),
            speed=clipped(np.where(rows.kind == RUN, rows.gpus * rows.elapsed_us - counted * gross_us, 0)),
            parts=record.parts,
        )


def gross_progress(rows: Rows, progress_us: Integers) -> Integers:
    """Progress of each run row in microseconds before any of it was lost; 0 for other rows.

    It is elapsed time times speed, rounded down. A stint that ends its job, by completing it or at a limit,
    may end up to a microsecond after its work is done: what that microsecond could have brought is not lost.
    """
    speed = rows.read("speed", SPEED_ONE)
    rounded_up = progress_us > _progress(rows.elapsed_us - 1, speed)
    gross = np.where(rounded_up, progress_us, _progress(rows.elapsed_us, speed))
    return np.where(rows.kind == RUN, gross, 0)


def _progress(elapsed_us: Integers, speed: Integers) -> Integers:
    """Elapsed time times speed in millionths, in two parts: one product passes 64 bits after 100 days."""
    seconds, rest = np.divmod(elapsed_us, MICROSECONDS)
    return seconds * speed + rest * speed // SPEED_ONE


def gpu_time_up(record: Record, from_us: int, to_us: int) -> int:
    """GPU-microseconds (in parts) of all nodes between two instants."""
    capacity = record.capacity
    time = np.maximum(to_us - np.maximum(capacity.time_us, from_us), 0)
    return exact_sum(capacity.gpus * time)
