"""Durations and figures as people write and read them."""

from __future__ import annotations

import pytest

from analysim.units import format_duration, format_number, format_ratio, format_seconds, parse_duration


def test_measured_times_have_three_digits() -> None:
    times = {0.0: "0 s", 45.2: "45.2 s", 90.0: "90 s", 2_046.0: "34.1 min", 12_024.0: "3.34 h", 203_904.0: "2.36 d"}
    assert {value: format_seconds(value) for value in times} == times


def test_numbers_have_three_digits_or_all_before_the_point() -> None:
    numbers = {0.01234: "0.0123", 4.5: "4.5", 7.0: "7", 99.94: "99.9", 12_345.6: "12,346"}
    assert {value: format_number(value) for value in numbers} == numbers


def test_ratios_of_any_size_are_readable() -> None:
    ratios = {0.34711: "×0.347", 1.0: "×1", 1.05: "×1.05", 1_234.5: "×1,234", float("nan"): ""}
    assert {value: format_ratio(value) for value in ratios} == ratios


@pytest.mark.parametrize("text", ["45 s", "90 s", "3 h 20 min", "12 h"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert format_duration(parse_duration(text)) == text
