"""Configuration models as their users would write them."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from analysim.config.fields import DurationUs
from analysim.units import to_seconds

_DURATION_RULE = get_args(DurationUs)[1]


def as_written(model: BaseModel, *, defaults: bool = True) -> dict[str, Any]:
    """Dump a model as a user would write it: durations in seconds.

    ``type(model).model_validate`` gives the same model back. Without ``defaults``, fields that have their
    default are left out, and those that must be given come first.
    """
    fields = list(type(model).model_fields.items())
    if not defaults:
        fields = [(name, field) for name, field in fields if getattr(model, name) != field.get_default()]
        fields.sort(key=lambda item: not item[1].is_required())
    return {name: write_value(getattr(model, name), field, defaults=defaults) for name, field in fields}


def write_value(value: Any, field: FieldInfo, *, defaults: bool = True) -> Any:
    """Give the value of a model's field as a user would write it."""
    return _written(value, _is_duration(field), defaults)


def type_written(field: FieldInfo) -> str:
    """Name the type of a model's field as a user would: ``duration``, ``boolean``, the choices."""
    return _type_name(field.annotation, _is_duration(field))


def _type_name(annotation: Any, duration: bool) -> str:
    kinds = get_args(annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(map(str, kinds))
    if get_origin(annotation) in (tuple, list):
        return f"list of {_type_name(kinds[0], duration)}"
    if annotation is DurationUs:
        return "duration"
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_type_name(kind, duration) for kind in kinds)
    names = {bool: "boolean", int: "duration" if duration else "integer", float: "number", str: "text"}
    return names.get(annotation, "none" if annotation is NoneType else str(getattr(annotation, "__name__", annotation)))


def _is_duration(field: FieldInfo) -> bool:
    return _DURATION_RULE in field.metadata or DurationUs in get_args(field.annotation)


def _written(value: Any, duration: bool, defaults: bool) -> Any:
    if isinstance(value, BaseModel):
        return as_written(value, defaults=defaults)
    if isinstance(value, dict):
        return {key: _written(each, duration, defaults) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_written(each, duration, defaults) for each in value]
    return _plain(to_seconds(value)) if duration and value is not None else value


def _plain(seconds: float) -> float | int:
    return int(seconds) if seconds.is_integer() else seconds
