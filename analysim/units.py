"""Integers inside: microseconds, thousandths, megabytes; seconds and text for people at the edges."""

from __future__ import annotations

import math
import re
from datetime import tzinfo
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo

from analysim.errors import UserError

MICROSECONDS = 1_000_000
"""Microseconds in a second."""

SPEED_ONE = 1_000_000
"""A speed of 1.0 in millionths."""

FOREVER = 1 << 62
"""Later than every event, in microseconds."""

GPU_MILLI = 1_000
"""Thousandths in one whole GPU."""

CPU_MILLI = 1_000
"""Thousandths in one CPU."""

MEGABYTES = 1_024
"""Megabytes in one gigabyte, as Slurm and Kubernetes (Mi, Gi) count them."""

_UNIT_US = {
    "us": 1,
    "ms": 1_000,
    "s": MICROSECONDS,
    "m": 60 * MICROSECONDS,
    "min": 60 * MICROSECONDS,
    "h": 3_600 * MICROSECONDS,
    "d": 86_400 * MICROSECONDS,
    "w": 604_800 * MICROSECONDS,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|min|s|m|h|d|w)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def seconds(value: float | int | str) -> int:
    """Turn seconds (or a duration such as ``"1h30m"``) into integer microseconds.

    Raises ``UserError`` when the text is no duration.
    """
    if isinstance(value, str):
        return parse_duration(value)
    return round(value * MICROSECONDS)


def to_seconds(time_us: int) -> float:
    """Turn integer microseconds into seconds; exact to the microsecond below 285 years."""
    return time_us / MICROSECONDS


def parse_duration(text: str) -> int:
    """Read ``"90"`` (seconds), ``"1.5h"``, ``"1h30m"`` or ``"7d"`` as integer microseconds.

    Raises ``UserError`` when the text is no duration.
    """
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return _scaled(stripped, MICROSECONDS)
    position = 0
    total = 0
    for match in _PART.finditer(stripped):
        if stripped[position : match.start()].strip():
            break
        total += _scaled(match[1], _UNIT_US[match[2]])
        position = match.end()
    if position == 0 or stripped[position:].strip():
        raise UserError(
            f"{text!r} is not a duration.",
            "Write seconds (90) or units w d h m s ms, for example 1h30m or 7d.",
        )
    return total


def parse_timezone(name: str) -> tzinfo:
    """Find a time zone by its name, such as ``Europe/Berlin``. Raises ``UserError``."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UserError(f"{name!r} is not a time zone.", "Write its name, as in Europe/Berlin or UTC.") from error


def _scaled(number: str, unit_us: int) -> int:
    try:
        return int((Decimal(number) * unit_us).to_integral_value())
    except InvalidOperation as error:  # pragma: no cover - the patterns admit numbers only
        raise UserError(f"{number!r} is not a number.") from error


def format_duration(time_us: int) -> str:
    """Write microseconds that somebody chose, as one says them: ``45 s``, ``3 h 20 min``, ``12.5 days``."""
    total_s = time_us / MICROSECONDS
    sign = "-" if total_s < 0 else ""
    total_s = abs(total_s)
    if total_s < 120:
        return f"{sign}{total_s:.3g} s"
    if total_s < 2 * 3_600:
        return f"{sign}{total_s / 60:.3g} min"
    if total_s < 2 * 86_400:
        hours, rest = divmod(round(total_s / 60), 60)
        return f"{sign}{hours} h {rest} min" if rest else f"{sign}{hours} h"
    return f"{sign}{total_s / 86_400:.1f} days"


def format_seconds(seconds: float) -> str:
    """Write seconds that were measured, with three digits: ``45.2 s``, ``34.1 min``, ``3.34 h``, ``12.5 d``."""
    for most, unit, length in ((120, "s", 1), (7_200, "min", 60), (172_800, "h", 3_600)):
        if abs(seconds) < most:
            return f"{seconds / length:.3g} {unit}"
    return f"{format_number(seconds / 86_400)} d"


def format_number(number: float) -> str:
    """Write a number with three digits, or all of them before the point: ``0.0123``, ``4.5``, ``12,345``."""
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


def format_ratio(ratio: float) -> str:
    """Write how many times as much something is: ``×0.347``, ``×12``; empty for NaN."""
    return "" if math.isnan(ratio) else f"×{format_number(ratio)}"
