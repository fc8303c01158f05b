"""The clock on a wall: what it shows at a moment, and when it shows a time, also where it is put forward or back.

Moments are milliseconds since the epoch, times of the wall are datetimes without a zone, and the zone None is this
machine's own.
"""

import difflib
import zoneinfo
from bisect import bisect_left
from datetime import datetime, tzinfo


def zone_named(name: str) -> tzinfo | None:
    """The zone of an IANA name; of the empty one None. Raises ValueError with a sentence for people."""
    if not name:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        nearest = difflib.get_close_matches(name, zoneinfo.available_timezones(), 1)
        allowed = "the IANA name of a time zone, such as Europe/Berlin"
        hint = f"; nearest is {nearest[0]}" if nearest else ""
        raise ValueError(f"`{name}` is no time zone that this machine knows; allowed: {allowed}{hint}") from None


def wall_time(moment: int, zone: tzinfo | None) -> datetime:
    """What the clock shows at a moment. fold: 1 where it was put back and shows a time for the second time."""
    return datetime.fromtimestamp(moment / 1000, zone).replace(tzinfo=None)


def moment_of(wall: datetime, zone: tzinfo | None, fold: int = 0) -> int:
    """When the clock shows a time; fold: which of two, 0 or 1, where it does so twice.

    A time that is left out has the moment at which the clock is put forward, and passes it. So later times never have
    earlier moments.
    """
    first, second = (wall.replace(tzinfo=zone, fold=shown).timestamp() for shown in (0, 1))
    if first <= second:  # shown once, or twice
        return round(1000 * (second if fold else first))
    seconds = range(int(second), int(first))  # left out, in one of these
    return 1000 * (seconds.start + bisect_left(seconds, True, key=lambda at: wall_time(at * 1000, zone) > wall))
