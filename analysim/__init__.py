"""AnalySIM: what would another scheduling policy have done with your GPU jobs?

``simulate``, ``compare`` and ``Run`` are loaded when they are first used: importing the package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysim._version import __version__

if TYPE_CHECKING:
    from analysim.study import Run, compare, simulate

__all__ = ["Run", "__version__", "compare", "simulate"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from analysim import study

        return getattr(study, name)
    raise AttributeError(f"module 'analysim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
