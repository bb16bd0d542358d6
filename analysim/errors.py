"""Every error a user can meet: one clear line, a remedy, and the exit code it deserves."""

from __future__ import annotations


class AnalysimError(Exception):
    """A failure told in one line, with what to do about it.

    ``exit_code`` is 1 for a failed run and 2 for a mistake in what the user wrote.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


class UserError(AnalysimError):
    """Something the user wrote is wrong: a flag, a name, a value."""

    exit_code = 2


class TraceError(UserError):
    """A trace file cannot be read as the schema says."""


class ConfigError(UserError):
    """A run configuration or a topology file does not hold together."""


class ShelfError(UserError):
    """A name is on no shelf, or means two different things."""


class PolicyFileError(UserError):
    """A policy file cannot be loaded, or its options are wrong."""


class RunFolderError(AnalysimError):
    """A run folder cannot be written, or is not a finished run."""


class PolicyFailure(AnalysimError):
    """A policy raised, looped or returned nonsense while it was scheduling."""


class IllegalDecision(PolicyFailure):
    """A policy asked for something that the rules forbid.

    Raised by the plan at the call, so that the traceback ends in the author's own line.
    """

    def __init__(self, policy: str, time_us: int, job: object, why: str) -> None:
        super().__init__(f"policy {policy!r} at {time_us / 1e6:.6f} s, job {job}: {why}")
        self.policy = policy
        self.time_us = time_us
        self.job = job
        self.why = why


class KnowledgeError(PolicyFailure, AttributeError):
    """A policy asked for a duration that its declared ``knowledge`` does not allow.

    It is an ``AttributeError`` too, so that ``hasattr(job, "duration")`` is false for such a policy.
    """


class InvariantError(AnalysimError):
    """The engine's own books disagree: a defect of the simulator, not of the input."""


class MissingExtraError(UserError):
    """An optional dependency is needed; the remedy names the extra that brings it."""
