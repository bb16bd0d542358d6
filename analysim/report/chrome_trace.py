"""The schedule as Chrome trace JSON: one track per GPU, for Perfetto (ui.perfetto.dev) or chrome://tracing."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from analysim.errors import InvariantError
from analysim.tables import RunTables, read_gpu_ids
from analysim.units import MICROSECONDS
from analysim.whole_file import whole_file

MOST_SLICES = 500_000
"""Slices written unless told otherwise: about 80 MB of JSON, which Perfetto still opens in seconds."""


@dataclass(frozen=True)
class Tracks:
    """A process per node and a track per GPU.

    Track ids are unique and differ from all process ids: viewers take equal ids for a main thread.
    """

    process: dict[str, int]
    first_track: dict[str, int]
    gpus: dict[str, int]


def write_chrome_trace(tables: RunTables, path: Path, limit: int = MOST_SLICES) -> str:
    """Write who held each GPU when, as complete events ("X" of Google's "Trace Event Format").

    ``ts`` and ``dur`` are microseconds since the first submit. ``limit`` caps the slices: the first by start
    are kept. A ``path`` that ends in ``.gz`` is compressed. Returns a line on what was written and left out.
    Raises ``InvariantError`` where two slices of a track overlap, ``AnalysimError`` where the file cannot be
    written.
    """
    path = Path(path)
    rows = _held_rows(tables)
    ends = np.ceil(rows["gpus"].to_numpy(dtype=float)).astype(np.int64).cumsum()
    total = int(ends[-1]) if len(ends) else 0
    kept = rows.iloc[: int(np.searchsorted(ends, limit, side="right"))]
    tracks = _lay_tracks(tables.capacity)
    placed = [read_gpu_ids(text) for text in kept["gpu_ids"]]
    _check_tracks(kept, placed, tracks)
    written = sum(map(len, placed))
    note = f"{written:,} slices, one for each GPU and interval"
    if written < total:
        note += f"; {total - written:,} later ones left out (limit {limit:,})"
    with whole_file(path) as temporary, _open_text(temporary, path.suffix == ".gz") as file:
        file.writelines(_lines(tables, kept, placed, tracks, note))
    return note


def _held_rows(tables: RunTables) -> pd.DataFrame:
    """Rows of ``segments`` that hold GPUs for some time, by start; start_us, end_us since first submit."""
    segments = tables.segments
    rows = segments[(segments["gpus"] > 0) & (segments["end_s"] > segments["start_s"])]
    submits = tables.jobs["submit_time_s"]
    origin_us = round(float(submits.min()) * MICROSECONDS) if len(submits) else 0
    start_us = np.rint(rows["start_s"].to_numpy(dtype=float) * MICROSECONDS).astype(np.int64) - origin_us
    end_us = np.rint(rows["end_s"].to_numpy(dtype=float) * MICROSECONDS).astype(np.int64) - origin_us
    return rows.assign(start_us=start_us, end_us=end_us).sort_values("start_us", kind="stable")


def _lay_tracks(capacity: pd.DataFrame) -> Tracks:
    gpus = {str(node): int(most) for node, most in capacity.groupby("node", sort=False)["gpus"].max().items()}
    gpus = {node: most for node, most in gpus.items() if most > 0}
    process = {node: number for number, node in enumerate(gpus, 1)}
    firsts = np.cumsum([len(gpus) + 1, *gpus.values()]).tolist()
    return Tracks(process, dict(zip(gpus, firsts, strict=False)), gpus)


def _check_tracks(kept: pd.DataFrame, placed: Sequence[tuple[int, ...]], tracks: Tracks) -> None:
    """Raise ``InvariantError`` where a GPU is held twice: viewers show that wrongly, without a word."""
    whole = (kept["gpus"] >= 1).to_numpy(bool)
    placed = [ids for ids, alone in zip(placed, whole, strict=True) if alone]
    if not placed:
        return
    kept = kept[whole]
    counts = [len(ids) for ids in placed]
    first_track = kept["node"].map(tracks.first_track).to_numpy(dtype=np.int64)
    track = np.repeat(first_track, counts) + np.concatenate(placed)
    start, end = (np.repeat(kept[name].to_numpy(dtype=np.int64), counts) for name in ("start_us", "end_us"))
    order = np.lexsort((start, track))
    same = track[order][1:] == track[order][:-1]
    overlaps = np.flatnonzero(same & (start[order][1:] < end[order][:-1]))
    if len(overlaps):
        row = kept.iloc[int(np.repeat(np.arange(len(kept)), counts)[order][overlaps[0] + 1])]
        raise InvariantError(
            f"segments: at {row['start_s']} s job {row['job_id']} takes GPUs {row['gpu_ids']} of node"
            f" {row['node']!r}, one of which is held already.",
            "Report this run: it is a defect of the simulator.",
        )


def _lines(
    tables: RunTables, kept: pd.DataFrame, placed: Sequence[tuple[int, ...]], tracks: Tracks, note: str
) -> Iterator[str]:
    facts = json.dumps({"source": "AnalySIM", "time_zero": "first submit", "note": note})
    yield f'{{"displayTimeUnit":"ms","otherData":{facts},"traceEvents":[\n'
    events = chain(_name_tracks(tracks), _slices(tables.jobs, kept, placed, tracks))
    yield next(events, "")
    for event in events:
        yield f",\n{event}"
    yield "\n]}\n"


def _name_tracks(tracks: Tracks) -> Iterator[str]:
    for node, process in tracks.process.items():
        name = json.dumps(node)
        yield f'{{"ph":"M","name":"process_name","pid":{process},"args":{{"name":{name}}}}}'
        yield f'{{"ph":"M","name":"process_sort_index","pid":{process},"args":{{"sort_index":{process}}}}}'
        for gpu in range(tracks.gpus[node]):
            place = f'"pid":{process},"tid":{tracks.first_track[node] + gpu}'
            yield f'{{"ph":"M","name":"thread_name",{place},"args":{{"name":"GPU {gpu}"}}}}'
            yield f'{{"ph":"M","name":"thread_sort_index",{place},"args":{{"sort_index":{gpu}}}}}'


def _slices(
    jobs: pd.DataFrame, kept: pd.DataFrame, placed: Sequence[tuple[int, ...]], tracks: Tracks
) -> Iterator[str]:
    tenants = kept["job_id"].map(jobs.set_index("job_id")["tenant"]).fillna("")
    columns = (kept[name] for name in ("job_id", "kind", "node", "gpus", "start_us", "end_us", "progress_s"))
    rows = zip(placed, tenants, *columns, strict=True)
    for number, (ids, tenant, job, kind, node, gpus, start, end, progress) in enumerate(rows):
        name = json.dumps(f"job {job}" if kind == "run" else f"{kind} of job {job}")
        arguments = json.dumps({"job": str(job), "tenant": tenant, "kind": kind, "progress_s": progress})
        if gpus < 1:
            yield from _share(number, f'"pid":{tracks.process[node]},"cat":"{kind}","name":{name}', ids, start, end)
            continue
        head = f'{{"ph":"X","name":{name},"cat":"{kind}","ts":{start},"dur":{end - start}'
        head += f',"pid":{tracks.process[node]}'
        first = tracks.first_track[node]
        for gpu in ids:
            yield f'{head},"tid":{first + gpu},"args":{arguments}}}'


def _share(number: int, what: str, ids: tuple[int, ...], start: int, end: int) -> Iterator[str]:
    """A share of a GPU as an asynchronous slice: slices of one track may not overlap, those of shares do."""
    yield f'{{"ph":"b","id":{number},{what},"ts":{start},"args":{{"gpu":{ids[0]}}}}}'
    yield f'{{"ph":"e","id":{number},{what},"ts":{end}}}'


@contextmanager
def _open_text(path: Path, compressed: bool) -> Iterator[TextIO]:
    """Open for writing; the compressed bytes carry neither name nor time of writing."""
    with ExitStack() as files:
        target: Any = files.enter_context(path.open("wb"))
        if compressed:
            target = files.enter_context(gzip.GzipFile("", "wb", 6, target, mtime=0))
        yield files.enter_context(io.TextIOWrapper(target, encoding="utf-8", newline="\n"))
