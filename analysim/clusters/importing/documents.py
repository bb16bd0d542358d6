"""Objects of Kubernetes as JSON or YAML: one, several, or lists of them; every scalar is text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from analysim.clusters.importing.sources import Source
from analysim.errors import ConfigError
from analysim.yaml_keys import REMEDY, TopLevelKeys

Object = dict[str, Any]

_API_VERSION = re.compile(r'^[ \t\-\[{,"]*apiVersion"?\s*:', re.MULTILINE)
_KIND = re.compile(r'(?:^|[\s{,])"?kind"?\s*:', re.MULTILINE)
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|k|[KMGTPE]i|[MGTPE]|[eE][0-9]{1,2})?")
_FACTORS = {"": 1.0, "m": 1e-3, "k": 1e3, **{unit: 1000.0 ** (n + 2) for n, unit in enumerate("MGTPE")}}
_FACTORS |= {f"{unit}i": 1024.0 ** (n + 1) for n, unit in enumerate("KMGTPE")}
_DEEPEST = 3

YAML_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Scalars stay text: a label ``no`` or ``1e3`` means what it says."""


def has_objects(source: Source) -> bool:
    """Whether a file looks like objects of Kubernetes; it may still be broken."""
    return bool(_API_VERSION.search(source.text) and _KIND.search(source.text))


def read_objects(source: Source) -> list[Object]:
    """Read all objects of a file, lists taken apart. Raises ``ConfigError`` for what is no JSON or YAML."""
    objects: list[Object] = []
    for document in read_documents(source):
        if document is not None:
            objects.extend(_taken_apart(source, document, 0))
    return objects


def read_documents(source: Source) -> list[Any]:
    """Read the documents of a file, JSON or YAML. Raises ``ConfigError`` for what is neither."""
    if source.text.lstrip()[0] in "{[":
        return list(_json(source))
    keys = TopLevelKeys()
    for number, line in source.numbered():
        if key := keys.repeated(line):
            raise source.error(number, f'"{key}" comes twice in one document.', REMEDY)
    try:
        return list(yaml.load_all(source.text, Loader=YAML_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = (error.problem or error.context or "it cannot be read").strip()
        raise source.error(mark.line + 1 if mark else None, f"no YAML: {problem}.", "Is the file whole?") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise source.error(None, f"no YAML: {str(error).splitlines()[0]}.", "Check the file.") from None


def _json(source: Source) -> Iterator[Any]:
    """Values that follow one another, as ``kubectl get -o json`` of several commands writes them."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    position, text = 0, source.text
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            line = text.count("\n", 0, error.pos) + 1
            raise source.error(line, f"no JSON: {error.msg}.", "Is the file whole?") from None
        except RecursionError:
            raise source.error(None, "JSON nested too deeply.", "Check the file.") from None
        yield value


def _taken_apart(source: Source, value: Any, depth: int) -> Iterator[Object]:
    if isinstance(value, list):
        items = value
    elif isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and "items" in value:
        items = value["items"] if isinstance(value["items"], list) else []
    elif isinstance(value, dict) and isinstance(value.get("kind"), str):
        yield value
        return
    else:
        raise source.error(None, "something that is no object with a kind.", "Give the output of kubectl get -o yaml.")
    if depth > _DEEPEST:
        raise source.error(None, "lists nested too deeply.", "Check the file.")
    for item in items:
        yield from _taken_apart(source, item, depth + 1)


def name_of(source: Source, thing: Object) -> str:
    """The name in an object's metadata. Raises ``ConfigError`` where it has none."""
    name = mapping(thing, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise source.error(None, f"a {thing['kind']} without a name.", "Give the whole object.")
    return name


def mapping(thing: Any, *keys: str) -> Object:
    """A mapping inside a mapping; empty where it is not there."""
    for key in keys:
        thing = thing.get(key) if isinstance(thing, dict) else None
    return thing if isinstance(thing, dict) else {}


def sequence(thing: Any, key: str) -> list[Any]:
    """A list inside a mapping; empty where it is not there."""
    value = thing.get(key) if isinstance(thing, dict) else None
    return value if isinstance(value, list) else []


def quantity(source: Source, what: str, value: Any) -> float:
    """A Kubernetes quantity (``8``, ``500m``, ``64Gi``) as a number. Raises ``ConfigError``."""
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        raise bad_quantity(source, what, value)
    unit = match[2] or ""
    return float(match[1]) * (_FACTORS[unit] if unit in _FACTORS else 10.0 ** int(unit[1:]))


def whole_quantity(source: Source, what: str, value: Any) -> int:
    """A quantity that counts GPUs. Raises ``ConfigError``."""
    number = quantity(source, what, value)
    if number != int(number) or number > 10**9:
        raise bad_quantity(source, what, value)
    return int(number)


def bad_quantity(source: Source, what: str, value: Any) -> ConfigError:
    """Make the error for a quantity that is none."""
    return source.error(None, f"{what} is {value!r}, no quantity.", "Correct it; quantities are 8, 500m or 64Gi.")
