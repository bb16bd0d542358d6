"""Why a job cannot start now: a falsy answer with its reason."""

from __future__ import annotations

from collections.abc import Mapping


class Blocked:
    """The falsy result of a start or fit that failed; ``reason`` is one of ``REASONS``."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Blocked({self.reason!r})"


REASONS = ("no free GPUs", "fragmented", "quota", "type", "resources", "topology", "behind")
"""Too few free GPUs; enough but not in one gang; quota or limit; free but of another type; CPUs or memory;
a topology request; a job ahead of it closed the partition."""

BLOCKED: Mapping[str, Blocked] = {reason: Blocked(reason) for reason in REASONS}
"""One shared answer for each reason."""
