"""Files as streams of text or bytes, plain or gzip, with one clear line for whatever is wrong with them."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from analysim.errors import TraceError

GZIP = b"\x1f\x8b"
"""How a gzip file begins."""


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacked where it is gzip; errors while it is read are told as ``TraceError``."""
    with told(path), path.open("rb") as raw:
        packed = raw.read(len(GZIP)) == GZIP
        raw.seek(0)
        if packed:
            with gzip.open(raw) as unpacked:
                yield cast("BinaryIO", unpacked)
        else:
            yield raw


@contextmanager
def told(path: Path | str) -> Iterator[None]:
    """Tell what goes wrong while a file is opened, read or unpacked as a ``TraceError`` that names it as written."""
    try:
        yield
    except FileNotFoundError as error:
        raise TraceError(f"{path}: there is no such file.", "Check the path.") from error
    except IsADirectoryError as error:
        raise TraceError(f"{path} is a folder, not a trace file.", "Name a file in it.") from error
    except EOFError as error:
        raise TraceError(f"{path}: the gzip file ends too early.", "Copy or download it again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path}: the gzip file is damaged ({error}).", "Copy or download it again.") from error
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.", "Check the path and its rights.") from error


@contextmanager
def open_text(path: Path, encoding: str = "utf-8-sig", newline: str | None = None) -> Iterator[TextIO]:
    """Open a file as text, unpacked where it is gzip.

    Bytes that are no UTF-8 are told by their line. ``newline=""`` keeps line ends, as the csv module wants.
    """
    with open_bytes(path) as data:
        text = io.TextIOWrapper(data, encoding=encoding, newline=newline)
        try:
            yield text
        except UnicodeDecodeError as error:
            raise _not_utf8(path, error) from error
        finally:
            text.detach()


def _not_utf8(path: Path, error: UnicodeDecodeError) -> TraceError:
    with open_bytes(path) as data:
        for number, line in enumerate(data, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as found:
                return TraceError(
                    f"{path} is not UTF-8: line {number} has the byte 0x{line[found.start]:02x}.",
                    "Convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 FILE > new",
                )
    return TraceError(f"{path} is not UTF-8: {error.reason}.", "Convert it with iconv.")


def read_head(path: Path, size: int = 1 << 16) -> tuple[bytes, bool]:
    """Read the first bytes, unpacked, and tell whether that is all of the file."""
    with open_bytes(path) as data:
        head = data.read(size + 1)
    return head[:size], len(head) <= size
