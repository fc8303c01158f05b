"""Reads times as people type them before a task: `in 10m`, `at tomorrow 9`, `every monday 8:00`.

The grammar is closed, so nothing is guessed.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from heartbeat.cron import WEEKDAYS
from heartbeat.times import show_duration, wall_time

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_UNIT = r"(?:s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)(?![a-z])"
_COUNTED = rf"(?:\d{{1,6}}(?:\.\d{{1,3}})?|an?\b)\s*{_UNIT}"
_TIME = r"(?:(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d))?(?:\s?(?P<half>[ap]m))?|(?P<word>noon|midnight))(?![\w:.])"
_WEEKDAY = r"(?:sun|mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?)(?:day)?"
_DATE = rf"(?:today|tomorrow|{_WEEKDAY})\b"
_DAYS = rf"(?:day|weekday|weekend|{_WEEKDAY})s?\b"
_NAMED = {"day": "*", "weekday": "mon-fri", "weekend": "sat,sun"}

_MOST_SECONDS = 10_000 * 365 * 86400  # more than the calendar of dates has
When = dict[str, str]


def read(text: str, now: int) -> tuple[When, str] | None:
    """Read the time at the beginning of a text; None: there is none.

    now: in milliseconds since the epoch. Returns the arguments for `heartbeat.schedule.parse` and the rest of the text.
    """
    for form, made in _FORMS:
        if (found := form.match(text)) and (when := made(found, now)):
            return when, text[found.end() :].lstrip(" ,:;\n")
    return None


def _span(text: str) -> timedelta:
    found = re.findall(rf"(?:(\d[\d.]{{0,20}})\s*|\b)({_UNIT})", text, re.I)
    seconds = sum(float(count or 1) * _SECONDS[unit[0].lower()] for count, unit in found)
    return timedelta(seconds=min(seconds, _MOST_SECONDS))


def _in(found: re.Match[str], now: int) -> When | None:
    try:
        return {"at": (datetime.fromtimestamp(now / 1000, UTC) + _span(found["span"])).isoformat()}
    except OverflowError:
        return None


def _every(found: re.Match[str], now: int) -> When:
    return {"every": show_duration(_span(found["span"]))}


def _time(found: re.Match[str]) -> tuple[int, int] | None:
    """Return hour and minute; None for a time that no clock shows."""
    if found["word"]:
        return (12 if found["word"].lower() == "noon" else 0), 0
    hour, half = int(found["hour"]), found["half"]
    if hour > 23 or (half and not 1 <= hour <= 12):
        return None
    return (hour % 12 + 12 * (half.lower() == "pm") if half else hour), int(found["minute"] or 0)


def _on_days(found: re.Match[str], now: int) -> When | None:
    days = [day.lower() for day in re.findall(_DAYS, found["days"], re.I)]
    on = ",".join(_NAMED.get(day.removesuffix("s"), day[:3]) for day in days)
    return {"cron": f"{time[1]} {time[0]} * * {'*' if '*' in on else on}"} if (time := _time(found)) else None


def _at(found: re.Match[str], now: int) -> When | None:
    time, day = _time(found), (found["before"] or found["behind"] or "").lower()
    if time is None:
        return None
    today = wall_time(now, None)
    due = today.replace(hour=time[0], minute=time[1], second=0, microsecond=0, fold=0)
    if day[:3] in WEEKDAYS:
        due += timedelta(days=(WEEKDAYS.index(day[:3]) - 1 - due.weekday()) % 7)
    if day == "tomorrow" or (not day and due <= today):
        due += timedelta(days=1)
    elif day != "today" and due <= today:
        due += timedelta(days=7)
    return {"at": due.isoformat()}


def _form(
    pattern: str, made: Callable[[re.Match[str], int], When | None]
) -> tuple[re.Pattern[str], Callable[[re.Match[str], int], When | None]]:
    return re.compile(rf"\s*{pattern}(?=[\s,:;]|$)", re.I), made


_FORMS = (
    _form(rf"in (?P<span>{_COUNTED}(?:,?(?: and)?\s*{_COUNTED})*)", _in),
    _form(rf"every (?P<days>{_DAYS}(?:(?:, ?| and |, and ){_DAYS})*),?(?: at)? {_TIME}", _on_days),
    _form(rf"every (?P<span>(?:\d[\d.]*\s*)?{_UNIT}(?:\s*{_COUNTED})*)(?!,? (?:at|on) )", _every),
    _form(r"(?:at )?(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*)", lambda found, now: {"at": found["iso"]}),
    _form(
        rf"(?:at )?(?:(?:on )?(?P<before>{_DATE}),?(?: at)? )?{_TIME}(?:,? (?:on )?(?P<behind>{_DATE}))?",
        _at,
    ),
)
