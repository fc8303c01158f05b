"""Schedules: when something is due, once, at intervals, or by a crontab.

All moments are milliseconds since the epoch. A time that a clock skips when it is put forward is due at that moment. A
time that it shows twice is due the first time; only crontabs of every hour run in both hours.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Literal

from heartbeat import cron
from heartbeat.times import in_words, moment_of, parse_duration, wall_time, zone_named

_LATE_MS = 60_000
_SHORTEST = timedelta(seconds=1)
_DAY_MS = 86_400_000
_DATE = len("2026-11-22")


class ScheduleError(ValueError):
    """A text is no schedule. The message tells people what was wrong and what is allowed."""


@dataclass(frozen=True, slots=True)
class At:
    """Once, at a moment."""

    at: int
    type: Literal["at"] = "at"


@dataclass(frozen=True, slots=True)
class Every:
    """At intervals."""

    # The interval in milliseconds, at least 1.
    every: int
    # One of the due times; the others follow and precede it in steps of the interval.
    anchor: int
    type: Literal["every"] = "every"


@dataclass(frozen=True, slots=True)
class Cron:
    """By a crontab of five fields."""

    expression: str
    # An IANA name; empty: this machine's zone.
    zone: str
    type: Literal["cron"] = "cron"


Schedule = At | Every | Cron


@dataclass(frozen=True, slots=True)
class Due:
    """A due run, and which due times are skipped."""

    # The due time that runs.
    due_at: int
    # Whether it was more than a minute ago.
    late: bool
    # The first and last moment, both included, of a range whose due times are skipped.
    skipped: tuple[int, int] | None
    # The first due time after all of these; None: there is none.
    next_at: int | None


def next_after(schedule: Schedule, moment: int) -> int | None:
    """Return the first due time after a moment; None: there is none.

    Raises ScheduleError when the machine does not know the zone of a schedule that was persisted earlier.
    """
    match schedule:
        case At(at):
            return at if at > moment else None
        case Every(every, anchor):
            return moment + every - (moment - anchor) % every
        case Cron(expression, zone):
            return _next_of_cron(expression, _zone(zone), moment)


def _next_of_cron(expression: str, zone: tzinfo | None, moment: int) -> int | None:
    first = _first_shown(expression, zone, moment, 0)
    if first is None or len(cron.read(expression).hours) < 24:
        return first
    return min(first, _first_shown(expression, zone, moment, 1) or first)


def _first_shown(expression: str, zone: tzinfo | None, moment: int, fold: int) -> int | None:
    """Return the first due time after a moment. fold: 0 or 1, which moment counts if the clock shows a time twice."""
    wall = wall_time(moment, zone)
    # While an hour that comes twice is shown for the first time, all times of its second showing are still to come.
    wall -= timedelta(milliseconds=max(0, moment_of(wall, zone, fold) - moment))
    while (following := cron.following(expression, wall)) and (at := moment_of(following, zone, fold)) <= moment:
        wall = following
    return at if following else None


def upcoming(schedule: Schedule, moment: int, count: int) -> tuple[int, ...]:
    """Return the next due times after a moment, at most `count`."""
    found: list[int] = []
    while len(found) < count and (following := next_after(schedule, found[-1] if found else moment)) is not None:
        found.append(following)
    return tuple(found)


def due(schedule: Schedule, next_at: int, now: int) -> Due | None:
    """Return the due run, if there is one. next_at: the first due time that has not run yet.

    The oldest due time runs, and all others up to now are skipped, so the cost is the same after a long sleep.
    """
    if next_at > now:
        return None
    late = now - next_at > _LATE_MS
    following = next_after(schedule, next_at)
    if following is None or following > now:
        return Due(next_at, late, None, following)
    return Due(next_at, late, (following, now), next_after(schedule, now))


def parse(*, at: str = "", every: str = "", cron: str = "", zone: str = "", now: int) -> Schedule:
    """Read a schedule. Exactly one of `at`, `every` and `cron` must be given. Raises ScheduleError.

    zone: for times without an offset; empty: this machine's.
    """
    if bool(at) + bool(every) + bool(cron) != 1:
        raise ScheduleError("Give exactly one of `at`, `every` and `cron`.")
    schedule = _at(at, _zone(zone)) if at else _every(every, now) if every else _cron(cron, zone)
    if next_after(schedule, now) is None:
        raise ScheduleError(f"`{at or cron}` {'is past' if at else 'never comes'}; give a time that is still to come.")
    return schedule


def _zone(name: str) -> tzinfo | None:
    try:
        return zone_named(name)
    except ValueError as error:
        raise ScheduleError(f"{error}.") from None


def _at(text: str, zone: tzinfo | None) -> At:
    allowed = "date and time of ISO 8601, such as 2026-11-23T09:00 or 2026-11-23T09:00+01:00"
    try:
        time = datetime.fromisoformat(text.strip())
        if len(text.strip()) <= _DATE:
            raise ValueError(text)
        moment = moment_of(time, zone) if time.tzinfo is None else round(time.timestamp() * 1000)
        wall_time(moment + _DAY_MS, zone)  # a time that can be shown in every zone
    except (ValueError, OverflowError, OSError):
        raise ScheduleError(f"`{text}` is no time that a schedule takes; allowed: {allowed}.") from None
    return At(moment)


def _every(text: str, now: int) -> Every:
    try:
        span = parse_duration(text)
    except ValueError:
        span = timedelta()
    if span < _SHORTEST:
        allowed = "a duration of at least 1s with its unit, such as 45s, 30m, 1h30m or 2d"
        raise ScheduleError(f"`{text}` is no interval; allowed: {allowed}.")
    return Every(span // timedelta(milliseconds=1), now)


def _cron(text: str, zone: str) -> Cron:
    _zone(zone)
    try:
        cron.read(text)
    except ValueError as error:
        raise ScheduleError(f"{error}.") from None
    return Cron(" ".join(text.split()), zone)


def describe(schedule: Every | Cron) -> str:
    """Return a repeating schedule in words."""
    match schedule:
        case Every(every):
            return f"every {in_words(timedelta(milliseconds=every)).removeprefix('1 ')}"
        case Cron(expression, name):
            return f"{cron.in_words(expression)}, {name or 'by the clock of this machine'}"
