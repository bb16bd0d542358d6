"""Topology files: read with every mistake told in one line, and written to be read and edited."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from analysim.clusters.checking import check_cluster
from analysim.config.cluster import ClusterConfig
from analysim.config.dumping import as_written
from analysim.config.loading import Dumper, load_yaml, validate
from analysim.config.nodes import gpus_by_type, nodes_of
from analysim.errors import ConfigError
from analysim.whole_file import write_whole


def load_cluster(path: str | Path) -> ClusterConfig:
    """Read and check a topology file.

    Raises ``ConfigError``, its message beginning with the file, for a file that cannot be read, unknown
    keys, bad values and whatever does not hold together.
    """
    config = validate(ClusterConfig, load_yaml(path), path)
    try:
        check_cluster(config)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", error.remedy) from None
    return config


def write_cluster(config: ClusterConfig, path: str | Path, force: bool = False, notes: Sequence[str] = ()) -> None:
    """Write a cluster as a topology file that ``load_cluster`` reads back equal.

    Notes become comments at its head. Raises ``ConfigError`` if the file is there already, unless ``force``;
    ``AnalysimError`` if it cannot be written.
    """
    path = Path(path)
    if path.exists() and not force:
        raise ConfigError(f"{path} is there already.", "Choose another name, or replace it with --force.")
    write_whole(path, cluster_text(config, notes).encode())


def cluster_text(config: ClusterConfig, notes: Sequence[str] = ()) -> str:
    """Write a cluster as the text of a topology file; defaults are left out, notes become comments at its head."""
    nodes = nodes_of(config)
    gpus = ", ".join(f"{count:,} {gpu_type}" for gpu_type, count in gpus_by_type(nodes).items())
    lines = [f"# AnalySIM cluster: {len(nodes):,} nodes; GPUs: {gpus or 'none'}."]
    lines += [f"# {' '.join(note.split())}" for note in notes]
    if config.inferred:
        lines.append(
            "# Nobody has described this cluster yet: correct what is wrong, then delete `inferred`."
        )
    data: dict[str, Any] = _whole_numbers(as_written(config, defaults=False))
    front = [key for key in ("name", "description", "source", "inferred") if key in data]
    ordered = {key: data[key] for key in [*front, *(key for key in data if key not in front)]}
    for key, value in ordered.items():
        block = yaml.dump({key: value}, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
        lines.append(block if isinstance(value, str) else f"\n{block}")
    return "\n".join(line.removesuffix("\n") for line in lines) + "\n"


def _whole_numbers(data: Any) -> Any:
    """Write 48 for 48.0 throughout."""
    if isinstance(data, dict):
        return {key: _whole_numbers(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_whole_numbers(value) for value in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data
