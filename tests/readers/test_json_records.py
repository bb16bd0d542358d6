"""JSON files read record by record, and one clear line for what is wrong with them."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysim.errors import TraceError
from analysim.traces.readers import json_records
from analysim.traces.readers.json_records import read_records

RECORDS = [{"id": 1, "text": 'a "quoted" ] } [ {'}, {"id": 2.5e3, "list": [1, [2, {}]]}, {"id": None, "a": "ü€\n"}]


def write(folder: Path, text: str) -> Path:
    file = folder / "records.json"
    file.write_text(text, encoding="utf-8")
    return file


def test_items_of_a_list(tmp_path: Path) -> None:
    file = write(tmp_path, json.dumps(RECORDS))
    assert list(read_records(file)) == list(enumerate(RECORDS, start=1))
    assert list(read_records(write(tmp_path, " [ ] \n"))) == []


def test_items_of_a_named_list(tmp_path: Path) -> None:
    whole = {"meta": {"jobs": [{"no": 1}]}, "n": -12.5, "other": [[1], 2], "jobs": RECORDS, "errors": [], "x": None}
    expected = list(enumerate(RECORDS, start=1))
    assert list(read_records(write(tmp_path, json.dumps(whole)), "jobs")) == expected
    assert list(read_records(write(tmp_path, json.dumps(whole, indent=2)), "jobs")) == expected
    assert list(read_records(write(tmp_path, json.dumps(RECORDS)), "jobs")) == expected


def test_gzip_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "records.json.gz"
    file.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(RECORDS).encode()))
    assert len(list(read_records(file))) == 3


@pytest.mark.parametrize("at_once", [1, 2, 3, 7, 64])
def test_records_may_be_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(json_records, "_AT_ONCE", at_once)
    whole = {"n": 123456789012345678901234567890.25e-10, "flag": True, "jobs": RECORDS, "end": -1.5e-7, "no": False}
    file = write(tmp_path, json.dumps(whole, indent=1, ensure_ascii=True))
    assert list(read_records(file, "jobs")) == list(enumerate(RECORDS, start=1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"jobs": [{"a": 1},\n{"a": 2', "the file ends too early, at record 2"),
        ('{"jobs": [{"a": 1}, ', "the file ends too early, at record 2"),
        ('{"jobs": [{"a": 1}', "the file ends too early, at record 1"),
        ('{"jobs": [{"a": 1}]', "the file ends too early, outside of the records"),
        ('{"jobs": [{"a": 1},\n {"a": oops, "and": "more than thirty characters on"}]}', "record 2, line 2: bad JSON"),
        ('{"jobs": [{"a": 1} {"a": 2}]}', "record 1, line 1: , or ] is missing"),
        ('{"jobs": [{"a": 1}, 7]}', "record 2, line 1: 7 is no object"),
        ('{"jobs": [{"a": 1}]} tail', "there is text after the end"),
        ('{"others": [{"a": 1}]}', 'has no list "jobs"'),
        ('{"jobs": {"a": 1}}', 'has no list "jobs"'),
        ("{jobs: []}", "a key in"),
        ("job_id,submit\n1,2\n", "this is no JSON object or list"),
        ("", "this is no JSON object or list"),
        ('{"jobs": [{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"jobs": [{"a": ' + "1" * 5_000 + "}]}", "too many digits"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        list(read_records(write(tmp_path, text), "jobs"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_record_is_not_sought_to_the_end_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_records, "_LONGEST", 1_000)
    with pytest.raises(TraceError, match="record 1, line 1: one value has more than 1,000 characters"):
        list(read_records(write(tmp_path, '[{"a": "' + "x" * 2_000_000)))


def test_half_a_pair_of_escapes_is_no_character(tmp_path: Path) -> None:
    file = write(tmp_path, r'[{"a": "\ud83d\ude00 \ud83d x \\ud83d \uDE00"}]')
    assert list(read_records(file)) == [(1, {"a": "\U0001f600 \ufffd x \\ud83d \ufffd"})]


def test_memory_is_that_of_a_record(tmp_path: Path) -> None:
    file = write(tmp_path, json.dumps({"jobs": [{"id": number, "text": "x" * 500} for number in range(20_000)]}))
    tracemalloc.start()
    count = sum(1 for _ in read_records(file, "jobs"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_000
    assert peak < file.stat().st_size / 3


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_text_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    text = json.dumps({"meta": {"a": 1}, "jobs": RECORDS})
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 5)))
        text = text[:start] + data.draw(st.text(alphabet='[]{}",:\\ud8a0-e. \n', max_size=4)) + text[end:]
    try:
        for number, record in read_records(write(tmp_path, text), "jobs"):
            assert number >= 1
            assert isinstance(record, dict)
    except TraceError as error:
        assert "\n" not in str(error)
