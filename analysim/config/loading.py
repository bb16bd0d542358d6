"""From what a user wrote, a file or ``--set key=value``, to a valid model or one clear line.

The files are YAML of one strict dialect: only ``true`` and ``false`` are booleans (``on``, ``off``, ``yes``
and ``no`` are text), ``1e3`` is a number, a number with leading zeros is text (a name such as ``007``), keys
and dates are text as written, and a key written twice is an error.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from analysim.config.run import RunConfig
from analysim.errors import ConfigError
from analysim.spelling import suggest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

SomeModel = TypeVar("SomeModel", bound=BaseModel)

_READ_AS = (
    ("null", re.compile(r"(?:~|null|Null|NULL|)$"), ("~", "n", "N", "")),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), tuple("tTfF")),
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"), tuple("-+0123456789")),
    (
        "float",
        re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"),
        tuple("-+.0123456789"),
    ),
)
"""The dialect: type, what a word of that type looks like, and its possible first characters."""

Resolvers = dict[str | None, list[tuple[str, re.Pattern[str]]]]

_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "int_parsing_size": "a smaller number",
    "tuple_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
    "literal_error": "{expected}",
    "string_too_short": "text",
    "too_short": "at least {min_length} of them",
}
"""What pydantic's error types ask for, in our words; filled in from the error's context."""


def _resolvers(base: Resolvers) -> Resolvers:
    """Add the dialect to what PyYAML tells apart by a word's first character."""
    resolvers = {first: list(rules) for first, rules in base.items()}
    for name, pattern, characters in _READ_AS:
        for first in characters:
            resolvers.setdefault(first, []).append((f"tag:yaml.org,2002:{name}", pattern))
    return resolvers


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = _resolvers({})

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a plain word", key_node.start_mark
                )
            if key_node.value in mapping:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key_node.value!r} is written twice", key_node.start_mark
                )
            mapping[key_node.value] = self.construct_object(value_node, deep=deep)
        return mapping


class Dumper(yaml.SafeDumper):
    """Writes YAML that ``load_yaml`` reads back as it was.

    Text that it, or a reader of YAML 1.1, could take for something else is quoted.
    """

    yaml_implicit_resolvers = _resolvers(yaml.SafeDumper.yaml_implicit_resolvers)

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal parts in full: a reader need not know anchors."""
        return True


def load_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping; keys are text as written.

    Raises ``ConfigError`` naming file, line and column for a file that is missing, no UTF-8 text,
    no YAML, or has a key twice.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: byte {error.start} is no UTF-8 text.", "Save the file as UTF-8."
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.", "Check the path.") from None
    data = _parse(text, str(path))
    if not isinstance(data, dict):
        found = "is empty" if data is None else f"holds {_shown(data)}"
        raise ConfigError(f"{path}: expected keys and values, but the file {found}.", "Write key: value.")
    return data


def _parse(text: str, file: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        problem = (error.problem or error.context or "no YAML").strip()
        if "'\\t'" in problem:
            raise ConfigError(f"{where}: a tab in the indentation.", "Indent with spaces.") from None
        remedy = "" if "twice" in problem else "Check the indentation and the quotes of this line."
        raise ConfigError(f"{where}: {problem}.", remedy or "Keep one of the two.") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{file}: no YAML text: {reason}.", "Check the file's contents.") from None


def validate(model: type[SomeModel], data: Any, file: str | Path) -> SomeModel:
    """Make a model of plain data.

    Raises ``ConfigError`` with one line: the first problem (unknown keys first, as they explain missing
    ones), its dotted key, the value, what was expected, and how many further problems there are.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = _problems(error, data)
    details, path = problems[0]
    message, remedy = _explain(model, data, path, details)
    more = len(problems) - 1
    further = f" ({more} more problem{'s' if more > 1 else ''} in it.)" if more else ""
    raise ConfigError(f"{file}: {message}{further}", remedy)


Place = tuple[str | int, ...]
"""Keys and list positions that lead to a value."""


