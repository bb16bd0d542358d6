"""What every reader offers, and what it is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property
from itertools import dropwhile
from pathlib import Path

from analysim.traces.log import Log
from analysim.traces.streams import read_head


@dataclass(frozen=True)
class Sample:
    """The beginning of a file, from which readers tell their own: at most 64 KiB of text, without its BOM.

    ``whole`` tells whether that is all of the file.
    """

    path: Path
    text: str
    whole: bool

    @cached_property
    def lines(self) -> list[str]:
        """Lines that are complete, without their ends, from the first that is not blank."""
        lines = self.text.splitlines()
        complete = lines if self.whole or self.text.endswith(("\n", "\r")) else lines[:-1]
        return list(dropwhile(lambda line: not line.strip(), complete))

    @cached_property
    def header(self) -> list[str]:
        """Fields of the first line between commas, without blanks and quotation marks around them."""
        return [name.strip().strip('"') for name in self.lines[0].split(",")] if self.lines else []

    @property
    def begins_json(self) -> bool:
        """Whether the text begins as a JSON object or list does."""
        return self.text.lstrip()[:1] in ("{", "[")

    def mentions(self, *keys: str) -> bool:
        """Whether each key stands in the text as JSON (``"key":``) or YAML (``key:``) writes it."""
        return all(f"{json.dumps(key)}:" in self.compact or f"{key}:" in self.text for key in keys)

    @cached_property
    def compact(self) -> str:
        """The text without blanks before colons."""
        return self.text.replace('" :', '":')


def take_sample(path: Path) -> Sample:
    """Read the beginning of a file as readers look at it; bytes that are no UTF-8 are replaced.

    Raises ``TraceError`` where it cannot be read.
    """
    head, whole = read_head(path)
    return Sample(path, head.decode("utf-8-sig", errors="replace"), whole)


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about a file; naive times are of ``timezone`` (None: UTC, which a note says)."""

    timezone: tzinfo | None = None


@dataclass(frozen=True)
class Format:
    """A kind of file: its name (for ``--trace-format``), what it is, and how it is known and read.

    ``recognises`` must be cheap, never raise, and be sure: two formats that claim one file are a mistake.
    ``read`` gets the path and raises ``TraceError``; it reads the file as a stream (``traces.streams``).
    """

    name: str
    title: str
    recognises: Callable[[Sample], bool]
    read: Callable[[Path, ReadOptions], Log]
