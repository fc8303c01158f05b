"""Times as people type them."""

from datetime import datetime

import pytest

from heartbeat import spoken
from heartbeat.schedule import At, Cron, Every, parse


def wall(month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    """What the clock of this machine shows."""
    return datetime(2026, month, day, hour, minute, second)  # noqa: DTZ001


NOW = wall(7, 15, 12, 0, 30)  # a Wednesday
NOW_MS = round(NOW.timestamp() * 1000)
MINUTE = 60_000


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("in 10m x", NOW.replace(minute=10)),
        ("in 10 minutes x", NOW.replace(minute=10)),
        ("in an hour: x", NOW.replace(hour=13)),
        ("in 1h30m x", NOW.replace(hour=13, minute=30)),
        ("in 1 hour and 30 min x", NOW.replace(hour=13, minute=30)),
        ("in 2 days x", NOW.replace(day=17)),
        ("in 1 week x", NOW.replace(day=22)),
        ("In 45 Seconds x", NOW.replace(minute=1, second=15)),
        ("at 18:30 x", wall(7, 15, 18, 30)),
        ("at 9 x", wall(7, 16, 9)),
        ("at 9pm x", wall(7, 15, 21)),
        ("at 12 am x", wall(7, 16)),
        ("at noon x", wall(7, 16, 12)),
        ("at midnight x", wall(7, 16)),
        ("at today 23:59 x", wall(7, 15, 23, 59)),
        ("at tomorrow 9 x", wall(7, 16, 9)),
        ("tomorrow at 9:15, x", wall(7, 16, 9, 15)),
        ("at 9 tomorrow x", wall(7, 16, 9)),
        ("at friday 8:00 x", wall(7, 17, 8)),
        ("at wed 8:00 x", wall(7, 22, 8)),
        ("at wednesday 18:00 x", wall(7, 15, 18)),
        ("at 8:00 on Sunday x", wall(7, 19, 8)),
        ("at 2026-12-24T18:00 x", wall(12, 24, 18)),
        ("at 2026-12-24 18:00 x", wall(12, 24, 18)),
    ],
)
def test_once(text: str, due: datetime) -> None:
    found = spoken.read(text, NOW_MS)
    assert found is not None
    assert found[1] == "x"
    assert parse(**found[0], now=NOW_MS) == At(round(due.timestamp() * 1000))


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("every 5 minutes x", 5),
        ("every 5m x", 5),
        ("every 1h30m x", 90),
        ("every hour x", 60),
        ("every 2 Hours x", 120),
        ("every day x", 1440),
        ("every 2d x", 2880),
    ],
)
def test_every_so_often(text: str, minutes: int) -> None:
    found = spoken.read(text, NOW_MS)
    assert found is not None
    assert found[1] == "x"
    assert parse(**found[0], now=NOW_MS) == Every(minutes * MINUTE, NOW_MS)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("every monday 8:00 x", "0 8 * * mon"),
        ("every day at 7:30 x", "30 7 * * *"),
        ("every weekday 9 x", "0 9 * * mon-fri"),
        ("every weekend at 10am x", "0 10 * * sat,sun"),
        ("every tues, thursdays and Saturday 18:05 x", "5 18 * * tue,thu,sat"),
        ("every sunday noon x", "0 12 * * sun"),
    ],
)
def test_on_days(text: str, expression: str) -> None:
    found = spoken.read(text, NOW_MS)
    assert found is not None
    assert found[1] == "x"
    assert parse(**found[0], now=NOW_MS) == Cron(expression, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow buy milk",
        "in a while x",
        "in 10 months x",
        "in 999999w x",
        "at 25:00 x",
        "at 9:75 x",
        "at 13pm x",
        "at 9.30 x",
        "at 2026-12-24 x",
        "every 2 months x",
        "every other day x",
        "every 2 days at 8:00 x",
        "every monday x",
        "every monday 24:00 x",
        "monday",
        "soon x",
    ],
)
def test_what_is_no_time_is_not_guessed_at(text: str) -> None:
    assert spoken.read(text, NOW_MS) is None


def test_the_rest_is_as_it_was_typed() -> None:
    assert spoken.read("in 10m: Take  the cake\nout", NOW_MS) is not None
    assert spoken.read("in 10m: Take  the cake\nout", NOW_MS)[1] == "Take  the cake\nout"  # type: ignore[index]
