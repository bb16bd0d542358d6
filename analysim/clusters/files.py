"""Topology files: read with every mistake told in one line, and written to be read and edited."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from analysim.clusters.checking import check_cluster
from analysim.config.cluster import ClusterConfig, Partition
from analysim.config.loading import Dumper, load_yaml, validate
from analysim.config.nodes import gpus_by_type, nodes_of
from analysim.errors import AnalysimError, ConfigError
from analysim.units import to_seconds


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


def write_cluster(
    config: ClusterConfig, path: str | Path, force: bool = False, notes: Sequence[str] = ()
) -> None:
    """Write a cluster as a topology file that ``load_cluster`` reads back equal; defaults are left out.

    Notes become comments at its head. Raises ``ConfigError`` if the file is there already, unless ``force``;
    ``AnalysimError`` if it cannot be written.
    """
    text = _as_text(config, notes)
    try:
        with Path(path).open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} is there already.", "Choose another name, or delete it.") from None
    except OSError as error:
        raise AnalysimError(
            f"{path}: cannot be written: {error.strerror}.", "Check folder and disk."
        ) from None


def _as_text(config: ClusterConfig, notes: Sequence[str]) -> str:
    nodes = nodes_of(config)
    gpus = ", ".join(f"{count:,} {gpu_type}" for gpu_type, count in gpus_by_type(nodes).items())
    lines = [f"# AnalySIM cluster: {len(nodes):,} nodes; GPUs: {gpus or 'none'}."]
    lines += [f"# {' '.join(note.split())}" for note in notes]
    if config.inferred:
        lines.append(
            "# Nobody has described this cluster yet: correct what is wrong, then delete `inferred`."
        )
    data: dict[str, Any] = _whole_numbers(config.model_dump(mode="json", exclude_defaults=True))
    if config.partitions:
        data["partitions"] = [_partition_data(each) for each in config.partitions]
    front = [key for key in ("name", "description", "source", "inferred") if key in data]
    ordered = {key: data[key] for key in [*front, *(key for key in data if key not in front)]}
    for key, value in ordered.items():
        block = yaml.dump({key: value}, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
        lines.append(block if isinstance(value, str) else f"\n{block}")
    return "\n".join(line.removesuffix("\n") for line in lines) + "\n"


def _partition_data(partition: Partition) -> dict[str, Any]:
    """Fields of a partition as a user writes them: durations in seconds, not microseconds."""
    data: dict[str, Any] = {"name": partition.name}
    data |= partition.model_dump(mode="json", exclude_defaults=True)
    if partition.time_limit is not None:
        data["time_limit"] = _whole_numbers(to_seconds(partition.time_limit))
    for change, written in zip(partition.changes, data.get("changes", []), strict=True):
        written["time"] = _whole_numbers(to_seconds(change.time))
    if partition.children:
        data["children"] = [_partition_data(child) for child in partition.children]
    return data


def _whole_numbers(data: Any) -> Any:
    """Write 48 for 48.0 throughout."""
    if isinstance(data, dict):
        return {key: _whole_numbers(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_whole_numbers(value) for value in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data
