"""The page about a trace: whole, the same bytes each time, and readable at page width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from test_report_figures import DrawnTexts, check_file

from analysim.errors import AnalysimError, UserError
from analysim.report.trace_page import _draw_demand, _intervals, draw_trace
from analysim.traces import Trace, describe, trace_arrays
from analysim.traces.log import Account
from tests.builders import frame

HOUR = 3_600_000_000


def made(count: int, **columns: object) -> Trace:
    """A trace of random jobs, without waits unless they are given."""
    draw = np.random.default_rng(count)
    given = {
        "submit_us": np.sort(draw.integers(0, 40 * 24 * HOUR, count)),
        "duration_us": (draw.lognormal(8, 3, count) * 1e6).astype(np.int64),
        "gpu_milli": draw.choice([1, 2, 8, 64, 512, 1_024], count) * 1_000,
    }
    jobs = frame(**{**given, **columns})
    name = "a-name-of-a-log-that-is-quite-long-and-has-$odd$-parts_in^it-and-goes-on"
    return Trace(jobs, name, name, "slurm-sacct", account=Account(rows=count))


def waiting(count: int) -> Trace:
    trace = made(count)
    start = trace.frame["submit_us"] + trace.frame["duration_us"] // 3
    return Trace(**{**vars(trace), "frame": trace.frame.assign(recorded_start_us=start), "time_origin": "2024-05-01T10:00:00+00:00"})


TRACES = {
    "waiting": waiting(3_000),
    "undated": made(3_000),
    "short": made(50, duration_us=np.full(50, 600_000)),
    "one job": made(1),
    "one instant": made(5, submit_us=np.zeros(5), duration_us=np.zeros(5)),
    "CPU jobs": made(4, gpu_milli=np.zeros(4)),
    "not told": Trace(**{**vars(made(9, gpu_milli=np.zeros(9))), "lacks": "pai_task_table.csv (plan_gpu)"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", TRACES)
def test_the_page_can_be_read(shape: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trace = TRACES[shape]
    texts = DrawnTexts(monkeypatch)
    facts = describe(trace, cluster_gpus=1_152)
    for name in ("a.png", "b.png", "a.svg", "b.svg"):
        draw_trace(facts, trace_arrays(trace), tmp_path / name)
        check_file(tmp_path / name)
    texts.check()
    for kind in ("png", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    trace = TRACES["one job"]
    with pytest.raises(UserError, match=r"figures are PNG or SVG"):
        draw_trace(describe(trace), trace_arrays(trace), tmp_path / "page.pdf")
    with pytest.raises(AnalysimError, match="cannot be written"):
        draw_trace(describe(trace), trace_arrays(trace), tmp_path / "nowhere" / "page.png")


@pytest.mark.parametrize(
    ("shape", "words"),
    [("one instant", "no job runs any time"), ("CPU jobs", "no job with GPUs"), ("not told", "GPUs are not told")],
)
def test_why_there_is_no_demand(shape: str, words: str) -> None:
    axes = Figure().add_subplot()
    _draw_demand(axes, describe(TRACES[shape]), trace_arrays(TRACES[shape]))
    assert [text.get_text() for text in axes.texts] == [words]


def test_demand_is_averaged_by_time() -> None:
    edges, means, peaks = _intervals(np.array([0.0, 100.0, 150.0, 400.0]), np.array([8.0, 0.0, 4.0, 0.0]))
    assert (edges[0], edges[-1], len(means)) == (0.0, 400.0, 400)
    assert (means[:100] == 8).all() and (means[100:150] == 0).all() and (means[150:] == 4).all()
    assert (peaks >= means).all()
    assert float((means * np.diff(edges)).sum()) == pytest.approx(8 * 100 + 4 * 250)
    _, means, peaks = _intervals(np.array([0.0, 0.1, 0.3, 400.0]), np.array([1.0, 9.0, 1.0, 0.0]))
    assert (means[0], peaks[0], peaks[1]) == (pytest.approx(2.6), 9.0, 1.0)
