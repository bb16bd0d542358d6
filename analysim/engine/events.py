"""The engine's events on SimPy's heap: light, with a phase as priority, and one shared callback list a kind.

A subclass of ``simpy.Event`` that is born triggered is SimPy's own pattern (``Timeout`` is one).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy import Event

FINISH, QUOTA, WITHDRAW, ARRIVE, WAKE, TICK = 0, 3, 4, 5, 6, 7
"""Order inside an instant; 1 and 2 are kept for repairs and failures of nodes."""


class Occurrence(Event):
    """Something that happens at an instant, carrying what it concerns."""

    _ok = True
    _value = None

    def __init__(self, callbacks: list[Callable[[Any], None]], what: Any) -> None:
        self.callbacks = callbacks
        self.what = what
