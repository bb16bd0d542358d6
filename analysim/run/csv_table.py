"""Write a table as CSV, fast and to the same bytes each time.

Whole blocks of rows are formatted as one matrix of bytes, a few columns of digits at a time; unused
places stay NUL and are squeezed out at the end. That is an order of magnitude faster than formatting
value by value, and it never writes a time as ``1e-06``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysim.units import MICROSECONDS

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Encoder = Callable[[int, int], Bytes]

_NUL, _ZERO, _MINUS, _POINT, _COMMA, _NEWLINE = 0, 48, 45, 46, 44, 10
_BLOCK_BYTES = 8_000_000
_EXACT = 2**53


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write ``frame`` to ``path``: UTF-8, comma, ``\\n``, header first, empty cell for a missing value.

    Columns named ``*_s`` hold seconds and get at most 6 decimals; other numbers are written so that they
    read back as the same float. Raises ``OSError`` when the disk refuses.
    """
    encoders = [_encoder(str(name), frame[name]) for name in frame.columns]
    width = sum(encode(0, 0).shape[1] + 1 for encode in encoders)
    rows = max(1, _BLOCK_BYTES // max(width, 1))
    with path.open("wb") as file:
        file.write((",".join(_quoted(str(name)) for name in frame.columns) + "\n").encode())
        for start in range(0, len(frame), rows):
            file.write(_block(encoders, start, min(start + rows, len(frame))))


def _block(encoders: list[Encoder], start: int, stop: int) -> bytes:
    comma = np.full((stop - start, 1), _COMMA, np.uint8)
    newline = np.full((stop - start, 1), _NEWLINE, np.uint8)
    parts: list[Bytes] = []
    for encode in encoders:
        parts += (encode(start, stop), comma)
    parts[-1] = newline
    return np.concatenate(parts, axis=1).tobytes().translate(None, b"\0")


def _encoder(name: str, column: pd.Series) -> Encoder:
    if pd.api.types.is_bool_dtype(column.dtype):
        return _choices(column.to_numpy(np.int64), ["false", "true"])
    if pd.api.types.is_integer_dtype(column.dtype):
        return _integers(column.to_numpy(np.int64))
    if pd.api.types.is_float_dtype(column.dtype):
        return _numbers(column.to_numpy(np.float64), seconds=name.endswith("_s"))
    codes, values = pd.factorize(column)
    texts = [_quoted(str(value)) for value in values]
    return _choices(np.where(codes < 0, len(texts), codes), [*texts, ""])


def _quoted(text: str) -> str:
    if any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _choices(codes: Integers, texts: list[str]) -> Encoder:
    table = np.array([text.encode() for text in texts], dtype=bytes)
    letters = table.view(np.uint8).reshape(len(table), table.dtype.itemsize)
    return lambda start, stop: letters[codes[start:stop]]


def _integers(values: Integers) -> Encoder:
    places = len(str(max(int(values.max()), -int(values.min()), 0))) if len(values) else 1
    return lambda start, stop: _signed(values[start:stop], places)


def _signed(values: Integers, places: int) -> Bytes:
    sign = np.where(values < 0, _MINUS, _NUL).astype(np.uint8)[:, None]
    return np.concatenate((sign, _digits(np.abs(values), places)), axis=1)


def _digits(values: Integers, places: int) -> Bytes:
    """Digits of non-negative integers, right-aligned, NUL instead of leading zeros."""
    digits = np.zeros((len(values), places), np.uint8)
    rest = values
    for place in range(places - 1, -1, -1):
        tenth = rest // 10
        digit = rest - tenth * 10 + _ZERO
        digits[:, place] = digit if place == places - 1 else np.where(rest > 0, digit, _NUL)
        rest = tenth
    return digits


def _decimals(values: Integers) -> Bytes:
    """A point and six digits, NUL instead of trailing zeros and for a point that nothing follows."""
    decimals = np.zeros((len(values), 7), np.uint8)
    rest, silent = values, np.ones(len(values), dtype=bool)
    for place in range(6, 0, -1):
        tenth = rest // 10
        digit = rest - tenth * 10
        silent &= digit == 0
        decimals[:, place] = np.where(silent, _NUL, digit + _ZERO)
        rest = tenth
    decimals[:, 0] = np.where(silent, _NUL, _POINT)
    return decimals


def _numbers(values: npt.NDArray[np.float64], *, seconds: bool) -> Encoder:
    present = np.isfinite(values)
    finite = np.where(present, values, 0.0)
    with np.errstate(over="ignore"):
        millionths = np.rint(finite * MICROSECONDS)
    fits = bool(np.abs(millionths).max(initial=0.0) < _EXACT) and not np.isinf(values).any()
    if not fits or not (seconds or np.array_equal(millionths / MICROSECONDS, finite)):
        codes, unique = pd.factorize(values)
        texts = [_plain(float(value)) for value in unique]
        return _choices(np.where(codes < 0, len(texts), codes), [*texts, ""])
    scaled = millionths.astype(np.int64)
    places = len(str(int(np.abs(scaled).max(initial=0)) // MICROSECONDS))
    return lambda start, stop: _fixed(scaled[start:stop], present[start:stop], places)


def _fixed(millionths: Integers, present: npt.NDArray[np.bool_], places: int) -> Bytes:
    size = np.abs(millionths)
    whole = size // MICROSECONDS
    sign = np.where(millionths < 0, _MINUS, _NUL).astype(np.uint8)[:, None]
    text = np.concatenate((sign, _digits(whole, places), _decimals(size - whole * MICROSECONDS)), axis=1)
    text[~present] = _NUL
    return text


def _plain(value: float) -> str:
    shortest = repr(value)
    if "e" in shortest:
        return np.format_float_positional(value, trim="-")
    return shortest.removesuffix(".0")
