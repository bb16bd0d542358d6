"""Field types that the configuration models share: durations and strict base model."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from analysim.errors import UserError
from analysim.units import seconds


class Model(BaseModel):
    """Base of everything a user writes by hand: unknown keys are errors, numbers are finite, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


LONGEST_US = 1 << 53
"""Durations are below 285 years, as in traces: the longest that are exact to the microsecond in seconds."""


def _duration(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("expected a duration such as 90, 1h30m or 7d")
    try:
        microseconds = seconds(value)
    except (UserError, OverflowError) as error:
        raise ValueError(f"{value!r} is not a duration; write 90 (seconds), 1h30m or 7d") from error
    if microseconds < 0:
        raise ValueError("a duration may not be negative")
    if microseconds >= LONGEST_US:
        raise ValueError(f"{value!r} is a duration of 285 years or more; write a shorter one")
    return microseconds


DurationUs = Annotated[int, BeforeValidator(_duration)]
"""A duration written as seconds or ``1h30m``, held as integer microseconds."""
