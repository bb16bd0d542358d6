"""Valid texts with characters deleted, inserted or replaced: what a reader must survive."""

from __future__ import annotations

import random
from pathlib import Path

from analysim.errors import UserError
from analysim.traces import read_trace


def mangle(text: str, seed: int) -> str:
    """Change one to six places of a text."""
    draw = random.Random(seed)
    changed = list(text)
    for _ in range(draw.randint(1, 6)):
        place = draw.randrange(len(changed) + 1)
        kind = draw.choice(("cut", "insert", "replace", "delete"))
        if kind == "cut" and draw.random() < 0.3:
            changed = changed[: place or 1]
        elif kind == "insert":
            changed.insert(place, draw.choice(',;"\'\t\n\r 0-.e=[]x\0é'))
        elif place < len(changed):
            changed[place : place + 1] = [] if kind == "delete" else [draw.choice(',"\t\n9-ex')]
    return "".join(changed)


def check_mangled(text: str, seed: int, file: Path, name: str) -> None:
    """Read a mangled text: a trace whose account balances, or an error for its user."""
    file.write_text(mangle(text, seed), encoding="utf-8", newline="")
    check_reading(file, name)


def check_reading(file: Path, name: str) -> None:
    """Read a file: a trace whose account balances, or one line for its user."""
    try:
        trace = read_trace(file, format=name)
    except UserError as error:
        assert str(error)
        assert "\n" not in str(error)
    else:
        assert trace.rows == len(trace.frame) + sum(trace.set_aside.values())
