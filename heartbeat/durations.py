"""Spans of time as people write them: `45s`, `30m`, `1h30m`."""

import re
from datetime import timedelta

_DURATION = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9}(?:\.\d{1,6})?)s)?")
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def parse_duration(text: str) -> timedelta:
    """Read `30m`, `1h30m`, `2d`, `45s` or `1.5s`; ValueError for anything else, a bare number included."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(text)
    days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def show_duration(span: timedelta) -> str:
    """Write a duration in seconds, so that `parse_duration` reads it: `5400s`."""
    return f"{span.total_seconds():.15g}s"


def in_words(span: timedelta) -> str:
    """A duration for people, in its largest unit of which it is a whole number: `90 minutes`, `1 day`."""
    seconds = span.total_seconds()
    name, size = next((unit for unit in _UNITS if seconds % unit[1] == 0), _UNITS[-1])
    count = f"{seconds / size:.15g}"
    return f"{count} {name}" + ("s" if count != "1" else "")
