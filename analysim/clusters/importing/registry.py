"""Which kinds of sources there are, and the way from files to a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysim.clusters.importing import (
    helios_quota,
    kubernetes,
    lingjun,
    nvidia_smi,
    openb,
    pai,
    philly,
    slurm,
    tiresias,
)
from analysim.clusters.importing.building import build_cluster
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source, read_source
from analysim.config.cluster import ClusterConfig
from analysim.errors import ConfigError
from analysim.spelling import suggest

IMPORTERS: tuple[Importer, ...] = (
    helios_quota.IMPORTER,
    kubernetes.IMPORTER,
    lingjun.IMPORTER,
    nvidia_smi.IMPORTER,
    openb.IMPORTER,
    pai.IMPORTER,
    philly.IMPORTER,
    slurm.IMPORTER,
    tiresias.IMPORTER,
)
"""All kinds, by name."""

AUTO = "auto"
"""Name that leaves it to the files which kind they are."""


def import_cluster(kind: str, files: Sequence[Path], name: str = "") -> tuple[ClusterConfig, list[str]]:
    """Make a cluster of files of one kind (``AUTO``: the one that recognises them all), with notes on what was done.

    ``name`` is what the cluster is called; empty: what the files call it, else the kind.
    Raises ``ConfigError`` for an unknown kind, files that are not of it, and files that are broken.
    """
    by_name = {each.name: each for each in IMPORTERS}
    if kind != AUTO and kind not in by_name:
        raise ConfigError(f"There is no kind {kind!r} of source.", suggest(kind, [*by_name, AUTO]))
    if not files:
        raise ConfigError("There is no file to import.", "Name one or more files.")
    sources = [read_source(path) for path in files]
    importer = by_name[kind] if kind != AUTO else _recognised(sources)
    for source in sources:
        if not importer.recognises(source):
            raise _not_of(importer, source)
    found = importer.read(sources)
    return build_cluster(found, name or found.name or importer.name)


def _recognised(sources: Sequence[Source]) -> Importer:
    for importer in IMPORTERS:
        if all(importer.recognises(source) for source in sources):
            return importer
    for source in sources:
        if not any(importer.recognises(source) for importer in IMPORTERS):
            raise ConfigError(f"{source.path}: no kind of source recognises this file.", _kinds())
    raise ConfigError("These files are of different kinds.", f"Import them one kind at a time. {_kinds()}")


def _not_of(importer: Importer, source: Source) -> ConfigError:
    others = [each.name for each in IMPORTERS if each.recognises(source)]
    if others:
        remedy = f"It looks like {others[0]}: analysim topologies import {others[0]} {source.path}"
    else:
        remedy = f"{importer.name} reads {importer.title}."
    return ConfigError(f"{source.path} is nothing that {importer.name} reads.", remedy)


def _kinds() -> str:
    return f"Kinds: {', '.join(each.name for each in IMPORTERS)}."
