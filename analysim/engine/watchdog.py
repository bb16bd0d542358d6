"""Stops a policy that loops for ever inside one pass."""

from __future__ import annotations

import ctypes
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from analysim.errors import PolicyFailure

if TYPE_CHECKING:
    from analysim.engine.simulation import Simulation


class PassTookTooLong(PolicyFailure):
    """A pass took longer than the run's ``pass_seconds``."""

    def __init__(self, message: str = "one pass took longer than pass_seconds; does it loop for ever?") -> None:
        super().__init__(message, "Set pass_seconds higher if it is only slow.")


class Watchdog:
    """While entered, raises ``PassTookTooLong`` in the entering thread when one pass lasts too long.

    It compares the number of passes and events from time to time, so a run pays nothing for it.
    """

    def __init__(self, simulation: Simulation, limit_s: float) -> None:
        self._simulation = simulation
        self._limit_s = limit_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pass-watchdog", daemon=True)
        self._watched = threading.get_ident()

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        seen = (-1, -1)
        while not self._done.wait(self._limit_s):
            now = (self._simulation.passes, self._simulation.events)
            if now == seen:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._watched), ctypes.py_object(PassTookTooLong)
                )
                return
            seen = now
