"""Time as people see it: durations such as `1h30m`, the wall clock of a time zone, and the active hours of a day.

Moments are milliseconds since the epoch, wall times are datetimes without a zone, and the zone None is this machine's.
"""

import difflib
import re
import zoneinfo
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import cache

_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9}(?:\.\d{1,6})?)s)?")
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def parse_duration(text: str) -> timedelta:
    """Read `30m`, `1h30m`, `2d`, `45s` or `1.5s`. Raises ValueError for anything else, also for a bare number."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(text)
    days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def show_duration(span: timedelta) -> str:
    """Write a duration in seconds, so that `parse_duration` reads it: `5400s`."""
    return f"{span.total_seconds():.15g}s"


def in_words(span: timedelta) -> str:
    """Return a duration for people, in the largest unit that gives a whole number: `90 minutes`, `1 day`."""
    seconds = span.total_seconds()
    name, size = next((unit for unit in _UNITS if seconds % unit[1] == 0), _UNITS[-1])
    count = f"{seconds / size:.15g}"
    return f"{count} {name}" + ("s" if count != "1" else "")


_zones = cache(zoneinfo.available_timezones)  # it reads some hundred files
_LONGEST_NAME = 40


def zone_named(name: str) -> tzinfo | None:
    """Return the zone of an IANA name; None for an empty name. Raises ValueError with a sentence for people."""
    if not name:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        nearest = difflib.get_close_matches(name[:_LONGEST_NAME], _zones(), 1)
        allowed = "the IANA name of a time zone, such as Europe/Berlin"
        hint = f"; nearest is {nearest[0]}" if nearest else ""
        raise ValueError(f"`{name}` is no time zone that this machine knows; allowed: {allowed}{hint}") from None


def wall_time(moment: int, zone: tzinfo | None) -> datetime:
    """Return what the clock shows at a moment. Its `fold` is 1 when the clock was put back and shows a time again."""
    return datetime.fromtimestamp(moment / 1000, zone).replace(tzinfo=None)


def moment_of(wall: datetime, zone: tzinfo | None, fold: int = 0) -> int:
    """Return the moment at which the clock shows a time. fold: 0 or 1, which of the two if it shows the time twice.

    For a time that the clock skips, this is the moment when it is put forward. So later times never have earlier
    moments.
    """
    first, second = (wall.replace(tzinfo=zone, fold=shown).timestamp() for shown in (0, 1))
    if first <= second:  # shown once, or twice
        return round(1000 * (second if fold else first))
    seconds = range(int(second), int(first))  # left out, in one of these
    return 1000 * (seconds.start + bisect_left(seconds, True, key=lambda at: wall_time(at * 1000, zone) > wall))


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """The hours of each day, by the wall clock, in which beats may run; over midnight when `end` is before `start`."""

    # Minutes since midnight. `end` is excluded, and may be 1440. Equal values mean never.
    start: int
    end: int
    # None is this machine's.
    zone: tzinfo | None

    def contains(self, moment: int) -> bool:
        """Whether a moment, in milliseconds since the epoch, lies in the active hours."""
        wall = wall_time(moment, self.zone)
        minute = wall.hour * 60 + wall.minute
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def day_start(moment: int, zone: tzinfo | None) -> int:
    """Return when the day of a moment began: at midnight, or at its first moment if the clock skips midnight."""
    return moment_of(datetime.combine(wall_time(moment, zone), datetime.min.time()), zone)
