"""A file is whole or is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysim.errors import AnalysimError
from analysim.whole_file import whole_file, write_whole


def test_what_is_there_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, b"old, and longer")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def refuse(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(AnalysimError, match="cannot be written: No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as temporary:
        temporary.write_bytes(b"ne")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(AnalysimError, match="No such file or directory"):
        write_whole(tmp_path / "gone" / "a.txt", b"")
