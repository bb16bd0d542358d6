"""What ``nvidia-smi topo -m`` and ``nvidia-smi -L`` print on a node.

https://docs.nvidia.com/deploy/nvidia-smi/ (topo -m: the connection matrix, NV# is a bonded set of # NVLinks)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from analysim.clusters.importing.found import Found, FoundNode
from analysim.clusters.importing.protocol import Importer
from analysim.clusters.importing.sources import Source

_HEADER = re.compile(r"\s*GPU0\b.*\bCPU Affinity")
_ROW = re.compile(r"\s*GPU([0-9]+)\s+(.*)")
_NAMED = re.compile(r"\s*GPU ([0-9]+): (.+?) \(UUID: .*\)\s*")
_LINKS = ("X", "SYS", "NODE", "PHB", "PXB", "PIX", "PIX/", "SOC")


def recognises(source: Source) -> bool:
    """Whether the text has the matrix's header or the list of GPUs."""
    return any(_HEADER.match(line) or _NAMED.fullmatch(line) for line in source.lines)


def read(sources: Sequence[Source]) -> Found:
    """Read one node a file, named after the file; NVLink where any two GPUs have it. Raises ``ConfigError``."""
    found = Found(source="nvidia-smi")
    for source in sources:
        matrix, models = _matrix(source), _models(source)
        if matrix and models and len(matrix) != len(models):
            raise source.error(
                None, f"{len(matrix)} GPUs in the matrix, {len(models)} in the list.", "Give both of one node."
            )
        name = source.path.name.split(".")[0] or "node"
        links = Counter(link for row in matrix for link in row if link.startswith("NV"))
        gpus = len(matrix) or len(models)
        found.nodes.append(FoundNode(name, gpu_type=_model(found, name, models), gpus=gpus, nvlink=bool(links)))
        if matrix:
            linked = sum(any(link.startswith("NV") for link in row) for row in matrix)
            shown = ", ".join(sorted(links)) or "none"
            found.notes.append(
                f"{name}: {gpus} GPUs, {linked} of them with NVLink (links: {shown}){_numa(source, gpus)}"
            )
        else:
            found.notes.append(f"{name}: {gpus} GPUs; without the matrix of topo -m NVLink is not known")
    found.notes.append(
        "a file is one node: give a file for each node, or write more names (names: node[001-016]) in the cluster file"
    )
    found.notes.append("NUMA nodes, PCIe paths and network cards are no part of a cluster file")
    return found


def _matrix(source: Source) -> list[list[str]]:
    """Links of each GPU to each, row by row; empty where the file has no matrix."""
    headers = [number for number, line in source.numbered() if _HEADER.match(line)]
    if not headers:
        return []
    if len(headers) > 1:
        raise source.error(headers[1], "a second matrix.", "A file is one node: give one file a node.")
    start = headers[0]
    count = len(re.findall(r"\bGPU[0-9]+\b", source.lines[start - 1]))
    rows: list[list[str]] = []
    for number, line in list(source.numbered())[start:]:
        match = _ROW.match(line)
        if not match:
            break
        links = match[2].split()[:count]
        known = all(link in _LINKS or re.fullmatch(r"NV[0-9]+", link) for link in links)
        if int(match[1]) != len(rows) or len(links) < count or not known or links[len(rows)] != "X":
            raise source.error(
                number, f"no row of a matrix of {count} GPUs.", "Give all that nvidia-smi topo -m printed."
            )
        rows.append(links)
    if len(rows) != count:
        raise source.error(
            start, f"{count} GPUs in the header, {len(rows)} rows.", "Give all that nvidia-smi topo -m printed."
        )
    return rows


def _models(source: Source) -> list[str]:
    """Models of the list, GPU by GPU; an index that comes again is of another node."""
    models: dict[int, str] = {}
    for number, line in source.numbered():
        match = _NAMED.fullmatch(line)
        if match and int(match[1]) in models:
            raise source.error(number, f"GPU {match[1]} comes twice.", "A file is one node: give one file a node.")
        if match:
            models[int(match[1])] = match[2]
    return list(models.values())


def _model(found: Found, name: str, models: list[str]) -> str | None:
    kinds = Counter(models)
    if not kinds:
        return None
    if len(kinds) > 1:
        found.notes.append(f"{name}: GPUs of {len(kinds)} models count as the most frequent one: {dict(kinds)}")
    return kinds.most_common(1)[0][0]


def _numa(source: Source, gpus: int) -> str:
    header = next(line for line in source.lines if _HEADER.match(line))
    if "NUMA Affinity" not in header:
        return ""
    position = header.replace("CPU Affinity", "CPU_Affinity").replace("NUMA Affinity", "NUMA_Affinity").split()
    column = position.index("NUMA_Affinity") + 1
    rows = [line.split() for line in source.lines if _ROW.match(line)][:gpus]
    numa = {row[column] for row in rows if len(row) > column}
    return f", on {len(numa)} NUMA nodes" if numa else ""


IMPORTER = Importer("nvidia-smi", "nvidia-smi topo -m (and -L) of a node, one file a node", recognises, read)
