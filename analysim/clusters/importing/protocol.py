"""What every importer offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysim.clusters.importing.found import Found
from analysim.clusters.importing.sources import Source


@dataclass(frozen=True)
class Importer:
    """A kind of source: its name on the command line, what it reads, and how a file is known and all are read.

    ``recognises`` is cheap, never raises, and tells of one file whether it is of this kind. ``read`` is given all files
    together and raises ``ConfigError``.
    """

    name: str
    title: str
    recognises: Callable[[Source], bool]
    read: Callable[[Sequence[Source]], Found]
