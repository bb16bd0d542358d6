"""Objects of a Kubernetes cluster as kubectl exports them: pods, and the jobs and workloads that own them.

``kubectl get pods,jobs -A -o json`` or ``-o yaml``; what becomes of each object is told in
``docs/reference/formats/kubernetes.md``. Source of the fields:
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysim.errors import TraceError
from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.readers.fields import at, text_at
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.json_records import read_records
from analysim.traces.readers.kubernetes_gangs import Gangs
from analysim.traces.readers.kubernetes_owners import is_evicted, read_owner, shape_of
from analysim.traces.readers.kubernetes_pods import (
    OWNERS,
    asks_claims,
    asks_slices,
    read_pod,
    read_priority,
    why_aside,
)
from analysim.traces.readers.yaml_records import read_yaml_records
from analysim.traces.streams import open_text, read_head

KINDS = ("Pod", "Workload", *OWNERS)
"""Kinds of objects that tell of jobs."""

_KIND = re.compile(rf"""["']?\bkind["']?\s*:\s*["']?(?:{"|".join(KINDS)})(?:List)?\b""")
_CLASSES = ("PriorityClass", "WorkloadPriorityClass")
_ONE_OBJECT = 1 << 22
"""Bytes up to which a file is looked at as a whole, to see whether it is one object."""


def _recognises(sample: Sample) -> bool:
    """Objects of a server: they have a kind, a version and the time of their creation."""
    return sample.mentions("apiVersion", "creationTimestamp") and _KIND.search(sample.text) is not None


def _read(path: Path, options: ReadOptions) -> Log:
    reading = _Reading()
    for row, value in read_objects(path):
        reading.take(row, value, path)
    if not reading.account.rows:
        raise TraceError(f"{path} has no objects.", "Export them with: kubectl get pods,jobs -A -o json")
    columns, rows, running = reading.finish()
    return Log(columns, rows, reading.account, dated=True, running=running, notes=reading.notes())


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Go through the objects of a JSON or YAML file, numbered from 1.

    JSON may be a List, a list, one object, or an object a line; for YAML see ``read_yaml_records``.
    Raises ``TraceError`` where the file is neither.
    """
    head, whole = read_head(path, _ONE_OBJECT)
    begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if begins == b"[":
        return read_records(path)
    if begins != b"{":
        return read_yaml_records(path)
    if _is_object(head.split(b"\n", 1)[0]):
        return _read_lines(path)
    if whole and _is_object(head):
        return iter([(1, _loads(head.decode("utf-8-sig")))])
    return read_records(path, "items")


def _is_object(text: bytes) -> bool:
    """Whether a text is one JSON object, and no list of them."""
    try:
        value = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not isinstance(value.get("items"), list)


def _loads(text: str) -> Any:
    """Read JSON; half of a pair of escapes, which is no character, becomes a question mark."""
    value = json.loads(text)
    if "\\ud" in text.lower():
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def _read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    with open_text(path) as text:
        for line, content in enumerate(text, start=1):
            if content.strip():
                try:
                    value = _loads(content)
                except (ValueError, RecursionError):
                    value = None
                if not isinstance(value, dict):
                    raise TraceError(f"{path}, line {line}: this is no JSON object.", "Export it again as a whole.")
                number += 1
                yield number, value


class _Reading:
    """The objects that were read so far."""

    def __init__(self) -> None:
        self.account = Account()
        self.gangs = Gangs()
        self.aside: dict[str, array[int]] = {}
        self.slices = self.claims = 0

    def take(self, row: int, value: dict[str, Any], path: Path) -> None:
        """Enter an object as what it is."""
        self.account.rows = row
        kind = text_at(value, "kind") or _guess_kind(value)
        if kind in KINDS and kind != "PodGroup" and not text_at(value, "metadata", "name"):
            raise TraceError(f"{path}, record {row}: this {kind} has no metadata.name.", "Correct or remove it.")
        reason = self._enter(kind, row, value)
        if reason:
            self.aside.setdefault(reason, array("q")).append(row)

    def _enter(self, kind: str, row: int, value: dict[str, Any]) -> str:
        """Enter an object; return why not where it tells of no job."""
        if kind in _CLASSES:
            priority = read_priority(value.get("value"))
            if priority != UNKNOWN:
                self.gangs.classes[text_at(value, "metadata", "name")] = priority
        if kind == "Pod":
            return why_aside(value) or self._enter_pod(row, value)
        if kind == "Workload" and is_evicted(value):
            return "Workload that was evicted and waits again: when it ran is not told"
        told = read_owner(kind, value)
        if told is None:
            return f"{kind[:40] or 'object without a kind'}: not read as a job"
        if kind == "Job":
            self.gangs.shapes[told.keys[-1]] = shape_of(value)
        self.gangs.add(row, told)
        return ""

    def _enter_pod(self, row: int, pod: dict[str, Any]) -> str:
        spec = at(pod, "spec")
        self.slices += asks_slices(spec)
        self.claims += asks_claims(spec)
        self.gangs.add(row, read_pod(pod))
        return ""

    def finish(self) -> Any:
        """Fold what was read into jobs."""
        for reason, rows in self.aside.items():
            self.account.put_aside(reason, rows)
        return self.gangs.fold(self.account)

    def notes(self) -> list[str]:
        """Say what a reader of the trace should know."""
        notes = ["Tenants are namespaces; running jobs end with the latest moment in the file."]
        if self.slices:
            notes.append(f"{self.slices:,} pods ask for slices of a GPU (MIG), counted as parts of one.")
        if self.claims:
            notes.append(f"{self.claims:,} pods claim devices (resourceClaims): what they claim is not in the file.")
        if self.gangs.unknown_classes:
            names = ", ".join(sorted(self.gangs.unknown_classes)[:5])
            notes.append(f"Priority classes without a value in the file count as 0 ({names}): add priorityclasses.")
        return notes


def _guess_kind(value: dict[str, Any]) -> str:
    """Tell the kind of an item of a list of the server's own, where items do not repeat it."""
    spec = value.get("spec")
    if at(spec, "containers") is not None:
        return "Pod"
    return "Workload" if at(spec, "podSets") is not None else ""


FORMAT = Format("kubernetes", "Kubernetes (kubectl get pods,jobs,workloads -A -o json or yaml)", _recognises, _read)
