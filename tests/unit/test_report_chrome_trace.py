"""The Chrome trace: every GPU a track, no two slices of a track at once, capped, the same bytes each time."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_tables import make_tables, nothing, one_job, simulate

from analysim.errors import AnalysimError, InvariantError
from analysim.report import write_chrome_trace
from analysim.tables import RunTables


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the whole document, and its slices."""
    document = json.loads(path.read_bytes())
    return document, [event for event in document["traceEvents"] if event["ph"] == "X"]


def test_one_job_of_four_gpus_is_four_slices(tmp_path: Path) -> None:
    note = write_chrome_trace(one_job(), tmp_path / "trace.json")
    document, slices = read(tmp_path / "trace.json")
    assert note == document["otherData"]["note"] == "4 slices, one for each GPU and interval"
    names = {
        event["tid"]: event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] == "thread_name"
    }
    assert [names[event["tid"]] for event in slices] == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]
    assert len(names) == 8  # idle GPUs have tracks too
    for event in slices:
        assert (event["ts"], event["dur"], event["name"]) == (0, 3_600_000_000, "job 0")
        assert event["args"] == {"job": "0", "tenant": "ann", "kind": "run", "progress_s": 3600.0}


def test_slices_of_a_track_do_not_overlap_and_add_up_to_the_gpu_time(tmp_path: Path) -> None:
    tables = simulate(300, 3, ['a "quoted" name', "b\\c"])
    write_chrome_trace(tables, tmp_path / "trace.json")
    document, slices = read(tmp_path / "trace.json")
    tracks = defaultdict(list)
    for event in slices:
        tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        assert all(
            end <= start for (_, end), (start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False)
        )
    segments = tables.segments
    held_us = ((segments["end_s"] - segments["start_s"]) * segments["gpus"]).sum() * 1e6
    assert sum(event["dur"] for event in slices) == held_us
    assert {event["cat"] for event in slices} == {"run", "checkpoint", "restart"}
    processes = {event["pid"] for event in document["traceEvents"]}
    assert not processes & {event["tid"] for event in slices}
    assert len({track for _, track in tracks}) == len(tracks)


def test_limit_keeps_the_first_slices_and_says_so(tmp_path: Path) -> None:
    tables = simulate(300, 3, ["a"])
    segments = tables.segments[tables.segments["end_s"] > tables.segments["start_s"]]
    total = int(segments["gpus"].sum())
    note = write_chrome_trace(tables, tmp_path / "trace.json", limit=100)
    document, slices = read(tmp_path / "trace.json")
    assert 100 - 8 < len(slices) <= 100
    assert note == document["otherData"]["note"]
    assert f"{total - len(slices):,} later ones left out (limit 100)" in note
    last_kept = max(event["ts"] for event in slices) / 1e6 + tables.jobs["submit_time_s"].min()
    ordered = segments.sort_values("start_s")
    assert (ordered["start_s"][ordered["gpus"].cumsum() <= 100] <= last_kept).all()


def test_a_path_that_ends_in_gz_is_compressed_to_the_same_bytes(tmp_path: Path) -> None:
    tables = simulate(50, 2, ["a"])
    for name in ("1.json.gz", "2.json.gz", "plain.json"):
        write_chrome_trace(tables, tmp_path / name)
    first = (tmp_path / "1.json.gz").read_bytes()
    assert first == (tmp_path / "2.json.gz").read_bytes()
    assert gzip.decompress(first) == (tmp_path / "plain.json").read_bytes()


def test_intervals_that_hold_nothing_or_take_no_time_are_left_out(tmp_path: Path) -> None:
    tables = make_tables(
        [{"submit_time_s": 0.0, "end_time_s": 9.0}],
        [
            {"start_s": 0.0, "end_s": 0.0, "node": "n0"},
            {"start_s": 0.0, "end_s": 9.0, "node": "n0", "gpus": 0.0, "gpu_ids": "", "kind": "suspend"},
            {"start_s": 0.0, "end_s": 9.0, "node": "", "gpus": 0.0, "gpu_ids": ""},
        ],
        [{"node": "n0"}],
    )
    write_chrome_trace(tables, tmp_path / "trace.json")
    assert read(tmp_path / "trace.json")[1] == []


def test_an_empty_run_is_still_a_trace(tmp_path: Path) -> None:
    write_chrome_trace(nothing(), tmp_path / "trace.json")
    assert read(tmp_path / "trace.json")[1] == []
    bare = replace(nothing(), capacity=nothing().capacity.iloc[:0])
    write_chrome_trace(bare, tmp_path / "bare.json")
    assert read(tmp_path / "bare.json")[0]["traceEvents"] == []


def held_twice() -> RunTables:
    tables = one_job()
    second = tables.segments.assign(start_s=3600.0, end_s=3700.0, gpus=1.0, gpu_ids="3")
    return replace(tables, segments=pd.concat([tables.segments, second], ignore_index=True))


def test_a_gpu_held_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvariantError, match=r"at 3600\.0 s job 0 takes GPUs 3 of node 'n0'"):
        write_chrome_trace(held_twice(), tmp_path / "trace.json")
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "trace.json").mkdir()
    with pytest.raises(AnalysimError, match=r"trace\.json"):
        write_chrome_trace(one_job(), tmp_path / "trace.json")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
