"""A trace file's bytes: opened, hashed, unpacked, and known by what they hold rather than by their name."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from analysim.errors import TraceError
from analysim.traces.streams import GZIP, told

_PARQUET = b"PAR1"
_FOREIGN = (
    (
        b"PK\x03\x04",
        "a ZIP archive or an Excel workbook",
        "Save the sheet as CSV UTF-8, or unpack the archive.",
    ),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "Save the sheet as CSV UTF-8."),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "Unpack it, or compress it with gzip."),
    (b"\xfd7zXZ", "compressed with xz", "Unpack it, or compress it with gzip."),
    (b"BZh", "compressed with bzip2", "Unpack it, or compress it with gzip."),
    (b"\xff\xfe", "UTF-16 text", "Save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 FILE > new.csv"),
    (b"\xfe\xff", "UTF-16 text", "Save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 FILE > new.csv"),
)
_BOM = b"\xef\xbb\xbf"
_SUFFIXES = (".gz", ".csv", ".parquet")


@dataclass
class TraceFile:
    """A trace file whose contents can be let go of and read again; ``sha256`` is of the bytes on disk.

    ``packed`` tells whether the bytes on disk are compressed.
    """

    path: str
    sha256: str
    format: str
    packed: bool
    _contents: bytes | None

    @property
    def contents(self) -> bytes:
        """The file unpacked."""
        if self._contents is None:
            with told(self.path):
                raw = Path(self.path).read_bytes()
                return gzip.decompress(raw) if self.packed else raw
        return self._contents

    @property
    def lasting(self) -> bool:
        """Whether it can be read a second time, which a pipe cannot."""
        return Path(self.path).is_file()

    def release(self) -> None:
        """Let go of the contents where they can be read again."""
        if self.lasting:
            self._contents = None

    @property
    def name(self) -> str:
        """The file's name without ``.csv``, ``.gz`` or ``.parquet``."""
        name = Path(self.path).name
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        return name


def open_trace_file(path: str | Path) -> TraceFile:
    """Read a file whole and tell whether it is CSV text (plain or gzip) or Parquet.

    Raises ``TraceError`` for a file that is missing, empty, a folder, damaged, binary or not UTF-8.
    """
    where = str(path)
    with told(where):
        raw = Path(path).read_bytes()
        packed = raw.startswith(GZIP)
        data = gzip.decompress(raw) if packed else raw
    if not data or data.isspace() or data == _BOM:
        raise TraceError(f"{where} is empty.", "A trace has a line of column names and a line for each job.")
    parquet = data.startswith(_PARQUET)
    if not parquet:
        _check_text(data, where)
    return TraceFile(where, sha256(raw).hexdigest(), "parquet" if parquet else "csv", packed, data)


def _check_text(data: bytes, where: str) -> None:
    for magic, what, remedy in _FOREIGN:
        if data.startswith(magic):
            raise TraceError(f"{where} is {what}, not CSV.", remedy)
    nul = data.find(b"\0")
    if nul >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise TraceError(
            f"{where} is not text: line {line} has a NUL byte.",
            "Give a CSV file in UTF-8, or a Parquet file.",
        )
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TraceError(
            f"{where} is not UTF-8: line {line} has the byte 0x{data[error.start]:02x}.",
            "Save it as UTF-8 (Excel: CSV UTF-8), or: iconv -f WINDOWS-1252 -t UTF-8 FILE > new.csv",
        ) from error
