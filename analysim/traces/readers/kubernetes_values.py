"""Values of Kubernetes objects: quantities such as ``500m`` and ``64Gi``, dates, conditions."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import Any

from analysim.traces.log import UNKNOWN
from analysim.traces.moments import microseconds_of
from analysim.traces.readers.fields import objects_at

_QUANTITY = re.compile(
    r"\+?([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE]([+-]?[0-9]{1,2})|([numkMGTPE]|[KMGTPE]i)?)"
)
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIXES = {suffix: Decimal(1000) ** power for power, suffix in enumerate(_DECIMAL, -3)}
_SUFFIXES |= {suffix: Decimal(1024) ** power for power, suffix in enumerate(_BINARY, 1)}
_LARGEST = Decimal(1 << 60)
_MOST = 1 << 20


def read_quantity(value: Any) -> Decimal | None:
    """Read ``2``, ``1e3``, ``500m`` or ``64Gi``; None where it is no quantity, negative, or beyond 2^60.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
    """
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool):
        return None
    number = Decimal(match[1])
    number *= Decimal(10) ** int(match[2]) if match[2] else _SUFFIXES[match[3] or ""]
    return number if number <= _LARGEST else None


def read_milli(value: Any) -> int | None:
    """Read a quantity in thousandths, rounded up; None where it is none or beyond 2^40 thousandths."""
    number = read_quantity(value)
    if number is None or number > 1 << 30:
        return None
    return int((number * 1000).to_integral_value(ROUND_CEILING))


def read_bytes(value: Any) -> int | None:
    """Read a quantity of bytes, rounded up; None where it is none."""
    number = read_quantity(value)
    return None if number is None else int(number.to_integral_value(ROUND_CEILING))


def read_count(value: Any, missing: int | None = None) -> int | None:
    """Read a whole number from 0 to 2^20, ``missing`` where there is no value; None where it is no such number."""
    if value is None:
        return missing
    text = str(value).strip()
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", text):
        return None
    return int(text) if int(text) <= _MOST else None


def read_moment(value: Any) -> int:
    """Read an RFC 3339 date as microseconds since 1970; UNKNOWN where it is none, or not after 1970."""
    if not isinstance(value, str) or len(value) < 10:
        return UNKNOWN
    try:
        since = microseconds_of(value.strip())
    except ValueError:
        return UNKNOWN
    return since if since > 0 else UNKNOWN


def condition_moment(status: Any, kind: str, holds: str = "True") -> int:
    """Return when a condition came to hold (``lastTransitionTime``); UNKNOWN where it does not hold."""
    for condition in objects_at(status, "conditions"):
        if condition.get("type") == kind and str(condition.get("status")) == holds:
            return read_moment(condition.get("lastTransitionTime"))
    return UNKNOWN


def holds(status: Any, kind: str) -> bool:
    """Whether a condition is true."""
    return any(
        each.get("type") == kind and str(each.get("status")) == "True" for each in objects_at(status, "conditions")
    )
