"""Keys of YAML documents that come twice: objects that follow one another without the line between them."""

from __future__ import annotations

import re

_KEY = re.compile(r"""(["']?)([A-Za-z_][\w./-]*)\1\s*:(?:\s|$)""")
_MARKER = re.compile(r"(?:---|\.\.\.)(?:\s|$)")

REMEDY = "Put --- between two objects, on a line of its own."


class TopLevelKeys:
    """Keys at the beginning of lines, of the document in which the lines so far ended.

    YAML parsers take the last of two equal keys: the objects before it would be lost without a word.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def repeated(self, line: str) -> str | None:
        """Go on to a line; return the key that it repeats."""
        if line[:1] in ("", " ", "\t", "\n", "\r", "#"):
            return None
        if _MARKER.match(line):
            self._seen.clear()
            return None
        match = _KEY.match(line)
        if match is None:
            return None
        if match[2] in self._seen:
            return match[2]
        self._seen.add(match[2])
        return None
