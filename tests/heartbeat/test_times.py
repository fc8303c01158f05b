"""Durations as people write them, and active hours by the wall clock of any zone."""

import os
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartbeat.schedule import Cron, next_after
from heartbeat.times import ActiveHours, day_start, moment_of, parse_duration, show_duration, wall_time


@given(st.integers(0, 10**8))
def test_durations_are_read_as_they_are_shown(seconds: int) -> None:
    assert parse_duration(show_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_units_are_written_in_order_and_never_left_out() -> None:
    assert parse_duration(" 1d2h3m4.5s ") == timedelta(days=1, hours=2, minutes=3, seconds=4.5)
    for text in ("", "30", "m", "-1s", "1s1m", "1 h", "1h 5m", "1.5h", "123456d"):
        with pytest.raises(ValueError, match=text or "^$"):
            parse_duration(text)


ZONES = ("Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo", "America/Havana", "Antarctica/Troll")
HOUR = 3_600_000
DAY = 24 * HOUR


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def minutes(text: str) -> int:
    hours, _, rest = text.partition(":")
    return int(hours) * 60 + int(rest)


@pytest.mark.parametrize(
    ("window", "zone", "inside", "outside"),
    [
        ("08:00-22:00", "UTC", "08:00Z 21:59Z", "07:59Z 22:00Z 00:00Z"),
        ("22:00-06:30", "UTC", "22:00Z 00:00Z 06:29Z", "21:59Z 06:30Z 12:00Z"),
        ("22:00-24:00", "UTC", "22:00Z 23:59Z", "00:00Z 21:59Z"),
        ("22:00-00:00", "UTC", "22:00Z 23:59Z", "00:00Z 21:59Z"),
        ("00:00-24:00", "UTC", "00:00Z 12:00Z 23:59Z", ""),
        ("09:00-09:00", "UTC", "", "08:59Z 09:00Z 09:01Z 21:00Z"),
        ("00:00-00:00", "UTC", "", "00:00Z 12:00Z"),
        ("08:00-22:00", "Asia/Kathmandu", "02:15Z 16:14Z", "02:14Z 16:15Z"),
        ("08:00-22:00", "Australia/Lord_Howe", "21:00Z 10:59Z", "20:59Z 11:00Z"),
    ],
)
def test_windows(window: str, zone: str, inside: str, outside: str) -> None:
    start, _, end = window.partition("-")
    hours = ActiveHours(minutes(start), minutes(end), ZoneInfo(zone))
    assert [hours.contains(ms(f"2026-01-04T{text}")) for text in inside.split()] == [True] * len(inside.split())
    assert [hours.contains(ms(f"2026-01-04T{text}")) for text in outside.split()] == [False] * len(outside.split())


@pytest.mark.parametrize(
    ("window", "day", "expected"),
    [
        ("01:00-04:00", "2026-03-28", 180),
        ("01:00-04:00", "2026-03-29", 120),  # the hour from 02:00 is left out
        ("01:00-04:00", "2026-10-25", 240),  # it is shown twice
        ("02:00-03:00", "2026-03-29", 0),
        ("02:30-03:30", "2026-10-25", 90),
        ("23:00-03:00", "2026-03-29", 180),  # two hours of this day, and one before its midnight
    ],
)
def test_where_the_clock_is_put(window: str, day: str, expected: int) -> None:
    start, _, end = window.partition("-")
    zone = ZoneInfo("Europe/Berlin")
    hours = ActiveHours(minutes(start), minutes(end), zone)
    first = moment_of(datetime.fromisoformat(day), zone)
    last = moment_of(datetime.fromisoformat(day) + timedelta(days=1), zone)
    assert sum(hours.contains(moment) for moment in range(first, last, 60_000)) == expected


@pytest.mark.parametrize(
    ("zone", "moment", "expected"),
    [
        ("Europe/Berlin", "2026-03-29T23:59+02:00", "2026-03-29T00:00+01:00"),
        ("Europe/Berlin", "2026-10-25T02:30+01:00", "2026-10-25T00:00+02:00"),
        ("Asia/Kathmandu", "2026-01-04T18:15Z", "2026-01-05T00:00+05:45"),
        ("Asia/Kathmandu", "2026-01-04T18:14:59.999Z", "2026-01-04T00:00+05:45"),
        ("Australia/Lord_Howe", "2026-10-04T12:00+11:00", "2026-10-04T00:00+10:30"),
        ("Africa/Cairo", "2024-04-26T12:00+03:00", "2024-04-26T01:00+03:00"),  # without a midnight
        ("America/Havana", "2024-11-03T00:30-05:00", "2024-11-03T00:00-04:00"),  # with two
        ("America/Asuncion", "2024-03-23T23:30-04:00", "2024-03-23T00:00-03:00"),  # back to the day before
        ("America/Toronto", "1919-03-31T12:00-04:00", "1919-03-31T00:30-04:00"),  # 23:30 was 00:30
        ("Pacific/Apia", "2011-12-31T00:00+14:00", "2011-12-31T00:00+14:00"),  # the day before was left out
    ],
)
def test_where_a_day_begins(zone: str, moment: str, expected: str) -> None:
    assert day_start(ms(moment), ZoneInfo(zone)) == ms(expected)


@given(st.sampled_from(ZONES), st.integers(ms("2020-01-01T00:00Z"), ms("2030-01-01T00:00Z")))
def test_a_moment_lies_in_its_day(name: str, moment: int) -> None:
    zone = ZoneInfo(name)
    start = day_start(moment, zone)
    assert moment - 27 * HOUR < start <= moment
    assert wall_time(start, zone).date() == wall_time(moment, zone).date()
    assert wall_time(start - 1, zone).date() < wall_time(start, zone).date()
    # What is shown at a moment is shown then: first or second.
    wall = wall_time(moment, zone)
    assert moment in (moment_of(wall, zone), moment_of(wall, zone, 1))


@pytest.fixture
def machine_in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
    assert os.environ.get("TZ") != "Europe/Berlin"


@pytest.mark.usefixtures("machine_in_berlin")
def test_without_a_zone_it_is_the_one_of_this_machine() -> None:
    assert ActiveHours(8 * 60, 22 * 60, None).contains(ms("2026-07-04T06:00Z"))
    assert not ActiveHours(8 * 60, 22 * 60, None).contains(ms("2026-07-04T20:00Z"))
    assert day_start(ms("2026-07-04T06:00Z"), None) == ms("2026-07-04T00:00+02:00")
    daily, hourly = Cron("30 2 * * *", ""), Cron("30 * * * *", "")
    assert next_after(daily, ms("2026-03-29T00:00+01:00")) == ms("2026-03-29T03:00+02:00")
    assert next_after(daily, ms("2026-10-25T02:30+02:00")) == ms("2026-10-26T02:30+01:00")
    assert next_after(hourly, ms("2026-10-25T02:30+02:00")) == ms("2026-10-25T02:30+01:00")