def _problems(error: ValidationError, data: Any) -> list[tuple[list[ErrorDetails], Place]]:
    """Group the errors by the place in the data, unknown keys first.

    Alternatives of a union are one problem; the one that got furthest into the value is the one meant.
    """
    found: dict[Place, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        found.setdefault(_place(details, data), []).append(details)
    deepest = [path for path in found if not any(path == other[: len(path)] != other for other in found)]
    problems = [(found[path], path) for path in deepest]
    return sorted(problems, key=lambda problem: problem[0][0]["type"] != "extra_forbidden")


def _place(details: ErrorDetails, data: Any) -> Place:
    """Path to the value at fault, without the labels that pydantic adds for branches of a union."""
    path: list[str | int] = []
    value = data
    for step in details["loc"]:
        inside_list = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if inside_list or (isinstance(value, Mapping) and step in value):
            value = value[step]
        elif details["type"] != "missing" or step != details["loc"][-1]:
            continue
        path.append(step)
    return tuple(path)


def _explain(model: type[BaseModel], data: Any, path: Place, found: list[ErrorDetails]) -> tuple[str, str]:
    details = found[0]
    if details["type"] == "extra_forbidden":
        known = _keys_at(model, path[:-1])
        above = f" in {_dotted(path[:-1])}" if len(path) > 1 else ""
        return f"unknown key {path[-1]!r}{above}.", suggest(str(path[-1]), known)
    if details["type"] == "missing":
        return f"{_dotted(path)} is missing.", "Add it."
    value = data
    for step in path:
        value = value[step]
    what = _dotted(path) or "the whole"
    if details["type"] == "value_error":
        return f"{what}: {details['ctx']['error']}.", ""
    expected = " or ".join(dict.fromkeys(map(_expected, found)))
    remedy = ""
    if details["type"] == "string_type" and isinstance(value, (bool, int, float)):
        remedy = "Put it in quotes."
    elif details["type"] == "literal_error" and isinstance(value, str):
        remedy = suggest(value, re.findall(r"'([^']*)'", expected))
    return f"{what} is {_shown(value)}; expected {expected}.", remedy


def _expected(details: ErrorDetails) -> str:
    words = _EXPECTED.get(details["type"])
    if words is None:
        return details["msg"].removeprefix("Input should be ")
    return words.format(**details.get("ctx", {}))


def _dotted(path: Place) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."


def _keys_at(model: type[BaseModel], path: Place) -> list[str]:
    """Keys of the model that stands at a path of another's data."""
    standing: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, str) and standing is not None and step in standing.model_fields:
            standing = _model_in(standing.model_fields[step].annotation)
    return list(standing.model_fields) if standing is not None else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Find the model inside ``list[Model]``, ``dict[str, Model]`` or ``Model | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def load_run_config(path: str | Path) -> dict[str, Any]:
    """Read a run configuration's fields, checked but as written, so that flags may still replace them.

    Only ``trace`` may be missing. Raises ``ConfigError`` as ``load_yaml`` and ``validate`` do.
    """
    fields = load_yaml(path)
    validate(RunConfig, {"trace": "", **fields}, path)
    return fields


def apply_settings(fields: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Apply ``key=value`` settings, in order, to the fields of a run configuration; gives a new mapping.

    A key is a field (``seed``), a key in a field (``costs.checkpoint_s``), or an option of the policy
    (``policy.max_moves`` or just ``max_moves``), which the policy's own options judge. A value is read
    as YAML. Raises ``ConfigError`` for a setting without ``=``, an unknown group before the dot, and
    bad YAML.
    """
    result = dict(fields)
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ConfigError(f"--set {setting!r}: expected key=value.", "Write --set seed=7 or the like.")
        field, inner = _target(key)
        value = _parse(text.strip(), f"--set {key}")
        if not inner:
            result[field] = value
            continue
        group = result.get(field) or {}
        if not isinstance(group, Mapping):
            raise ConfigError(
                f"--set {key}: {field} is {_shown(group)}, no group of keys.", f"Write {field} as a mapping."
            )
        result[field] = {**group, inner: value}
    return result


def _target(key: str) -> tuple[str, str]:
    """Field that a setting's key is about, and the key inside it (empty: the field itself)."""
    known = RunConfig.model_fields
    head, _, inner = key.partition(".")
    groups = [name for name, field in known.items() if _is_group(field.annotation)]
    if not inner:
        return (head, "") if head in known else ("options", head)
    if head == "policy":
        return "options", inner
    if head not in groups:
        raise ConfigError(f"--set {key}: there is no group {head!r}.", suggest(head, ["policy", *groups]))
    return head, inner


def _is_group(annotation: Any) -> bool:
    return get_origin(annotation) is dict or _model_in(annotation) is not None
