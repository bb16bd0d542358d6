"""Venus and Philly whole, under all five policies: nothing is rejected or lost, no GPU is held twice."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from analysim.clusters import load_cluster
from analysim.tables import STATES, RunTables
from analysim.traces import read_trace
from tests.builders import ROOT, SHIPPED, Outcome, run

TRACES = ROOT.parent / "shared" / "traces"
pytestmark = [
    pytest.mark.skipif(not TRACES.is_dir(), reason=f"the public traces are not in {TRACES}"),
    pytest.mark.slow,
]

FILES = {
    "venus": (
        "helios/venus_gpu_jobs.csv.gz",
        {"submit_time": "arrival_s", "duration": "service_sec", "num_gpus": "gpu_count"},
        125_303,
    ),
    "philly": ("philly/philly_sia.csv.gz", {"submit_time": "timestamp", "partition": "cluster"}, 82_247),
}
CASES = [("venus", "venus-640"), ("venus", "helios-venus"), ("philly", "philly-640"), ("philly", "philly")]


@cache
def rows(name: str) -> pd.DataFrame:
    """A public trace."""
    path, columns, _ = FILES[name]
    return read_trace(TRACES / path, columns).frame


def simulate(trace: str, topology: str, policy: str) -> Outcome:
    """Run one of our policies over a public trace on one of our clusters."""
    return run(rows(trace), load_cluster(ROOT / "topologies" / f"{topology}.yaml"), policy, check=False)


@pytest.mark.parametrize(
    ("trace", "topology", "policy"),
    [
        *((*case, policy) for case in CASES for policy in ("fifo", "preempt", "migrate", "sjf", "srtf")),
        *(("philly", "philly-640", policy) for policy in SHIPPED if policy not in ("afs", "optimus")),
    ],
)
def test_every_job_completes_and_nothing_is_lost(trace: str, topology: str, policy: str) -> None:
    outcome = simulate(trace, topology, policy)
    jobs = outcome.tables.jobs
    counts = {state: int((jobs["state"] == state).sum()) for state in STATES}
    assert counts == {**dict.fromkeys(STATES, 0), "completed": FILES[trace][2]}
    assert len(outcome.tables.rejected) == 0 and outcome.simulation.starved == []
    check_times(jobs)
    check_work(outcome.tables)
    check_gpus(outcome.tables)
    facts = outcome.simulation.facts
    print(f"{topology} {policy}: mean JCT {jobs['jct_s'].mean():,.1f} s, {facts['passes']} passes")


def us(seconds: pd.Series) -> np.ndarray:
    """Seconds of a table as the integers they stand for."""
    return np.rint(seconds.to_numpy() * 1e6).astype(np.int64)


def check_times(jobs: pd.DataFrame) -> None:
    """No start before its submission; JCT is total wait and time held, to the microsecond."""
    submit, start, end = (us(jobs[name]) for name in ("submit_time_s", "first_start_time_s", "end_time_s"))
    assert (submit <= start).all() and (start <= end).all()
    assert (end - submit == us(jobs["jct_s"])).all()
    assert (us(jobs["jct_s"]) == us(jobs["total_wait_s"]) + us(jobs["held_s"])).all()


def check_work(tables: RunTables) -> None:
    """Work done is work asked: the progress of a job's stints, each counted once, adds up to its duration."""
    ran = tables.segments[tables.segments["kind"] == "run"]
    stints = ran.drop_duplicates(["job_id", "start_s"])
    done = pd.Series(us(stints["progress_s"])).groupby(stints["job_id"].to_numpy()).sum()
    asked = pd.Series(us(tables.jobs["duration_s"]), index=tables.jobs["job_id"])
    pd.testing.assert_series_equal(done.reindex(asked.index).fillna(0), asked, check_dtype=False, check_names=False)
    held = us(ran["end_s"]) - us(ran["start_s"])
    assert (held >= us(ran["progress_s"])).all()


def check_gpus(tables: RunTables) -> None:
    """Every GPU of every node is held by one segment at a time, and each segment holds GPUs that there are."""
    segments = tables.segments[tables.segments["kind"] != "suspend"]
    ids = [_indices(str(text)) for text in segments["gpu_ids"].cat.categories]
    codes = segments["gpu_ids"].cat.codes.to_numpy()
    count = np.array([len(each) for each in ids])[codes]
    assert (count == segments["gpus"]).all()
    row = np.repeat(np.arange(len(segments)), count)
    gpu = np.concatenate([ids[code] for code in codes])
    node = segments["node"].cat.codes.to_numpy()[row]
    start, end = us(segments["start_s"])[row], us(segments["end_s"])[row]
    order = np.lexsort((end, start, gpu, node))
    same = (node[order][1:] == node[order][:-1]) & (gpu[order][1:] == gpu[order][:-1])
    assert (start[order][1:] >= end[order][:-1])[same].all()
    of_node = tables.capacity.set_index("node")["gpus"]
    sizes = of_node.reindex(segments["node"].cat.categories).to_numpy()
    assert (gpu < sizes[node]).all()


def _indices(text: str) -> list[int]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize(("trace", "topology"), [("venus", "venus-640"), ("philly", "philly-640")])
def test_there_is_a_queue_of_thousands(trace: str, topology: str) -> None:
    jobs = simulate(trace, topology, "fifo").tables.jobs
    times = np.concatenate([jobs["submit_time_s"], jobs["first_start_time_s"]])
    steps = np.repeat([1, -1], len(jobs))
    assert np.cumsum(steps[np.argsort(times, kind="stable")]).max() > 2_000


def test_a_gpu_held_twice_would_be_found() -> None:
    tables = simulate("philly", "philly", "fifo").tables
    check_gpus(tables)
    broken = tables.segments.copy()
    broken.loc[broken.index[1000], "end_s"] += 10 * 86_400
    with pytest.raises(AssertionError):
        check_gpus(RunTables(**{**vars(tables), "segments": broken}))
