"""Gavel's traces in each of their layouts: durations told (Shockwave), or steps at a speed in another file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces import Trace, read_trace
from tests.readers.mangled import check_mangled

LM = "LM (batch size 10)"
COMMAND = 'python3 main.py --data %s/x "a, b"'
SPEEDS = {
    "k80": {f"('{LM}', 1)": {"null": 2.0}},
    "v100": {f"('{LM}', 1)": {"null": 8.0, "('A3C', 1)": [1.0, 2.0]}, f"('{LM}', 2)": {"null": 10.0}, "A3C": {"null": 4}},
}


def lines(*rows: tuple[object, ...]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


LAYOUTS = {
    6: lines((LM, COMMAND, "--steps", 800, 5, 2), ("A3C", COMMAND, "--max-steps", 40, 0, 1)),
    7: lines((LM, COMMAND, "--steps", 1, 800, "5.000000", 2), ("A3C", COMMAND, "--max-steps", 0, 40, "0.000000", 1)),
    9: lines((LM, COMMAND, "--steps", 1, 800, 2, 1, "-1.000000", 5), ("A3C", COMMAND, "-n", 0, 40, 1, 5, 1.2, 0)),
    10: lines((LM, COMMAND, "lm", "--steps", 1, 800, 2, 1, -1, 5), ("A3C", COMMAND, "rl", "-n", 0, 40, 1, 5, 1.2, 0)),
    11: lines(
        (LM, COMMAND, "lm", "--steps", 1, 800, 2, "gns", 1, -1, 5),
        ("A3C", COMMAND, "rl", "-n", 0, 40, 1, "static", 5, 1.2, 0),
    ),
}
SHOCKWAVE = lines(
    (LM, COMMAND, "lm", "--steps", 1, 800, 2, "accordion", 1, "-1.000000", 1418, 5),
    ("A3C", COMMAND, "rl", "-n", 0, 40, 1, "static", 5, "-1.000000", 3338, 0),
)


def read(folder: Path, text: str, speeds: object = None, name: str | None = None) -> Trace:
    file = folder / "jobs.trace"
    file.write_text(text)
    if speeds is not None:
        (folder / "simulation_throughputs.json").write_text(json.dumps(speeds))
    return read_trace(file, format=name)


def test_shockwave_tells_durations(tmp_path: Path) -> None:
    trace = read(tmp_path, SHOCKWAVE)
    jobs = trace.frame.set_index("job_id")
    assert (trace.format, trace.name, trace.rows) == ("gavel", "jobs", 2)
    assert jobs["submit_us"].to_dict() == {0: 5_000_000, 1: 0}
    assert jobs["duration_us"].to_dict() == {0: 1_418_000_000, 1: 3_338_000_000}
    assert jobs["gpu_milli"].to_dict() == {0: 2_000, 1: 1_000}
    assert jobs["priority"].to_dict() == {0: 1, 1: 5}
    assert jobs["model"].to_dict() == {0: LM, 1: "A3C"}
    assert any("change their batch size" in note for note in trace.notes)


@pytest.mark.parametrize("width", LAYOUTS)
def test_steps_become_durations_at_the_speed_on_v100s(tmp_path: Path, width: int) -> None:
    trace = read(tmp_path, LAYOUTS[width], SPEEDS)
    jobs = trace.frame.set_index("job_id")
    assert trace.format == "gavel"
    assert jobs["duration_us"].to_dict() == {0: 80_000_000, 1: 10_000_000}
    assert jobs["submit_us"].to_dict() == {0: 5_000_000, 1: 0}
    assert jobs["gpu_milli"].to_dict() == {0: 2_000, 1: 1_000}
    assert any("speed on V100s" in note for note in trace.notes)


@pytest.mark.parametrize("width", LAYOUTS)
def test_without_speeds_it_says_what_is_missing(tmp_path: Path, width: int) -> None:
    with pytest.raises(TraceError) as caught:
        read(tmp_path, LAYOUTS[width])
    assert "tells the steps of its jobs, not how long they take" in str(caught.value)
    assert "simulation_throughputs.json beside it" in caught.value.remedy


def test_jobs_whose_speed_is_not_told_are_set_aside(tmp_path: Path) -> None:
    text = LAYOUTS[7] + lines(("CycleGAN", COMMAND, "--n_steps", 1, 9, 7, 1), (LM, COMMAND, "--steps", 1, 9, 8, 4))
    trace = read(tmp_path, text, SPEEDS)
    assert (trace.rows, len(trace.frame)) == (4, 2)
    assert [rows.tolist() for rows in trace.account.set_aside.values()] == [[3, 4]]
    assert list(trace.set_aside) == ["no speed told for its model and GPUs in simulation_throughputs.json"]


def test_service_level_objectives_are_told_of(tmp_path: Path) -> None:
    trace = read(tmp_path, LAYOUTS[10], SPEEDS)
    assert "1 jobs have a service level objective (SLO), which is not read." in trace.notes


@pytest.mark.parametrize("speeds", [[], {}, {"v100": []}, {"v100": {"A3C": 1}}, {"v100": {"A3C": {"null": [1, 2]}}}])
def test_a_table_of_speeds_that_is_none(tmp_path: Path, speeds: object) -> None:
    with pytest.raises(TraceError, match="is no table of speeds as Gavel writes it"):
        read(tmp_path, LAYOUTS[7], speeds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SHOCKWAVE[:-40], "line 2: 2 fields where 12 are expected"),
        (SHOCKWAVE.replace("\t3338", "\tlong"), r'line 2, duration: "long" is not a number'),
        (SHOCKWAVE.replace("\t3338", "\tnan"), r'line 2, duration: "nan" is not a number'),
        (SHOCKWAVE.replace("\t", ","), "its first line has 1 fields"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(tmp_path, text, name="gavel")


def test_a_table_between_tabs_of_something_else_is_not_claimed(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="tabs"):
        read(tmp_path, "job_id\tsubmit_time\tduration\tnum_gpus\ta\tb\n1\t0\t60\t4\t1\t2\n")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_files_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    check_mangled(SHOCKWAVE, seed, tmp_path / "jobs.trace", "gavel")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_mangled_steps_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    (tmp_path / "simulation_throughputs.json").write_text(json.dumps(SPEEDS))
    check_mangled(LAYOUTS[7], seed, tmp_path / "jobs.trace", "gavel")
