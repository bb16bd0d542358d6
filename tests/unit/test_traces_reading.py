"""Reading good traces: columns, types, clocks, ids, order and formats."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.traces import Trace, read_trace
from analysim.traces.schema import COLUMNS, FRAME_COLUMNS

HEADER = "job_id,submit_time,duration,num_gpus"


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str | bytes, name: str = "prod.csv", columns: dict[str, str] | None = None) -> Trace:
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_trace(name, columns)


def column(trace: Trace, name: str) -> list[object]:
    return trace.frame[name].tolist()


def test_only_the_required_columns() -> None:
    trace = read(f"{HEADER}\n2,10,3.5,8\n1,0.25,60,0\n")
    assert tuple(trace.frame.columns) == FRAME_COLUMNS
    assert trace.frame.index.tolist() == [0, 1]
    first = trace.frame.iloc[0].to_dict()
    assert first == {
        "job_id": 1,
        "submit_us": 250_000,
        "duration_us": 60_000_000,
        "gpu_milli": 0,
        "gpus_per_node": 0,
        "gpu_type": "",
        "features": "",
        "cpu_milli": 0,
        "memory_mb": 0,
        "tenant": "",
        "user": "",
        "partition": "",
        "priority": 0,
        "preemptible": True,
        "estimate_us": -1,
        "cancel_us": -1,
        "checkpoint_us": -1,
        "restart_us": -1,
        "deadline_us": -1,
        "min_gpus": 0,
        "max_gpus": 0,
        "throughput": "",
        "topology_required": "",
        "topology_preferred": "",
        "topology_wait_us": -1,
        "status": "",
        "model": "",
        "recorded_start_us": -1,
        "recorded_end_us": -1,
        "recorded_node": "",
    }
    assert (trace.name, trace.path, trace.format, trace.rows) == ("prod", "prod.csv", "csv", 2)
    assert (trace.time_origin, trace.set_aside, trace.notes) == (None, {}, [])


def test_every_column_and_its_type() -> None:
    names = ",".join(each.name for each in COLUMNS)
    cells = (
        "7,10,1h30m,16,8,A100 | H100,ib&nvme,12.5,1.5,org/team,ann,batch,-2,no,2h,90,15,30,"
        "7200,8,32,linear,pod,rack,10m,failed,resnet,20,5420,n1"
    )
    trace = read(f"{names}\n{cells}\n")
    assert trace.frame.iloc[0].tolist() == [
        *(
            7,
            10_000_000,
            5_400_000_000,
            16_000,
            8,
            "A100|H100",
            "ib&nvme",
            12_500,
            1_536,
            "org/team",
            "ann",
            "batch",
            -2,
            False,
        ),
        *(
            7_200_000_000,
            90_000_000,
            15_000_000,
            30_000_000,
        ),
        *(7_200_000_000, 8, 32, "linear", "pod", "rack", 600_000_000),
        *(
            "failed",
            "resnet",
            20_000_000,
            5_420_000_000,
            "n1",
        ),
    ]
    kinds = {name: trace.frame[name].dtype.kind for name in FRAME_COLUMNS}
    texts = {each.target for each in COLUMNS if each.kind == "text"}
    assert {name for name, kind in kinds.items() if kind == "i"} == set(FRAME_COLUMNS) - texts - {
        "preemptible"
    }
    assert trace.frame["preemptible"].dtype == bool


def test_empty_optional_cells_are_absent() -> None:
    trace = read(
        f"{HEADER},estimated_duration,priority,preemptible,tenant,cpus\n1,0,5,1,,,,,\n2,0,5,1,9,3,no,a,2\n"
    )
    assert column(trace, "estimate_us") == [-1, 9_000_000]
    assert column(trace, "priority") == [0, 3]
    assert column(trace, "preemptible") == [True, False]
    assert column(trace, "tenant") == ["", "a"]
    assert column(trace, "cpu_milli") == [0, 2_000]


@pytest.mark.parametrize("word", ["nan", "NA", "None", "null"])
def test_words_for_nothing_are_absent_in_numbers_and_text_in_text(word: str) -> None:
    trace = read(f"{HEADER},cancel_time,tenant\n1,0,5,1,{word},{word}\n2,0,5,1,2030,x\n")
    assert column(trace, "cancel_us") == [-1, 2_030_000_000]
    assert column(trace, "tenant") == [word, "x"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("true", True), ("FALSE", False), ("Yes", True), ("no", False), ("1", True), ("0", False), ("", True)],
)
def test_preemptible(cell: str, expected: bool) -> None:
    assert column(read(f"{HEADER},preemptible\n1,0,5,1,{cell}\n2,0,5,1,no\n"), "preemptible")[0] is expected


def test_times_are_rounded_to_the_microsecond() -> None:
    trace = read(f"{HEADER}\n1,0.0000004,0.0000006,1\n2,1714557600.123457,1e3,1\n")
    assert column(trace, "submit_us") == [0, 1_714_557_600_123_457]
    assert column(trace, "duration_us") == [1, 1_000_000_000]


def test_durations_with_units_among_numbers() -> None:
    trace = read(f"{HEADER}\n1,30m,1h30m,1\n2,90,1.5d,1\n3,7d,20,1\n")
    assert column(trace, "submit_us") == [90_000_000, 1_800_000_000, 604_800_000_000]
    assert column(trace, "duration_us") == [129_600_000_000, 5_400_000_000, 20_000_000]


def test_numbers_stay_on_their_clock() -> None:
    trace = read(f"{HEADER},cancel_time\n1,1000,5,1,1100\n")
    assert (column(trace, "submit_us"), column(trace, "cancel_us")) == ([1_000_000_000], [1_100_000_000])
    assert trace.time_origin is None


def test_dates_without_zone_count_from_the_first_submission() -> None:
    trace = read(
        f"{HEADER},cancel_time,end_time\n1,2024-05-01 12:00:00,5,1,2024-05-01T13:00,\n"
        "2,2024-05-01,5,1,,2024-05-02 00:00:00.5\n"
    )
    assert column(trace, "job_id") == [2, 1]
    assert column(trace, "submit_us") == [0, 43_200_000_000]
    assert column(trace, "cancel_us") == [-1, 46_800_000_000]
    assert column(trace, "recorded_end_us") == [86_400_500_000, -1]
    assert trace.time_origin == "2024-05-01T00:00:00"
    assert trace.notes == []


def test_mixed_zones_become_utc() -> None:
    trace = read(
        f"{HEADER}\n1,2024-05-01T12:00:00+02:00,5,1\n2,2024-05-01T09:59:00Z,5,1\n3,2024-05-01T06:00:00-0500,5,1\n"
    )
    assert column(trace, "job_id") == [2, 1, 3]
    assert column(trace, "submit_us") == [0, 60_000_000, 3_660_000_000]
    assert trace.time_origin == "2024-05-01T09:59:00+00:00"
    assert trace.notes == []


@pytest.mark.parametrize("zone", ["Z", "+00", "-00:00", "+0000", ""])
def test_ways_to_write_a_zone(zone: str) -> None:
    trace = read(f"{HEADER}\n1,2024-05-01T10:00:00{zone},5,1\n")
    assert trace.time_origin == "2024-05-01T10:00:00" + ("+00:00" if zone else "")
    assert trace.notes == []


def test_dates_with_and_without_zone_are_told() -> None:
    trace = read(f"{HEADER}\n1,2024-05-01T12:00:00+02:00,5,1\n2,2024-05-01T10:00:01,5,1\n")
    assert column(trace, "submit_us") == [0, 1_000_000]
    assert trace.notes == ["Submit times without a time zone (1 of 2) are read as UTC."]


def test_ids_are_integers_if_all_are() -> None:
    assert column(read(f"{HEADER}\n10,0,5,1\n9,0,5,1\n-1,0,5,1\n"), "job_id") == [-1, 9, 10]


@pytest.mark.parametrize("other", ["007", "+7", "7a", "99999999999999999999"])
def test_ids_are_text_if_any_is_no_plain_integer(other: str) -> None:
    trace = read(f"{HEADER}\n9,0,5,1\n10,0,5,1\n{other},0,5,1\n")
    assert column(trace, "job_id") == sorted(["9", "10", other])


@pytest.mark.parametrize("template", ['"{}",0,5,1', "{},0,5,1", " {},0,5,1"])
def test_ids_in_quotes_or_after_a_blank(template: str) -> None:
    rows = "\n".join(template.format(number) for number in (8, 7))
    assert column(read(f"{HEADER}\n{rows}\n"), "job_id") == [7, 8]
    rows = "\n".join(template.format(number) for number in ("08", "07"))
    assert column(read(f"{HEADER}\n{rows}\n"), "job_id") == ["07", "08"]


def test_ids_in_the_last_column_of_a_file_with_carriage_returns() -> None:
    trace = read("submit_time,duration,num_gpus,job_id\r\n0,5,1,11\r\n0,5,1,2\r\n")
    assert column(trace, "job_id") == [2, 11]


def test_without_ids_rows_are_numbered_in_file_order() -> None:
    trace = read("submit_time,duration,num_gpus\n9,1,1\n0,2,1\n9,3,1\n")
    assert column(trace, "job_id") == [2, 1, 3]
    assert trace.notes == ["There is no job_id column: jobs are numbered by row, from 1."]


def test_names_of_digits_stay_text() -> None:
    trace = read(f"{HEADER},tenant,user,partition\n1,0,5,1,007,1e5,true\n2,0,5,1,08,2,\n")
    assert column(trace, "tenant") == ["007", "08"]
    assert column(trace, "user") == ["1e5", "2"]
    assert column(trace, "partition") == ["true", ""]


def test_names_of_digits_stay_text_far_into_a_file() -> None:
    """pandas infers types a block at a time: the first block of this file looks like numbers throughout."""
    count = 200_000
    rows = "".join(
        f"{number:07d},{number},5,1,{'6214e9' if number < count - 1 else 'vision'}\n"
        for number in range(count)
    )
    trace = read(f"{HEADER},tenant\n{rows}")
    assert column(trace, "job_id")[:2] == ["0000000", "0000001"]
    assert trace.frame["tenant"].value_counts().to_dict() == {"6214e9": count - 1, "vision": 1}


def test_mapped_columns() -> None:
    trace = read(
        "vc,arrival_s,service_sec,gpu_count,submit_time\na,1,5,2,99\n",
        columns={
            "submit_time": "arrival_s",
            "duration": "service_sec",
            "num_gpus": "gpu_count",
            "tenant": "vc",
            "partition": "vc",
        },
    )
    assert trace.frame[["submit_us", "tenant", "partition"]].iloc[0].tolist() == [1_000_000, "a", "a"]
    assert trace.notes == [
        "Column submit_time is not used.",
        "There is no job_id column: jobs are numbered by row, from 1.",
    ]


def test_unknown_columns_are_told_in_one_line() -> None:
    trace = read(f"{HEADER},cluster,premptible\n1,0,5,1,x,0\n")
    assert trace.notes == ["Columns cluster, premptible (did you mean preemptible?) are not used."]


def test_gang_of_a_cpu_job_is_nothing() -> None:
    assert column(read(f"{HEADER},gpus_per_node\n1,0,5,0,4\n2,0,5,8,4\n"), "gpus_per_node") == [0, 4]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + f"{HEADER},user\n1,0,5,1,Jos\u00e9\n".encode(),
        f"{HEADER},user\r\n1,0,5,1,Jos\u00e9\r\n".encode(),
        f"{HEADER},user\r1,0,5,1,Jos\u00e9\r".encode(),
        f"{HEADER},user\n\n1,0,5,1,Jos\u00e9\n\n  \n".encode(),
        f" {HEADER}, user\n1, 0, 5, 1, Jos\u00e9".encode(),
        '"job_id",submit_time,duration,num_gpus,user\n"1","0","5","1","Jos\u00e9"\n'.encode(),
        gzip.compress(f"{HEADER},user\n1,0,5,1,Jos\u00e9\n".encode()),
    ],
    ids=["byte order mark", "CRLF", "CR", "blank lines", "blanks", "quotes", "gzip"],
)
def test_ways_to_write_the_same_file(data: bytes) -> None:
    trace = read(data)
    assert trace.frame.iloc[0, :4].tolist() == [1, 0, 5_000_000, 1_000]
    assert column(trace, "user") == ["José"]
    assert trace.sha256 == hashlib.sha256(data).hexdigest()
    assert (trace.rows, trace.notes) == (1, [])


@pytest.mark.parametrize("name", ["prod.csv", "prod.csv.gz", "prod.parquet", "prod"])
def test_name_and_format_come_from_the_contents(name: str) -> None:
    trace = read(f"{HEADER}\n1,0,5,1\n", name=name)
    assert (trace.name, trace.format) == ("prod", "csv")


def test_text_with_commas_quotes_and_line_breaks() -> None:
    trace = read(f'{HEADER},model\n1,0,5,1,"a, ""b""\nc"\n2,0,5,1,d\n')
    assert column(trace, "model") == ['a, "b"\nc', "d"]


def test_rows_in_any_order_give_the_same_jobs() -> None:
    random = np.random.default_rng(3)
    rows = [f"j{number},{random.integers(0, 5)},{number},1" for number in range(50)]
    straight = read("\n".join([HEADER, *rows])).frame
    shuffled = read("\n".join([HEADER, *random.permutation(rows)])).frame
    pd.testing.assert_frame_equal(straight, shuffled)
    keys = list(zip(straight["submit_us"], straight["job_id"], strict=True))
    assert keys == sorted(keys)


def test_parquet_types() -> None:
    start = pd.Timestamp("2024-05-01", tz="Europe/Berlin")
    pd.DataFrame(
        {
            "job_id": ["007", "008"],
            "submit_time": [start + pd.Timedelta("1min"), start],
            "duration": pd.to_timedelta([90, 60], unit="s"),
            "num_gpus": pd.array([2, 4], dtype="int32"),
            "priority": pd.array([None, 3], dtype="Int64"),
            "preemptible": pd.array([None, False], dtype="boolean"),
            "tenant": ["a", None],
        }
    ).to_parquet("prod.parquet")
    trace = read_trace("prod.parquet")
    assert trace.format == "parquet"
    assert trace.time_origin == "2024-04-30T22:00:00+00:00"
    assert column(trace, "job_id") == ["008", "007"]
    assert column(trace, "submit_us") == [0, 60_000_000]
    assert column(trace, "duration_us") == [60_000_000, 90_000_000]
    assert column(trace, "gpu_milli") == [4_000, 2_000]
    assert column(trace, "priority") == [3, 0]
    assert column(trace, "preemptible") == [False, True]
    assert column(trace, "tenant") == ["", "a"]


def test_parquet_index_counts_as_a_column() -> None:
    table = pd.DataFrame({"job_id": [5, 6], "submit_time": [0, 1], "duration": [1, 1], "num_gpus": [1, 1]})
    table.set_index("job_id").to_parquet("prod.parquet")
    assert column(read_trace("prod.parquet"), "job_id") == [5, 6]


def test_every_column_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/trace-schema.md").read_text()
    documented = [line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")]
    assert documented == [each.name for each in COLUMNS]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('",;\n')), min_size=1
    ),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_what_csv_writes_is_read_back(names: list[str], quoting: int, newline: str) -> None:
    names = [name.strip() for name in names]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=quoting, lineterminator=newline)  # type: ignore[arg-type]
    writer.writerow([*HEADER.split(","), "tenant"])
    writer.writerows([number, number, 5, 1, name] for number, name in enumerate(names))
    assert column(read(buffer.getvalue()), "tenant") == names
