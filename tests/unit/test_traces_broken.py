"""Every way in which a trace file can be broken, with the one line it must give."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pandas as pd
import pytest

from analysim.errors import MissingExtraError, TraceError
from analysim.traces import find_problems, read_trace

HEADER = "job_id,submit_time,duration,num_gpus"
GOOD = f"{HEADER}\n1,0,5,1\n"
DURATION = "Write seconds (90), or units as in 1h30m."
TIME = "Write seconds (12.5) or ISO 8601 (2024-05-01T12:00:00+02:00)."
GPUS = "Write a whole number, 0 or more, or a share of one GPU such as 0.5."
CORRECT = "Correct the cell, or leave the job out."
MILLISECONDS = "Times are seconds: divide milliseconds by 1,000, or correct the cell."
ONE_ID = "Give each job an id of its own, or leave the column out to have the rows numbered."
COMMAS = 'Put "quotation marks" around a value with a comma in it; keep the commas of empty cells.'
EMPTY = "A trace has a line of column names and a line for each job."
CELL_OR_EMPTY = "Correct it, or leave the cell empty."
COPY = "Copy or download it again."


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tell(data: str | bytes, name: str = "prod.csv", columns: dict[str, str] | None = None) -> tuple[str, str]:
    """Write a file, read it, and return the message and the remedy of the error."""
    Path(name).write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(TraceError) as caught:
        read_trace(name, columns)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return caught.value.message, caught.value.remedy


FILES = {
    "empty": (b"", " is empty.", EMPTY),
    "blank lines": (b"\n \n", " is empty.", EMPTY),
    "a byte order mark and nothing": (b"\xef\xbb\xbf", " is empty.", EMPTY),
    "header only": (f"{HEADER}\n", " has column names but no rows.", "A trace has a line for each job."),
    "no header": (
        "1,0,5,2\n2,0,5,1\n",
        " has no column names: its first line is 1,0,5,2.",
        "Put a line of column names above it.",
    ),
    "semicolons of Excel": (
        GOOD.replace(",", ";"),
        " separates its columns by semicolons, as Excel writes them where the decimal mark is a comma,"
        " not by commas.",
        "Save it as CSV with commas and decimal points "
        "(pandas: read_csv(..., sep=';', decimal=',').to_csv(..., index=False)).",
    ),
    "tabs": (
        GOOD.replace(",", "\t"),
        " separates its columns by tabs, not by commas.",
        "Save it as CSV with commas and decimal points "
        "(pandas: read_csv(..., sep='\\t').to_csv(..., index=False)).",
    ),
    "vertical bars": (
        GOOD.replace(",", "|"),
        " separates its columns by vertical bars, not by commas.",
        "Save it as CSV with commas and decimal points "
        "(pandas: read_csv(..., sep='|').to_csv(..., index=False)).",
    ),
    "UTF-16": (
        GOOD.encode("utf-16"),
        " is UTF-16 text, not CSV.",
        "Save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 FILE > new.csv",
    ),
    "Latin-1": (
        f"{HEADER},user\n1,0,5,1,José\n".encode("latin-1"),
        " is not UTF-8: line 2 has the byte 0xe9.",
        "Save it as UTF-8 (Excel: CSV UTF-8), or: iconv -f WINDOWS-1252 -t UTF-8 FILE > new.csv",
    ),
    "NUL bytes": (
        GOOD.encode() + b"2,\0,5,1\n",
        " is not text: line 3 has a NUL byte.",
        "Give a CSV file in UTF-8, or a Parquet file.",
    ),
    "an Excel workbook": (
        b"PK\x03\x04 and so on",
        " is a ZIP archive or an Excel workbook, not CSV.",
        "Save the sheet as CSV UTF-8, or unpack the archive.",
    ),
    "zstd": (
        b"\x28\xb5\x2f\xfd and so on",
        " is compressed with zstd, not CSV.",
        "Unpack it, or compress it with gzip.",
    ),
    "truncated gzip": (gzip.compress(GOOD.encode())[:-9], ": the gzip file ends too early.", COPY),
    "damaged gzip": (
        b"\x1f\x8b and so on",
        ": the gzip file is damaged (Unknown compression method).",
        COPY,
    ),
    "two columns of one name": (
        f"{HEADER},duration\n1,0,5,1,5\n",
        ': columns 3 and 5 are both called "duration".',
        "Rename or remove one of them.",
    ),
    "missing columns": (
        "id,arrival_s,service_sec,gpu_count\n1,0,5,1\n",
        " has no column submit_time, duration, num_gpus; it has id, arrival_s, service_sec, gpu_count.",
        "Name your own: --column submit_time=arrival_s --column duration=service_sec"
        " --column num_gpus=gpu_count",
    ),
    "missing column of no known name": (
        "job_id,submit_time,duration,x\n1,0,5,1\n",
        " has no column num_gpus; it has job_id, submit_time, duration, x.",
        "Name your own: --column num_gpus=YOUR_COLUMN",
    ),
    "a missing column misspelt": (
        "job_id,Submit_Time,duration,num_gpu\n1,0,5,1\n",
        " has no column submit_time, num_gpus; it has job_id, Submit_Time, duration, num_gpu.",
        "Name your own: --column submit_time=Submit_Time --column num_gpus=num_gpu",
    ),
    "a short row": (f"{GOOD}2,0,5\n", ", row 2 (line 3): 3 fields where the header names 4 columns.", COMMAS),
    "a long row": (
        f"{GOOD}2,0,5,1,9\n",
        ", row 2 (line 3): 5 fields where the header names 4 columns.",
        COMMAS,
    ),
    "a long row and a short one": (
        f"{HEADER}\n1,0,5,1,9\n2,0,5\n",
        ", row 1 (line 2): 5 fields where the header names 4 columns.",
        COMMAS,
    ),
    "an open quotation mark": (
        f'{GOOD}2,0,"5,1\n3,0,5,1\n',
        ", row 2 (line 3): a quotation mark is opened and never closed.",
        "Close it, or remove it.",
    ),
}
CELLS = {
    "negative duration": (
        "1,0,-5,1\n2,0,4,1\n3,0,-7,1",
        ', row 1 (line 2), column duration: "-5" is negative; 1 more: row 3 (line 4) "-7".',
        CORRECT,
    ),
    "durations that are none": (
        "1,0,5,1\n2,0,nan,1\n3,0,inf,1\n4,0,,1\n5,0,abc,1\n6,0,00:05:00,1\n7,0,1e999,1",
        ', row 2 (line 3), column duration: "nan" is not a duration; 5 more: row 3 (line 4) "inf", '
        'row 4 (line 5) an empty cell, row 5 (line 6) "abc", row 6 (line 7) "00:05:00" and others.',
        DURATION,
    ),
    "infinite duration": (
        "1,0,inf,1",
        ', row 1 (line 2), column duration: "inf" is not a duration.',
        DURATION,
    ),
    "duration beyond 285 years": (
        "1,0,99999999999,1",
        ', row 1 (line 2), column duration: "99999999999" is too large.',
        MILLISECONDS,
    ),
    "duration beyond 64 bits": (
        "1,0,99999999999999999999,1",
        ', row 1 (line 2), column duration: "99999999999999999999" is too large.',
        MILLISECONDS,
    ),
    "duration of very many days": (
        f"1,0,{'9' * 400}d,1",
        f', row 1 (line 2), column duration: "{"9" * 40}..." is too large.',
        MILLISECONDS,
    ),
    "submit in milliseconds": (
        "1,1714557600000,5,1",
        ', row 1 (line 2), column submit_time: "1714557600000" is too large.',
        MILLISECONDS,
    ),
    "submit not a time": ("1,soon,5,1", ', row 1 (line 2), column submit_time: "soon" is not a time.', TIME),
    "submit now": (
        "1,2024-05-01,5,1\n2,now,5,1\n3,2024-05-02,5,1",
        ', row 2 (line 3), column submit_time: "now" is not a time.',
        TIME,
    ),
    "submit empty": (
        "1,,5,1\n2,0,5,1",
        ", row 1 (line 2), column submit_time: an empty cell is not a time.",
        TIME,
    ),
    "submit in another order of day and month": (
        "1,13/05/2024 12:00,5,1",
        ', row 1 (line 2), column submit_time: "13/05/2024 12:00" is not a time.',
        TIME,
    ),
    "a number among dates": (
        "1,2024-05-01,5,1\n2,17,5,1\n3,2024-05-02,5,1",
        ', row 2 (line 3), column submit_time: "17" is not a time.',
        TIME,
    ),
    "a date of 0": (
        "1,0001-01-01,5,1",
        ', row 1 (line 2), column submit_time: "0001-01-01" is before 1970.',
        "Times are 0 or more: add the same number to all of them, or correct the cell.",
    ),
    "negative submit": (
        "1,-1,5,1",
        ', row 1 (line 2), column submit_time: "-1" is negative.',
        "Times are 0 or more: add the same number to all of them, or correct the cell.",
    ),
    "blank lines are counted": (
        "1,0,5,1\n\n  \n2,0,-1,1",
        ', row 2 (line 5), column duration: "-1" is negative.',
        CORRECT,
    ),
    "a cell with a line break": (
        '"1\n1",0,5,1\n2,0,-1,1',
        ', row 2 (line 4), column duration: "-1" is negative.',
        CORRECT,
    ),
    "duplicate id": (
        "a,0,5,1\nb,0,5,1\na,9,5,1",
        ', row 3 (line 4), column job_id: "a" is the id of row 1 (line 2) too.',
        ONE_ID,
    ),
    "duplicate number as id": (
        "7,0,5,1\n8,0,5,1\n8,9,5,1",
        ', row 3 (line 4), column job_id: "8" is the id of row 2 (line 3) too.',
        ONE_ID,
    ),
    "no id": (
        ",0,5,1\n2,0,5,1",
        ", row 1 (line 2), column job_id: an empty cell is not an id.",
        "Give each job an id.",
    ),
    "more than a part of a GPU": (
        "1,0,5,1.5",
        ', row 1 (line 2), column num_gpus: "1.5" is not a number of GPUs.',
        GPUS,
    ),
    "less than a thousandth of a GPU": (
        "1,0,5,0.0004",
        ', row 1 (line 2), column num_gpus: "0.0004" is not a number of GPUs.',
        GPUS,
    ),
    "GPUs as a word": ("1,0,5,two", ', row 1 (line 2), column num_gpus: "two" is not a number of GPUs.', GPUS),
    "GPUs as true": ("1,0,5,True", ', row 1 (line 2), column num_gpus: "True" is not a number of GPUs.', GPUS),
    "negative GPUs": ("1,0,5,-1", ', row 1 (line 2), column num_gpus: "-1" is negative.', CORRECT),
    "no GPUs said": (
        "1,0,5,",
        ", row 1 (line 2), column num_gpus: an empty cell is not a number of GPUs.",
        GPUS,
    ),
    "several kinds": (
        "1,0,x,1\n2,0,5,-1",
        ', row 1 (line 2), column duration: "x" is not a duration.',
        f"{DURATION} 1 other kind of problem: see analysim trace validate.",
    ),
    "a very long value": (
        f"1,0,{'x' * 50},1",
        f', row 1 (line 2), column duration: "{"x" * 40}..." is not a duration.',
        DURATION,
    ),
}
OPTIONAL = {
    "a level that there is not": (
        "topology_required",
        "shelf",
        '"shelf" is none of node, nvlink, rack, pod.',
        "Write one of them, or leave the cell empty.",
    ),
    "gang that does not divide": (
        "gpus_per_node",
        "3",
        '"3" does not divide the job\'s 8 GPUs.',
        "Write how many GPUs the gang has on each of its nodes, or leave the cell empty.",
    ),
    "negative CPUs": ("cpus", "-1", '"-1" is negative.', CORRECT),
    "memory with a unit": (
        "memory_gb",
        "64GB",
        '"64GB" is not a number.',
        "Write a number, 0 or more, without a unit.",
    ),
    "priority as a word": (
        "priority",
        "high",
        '"high" is not a whole number.',
        "Write a whole number, such as 0, 1 or -1.",
    ),
    "maybe preemptible": (
        "preemptible",
        "maybe",
        '"maybe" is not true or false.',
        "Write true, false, yes, no, 1 or 0.",
    ),
    "estimate": ("estimated_duration", "-1", '"-1" is negative.', CORRECT),
    "withdrawn too early": ("cancel_time", "5", '"5" is before the job\'s submit_time.', CELL_OR_EMPTY),
    "a date beside numbers": (
        "end_time",
        "2024-05-01",
        '"2024-05-01" is no time on the clock of submit_time, which holds numbers.',
        "Write all times as numbers, or all as dates.",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_broken_file(case: str) -> None:
    data, message, remedy = FILES[case]
    assert tell(data) == (f"prod.csv{message}", remedy)


@pytest.mark.parametrize("case", CELLS)
def test_broken_cell(case: str) -> None:
    rows, message, remedy = CELLS[case]
    assert tell(f"{HEADER}\n{rows}\n") == (f"prod.csv{message}", remedy)


@pytest.mark.parametrize("case", OPTIONAL)
def test_broken_optional_cell(case: str) -> None:
    column, value, what, remedy = OPTIONAL[case]
    told = tell(f"{HEADER},{column}\n1,10,5,8,{value}\n")
    assert told == (f"prod.csv, row 1 (line 2), column {column}: {what}", remedy)


def test_recorded_start_before_the_first_submission() -> None:
    assert tell(f"{HEADER},start_time\n1,2024-05-02,5,1,2024-05-01\n") == (
        'prod.csv, row 1 (line 2), column start_time: "2024-05-01" is before the first submission.',
        CELL_OR_EMPTY,
    )


def test_number_beside_dates() -> None:
    assert tell(f"{HEADER},cancel_time\n1,2024-05-02,5,1,60\n") == (
        'prod.csv, row 1 (line 2), column cancel_time: "60" is no time on the clock of submit_time, '
        "which holds dates.",
        "Write all times as dates, or all as numbers.",
    )


def test_mapped_columns_are_named_as_in_the_file() -> None:
    told = tell(
        "id,t,runtime,gpus\n1,0,-5,1\n",
        columns={"submit_time": "t", "duration": "runtime", "num_gpus": "gpus"},
    )
    assert told == ('prod.csv, row 1 (line 2), column runtime: "-5" is negative.', CORRECT)


@pytest.mark.parametrize(
    ("columns", "message", "remedy"),
    [
        (
            {"submit_tme": "submit_time"},
            "--column submit_tme=submit_time: the schema has no column 'submit_tme'.",
            "Did you mean 'submit_time'?",
        ),
        (
            {"tenant": "numgpus"},
            "--column tenant=numgpus: prod.csv has no column 'numgpus'.",
            "Did you mean 'num_gpus'?",
        ),
    ],
)
def test_wrong_mapping(columns: dict[str, str], message: str, remedy: str) -> None:
    assert tell(GOOD, columns=columns) == (message, remedy)


def test_folder() -> None:
    Path("prod").mkdir()
    with pytest.raises(TraceError, match=r"^prod is a folder, not a trace file\. Name a file in it\.$"):
        read_trace("prod")


def test_no_such_file() -> None:
    with pytest.raises(TraceError, match=r"^gone\.csv: there is no such file\. Check the path\.$"):
        read_trace("gone.csv")


def test_damaged_parquet() -> None:
    message, remedy = tell(b"PAR1 and so on", name="prod.parquet")
    assert message.startswith("prod.parquet: the Parquet file is damaged (")
    assert remedy == "Make it again."


def test_parquet_cells_have_no_line() -> None:
    table = pd.DataFrame({"submit_time": [0.0, 1.0], "duration": [5.0, -5.0], "num_gpus": [1, 1]})
    table.to_parquet("prod.parquet")
    assert tell(Path("prod.parquet").read_bytes(), name="prod.parquet") == (
        'prod.parquet, row 2, column duration: "-5.0" is negative.',
        CORRECT,
    )


def test_parquet_without_rows() -> None:
    pd.DataFrame({"submit_time": [], "duration": [], "num_gpus": []}).to_parquet("prod.parquet")
    assert tell(Path("prod.parquet").read_bytes(), name="prod.parquet")[0] == (
        "prod.parquet has column names but no rows."
    )


def test_parquet_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("prod.parquet").write_bytes(b"PAR1 and so on")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as caught:
        read_trace("prod.parquet")
    assert str(caught.value) == (
        "prod.parquet is a Parquet file, which needs pyarrow. "
        "Install it with: pip install 'analysim[parquet]'"
    )


def test_find_problems_counts_all_by_kind() -> None:
    rows = ["1,0,-5,1", "2,0,nan,1", "2,0,5,1.5", "4,0,-6,-1"] + [
        f"{number},x,5,1" for number in range(5, 15)
    ]
    Path("prod.csv").write_text("\n".join([HEADER, *rows]))
    problems = find_problems("prod.csv")
    assert [(problem.kind, problem.column, problem.count) for problem in problems] == [
        ("negative duration", "duration", 2),
        ("not a duration", "duration", 1),
        ("duplicate id", "job_id", 1),
        ("not a number of GPUs", "num_gpus", 1),
        ("negative num_gpus", "num_gpus", 1),
        ("not a time", "submit_time", 10),
    ]
    first_cells = problems[-1].cells
    assert [(cell.row, cell.line, cell.text) for cell in first_cells] == [
        (row, row + 1, "x") for row in range(5, 10)
    ]


def test_find_problems_of_a_good_file_and_of_no_table() -> None:
    Path("prod.csv").write_text(GOOD)
    assert find_problems("prod.csv") == []
    Path("prod.csv").write_text("")
    (problem,) = find_problems("prod.csv")
    assert (problem.kind, problem.message) == ("unreadable file", "prod.csv is empty.")
