"""Options that nobody can mean are refused in one line, before a run begins."""

from __future__ import annotations

import pytest

from analysim.config.loading import validate
from analysim.errors import ConfigError
from tests.builders import shipped


@pytest.mark.parametrize(
    ("policy", "option", "value", "says"),
    [
        ("las", "promote", "inf", "promote is 'inf'; expected a finite number"),
        ("migrate", "worth", float("inf"), "worth is inf; expected a finite number"),
        ("gittins", "factor", "nan", "factor is 'nan'; expected a finite number"),
        ("preempt", "promote", 1e308, "expected 1e+12 or less"),
        ("srtf", "factor", 1e308, "expected 1e+12 or less"),
        ("srsf", "factor", 1e308, "expected 1e+12 or less"),
        ("gittins", "window", 10**20, "expected 1e+07 or less"),
        ("conservative", "resolution", 10**20, "is a duration of 285 years or more"),
        ("las", "thresholds", ["10h", "1h"], "write the smaller first"),
        ("preempt", "thresholds", [5, 1], "write the smaller first"),
        ("gittins", "thresholds", 5, "expected a list"),
    ],
)
def test_absurd_options_are_refused_in_one_line(policy: str, option: str, value: object, says: str) -> None:
    with pytest.raises(ConfigError, match="options") as caught:
        validate(shipped(policy).Options, {option: value}, "options")
    told = str(caught.value)
    assert says in told and "\n" not in told, told


def test_equal_thresholds_and_long_durations_are_taken() -> None:
    options = validate(shipped("las").Options, {"thresholds": [0, 5, 5], "minimum_run": "10000d"}, "options")
    assert options.model_dump()["thresholds"] == (0, 5_000_000, 5_000_000)
