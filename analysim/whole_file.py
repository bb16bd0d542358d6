"""A file that stands under its name whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analysim.errors import AnalysimError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside ``path`` to write under; it is renamed over ``path`` when the block is left.

    An error in the block leaves what was there. Raises ``AnalysimError`` when the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise AnalysimError(
            f"{path} cannot be written: {error.strerror or error}.", "Check the folder, its rights and its space."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a whole file, over what may be there. Raises ``AnalysimError`` when it cannot be written."""
    with whole_file(path) as temporary:
        temporary.write_bytes(data)
