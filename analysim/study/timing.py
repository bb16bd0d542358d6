"""What a run took of this machine: wall times, memory, and on which software. Never part of its result."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from analysim._version import __version__

_LIBRARIES = ("matplotlib", "numpy", "pandas", "pydantic", "simpy")


class Stopwatch:
    """Wall seconds by name of the step, in the order of the steps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timing(self, step: str) -> Iterator[None]:
        """Add the wall time of the block to ``step``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - began

    def report(self) -> dict[str, Any]:
        """Say what stands in ``timing.json``."""
        return {
            "seconds": {step: round(spent, 6) for step, spent in self.seconds.items()},
            "peak_memory_mb": peak_memory_mb(),
            "host": {"name": platform.node(), "system": platform.platform(), "cpus": os.cpu_count()},
            "versions": {
                "analysim": __version__,
                "python": platform.python_version(),
                **{library: version(library) for library in _LIBRARIES},
            },
            "working_directory": str(Path.cwd()),
        }


def peak_memory_mb() -> float | None:
    """Most memory this process has held so far, in 10^6 bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1_024) / 1e6, 1)
