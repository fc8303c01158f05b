"""When the heartbeat and what is scheduled are due."""

from tests.mutants import Fault

_SCHEDULE = "tests/heartbeat/test_schedule.py::test_"
_HOURS = "tests/heartbeat/test_times.py::test_"
_SCHEDULER = "tests/heartbeat/test_scheduler.py::test_"

FAULTS = (
    Fault(
        "heartbeat/what-is-left-out-is-due-later-than-what-follows",
        "moment_of",
        "    if first <= second:",
        "    if True:",
        (f"{_SCHEDULE}daylight_saving", f"{_SCHEDULE}the_clock_is_followed_minute_by_minute"),
    ),
    Fault(
        "heartbeat/what-is-shown-twice-is-due-twice",
        "_next_of_cron",
        "len(cron.read(expression).hours) < 24",
        "not expression",
        (f"{_SCHEDULE}daylight_saving", f"{_SCHEDULE}the_clock_is_followed_minute_by_minute"),
    ),
    Fault(
        "heartbeat/every-hour-rests-where-the-clock-is-put-back",
        "_next_of_cron",
        "return min(first, _first_shown(expression, zone, moment, 1) or first)",
        "return first",
        (f"{_SCHEDULE}daylight_saving",),
    ),
    Fault(
        "heartbeat/the-second-hour-begins-where-the-first-was-left",
        "_first_shown",
        "    wall -= timedelta(milliseconds=max(0, moment_of(wall, zone, fold) - moment))\n",
        "",
        (f"{_SCHEDULE}the_clock_is_followed_minute_by_minute",),
    ),
    Fault(
        "heartbeat/a-time-of-the-first-hour-is-due-in-the-second",
        "_first_shown",
        "(at := moment_of(following, zone, fold)) <= moment:",
        "(at := moment_of(following, zone, fold)) < 0:",
        (f"{_SCHEDULE}daylight_saving",),
    ),
    Fault(
        "heartbeat/weekdays-count-from-monday",
        "_triggers",
        "{(day + 6) % 7 for day in fields.weekdays}",
        "fields.weekdays",
        (f"{_SCHEDULE}days_of_a_crontab",),
    ),
    Fault(
        "heartbeat/day-and-weekday-must-both-fit",
        "read",
        "either = len(days) < 31",
        "either = not len(days)",
        (f"{_SCHEDULE}days_of_a_crontab[0 9 13 * fri-09, 13, 16, 23]",),
    ),
    Fault(
        "heartbeat/a-sunday-ends-no-range",
        "_Field.values",
        "last = 7  #",
        "last = 0  #",
        (f"{_SCHEDULE}days_of_a_crontab[0 9 * * SAT-SUN-04, 10, 11]",),
    ),
    Fault(
        "heartbeat/missed-times-run-one-by-one",
        "due",
        "if following is None or following > now:",
        "if True:",
        (f"{_SCHEDULE}each_due_time_lies_in_exactly_one", f"{_SCHEDULE}years_of_days_in_one_go"),
    ),
    Fault(
        "heartbeat/a-due-time-between-two-ranges",
        "due",
        "(following, now), next_after(schedule, now))",
        "(following, now), next_after(schedule, now + 1000))",
        (f"{_SCHEDULE}each_due_time_lies_in_exactly_one",),
    ),
    Fault(
        "heartbeat/the-run-is-skipped-as-well",
        "due",
        "Due(next_at, late, (following, now)",
        "Due(next_at, late, (next_at, now)",
        (f"{_SCHEDULE}each_due_time_lies_in_exactly_one",),
    ),
    Fault(
        "heartbeat/the-beat-moves-with-each-search",
        "next_after",
        "return moment + every - (moment - anchor) % every",
        "return moment + every",
        (f"{_SCHEDULE}each_due_time_lies_in_exactly_one",),
    ),
    Fault(
        "heartbeat/a-schedule-that-never-comes",
        "parse",
        "if next_after(schedule, now) is None:",
        "if False:",
        (f"{_SCHEDULE}what_is_refused",),
    ),
    Fault(
        "heartbeat/no-width-is-always",
        "ActiveHours.contains",
        "if self.start <= self.end:",
        "if self.start < self.end:",
        (f"{_HOURS}windows",),
    ),
    Fault(
        "heartbeat/the-end-is-part-of-it",
        "ActiveHours.contains",
        "minute < self.end\n        return",
        "minute <= self.end\n        return",
        (f"{_HOURS}windows",),
    ),
    Fault(
        "heartbeat/who-hurries-is-forgotten-during-a-tick",
        "Scheduler._ended",
        "0 if self._hurried else ",
        "",
        (f"{_SCHEDULER}who_hurries_it_waits_for_nothing_and_never_starts_a_second",),
    ),
    Fault(
        "heartbeat/one-fault-ends-the-heartbeat",
        "Scheduler._start",
        "events.EVENT_JOB_EXECUTED | events.EVENT_JOB_ERROR",
        "events.EVENT_JOB_EXECUTED",
        (f"{_SCHEDULER}one_that_raises_is_logged_and_called_again",),
    ),
    Fault(
        "heartbeat/the-end-cuts-a-tick-off",
        "Scheduler.close",
        "            await self._over.wait()\n",
        "            pass\n",
        (f"{_SCHEDULER}the_tick_under_way_is_waited_for_and_none_follows",),
    ),
)
