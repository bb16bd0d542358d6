"""What the commands say: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any


class Talk:
    """Lines for people on stderr; ``quiet`` keeps all but warnings of failure to itself."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def say(self, line: str) -> None:
        """Write a line unless the user asked for quiet."""
        if not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def warn(self, line: str) -> None:
        """Write a line that starts with ``warning:`` unless the user asked for quiet."""
        self.say(f"warning: {line}")

    def complain(self, line: str) -> None:
        """Write a line that starts with ``error:``, quiet or not."""
        print(f"error: {line}", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Write one JSON value to stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(rows: Sequence[Sequence[str]], *, header: bool = True, left: int = 1) -> None:
    """Write aligned columns to stdout: the first ``left`` of them to the left, the others to the right.

    With ``header`` the first row is underlined.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
        if header and number == 0:
            print("  ".join("-" * width for width in widths))
