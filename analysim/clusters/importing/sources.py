"""Files of an import as text: plain, gzip, or one table inside a tar archive."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysim.errors import ConfigError

MAX_BYTES = 256 << 20
"""Largest file that is read, unpacked: a listing of a cluster is far smaller."""

_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class Source:
    """One file of an import: its path as given, and its text without marks for terminals."""

    path: Path
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their ends; line 1 is the first."""
        return self.text.split("\n")

    @cached_property
    def first(self) -> str:
        """The first line that is neither empty nor a comment."""
        return next((line.strip() for line in self.lines if line.strip() and line.strip()[0] != "#"), "")

    @cached_property
    def header(self) -> list[str]:
        """Fields of the first line between commas, without blanks and quotation marks around them."""
        return [name.strip().strip('"') for name in self.first.split(",")]

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Give the lines with their numbers."""
        return enumerate(self.lines, start=1)

    def error(self, line: int | None, problem: str, remedy: str) -> ConfigError:
        """Make the error that names this file and a line of it."""
        where = f"{self.path}" if line is None else f"{self.path}: line {line}"
        return ConfigError(f"{where}: {problem}", remedy)


def read_source(path: Path) -> Source:
    """Read a file whole, unpacked where it is gzip or a tar archive of one file.

    Raises ``ConfigError`` for a file that is missing, empty, damaged, binary, no UTF-8 or larger than ``MAX_BYTES``.
    """
    data = _unpacked(path, _bytes(path))
    if b"\0" in data[:65_536]:
        raise ConfigError(f"{path} is binary, no text.", "Give the text that the command printed.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}: line {line} has the byte 0x{data[error.start]:02x}, which is no UTF-8.", "Save the file as UTF-8."
        ) from None
    if not text.strip():
        raise ConfigError(f"{path} is empty.", "Give the file as the source wrote it.")
    return Source(path, _TERMINAL.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _limited(path, file.read(MAX_BYTES + 1))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.", "Check the path.") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder, not a file.", "Name the files in it.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", "Check the path and its rights.") from None


def _limited(path: Path, data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path} has more than {MAX_BYTES >> 20} MB.", "A description of a cluster is smaller.")
    return data


def _unpacked(path: Path, data: bytes) -> bytes:
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.open(io.BytesIO(data)) as packed:
                data = _limited(path, packed.read(MAX_BYTES + 1))
        except (EOFError, OSError, zlib.error) as error:
            raise ConfigError(f"{path}: the gzip file is damaged ({error}).", "Copy or download it again.") from None
    if data[257:262] != b"ustar":
        return data
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            files = [member for member in archive.getmembers() if member.isfile()]
            file = archive.extractfile(files[0]) if len(files) == 1 else None
            if file is None:
                raise ConfigError(f"{path} holds {len(files)} files.", "Unpack it, and name the one that is meant.")
            return file.read()
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise ConfigError(f"{path}: the tar archive is damaged ({error}).", "Copy or download it again.") from None
