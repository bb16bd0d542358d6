"""The engine's events on SimPy's heap: light, with a phase as priority, and one shared callback list a kind.

A subclass of ``simpy.Event`` that is born triggered is SimPy's own pattern (``Timeout`` is one).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop
from typing import Any

from simpy import Environment, Event

FINISH, QUOTA, WITHDRAW, ARRIVE, RELAX, WAKE, TICK = 0, 3, 4, 5, 6, 7, 8
"""Order inside an instant; 1 and 2 are kept for repairs and failures of nodes."""


class Occurrence(Event):
    """Something that happens at an instant, carrying what it concerns."""

    _ok = True
    _value = None

    def __init__(self, callbacks: list[Callable[[Any], None]], what: Any) -> None:
        self.callbacks = callbacks
        self.what = what


class Clock(Environment):
    """SimPy's environment, which can also step through all events of an instant at once."""

    def step_instant(self, now: float) -> int:
        """Apply every event of the instant, those that it brings about at no delay included; return how many.

        As ``Environment.step`` in a loop, without what that checks for processes: ours are callbacks that raise.
        """
        queue = self._queue
        count = 0
        while queue and queue[0][0] == now:
            self._now, _, _, event = heappop(queue)
            callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]  # as SimPy marks it
            for callback in callbacks:
                callback(event)
            count += 1
        return count
