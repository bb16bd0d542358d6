"""Import of files written in the test, loaded back as a user's run would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysim.clusters import describe_cluster, load_cluster, write_cluster
from analysim.clusters.importing import import_cluster
from analysim.config.cluster import ClusterConfig, Partition
from analysim.config.nodes import ClusterNode, nodes_of, walk_partitions


@dataclass
class Imported:
    """A cluster as it is after it was written and read again, and the notes of the import."""

    config: ClusterConfig
    notes: list[str]

    @property
    def facts(self) -> dict[str, Any]:
        """Figures of the whole cluster."""
        return describe_cluster(self.config)

    @property
    def size(self) -> tuple[int, int]:
        """Nodes and GPUs."""
        return self.facts["nodes"], self.facts["gpus"]

    @property
    def nodes(self) -> dict[str, ClusterNode]:
        """Nodes by name."""
        return {node.name: node for node in nodes_of(self.config)}

    @property
    def racks(self) -> dict[str, tuple[str, str]]:
        """(rack, pod) of each node."""
        return {name: (node.rack, node.pod) for name, node in self.nodes.items()}

    @property
    def partitions(self) -> dict[str, Partition]:
        """Partitions of the whole tree by name."""
        return {path[-1].name: path[-1] for path in walk_partitions(self.config.partitions)}

    def says(self, *words: str) -> bool:
        """Whether one note has all these words."""
        return any(all(word in note for word in words) for note in self.notes)


def bring_in(folder: Path, kind: str, files: Mapping[str, str | bytes]) -> Imported:
    """Write files and import them."""
    paths = []
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(path)
    return bring_in_paths(folder, kind, *paths)


def bring_in_paths(folder: Path, kind: str, *paths: Path) -> Imported:
    """Import files that are there."""
    config, notes = import_cluster(kind, list(paths), "test")
    out = folder / "out.yaml"
    write_cluster(config, out, force=True, notes=notes)
    assert load_cluster(out) == config
    return Imported(config, notes)
