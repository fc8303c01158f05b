"""Crontab expressions in wall time, read as cron(8) does; `schedule` handles time zones.

APScheduler's trigger searches the next time. It is used in UTC, which has no missing or repeated hours, because in a
zone with daylight saving it goes back in time and skips days. It gets plain lists of numbers, because its weekdays
begin with Monday, and because it ignores what it does not understand after a name.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_FEW = 6
_ITEM = re.compile(r"(?:\*|(\d{1,2}|[a-z]{3})(?:-(\d{1,2}|[a-z]{3}))?)(?:/(\d{1,2}))?", re.ASCII)
# The calendar repeats after 400 years, so a time that has not come by then never comes.
_END = datetime(2500, 1, 1, tzinfo=UTC)


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        """Return the number of a value; -1: it is no value of this field."""
        value = int(text) if text.isdigit() else self.low + self.names.index(text) if text in self.names else -1
        return value if self.low <= value <= self.high else -1

    def values(self, text: str) -> frozenset[int]:
        """Return all values that a list allows. Raises ValueError with a sentence for people."""
        found: set[int] = set()
        for item in text.lower().split(","):
            match = _ITEM.fullmatch(item)
            start, end, step = match.groups() if match else ("?", None, None)
            first = self.number(start) if start else self.low
            last = self.number(end) if end else self.high if step or not start else first
            if self.names is WEEKDAYS and last == 0 < first:
                last = 7  # sat-sun
            if not 0 <= first <= last or (step and not int(step)):
                known = f"{self.low} to {self.high}" + (f", {self.names[0]} to {self.names[-1]}" if self.names else "")
                allowed = f"{known}, ranges (2-5), steps (*/2), lists with commas, and * for all"
                raise ValueError(f"`{item}` is no {self.name}; allowed: {allowed}")
            found.update(range(first, last + 1, int(step or 1)))
        return frozenset(found)


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, MONTHS),
    _Field("weekday", 0, 7, WEEKDAYS),
)


class Fields(NamedTuple):
    """The values that an expression allows; weekdays count from Sunday, 0."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    # Whether the day of the month or the weekday is enough: so in cron(8) if both are restricted and have no star.
    either: bool


@lru_cache(maxsize=256)
def read(expression: str) -> Fields:
    """Read an expression. Raises ValueError with a sentence for people."""
    texts = expression.split()
    if len(texts) != len(_FIELDS):
        allowed = "five fields, minute, hour, day of the month, month and weekday, such as `30 9 * * mon-fri`"
        raise ValueError(f"`{expression}` is no cron expression; allowed: {allowed}")
    minutes, hours, days, months, weekdays = (field.values(text) for field, text in zip(_FIELDS, texts, strict=True))
    weekdays = frozenset(day % 7 for day in weekdays)
    either = len(days) < 31 and len(weekdays) < 7 and "*" not in (texts[2][0], texts[4][0])
    return Fields(minutes, hours, days, months, weekdays, either)


def following(expression: str, wall: datetime) -> datetime | None:
    """Return the next time after another, both wall times; None: there is none within centuries."""
    start = wall.replace(tzinfo=UTC) + timedelta(microseconds=1)
    found = [trigger.get_next_fire_time(None, start) for trigger in _triggers(expression)]
    return min((time.replace(tzinfo=None) for time in found if time), default=None)


def in_words(expression: str) -> str:
    """Return an expression in words, or the expression itself if it means more than a few times a day."""
    minutes, hours, days, months, weekdays, either = read(expression)
    if len(minutes) * len(hours) > _FEW:
        return f"by cron {expression}"
    times = ", ".join(f"{hour:02}:{minute:02}" for hour in sorted(hours) for minute in sorted(minutes))
    on = [f"on day {', '.join(map(str, sorted(days)))}"] if len(days) < 31 else []
    if len(weekdays) < 7:
        on.append("on " + ", ".join(WEEKDAYS[day].title() for day in sorted(weekdays, key=lambda day: day or 7)))
    text = (" or " if either else " and ").join(on) or "every day"
    if len(months) < 12:
        text += " of " + ", ".join(MONTHS[month - 1].title() for month in sorted(months))
    return f"{text} at {times}"


@lru_cache(maxsize=256)
def _triggers(expression: str) -> tuple[Any, ...]:
    from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]  # heavy: most processes never ask

    fields = read(expression)
    days, weekdays = _text(fields.days, 31), _text({(day + 6) % 7 for day in fields.weekdays}, 7)
    return tuple(
        CronTrigger(
            minute=_text(fields.minutes, 60),
            hour=_text(fields.hours, 24),
            day=day,
            month=_text(fields.months, 12),
            day_of_week=weekday,
            timezone=UTC,
            end_date=_END,
        )
        for day, weekday in ([(days, "*"), ("*", weekdays)] if fields.either else [(days, weekdays)])
    )


def _text(values: frozenset[int] | set[int], size: int) -> str:
    return "*" if len(values) == size else ",".join(map(str, sorted(values)))
