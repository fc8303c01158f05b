"""Spans of time as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartbeat.durations import parse_duration, show_duration


@given(st.integers(0, 10**8))
def test_durations_are_read_as_they_are_shown(seconds: int) -> None:
    assert parse_duration(show_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_units_are_written_in_order_and_never_left_out() -> None:
    assert parse_duration(" 1d2h3m4.5s ") == timedelta(days=1, hours=2, minutes=3, seconds=4.5)
    for text in ("", "30", "m", "-1s", "1s1m", "1 h", "1h 5m", "1.5h", "123456d"):
        with pytest.raises(ValueError, match=text or "^$"):
            parse_duration(text)
