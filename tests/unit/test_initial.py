"""Jobs that ran when a window begins hold their GPUs from then on."""

from __future__ import annotations

from pathlib import Path

import pytest

import analysim
from analysim.config.run import RunConfig
from analysim.errors import UserError
from analysim.run.inputs import load_inputs
from analysim.run.understanding import understand
from analysim.traces import read_trace
from analysim.traces.shaping import window

ROWS = """job_id,submit_time,duration,num_gpus,start_time,end_time,node,estimated_duration
old,0,1000,4,10,1010,n01,2000
done,5,50,4,10,60,n00,
later,20,500,2,300,800,n00,
new,100,10,8,120,130,n00,
"""
TOPOLOGY = """name: two
node_types: {n: {gpus: 4}}
racks: [{name: r, nodes: [{type: n, names: "n[00-01]"}]}]
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "t.csv"
    file.write_text(ROWS)
    (tmp_path / "two.yaml").write_text(TOPOLOGY)
    return file


def test_what_is_left_of_a_running_job_is_submitted_as_the_window_begins(trace: Path) -> None:
    kept = window(read_trace(trace), "100s:", initial=True)
    jobs = kept.frame.set_index("job_id")
    assert kept.initial == {"old"}
    assert list(jobs.index) == ["new", "old"]
    assert jobs.loc["old", ["submit_us", "duration_us", "estimate_us"]].tolist() == [100e6, 910e6, 1910e6]
    assert kept.left_out == {"submitted outside 100s:": 2}


def test_it_holds_its_gpus_on_its_node_before_anybody_else(trace: Path) -> None:
    """``new`` stands first by its id and asks for both nodes: it waits for the rest of ``old``."""
    run = analysim.simulate(trace, "fifo", trace.parent / "two.yaml", window="100s:", initial=True)
    jobs = run.jobs.set_index("job_id")
    assert jobs["first_start_time_s"].to_dict() == {"old": 100.0, "new": 1010.0}
    assert run.segments.loc[run.segments["job_id"] == "old", "node"].tolist() == ["n01"]
    assert run.record["initial"] == {"jobs": 1, "waiting": 0}


def test_without_it_the_cluster_starts_empty(trace: Path) -> None:
    run = analysim.simulate(trace, "fifo", trace.parent / "two.yaml", window="100s:")
    assert run.jobs["first_start_time_s"].tolist() == [100.0]


def test_recorded_starts_are_needed(trace: Path) -> None:
    trace.write_text("job_id,submit_time,duration,num_gpus\na,0,10,1\nb,5,10,1\n")
    with pytest.raises(UserError, match="--initial needs recorded starts"):
        window(read_trace(trace), "1s:", initial=True)


def test_the_time_to_fill_up(trace: Path) -> None:
    """Held from 0 to 100 s: 4 GPUs throughout, 4 more from 5 to 55 s, then 2 more: 6.9 on average, reached at 5 s."""
    run = analysim.simulate(trace, "fifo", trace.parent / "two.yaml")
    assert run.summary["fill_up_s"] == 5.0


def test_it_is_said_where_nothing_ran(trace: Path) -> None:
    told = "--initial changes nothing: no job is recorded as running when "
    for window_, when in ((None, "the trace begins (there is no --window)"), ("5s:", "the window begins")):
        trace.write_text(ROWS.replace(",10,1010,", ",12,1010,"))
        config = RunConfig(trace=str(trace), topology=str(trace.parent / "two.yaml"), window=window_, initial=True)
        assert told + when in understand(load_inputs(config)).warnings
    ran = config.model_copy(update={"window": "100s:"})
    assert not any(told in line for line in understand(load_inputs(ran)).warnings)
