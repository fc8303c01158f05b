"""When something is due: daylight saving in several zones, every way to write a crontab, and each due time once."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from heartbeat import cron
from heartbeat.schedule import (
    At,
    Cron,
    Due,
    Every,
    Schedule,
    ScheduleError,
    describe,
    due,
    next_after,
    parse,
    upcoming,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SUNDAY = 1_767_484_800_000  # 2026-01-04, midnight in UTC


def ms(text: str, zone: str = "UTC") -> int:
    time = datetime.fromisoformat(text)
    return round((time if time.tzinfo else time.replace(tzinfo=ZoneInfo(zone))).timestamp() * 1000)


def shown(moment: int, zone: str) -> str:
    return datetime.fromtimestamp(moment / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M%z")


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        # Spring: what is left out is due when the clock is put forward, once, and the days around it are ordinary.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28 02:00", "28 02:30+0100, 29 03:00+0200, 30 02:30+0200"),
        ("Europe/Berlin", "*/20 2 * * *", "2026-03-29 00:00", "29 03:00+0200, 30 02:00+0200, 30 02:20+0200"),
        ("Europe/Berlin", "30 2,3 * * *", "2026-03-29 00:00", "29 03:00+0200, 29 03:30+0200, 30 02:30+0200"),
        ("Europe/Berlin", "*/30 * * * *", "2026-03-29 01:15", "29 01:30+0100, 29 03:00+0200, 29 03:30+0200"),
        ("America/New_York", "15 2 * * sun", "2026-03-01 03:00", "08 03:00-0400, 15 02:15-0400"),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03 03:00", "04 02:30+1100, 05 02:15+1100"),
        ("Australia/Lord_Howe", "10 * * * *", "2026-10-04 01:00", "04 01:10+1030, 04 02:30+1100, 04 03:10+1100"),
        ("Africa/Cairo", "0 0 * * *", "2024-04-25 12:00", "26 01:00+0300, 27 00:00+0300"),
        ("Antarctica/Troll", "30 1 * * *", "2026-03-28 12:00", "29 03:00+0200, 30 01:30+0200"),
        ("Pacific/Apia", "0 9 * * *", "2011-12-29 09:00", "31 00:00+1400, 31 09:00+1400"),
        # Autumn: what is shown twice is due the first time, but every hour goes on.
        ("Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", "25 02:30+0200, 26 02:30+0100"),
        ("Europe/Berlin", "0 2,3 * * *", "2026-10-25 00:00", "25 02:00+0200, 25 03:00+0100"),
        ("Europe/Berlin", "0 */2 * * *", "2026-10-25 00:30", "25 02:00+0200, 25 04:00+0100"),
        ("Europe/Berlin", "0 * * * *", "2026-10-25 01:30", "25 02:00+0200, 25 02:00+0100, 25 03:00+0100"),
        ("Europe/Dublin", "30 1 25 10 *", "2026-01-01", "25 01:30+0100"),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04 12:00", "05 01:45+1100, 06 01:45+1030"),
        ("Australia/Lord_Howe", "45 * * * *", "2026-04-05 01:00", "05 01:45+1100, 05 01:45+1030, 05 02:45+1030"),
        ("Antarctica/Troll", "30 1,2 * * *", "2026-10-25 00:00", "25 01:30+0200, 25 02:30+0200, 26 01:30+0000"),
        ("America/Havana", "30 0 * * *", "2024-11-02 12:00", "03 00:30-0400, 04 00:30-0500"),
        # Odd offsets, and one that changed for good.
        ("Asia/Kathmandu", "45 5 * * *", "2026-10-25 00:00", "25 05:45+0545, 26 05:45+0545"),
        ("Asia/Kathmandu", "5 0 * * *", "1985-12-31 00:00", "31 00:05+0530, 01 00:15+0545, 02 00:05+0545"),
        ("Pacific/Chatham", "30 3 * * *", "2026-04-04 12:00", "05 03:30+1345, 06 03:30+1245"),
    ],
)
def test_daylight_saving(zone: str, expression: str, after: str, expected: str) -> None:
    schedule = Cron(expression, zone)
    found = upcoming(schedule, ms(after, zone), len(expected.split(", ")))
    assert ", ".join(shown(at, zone)[8:] for at in found) == expected
    # From any moment in between it is the same: none of them depends on where the search begins.
    for before, at in pairwise((ms(after, zone), *found)):
        assert {next_after(schedule, before + step * (at - before) // 50) for step in range(50)} == {at}
    assert not set(found) & set(upcoming(schedule, found[-1], 1))


_TURNS = [
    ("Europe/Berlin", "2026-03-29 00:00"),
    ("Europe/Berlin", "2026-10-25 00:00"),
    ("America/New_York", "2026-11-01 00:00"),
    ("America/St_Johns", "2026-03-08 00:00"),
    ("Australia/Lord_Howe", "2026-10-04 00:00"),
    ("Australia/Lord_Howe", "2026-04-05 00:00"),
    ("Africa/Cairo", "2024-04-25 21:00"),
    ("America/Havana", "2024-11-02 22:00"),
    ("Antarctica/Troll", "2026-10-25 00:00"),
    ("Asia/Kathmandu", "1985-12-31 22:00"),
]
_MINUTES = st.sampled_from(["*", "0", "59", "*/7", "10-40/15", "0,30", "45"])
_HOURS = st.sampled_from(["*", "0", "1", "2", "3", "0-3", "*/2", "1-3/2", "0,23", "1-23"])
_DAYS = st.sampled_from(["*", "1", "25", "29", "*/2", "4-8"])
_WEEKDAYS = st.sampled_from(["*", "0", "7", "sun", "sat-sun", "5-7", "*/2", "mon"])
_CRONS = st.tuples(_MINUTES, _HOURS, _DAYS, st.just("*"), _WEEKDAYS).map(" ".join)


def by_walking(expression: str, zone: str, start: int, hours: int) -> list[int]:
    """The due times, found by looking at the clock every minute."""
    fields = cron.read(expression)
    found, last = [], datetime.fromtimestamp(start / 1000, ZoneInfo(zone)).replace(tzinfo=None)
    for at in range(start + MINUTE, start + hours * HOUR, MINUTE):
        now = datetime.fromtimestamp(at / 1000, ZoneInfo(zone))
        wall = now.replace(tzinfo=None, fold=0)
        passed = [last + timedelta(minutes=step + 1) for step in range((wall - last) // timedelta(minutes=1))]
        # What is shown for the second time has passed before, but for crontabs of every hour.
        for time in (passed or [wall]) if len(fields.hours) == 24 or not now.fold else []:
            day, weekday = time.day in fields.days, time.isoweekday() % 7 in fields.weekdays
            clock = time.minute in fields.minutes and time.hour in fields.hours
            if clock and ((day or weekday) if fields.either else (day and weekday)):
                found.append(at)
        last = wall
    return sorted(set(found))


@given(st.sampled_from(_TURNS), _CRONS)
def test_the_clock_is_followed_minute_by_minute(turn: tuple[str, str], expression: str) -> None:
    zone, start = turn[0], ms(turn[1], turn[0])
    expected = by_walking(expression, zone, start, 5)
    schedule, found = Cron(expression, zone), []
    while (at := next_after(schedule, found[-1] if found else start)) and at < start + 5 * HOUR:
        found.append(at)
    assert found == expected


_SCHEDULES = st.one_of(
    st.integers(-DAY, 30 * DAY).map(lambda after: At(SUNDAY + after)),
    st.tuples(st.integers(1000, 3 * DAY), st.integers(-5 * DAY, 5 * DAY)).map(lambda n: Every(n[0], SUNDAY + n[1])),
    st.tuples(st.just("0"), _HOURS, _DAYS, st.just("*"), _WEEKDAYS).map(lambda fields: Cron(" ".join(fields), "UTC")),
)


@given(_SCHEDULES, st.lists(st.integers(1, 5 * DAY), min_size=1, max_size=12))
def test_each_due_time_lies_in_exactly_one(schedule: Schedule, sleeps: list[int]) -> None:
    first = next_at = next_after(schedule, SUNDAY)
    now, found = SUNDAY, list[Due]()
    for sleep in sleeps:
        now += sleep
        if next_at is not None and (what := due(schedule, next_at, now)):
            assert what.due_at == next_at
            assert what.late is (now - next_at > MINUTE)
            found.append(what)
            next_at = what.next_at
            assert next_at is None or due(schedule, next_at, now) is None
    moments = [moment for what in found for moment in (what.due_at, *(what.skipped or ()))]
    assert moments == sorted(moments)
    assume(first is not None and not (isinstance(schedule, Every) and schedule.every < (now - SUNDAY) // 300))
    at: int | None = first
    while at is not None and at <= now:
        ran = sum(what.due_at == at for what in found)
        skipped = sum(what.skipped is not None and what.skipped[0] <= at <= what.skipped[1] for what in found)
        assert ran + skipped == 1
        at = next_after(schedule, at)
    assert next_at == at


def test_years_of_days_in_one_go() -> None:
    zone = "Europe/Berlin"
    schedule = Cron("30 2 * * *", zone)
    now = ms("2026-01-01", zone)
    next_at = next_after(schedule, now)
    for _ in range(4 * 365 + 1):
        now += DAY
        assert next_at
        what = due(schedule, next_at, max(now, next_at))
        assert what
        assert what.skipped is None
        next_at = what.next_at
    assert next_at == ms("2030-01-01 02:30", zone)
    # A year without it costs two searches, however much was missed.
    year = ms("2031-01-01"), ms("2032-01-01")
    assert due(Cron("* * * * *", "UTC"), *year) == Due(year[0], True, (year[0] + MINUTE, year[1]), year[1] + MINUTE)
    assert due(Every(1000, 0), *year) == Due(year[0], True, (year[0] + 1000, year[1]), year[1] + 1000)


@pytest.mark.parametrize(
    ("late_by", "expected"),
    [(-1, None), (0, False), (MINUTE, False), (MINUTE + 1, True)],
)
def test_late_is_more_than_a_minute(late_by: int, expected: bool | None) -> None:
    found = due(At(SUNDAY), SUNDAY, SUNDAY + late_by)
    assert found == (None if expected is None else Due(SUNDAY, expected, None, None))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 * * 0", "04, 11, 18"),
        ("0 9 * * 7", "04, 11, 18"),
        ("0 9 * * sun", "04, 11, 18"),
        ("0 9 * * SAT-SUN", "04, 10, 11"),
        ("0 9 * * 5-7", "04, 09, 10"),
        ("0 9 * * 1-5", "05, 06, 07, 08, 09, 12"),
        ("0 9 * * mon,wed", "05, 07, 12"),
        ("0 9 * * */2", "04, 06, 08, 10, 11"),  # Sunday, Tuesday, Thursday, Saturday
        ("0 9 * * 1/3", "04, 05, 08, 11, 12"),
        ("0 9 13 * fri", "09, 13, 16, 23"),  # either
        ("0 9 */10 * sun", "11"),  # both, because of the star
        ("0 9 1-31 * sun", "04, 11"),  # all days are no restriction
        ("0 9 6-8 1 *", "06, 07, 08"),
        ("0 9 31 jan-mar *", "31, 31"),
    ],
)
def test_days_of_a_crontab(expression: str, expected: str) -> None:
    found = upcoming(Cron(expression, "UTC"), SUNDAY, len(expected.split(", ")))
    assert ", ".join(shown(at, "UTC")[8:10] for at in found) == expected
    assert all(shown(at, "UTC").endswith("09:00+0000") for at in found)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"at": "2026-01-04T09:30"}, At(SUNDAY + 9 * HOUR + 30 * MINUTE)),
        ({"at": " 2026-01-04 09:30 ", "zone": "Asia/Kathmandu"}, At(SUNDAY + 3 * HOUR + 45 * MINUTE)),
        ({"at": "2026-01-04T09:30+01:00", "zone": "Asia/Kathmandu"}, At(SUNDAY + 8 * HOUR + 30 * MINUTE)),
        ({"at": "2026-01-04T09:30:15Z", "zone": "Asia/Kathmandu"}, At(SUNDAY + 9 * HOUR + 30 * MINUTE + 15_000)),
        ({"at": "2026-03-29T02:30", "zone": "Europe/Berlin"}, At(ms("2026-03-29T03:00+02:00"))),
        ({"at": "2026-10-25T02:30", "zone": "Europe/Berlin"}, At(ms("2026-10-25T02:30+02:00"))),
        ({"every": "1h30m"}, Every(90 * MINUTE, SUNDAY)),
        ({"every": "1s"}, Every(1000, SUNDAY)),
        ({"cron": " 0  9 * * MON ", "zone": "Europe/Berlin"}, Cron("0 9 * * MON", "Europe/Berlin")),
        ({"cron": "0 0 29 2 *"}, Cron("0 0 29 2 *", "")),
    ],
)
def test_what_is_asked_for(asked: dict[str, str], expected: Schedule) -> None:
    schedule = parse(**{"zone": "UTC", **asked} if "at" in asked else asked, now=SUNDAY)
    assert schedule == expected
    adapter: TypeAdapter[Schedule] = TypeAdapter(Schedule)
    assert adapter.validate_json(adapter.dump_json(schedule)) == schedule


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "Give exactly one of `at`, `every` and `cron`."),
        ({"at": "2027-01-01T09:00", "every": "1h"}, "Give exactly one of"),
        ({"at": "2026-01-03T09:00"}, "`2026-01-03T09:00` is past; give a time that is still to come."),
        ({"at": "2026-01-05"}, "`2026-01-05` is no time that a schedule takes; allowed: date and time of ISO 8601, "),
        ({"at": "tomorrow at nine"}, "`tomorrow at nine` is no time"),
        ({"at": "9999-12-31T23:59"}, "`9999-12-31T23:59` is no time"),
        ({"at": "0001-01-01T00:00"}, "`0001-01-01T00:00` is"),
        ({"at": "2026-02-30T09:00"}, "`2026-02-30T09:00` is no time"),
        ({"every": "30"}, "`30` is no interval; allowed: a duration of at least 1s with its unit, such as 45s"),
        ({"every": "0.9s"}, "`0.9s` is no interval"),
        ({"every": "0m"}, "`0m` is no interval"),
        ({"cron": "0 9 * *"}, "`0 9 * *` is no cron expression; allowed: five fields, minute, hour, day of the month,"),
        ({"cron": "@daily"}, "`@daily` is no cron expression"),
        ({"cron": "0 0 9 * * *"}, "`0 0 9 * * *` is no cron expression"),
        ({"cron": "60 * * * *"}, "`60` is no minute; allowed: 0 to 59, ranges (2-5), steps (*/2), lists with commas, "),
        ({"cron": "0 24 * * *"}, "`24` is no hour; allowed: 0 to 23"),
        ({"cron": "0 9 0 * *"}, "`0` is no day of the month; allowed: 1 to 31"),
        ({"cron": "0 9 last * *"}, "`last` is no day of the month"),
        ({"cron": "0 9 * mar/2x *"}, "`mar/2x` is no month; allowed: 1 to 12, jan to dec"),
        ({"cron": "0 9 * * mon-foo"}, "`mon-foo` is no weekday; allowed: 0 to 7, sun to sat"),
        ({"cron": "0 9 * * fri-mon"}, "`fri-mon` is no weekday"),
        ({"cron": "5-1 * * * *"}, "`5-1` is no minute"),
        ({"cron": "*/0 * * * *"}, "`*/0` is no minute"),
        ({"cron": "1,,2 * * * *"}, "`` is no minute"),
        ({"cron": "٣ * * * *"}, "`٣` is no minute"),
        ({"cron": "0 0 30 2 *"}, "`0 0 30 2 *` never comes; give a time that is still to come."),
        ({"cron": "0 9 * * *", "zone": "Europe/Berln"}, "`Europe/Berln` is no time zone that this machine knows;"),
        ({"at": "2027-01-01T09:00", "zone": "berlin"}, "`berlin` is no time zone"),
        ({"cron": "0 9 * * *", "zone": "../../etc/passwd"}, "`../../etc/passwd` is no time zone"),
        ({"cron": "0 9 * * *", "zone": "Europe"}, "`Europe` is no time zone"),
    ],
)
def test_what_is_refused(asked: dict[str, str], words: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse(**asked, now=SUNDAY)
    assert str(refused.value).startswith(words)
    assert str(refused.value).endswith(".")


def test_the_nearest_zone_is_named() -> None:
    with pytest.raises(ScheduleError, match=r"nearest is Europe/Berlin\.$"):
        parse(cron="0 9 * * *", zone="Europe/Berln", now=SUNDAY)


@given(st.text(max_size=30), st.sampled_from(["", "UTC", "Asia/Kathmandu"]), st.sampled_from(["at", "every", "cron"]))
def test_any_text_is_a_schedule_or_refused(text: str, zone: str, form: str) -> None:
    try:
        schedule = parse(**{form: text}, zone=zone, now=SUNDAY)
    except ScheduleError:
        return
    assert upcoming(schedule, SUNDAY, 3)[0] > SUNDAY
    assert isinstance(schedule, At) or describe(schedule)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Every(30 * MINUTE, 0), "every 30 minutes"),
        (Every(HOUR, 0), "every hour"),
        (Every(90 * MINUTE, 0), "every 90 minutes"),
        (Every(1500, 0), "every 1.5 seconds"),
        (Cron("30 9 * * 1-5,7", "Asia/Tokyo"), "on Mon, Tue, Wed, Thu, Fri, Sun at 09:30, Asia/Tokyo"),
        (Cron("0 8,20 * * *", ""), "every day at 08:00, 20:00, by the clock of this machine"),
        (Cron("0 0 1 1,7 *", "UTC"), "on day 1 of Jan, Jul at 00:00, UTC"),
        (Cron("0 9 13 * fri", "UTC"), "on day 13 or on Fri at 09:00, UTC"),
        (Cron("*/5 * * * *", "UTC"), "by cron */5 * * * *, UTC"),
    ],
)
def test_in_words(schedule: Every | Cron, expected: str) -> None:
    assert describe(schedule) == expected


def test_a_zone_that_is_gone_is_said() -> None:
    with pytest.raises(ScheduleError, match="`Europe/Atlantis` is no time zone"):
        next_after(Cron("0 9 * * *", "Europe/Atlantis"), SUNDAY)


def test_the_library_is_imported_when_a_crontab_is_asked() -> None:
    program = (
        "import sys\n"
        "import heartbeat.times, heartbeat.scheduler\n"
        "from heartbeat.schedule import next_after, parse\n"
        "schedule = parse(every='1h', now=0)\n"
        "assert 'apscheduler' not in sys.modules\n"
        "next_after(parse(cron='* * * * *', now=0), 0)\n"
        "assert 'apscheduler' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_moments_of_utc_are_what_they_seem() -> None:
    assert datetime.fromtimestamp(SUNDAY / 1000, UTC).isoformat() == "2026-01-04T00:00:00+00:00"
