"""The hours of the day in which it may speak up by itself."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from heartbeat.local_time import moment_of, wall_time


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """A window of each day by the clock on the wall, over midnight when it ends before it starts; of no width: never.

    start, end: minutes since midnight; end is not part of it, and may be 1440. zone: None is this machine's.
    """

    start: int
    end: int
    zone: tzinfo | None

    def contains(self, moment: int) -> bool:
        """Whether a moment, in milliseconds since the epoch, lies in it."""
        wall = wall_time(moment, self.zone)
        minute = wall.hour * 60 + wall.minute
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def day_start(moment: int, zone: tzinfo | None) -> int:
    """When the day of a moment began: its midnight, or, where a clock leaves that out, its first moment."""
    return moment_of(datetime.combine(wall_time(moment, zone), datetime.min.time()), zone)
