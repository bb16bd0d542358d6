"""The CSV writer: every cell reads back as it was, and no time is ever written as 1e-06."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysim.run import csv_table
from analysim.run.csv_table import write_csv


def cells(frame: pd.DataFrame, folder: Path) -> list[list[str]]:
    write_csv(frame, folder / "table.csv")
    with (folder / "table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1e-6, "0.000001"),
        (0.5, "0.5"),
        (-0.25, "-0.25"),
        (120.0, "120"),
        (1234567.000001, "1234567.000001"),
        (8_000_000_000.999999, "8000000000.999999"),
        (float("nan"), ""),
    ],
)
def test_seconds_are_plain_decimals(value: float, text: str, tmp_path: Path) -> None:
    assert cells(pd.DataFrame({"wait_s": [value], "n": [1]}), tmp_path)[1] == [text, "1"]


@given(st.lists(st.integers(-(10**12), 8 * 10**15), min_size=1))
def test_microseconds_survive(tmp_path_factory: pytest.TempPathFactory, times_us: list[int]) -> None:
    frame = pd.DataFrame({"end_s": np.array(times_us) / 1e6})
    rows = cells(frame, tmp_path_factory.mktemp("csv"))[1:]
    assert [round(float(row[0]) * 1e6) for row in rows] == times_us
    assert not any("e" in row[0] for row in rows)


@given(st.lists(st.floats(allow_infinity=False, allow_nan=False), min_size=1))
def test_other_numbers_read_back_equal(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    rows = cells(pd.DataFrame({"value": values}), tmp_path_factory.mktemp("csv"))[1:]
    assert [float(row[0]) for row in rows] == values
    assert not any("e" in row[0] for row in rows)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8), min_size=1
    )
)
def test_texts_survive_quotes_commas_and_scripts(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    frame = pd.DataFrame({"tenant": pd.array(texts, dtype="str"), "n": range(len(texts))})
    assert [row[0] for row in cells(frame, tmp_path_factory.mktemp("csv"))[1:]] == texts


def test_kinds_of_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "job_id": [-5, 12],
            "preemptible": [True, False],
            "state": pd.Categorical(["killed", "completed"], categories=["completed", "killed", "rejected"]),
            "model": pd.array(["a", None], dtype="str"),
            "speed": [1.0, 0.333333],
        }
    )
    assert cells(frame, tmp_path) == [
        ["job_id", "preemptible", "state", "model", "speed"],
        ["-5", "true", "killed", "a", "1"],
        ["12", "false", "completed", "", "0.333333"],
    ]


def test_an_empty_table_is_a_header(tmp_path: Path) -> None:
    assert cells(pd.DataFrame({"time_s": np.array([], float), "name": np.array([], object)}), tmp_path) == [
        ["time_s", "name"]
    ]


def test_blocks_of_rows_join_without_a_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"job_id": range(1_000), "end_s": np.arange(1_000) * 0.125})
    whole = cells(frame, tmp_path)
    monkeypatch.setattr(csv_table, "_BLOCK_BYTES", 100)
    assert cells(frame, tmp_path) == whole
    assert len(whole) == 1_001
