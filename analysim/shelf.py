"""The three shelves of what users write: policies, topologies and traces, found by path or by name.

A name is looked for in the working directory's folder of that kind and on the bundled shelf, which is
inside the package in a wheel and the repository's own folder in a checkout.
"""

from __future__ import annotations

import filecmp
import os
from pathlib import Path
from typing import Literal

from analysim.errors import ShelfError
from analysim.spelling import suggest

Kind = Literal["policies", "topologies", "traces"]

_SUFFIXES: dict[Kind, tuple[str, ...]] = {
    "policies": (".py",),
    "topologies": (".yaml", ".yml"),
    "traces": (".csv", ".csv.gz", ".parquet"),
}
_ONE: dict[Kind, str] = {"policies": "policy", "topologies": "topology", "traces": "trace"}


def find(kind: Kind, name: str) -> Path:
    """Find a file by an explicit path or by its name on the shelves.

    A path is whatever has a folder in it, or names an existing file with its suffix; one without is a path where
    nothing on the shelves has its name.
    Raises ``ShelfError`` for a missing file, an unknown name, or one name with two different contents.
    """
    path = Path(name).expanduser()
    if path.is_file() and (path.suffix or _has_folder(name)):
        return path
    if path.is_dir() and _has_folder(name):
        raise ShelfError(f"{name} is a folder, not a {_ONE[kind]} file.", "Name a file in it.")
    if _has_folder(name):
        raise ShelfError(f"{name}: no such {_ONE[kind]} file.", _beside(path))
    hits = [each for listed, each in list_shelf(kind) if name in (listed, each.name)]
    if not hits and path.is_file():  # as cluster_job_log, a file without a suffix
        return path
    if not hits:
        names = dict.fromkeys(listed for listed, _ in list_shelf(kind))
        raise ShelfError(f"No {_ONE[kind]} is called {name!r}, here or on the shelf.", suggest(name, names))
    if len(hits) > 1:
        raise ShelfError(
            f"{_ONE[kind].capitalize()} {name!r} means two different files: {hits[0]} and {hits[1]}.",
            "Give the path of the one you mean, or rename yours.",
        )
    return hits[0]


def list_shelf(kind: Kind) -> list[tuple[str, Path]]:
    """List (name, path) of all that is on the shelves of a kind, by name.

    A copy with the same content counts once; a name with different contents is listed once for each.
    """
    found: dict[str, list[Path]] = {}
    for folder in _folders(kind):
        for path in sorted(folder.iterdir()):
            name = _shelf_name(kind, path)
            if not name:
                continue
            twins = found.setdefault(name, [])
            if not any(filecmp.cmp(path, twin, shallow=False) for twin in twins):
                twins.append(path)
    return [(name, path) for name in sorted(found) for path in found[name]]


def _folders(kind: Kind) -> list[Path]:
    package = Path(__file__).parent
    bundled = package / "_bundled" / kind
    if not bundled.is_dir():
        bundled = package.parent / kind
    here = Path(kind)
    folders = [folder for folder in (here, bundled) if folder.is_dir()]
    if len(folders) == 2 and here.samefile(bundled):
        folders.pop()
    return folders


def _shelf_name(kind: Kind, path: Path) -> str:
    """Name a file goes by on the shelf; empty for hidden, private and foreign files."""
    if path.name.startswith((".", "_")) or not path.is_file():
        return ""
    suffix = next((each for each in _SUFFIXES[kind] if path.name.endswith(each)), "")
    return path.name.removesuffix(suffix) if suffix else ""


def _has_folder(name: str) -> bool:
    return os.sep in name or bool(os.altsep and os.altsep in name)


def _beside(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder {path.parent}."
    return suggest(path.name, sorted(each.name for each in path.parent.iterdir() if each.is_file()))
