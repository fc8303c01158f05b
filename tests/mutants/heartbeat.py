"""Beats and jobs: what is due, what is kept of it, and what the end of a turn means."""

from tests.mutants import Fault

_BEATS = "tests/bot/background/test_beats.py::test_"
_DUE = "tests/bot/background/test_due_times.py::test_"
BEATS, DISPATCHER = "bot/background/beats.py", "bot/background/dispatcher.py"
STORE = "bot/store/schedules.py"

FAULTS = (
    Fault(
        "heartbeat/phase-lost",
        "Beats.set_up",
        "anchor = old.schedule.anchor if old and isinstance(old.schedule, Every) else now",
        "anchor = now",
        (f"{_BEATS}the_phase_is_kept_over_restarts_and_other_intervals",),
    ),
    Fault(
        "heartbeat/missed-without-a-row",
        "firings_of",
        "if found.skipped is None:",
        "if found:",
        (f"{_BEATS}missed_beats_come_once_and_late",),
    ),
    Fault(
        "heartbeat/busy-is-final",
        "Beats.fire",
        'busy = reason == "busy"',
        "busy = False",
        (f"{_BEATS}a_beat_waits_for_the_run_of_its_session",),
    ),
    Fault(
        "heartbeat/mistakes-told-each-time",
        "Beats._complain",
        "hashlib.sha256(words.encode()).hexdigest()[:16]",
        "self.clock.new_id()",
        (f"{_BEATS}a_mistake_in_the_file_is_told_once",),
    ),
    Fault(
        "heartbeat/tasks-done-without-their-turn",
        "_end_due_run",
        "if outcome is Outcome.COMPLETED:",
        "if outcome:",
        (f"{_BEATS}a_task_counts_as_done_only_when_its_turn_was_completed",),
    ),
    Fault(
        "heartbeat/isolated-words-untold",
        "_end_due_run",
        'if said and told not in ("", session_key):',
        "if said and not told:",
        (f"{_BEATS}isolated_beats_know_nothing_of_the_session_and_tell_it_what_they_said",),
    ),
    Fault(
        "heartbeat/isolated-with-history",
        "begins_anew",
        'return key.endswith(_HEARTBEAT) or key.startswith(f"{_AGENT}:job:")',
        "return False",
        (f"{_BEATS}isolated_beats_know_nothing_of_the_session_and_tell_it_what_they_said",),
    ),
    Fault(
        "heartbeat/errors-count-for-ever",
        STORE,
        "outcome NOT IN ('','failed')",
        "outcome='unheard of'",
        (f"{_BEATS}an_error_now_and_then_does_not_end_the_beats",),
    ),
    Fault(
        "heartbeat/event-told-twice",
        "noted",
        "UPDATE inbox SET reason='{Cause.NOTED}', turn_id=?1",
        "UPDATE inbox SET turn_id=?1",
        (f"{_BEATS}an_event_reaches_the_next_turn_once",),
    ),
    Fault(
        "heartbeat/event-lost-with-a-failed-beat",
        "_end_due_run",
        "if not said and outcome not in (Outcome.COMPLETED, Outcome.LIMIT):",
        "if False:",
        (f"{_BEATS}an_event_that_a_failed_beat_has_seen_reaches_the_next_turn",),
    ),
    Fault(
        "heartbeat/beats-swallow-edits",
        "Claims._begin",
        'beat = turn_id if kind == "wake" else None',
        "beat = None",
        (f"{_BEATS}a_quiet_beat_leaves_what_was_edited_to_the_next_turn",),
    ),
    Fault(
        "heartbeat/alerts-to-whoever-wrote-last",
        "Beats.look",
        "place if place and of == main else kept.place",
        "kept.place",
        (f"{_BEATS}an_alert_goes_to_an_owner_where_others_share_the_session",),
    ),
    Fault(
        "heartbeat/reminders-lost-before-the-platform-is-there",
        "Conversations.reaches",
        "and not one.channel.account for one in self.accounts",
        "and False for one in self.accounts",
        (f"{_DUE}a_reminder_waits_for_its_platform",),
    ),
    Fault(
        "heartbeat/reminder-swallowed-by-hand",
        "Dispatcher._fire",
        'if fired == "running" and isinstance(job.schedule, At):',
        "if not fired:",
        (f"{_DUE}a_reminder_is_not_swallowed_by_its_run_by_hand",),
    ),
    Fault(
        "heartbeat/events-forgotten",
        "bot/store/prune.py",
        ' AND NOT coalesce({UNNOTED}, 0)"',
        '"',
        (f"{_BEATS}events_and_the_owners_place_outlive_what_is_forgotten",),
    ),
    Fault(
        "heartbeat/isolated-beats-cannot-be-stopped",
        "_stop_one",
        "(session_key=?1 OR {_OF_ITS_OWN})",
        "session_key=?1",
        (f"{_BEATS}stop_reaches_isolated_beats",),
    ),
    Fault(
        "heartbeat/too-many-jobs",
        "Schedules.fire",
        "others >= most:\n                return",
        "others > most:\n                return",
        (f"{_DUE}at_most_two_jobs_run_at_once",),
    ),
    Fault(
        "heartbeat/failures-forgotten",
        "_put_off",
        "failures=failures+1",
        "failures=0",
        (f"{_DUE}a_job_rests_after_failures_and_its_due_times_are_passed_over",),
    ),
    Fault(
        "heartbeat/passed-over-without-a-row",
        "Dispatcher._fire",
        "fire(job, (replace(firing, reason=reason), *missed), found.next_at)",
        "fire(job, missed, found.next_at)",
        (f"{_DUE}a_job_rests_after_failures_and_its_due_times_are_passed_over",),
    ),
    Fault(
        "heartbeat/jobs-of-anybody",
        "Dispatcher._against",
        "job.origin is None or not self.conversations.people.is_owner(",
        "job.origin is None or not bool(",
        (f"{_DUE}who_is_no_owner_any_more_has_no_jobs",),
    ),
)
