"""Fields of objects within objects, as JSON and YAML hold them, each of which may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def at(value: Any, *path: str) -> Any:
    """Go down a path of fields; None where one is missing or what holds it is no object."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text_at(value: Any, *path: str) -> str:
    """Return a field as text, empty where it is missing or neither text nor a number."""
    found = at(value, *path)
    return found if isinstance(found, str) else str(found) if isinstance(found, int | float) else ""


def objects_at(value: Any, *path: str) -> Iterator[dict[str, Any]]:
    """Go through the objects of a list; nothing where the field is missing or no list."""
    found = at(value, *path)
    return (each for each in found if isinstance(each, dict)) if isinstance(found, list) else iter(())
