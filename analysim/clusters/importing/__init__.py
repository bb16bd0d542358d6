"""Clusters as other systems describe them, made into cluster files: one module a source."""

from analysim.clusters.importing.registry import AUTO, IMPORTERS, import_cluster

__all__ = ["AUTO", "IMPORTERS", "import_cluster"]
