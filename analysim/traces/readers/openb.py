"""Alibaba's GPU sharing traces (openb): pods as CSV, and as the YAML that simulators make of it.

Columns ``name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,
scheduled_time``, times in seconds; some variants have the first five only
(https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023). The YAML is that of
https://github.com/hkust-adsl/kubernetes-scheduler-simulator (``data/pod_csv_to_yaml.py``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysim.errors import TraceError
from analysim.traces.cells import LARGEST
from analysim.traces.log import UNKNOWN, Account, Log
from analysim.traces.moments import microseconds_of
from analysim.traces.readers.amounts import Integers, difference
from analysim.traces.readers.fields import at, text_at
from analysim.traces.readers.format import Format, ReadOptions, Sample
from analysim.traces.readers.kubernetes_pods import need_of
from analysim.traces.readers.kubernetes_values import read_count
from analysim.traces.readers.tables import Kind, Table, has_columns, read_table
from analysim.traces.readers.yaml_records import read_yaml_records
from analysim.units import GPU_MILLI, MICROSECONDS

_NEEDED = ("name", "cpu_milli", "num_gpu", "gpu_milli")
_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_KINDS: dict[str, Kind] = {
    "name": "id",
    "cpu_milli": "number",
    "memory_mib": "number",
    "num_gpu": "number",
    "gpu_milli": "number",
    "gpu_spec": "text",
    "qos": "text",
    "pod_phase": "text",
    **dict.fromkeys(_TIMES, "number"),
}
_PRIORITIES = {"BE": 0, "Burstable": 1, "LS": 2, "Guaranteed": 2}
_TIMELESS = "no times in the file: submitted at 0, runs 0 s"
_TIMELESS_NOTE = "The file has no times: all jobs are submitted at 0, in the order of their names, and run 0 s."
_YAML_COLUMNS = ["row", "job_id", "tenant", "gpu_type", "gpus_per_node", "gpu_milli", "cpu_milli", "memory_mb"]
_YAML_COLUMNS += ["created", "deleted", "dated"]
_ANNOTATION = "alibabacloud.com/"
_MEGABYTE = 1 << 20


def _recognises(sample: Sample) -> bool:
    return has_columns(sample.header, *_NEEDED)


def _read(path: Path, options: ReadOptions) -> Log:
    table = read_table(path, _KINDS, optional=set(_KINDS) - set(_NEEDED))
    account = Account(rows=table.rows)
    gpus = table.scaled("num_gpu", 1)
    columns = {
        "job_id": table.ids("name"),
        "gpu_milli": _milli(gpus, table.scaled("gpu_milli", 1)),
        "gpus_per_node": gpus,
        "gpu_type": _types(table.text("gpu_spec")),
        "cpu_milli": table.amount("cpu_milli", 1),
        "memory_mb": table.amount("memory_mib", 1),
        "priority": table.text("qos").map(_PRIORITIES).fillna(0).astype(np.int64),
        "status": table.text("pod_phase"),
    }
    notes = ["Priorities are made of qos: BE 0, Burstable 1, LS and Guaranteed 2."] if "qos" in table.columns else []
    missing = [name for name in _TIMES if name not in table.columns]
    if len(missing) == len(_TIMES):
        columns |= _timeless(account, table.row)
        notes.append(_TIMELESS_NOTE)
    elif missing:
        raise TraceError(f'{path} has no column "{missing[0]}".', "It has all of its three times, or none.")
    else:
        columns |= _times(table, account)
    return Log(columns, table.row, account, dated=False, notes=notes)


def _milli(gpus: Integers, milli: Integers) -> Integers:
    """A part of a GPU where a pod asks for one and less than the whole of it, else whole ones."""
    part = (gpus == 1) & (milli > 0) & (milli < GPU_MILLI)
    limited = np.clip(gpus, -LARGEST // GPU_MILLI, LARGEST // GPU_MILLI) * GPU_MILLI
    return np.where(gpus == UNKNOWN, UNKNOWN, np.where(part, milli, limited))


def _types(specs: pd.Series) -> pd.Series:
    """Types that a pod may run on, each once."""
    return specs.map({spec: "|".join(dict.fromkeys(filter(None, spec.split("|")))) for spec in specs.unique()})


def _timeless(account: Account, row: Integers) -> dict[str, Any]:
    account.repair(_TIMELESS, row)
    return {"submit_us": np.zeros(row.size, np.int64), "duration_us": np.zeros(row.size, np.int64)}


def _times(table: Table, account: Account) -> dict[str, Any]:
    """Times of a pod: its phase is the last one seen, so that a Running one ended with its deletion as well.

    Where that is the last moment of the file, it is the edge of the window: the pod went on. A pod that was never
    scheduled is demand all the same, which another cluster or policy may have met: it asks for its lifetime.
    """
    start, end = (table.scaled(name, MICROSECONDS) for name in ("scheduled_time", "deletion_time"))
    running = (table.text("pod_phase") == "Running").to_numpy() & (start != UNKNOWN) & (end != UNKNOWN)
    account.repair("still running at the edge of the window: runs until then", table.row[running & (end == end.max())])
    submit = table.scaled("creation_time", MICROSECONDS)
    never = (start == UNKNOWN) & (end != UNKNOWN) & (submit != UNKNOWN)
    account.repair("never scheduled: asks for as long as the pod existed", table.row[never])
    return {
        "submit_us": submit,
        "duration_us": np.where(never, end - submit, UNKNOWN),
        "recorded_start_us": start,
        "recorded_end_us": np.where(start == UNKNOWN, UNKNOWN, end),
    }


def _recognises_yaml(sample: Sample) -> bool:
    """Pods with the annotations of GPU sharing, or named as the trace names them, that no server has created."""
    pods = re.search(r"^kind: *Pod\b", sample.text, re.MULTILINE) is not None
    known = f"{_ANNOTATION}gpu-count" in sample.text or re.search(r"^ +name: *openb-pod-", sample.text, re.MULTILINE)
    return pods and bool(known) and not sample.begins_json and "creationTimestamp" not in sample.text


def _read_yaml(path: Path, options: ReadOptions) -> Log:
    account = Account()
    pods: list[tuple[Any, ...]] = []
    others: list[int] = []
    words: dict[str, str] = {}
    for row, value in read_yaml_records(path):
        account.rows = row
        if text_at(value, "kind") != "Pod":
            others.append(row)
        elif not text_at(value, "metadata", "name"):
            raise TraceError(f"{path}, record {row}: this pod has no metadata.name.", "Correct or remove it.")
        else:
            pods.append((row, *_read_pod(value, words)))
    account.put_aside("not a pod", others)
    if not pods:
        raise TraceError(f"{path} has no pods.", "Check which file this is.")
    table = pd.DataFrame.from_records(pods, columns=_YAML_COLUMNS)
    pods.clear()
    rows = table["row"].to_numpy(np.int64)
    created, deleted = (table[name].to_numpy(np.int64) for name in ("created", "deleted"))
    times, notes = _yaml_times(created, deleted, rows, account)
    columns = {name: table[name] for name in _YAML_COLUMNS[1:-3]} | times
    return Log(columns, rows, account, dated=bool(table["dated"].any()), notes=notes)


def _read_pod(pod: dict[str, Any], words: dict[str, str]) -> tuple[Any, ...]:
    spec, annotations = at(pod, "spec"), at(pod, "metadata", "annotations")
    need = need_of(spec)
    gpus = read_count(at(annotations, f"{_ANNOTATION}gpu-count"), 0)
    milli = read_count(at(annotations, f"{_ANNOTATION}gpu-milli"), GPU_MILLI)
    whole = UNKNOWN if gpus is None or milli is None else gpus
    part = UNKNOWN if milli is None else milli
    gpu_type = text_at(annotations, f"{_ANNOTATION}gpu-card-model")
    namespace = text_at(pod, "metadata", "namespace")
    created, is_date = _moment(text_at(annotations, f"{_ANNOTATION}creation-time"))
    deleted, _ = _moment(text_at(annotations, f"{_ANNOTATION}deletion-time"))
    return (
        text_at(pod, "metadata", "name"),
        words.setdefault(namespace, namespace),
        words.setdefault(gpu_type, gpu_type),
        whole,
        int(_milli(np.array([whole]), np.array([part]))[0]),
        UNKNOWN if need.cpus is None else need.cpus,
        UNKNOWN if need.memory is None else -(-need.memory // _MEGABYTE),
        created,
        deleted,
        is_date,
    )


def _moment(text: str) -> tuple[int, bool]:
    """Read seconds, or a date as microseconds since 1970, and tell whether it is a date; UNKNOWN for neither."""
    seconds = re.fullmatch(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", text.strip())
    if seconds:
        return round(float(text) * MICROSECONDS), False
    try:
        return microseconds_of(text.strip()), True
    except ValueError:
        return UNKNOWN, False


def _yaml_times(
    created: Integers, deleted: Integers, row: Integers, account: Account
) -> tuple[dict[str, Any], list[str]]:
    """A pod runs from its creation to its deletion: when it was scheduled is not told."""
    known = created != UNKNOWN
    if not known.any():
        return _timeless(account, row), [_TIMELESS_NOTE]
    account.repair("no creation time: submitted with the first", row[~known])
    submit = np.where(known, created, created[known].min())
    lasting = deleted == UNKNOWN
    account.repair("no deletion time: runs until the last moment of the file", row[lasting])
    end = np.where(lasting, max(int(submit.max()), int(deleted.max())), deleted)
    notes = ["Pods run from creation to deletion: when they were scheduled is not in the file."]
    return {"submit_us": submit, "duration_us": difference(end, submit)}, notes


FORMAT = Format("openb", "Alibaba GPU sharing trace 2023 (openb_pod_list_*.csv)", _recognises, _read)
YAML = Format("openb-yaml", "openb pods as YAML (kubernetes-scheduler-simulator)", _recognises_yaml, _read_yaml)
