"""What the user may have meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(name: str, known: Iterable[str], limit: int = 12) -> str:
    """Give the remedy for an unknown name: the closest known one, else the known ones (at most ``limit``)."""
    names = list(known)
    close = get_close_matches(name, names, n=1) or [each for each in names if each.lower() == name.lower()]
    if close:
        return f"Did you mean {close[0]!r}?"
    if not names:
        return "There are none to choose from."
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"Known: {', '.join(names[:limit])}{more}."
