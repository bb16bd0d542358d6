"""Records of a JSON file one by one, so that a file of any size needs the memory of its largest record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from analysim.errors import TraceError
from analysim.traces.streams import open_text

_AT_ONCE = 1 << 18
"""Characters read at a time; a record that is longer makes the next read longer."""

_LONGEST = 1 << 27
"""Characters in the largest value that is taken for a record: more is a damaged file."""

_CUT = 32
"""Characters at the end of what was read that may be half a word or half a number."""

_BLANK = re.compile(r"[ \t\r\n]*")
_HALF_PAIR = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_REMEDY = "Export it again as a whole."


def read_records(path: Path, name: str | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Go through the objects of the list ``name`` in a JSON object, or of a JSON list, numbered from 1.

    Only one record is in memory at a time; what else the object holds is checked and left out. Raises
    ``TraceError`` where the file is no such JSON, ends too early, or lists something other than objects, with
    the number of the record and its line.
    """
    with open_text(path) as text:
        source = _Source(path, text)
        found = False
        opening = source.peek()
        if opening == "[":
            found = True
            yield from _numbered(source)
        elif opening == "{":
            for key in source.members():
                if key == name and source.peek() == "[" and not found:
                    found = True
                    yield from _numbered(source)
                else:
                    source.skip()
        if opening not in ("[", "{"):
            raise source.error("this is no JSON object or list", "Name a JSON file.")
        if source.peek():
            raise source.error("there is text after the end of the JSON", "Keep one JSON value in the file.")
        if not found:
            what = "is no JSON list" if name is None else f'has no list "{name}"'
            raise TraceError(f"{path} {what}.", "Check which file or format this is.")


def _numbered(source: _Source) -> Iterator[tuple[int, dict[str, Any]]]:
    for value in source.items(step=1):
        if not isinstance(value, dict):
            raise source.error(f"{json.dumps(value)[:40]} is no object", "Each record is written {...}.")
        yield source.record, value
    source.record = 0


class _Source:
    """A JSON text of which a window is in memory, and the place in it that was reached.

    ``record`` is the number of the record that is being read, 0 outside of the records.
    """

    def __init__(self, path: Path, text: TextIO) -> None:
        self.path = path
        self.text = text
        self.window = ""
        self.place = 0
        self.ended = False
        self.lines = 1  # number of the window's first line
        self.record = 0
        self.decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """Return the next character that is no blank; nothing at the end of the file."""
        while True:
            match = _BLANK.match(self.window, self.place)
            self.place = match.end() if match else self.place
            if self.place < len(self.window):
                return self.window[self.place]
            if self.ended:
                return ""
            self._read_on()

    def expect(self, *choices: str) -> str:
        """Pass over one of some characters and return it."""
        found = self.peek()
        if found in choices and found:
            self.place += 1
            return found
        raise self.cut_off() if not found else self.error(f"{' or '.join(choices)} is missing")

    def members(self) -> Iterator[str]:
        """Go through the keys of the object that begins here; the caller passes over each value."""
        self.expect("{")
        if self.peek() == "}":
            self.expect("}")
            return
        while True:
            if self.peek() not in ("", '"'):
                raise self.error('a key in "..." is missing')
            key = self.value()
            self.expect(":")
            yield str(key)
            if self.expect(",", "}") == "}":
                return

    def items(self, step: int = 0) -> Iterator[Any]:
        """Go through the values of the list that begins here; each adds ``step`` to the number of the record."""
        self.expect("[")
        if self.peek() == "]":
            self.expect("]")
            return
        while True:
            self.record += step
            yield self.value()
            if self.expect(",", "]") == "]":
                return

    def skip(self) -> None:
        """Pass over a value."""
        if self.peek() == "[":
            for _ in self.items():
                pass
        else:
            self.value()

    def value(self) -> Any:
        """Read the value that begins here, however long it is."""
        if not self.peek():
            raise self.cut_off()
        while True:
            try:
                value, end = self.decode(self.window, self.place)
            except RecursionError:
                raise self.error("lists or objects are nested too deeply") from None
            except ValueError as error:
                if not self._may_be_half(error):
                    raise self.error(_told(error), at=getattr(error, "pos", self.place)) from None
                if self.ended:
                    raise self.cut_off() from None
            else:
                if self.ended or isinstance(value, str | dict | list) or end + _CUT <= len(self.window):
                    return self._passed(value, end)
            self._read_on()

    def _may_be_half(self, error: ValueError) -> bool:
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos + _CUT > len(self.window)

    def _passed(self, value: Any, end: int) -> Any:
        """Go on behind a value; half of a pair of escapes, which is no character, becomes U+FFFD in it."""
        start, self.place = self.place, end
        for escape in ("\\ud", "\\uD"):
            if self.window.find(escape, start, end) >= 0:
                return self.decode(_HALF_PAIR.sub(_whole, self.window[start:end]))[0]
        return value

    def _read_on(self) -> None:
        """Drop what was passed and read as much again as is left, so that long values are read in few steps."""
        self.lines += self.window.count("\n", 0, self.place)
        self.window = self.window[self.place :]
        self.place = 0
        if len(self.window) > _LONGEST:
            raise self.error(f"one value has more than {_LONGEST:,} characters")
        more = self.text.read(max(_AT_ONCE, len(self.window)))
        self.ended = not more
        self.window += more

    def cut_off(self) -> TraceError:
        """Make the error for a file that ends before its JSON does."""
        where = f"at record {self.record}" if self.record else "outside of the records"
        return TraceError(f"{self.path}: the file ends too early, {where}.", _REMEDY)

    def error(self, what: str, remedy: str = _REMEDY, at: int | None = None) -> TraceError:
        """Make an error that names the record and the line of a place in the window."""
        line = self.lines + self.window.count("\n", 0, self.place if at is None else at)
        record = f", record {self.record}" if self.record else ""
        return TraceError(f"{self.path}{record}, line {line}: {what}.", remedy)


def _told(error: ValueError) -> str:
    return f"bad JSON ({error.msg})" if isinstance(error, json.JSONDecodeError) else "a number has too many digits"


def _whole(match: re.Match[str]) -> str:
    return "\\ufffd" if match["half"] else match[0]
