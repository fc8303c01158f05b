"""When a session begins anew by itself: `sessions.reset`. A pure decision about moments, daylight saving included."""

from datetime import datetime, time, timedelta, tzinfo

from bot.config.model import Expiry, Reset
from bot.people.access import LOCAL
from channels.message import Place

_DAY = timedelta(days=1)


def is_stale(reset: Reset, zone: tzinfo | None, place: Place, used_at: int, at: int) -> bool:
    """Whether the message of a moment is the first after an end of its session, which was last used at another one.

    Moments in milliseconds. zone: in which `daily_at` is meant, None for that of this machine.
    """
    rules = _rules(reset, place)
    if rules.idle and at - used_at > rules.idle.total_seconds() * 1000:
        return True
    return rules.daily_at is not None and used_at < _last_end(rules, zone, at)


def _rules(reset: Reset, place: Place) -> Expiry:
    """The nearest that is written holds, alone: that of the channel, of the sort of chat, of all."""
    kind = "thread" if place.thread else place.kind.value if place.kind not in LOCAL else "direct"
    return reset.by_channel.get(place.channel) or reset.by_type.get(kind) or reset


def _last_end(rules: Expiry, zone: tzinfo | None, at: int) -> int:
    """The last moment not behind `at` at which the clock on the wall showed `daily_at`; where it skipped that, when it
    would have."""
    assert rules.daily_at is not None
    end = time(*divmod(rules.daily_at, 60))
    today = datetime.fromtimestamp(at / 1000, zone).date()
    ends = (datetime.combine(day, end, zone).timestamp() * 1000 for day in (today, today - _DAY))
    return max(int(moment) for moment in ends if moment <= at)
