"""Objects of a YAML file one by one: its documents, and the items of those that are a list of objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import yaml

from analysim.errors import TraceError
from analysim.traces.streams import open_text
from analysim.yaml_keys import REMEDY, TopLevelKeys

_NULL = "tag:yaml.org,2002:null"
_LONGEST = 1 << 25
"""Characters in the largest object: twenty times what a Kubernetes server takes."""

_REMEDY = "Export it again as a whole."
_MARKER = re.compile(r"(?:---|\.\.\.)(?:\s|$)")
_DASH = re.compile(r"( *)-(?:\s|$)")
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_Role = Literal["document", "item", "rest"]


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader, with scalars as they are written: text, but for null. Readers know what they hold."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the loader's own way
        first: [each for each in resolvers if each[0] == _NULL]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }


def read_yaml_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Go through the objects of a YAML file, numbered from 1; scalars are text, null is None.

    A document that is a list, or an object with a list ``items``, gives its items, others give themselves.
    Documents and items are parsed one at a time, so that a file of any size needs the memory of its largest
    object (at most 32 MB of text); an anchor must stand in the same item as its aliases. Raises ``TraceError``
    with the line where the text is no such YAML.
    """
    number = 0
    for line, text, role in _Cutter(path).pieces():
        for value in _objects(_parse(path, line, text), role):
            if not isinstance(value, dict):
                shown = "nothing" if value is None else repr(value)[:40]
                raise TraceError(f"{path}, line {line}: {shown} stands where an object should.", "Check that place.")
            number += 1
            yield number, value


def _parse(path: Path, line: int, text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = line + (mark.line if mark else 0)
        what = getattr(error, "problem", None) or "a character that YAML does not allow"
        raise TraceError(f"{path}, line {where}: bad YAML ({what}).", _REMEDY) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise TraceError(f"{path}, line {line}: YAML that cannot be read.", _REMEDY) from error


def _objects(value: Any, role: _Role) -> list[Any]:
    """Return the objects in a piece: those of a list, those of ``items``, or the document itself."""
    if isinstance(value, list):
        return value
    if value is None or role == "rest":
        return []
    if role == "document" and isinstance(value, dict) and "items" in value:
        return value["items"] if isinstance(value["items"], list) else []
    return [value]


class _Cutter:
    """Cuts a file at its documents and at the items of their lists.

    What belongs to an item stands deeper than its dash, blocks of text too: so the cuts are sure.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.role: _Role = "document"
        self.indent = -1  # of the dashes of the items, once there is one
        self.listed = True  # whether a dash begins an item

    def pieces(self) -> Iterator[tuple[int, str, _Role]]:
        """Go through the pieces: number of the first line, text, and what it is."""
        with open_text(self.path) as stream:
            piece: list[str] = []
            start, size = 1, 0
            keys = TopLevelKeys()
            for number, line in enumerate(stream, start=1):
                if key := keys.repeated(line):
                    raise TraceError(f'{self.path}, line {number}: "{key}" comes twice in one document.', REMEDY)
                role = self._begun(line)
                if role is not None:
                    if size:
                        yield start, "".join(piece), self.role
                    self.role, start, size = role, number, 0
                    piece.clear()
                piece.append(line if not line.startswith("...") else "\n")
                size += len(line)
                if size > _LONGEST:
                    raise TraceError(
                        f"{self.path}, line {start}: one object has more than {_LONGEST:,} characters.",
                        "Export it as JSON (-o json).",
                    )
            if size:
                yield start, "".join(piece), self.role

    def _begun(self, line: str) -> _Role | None:
        """Tell what a line begins, if anything."""
        if _MARKER.match(line):
            self.indent, self.listed = -1, True
            return "document"
        dash = _DASH.match(line) if self.listed or self.role == "item" else None
        if dash and self.indent in (-1, len(dash[1])):
            self.indent = len(dash[1])
            return "item"
        if line[:1] in ("", " ", "\t", "\n", "\r", "#", "-"):
            return None
        self.listed = line.startswith(("items:", '"items":'))
        if self.role == "item":
            self.indent = -1
            return "rest"
        return None
