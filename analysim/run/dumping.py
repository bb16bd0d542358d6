"""Configuration models as their users would write them."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from analysim.config.fields import DurationUs
from analysim.units import to_seconds

_DURATION_RULE = get_args(DurationUs)[1]


def as_written(model: BaseModel) -> dict[str, Any]:
    """Dump a model as a user would write it, defaults included: durations in seconds.

    ``type(model).model_validate`` gives the same model back.
    """
    fields = type(model).model_fields
    return {name: write_value(getattr(model, name), field) for name, field in fields.items()}


def write_value(value: Any, field: FieldInfo) -> Any:
    """Give the value of a model's field as a user would write it."""
    return _written(value, _is_duration(field))


def _is_duration(field: FieldInfo) -> bool:
    return _DURATION_RULE in field.metadata or DurationUs in get_args(field.annotation)


def _written(value: Any, duration: bool) -> Any:
    if isinstance(value, BaseModel):
        return as_written(value)
    if isinstance(value, dict):
        return {key: _written(each, duration) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_written(each, duration) for each in value]
    return _plain(to_seconds(value)) if duration and value is not None else value


def _plain(seconds: float) -> float | int:
    return int(seconds) if seconds.is_integer() else seconds
