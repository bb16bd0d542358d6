"""Dates that are all written alike are read many times faster, and to the same moments."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysim.traces import moments
from analysim.traces.moments import read_moments

TEXTS = st.one_of(
    st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat()),
    st.sampled_from(["", "Unknown", "None", "2024-13-01T00:00:00", "2024-03-31T02:30:00", "2024-10-27T02:30:00"]),
    st.sampled_from(["2024-05-01T12:00:00Z", "2024-05-01T12:00+01", "2024-05-01T12:00+0100", "x" * 19]),
)


@pytest.mark.parametrize("zone", [None, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Shanghai")])
def test_plain_dates_are_read_as_others_are(zone: ZoneInfo | None) -> None:
    @given(st.lists(TEXTS, max_size=6))
    def check(texts: list[str]) -> None:
        found, naive = read_moments(texts, zone)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moments, "_read_plain", lambda *_: None)
            expected, counted = read_moments(texts, zone)
        assert (found.tolist(), naive) == (expected.tolist(), counted)

    check()
