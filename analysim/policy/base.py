"""The base class that every policy derives from, and the base of its options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from analysim.config.fields import DurationUs, Model

if TYPE_CHECKING:
    from analysim.plan.plan import Plan

Knowledge = Literal["none", "history", "estimate", "oracle", "record"]
"""What a policy may know of durations; the plan enforces it and every table shows it. "record" is for what repeats
the past: it also sees when and where jobs really started."""

Attention = Literal["all", "news", "room"]
"""For which arrivals there is a pass: "all"; "news": not for a job that arrives behind a waiting one with the same
request (what time alone changes, the policy looks at by ``wake_at``); "room": nor for one that could not start, as
all the policy does is to start what fits, in an order that time does not change, closing partitions as it goes."""

Duration = DurationUs
"""An option given as seconds or ``1h30m``, held as integer microseconds."""


class Options(Model):
    """Options of a policy: a pydantic model, set by ``--set policy.name=value``, a file or Python."""


class Policy(ABC):
    """One scheduling policy. Subclass it, name it, and write ``schedule``.

    ``name`` is what ``--policy`` and the tables say, ``knowledge`` what it may know of durations, ``source`` the
    paper or manual it models, ``idle_passes`` whether it wants a pass when nothing waits, ``attention`` which
    arrivals it wants one for.
    """

    name: ClassVar[str] = ""
    knowledge: ClassVar[Knowledge] = "none"
    source: ClassVar[str] = ""
    idle_passes: ClassVar[bool] = False
    attention: ClassVar[Attention] = "all"
    Options: ClassVar[type[Options]] = Options

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options: Any = type(self).Options.model_validate(dict(options or {}))

    def begin(self, plan: Plan) -> None:  # noqa: B027 - a hook that most policies leave empty
        """Prepare for a run; called once, before the first pass."""

    @abstractmethod
    def schedule(self, plan: Plan) -> None:
        """Decide; called once for each instant at which something changed."""
