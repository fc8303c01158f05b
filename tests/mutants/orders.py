"""Stops, undoing, freezing, the heartbeat and presses: each is carried out once, and reaches what it should."""

from tests.mutants import Fault, code, fault, text

_BEATS = "tests/bot/background/test_beats.py::test_"
_DUE_TIMES = "tests/bot/background/test_due_times.py::test_"
_WHAT_IT_READS = "tests/bot/children/test_visibility.py::test_"
_FREEZES = "tests/bot/persistence/test_freezes.py::test_"
_EXPLORER = "tests/crash/test_explorer.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "commands/stop-drops-what-came-later",
        "_stop_one",
        text("('wake','job') AND seq < ? AND", "('wake','job') AND seq <> ? AND"),
        "tests/bot/store/test_steering.py::test_what_is_written_after_a_stop_is_not_dropped_by_it",
    ),
    fault(
        "commands/carried-out-twice",
        "begin",
        text("AND state='waiting' RETURNING", "RETURNING"),
        "tests/bot/store/test_steering.py::test_a_command_has_its_effect_once",
    ),
    fault(
        "commands/stop-forgets-what-is-in-doubt",
        "stop_turn",
        text("state IN ('planned','unknown')", "state='planned'"),
        "tests/bot/test_refused.py::test_what_is_stopped_while_its_outcome_is_unknown_stays_uncertain",
    ),
    fault(
        "commands/retry-with-the-rights-of-who-repeats",
        "Retries.retry",
        code("replace(A, ..., respond=B.respond)", "replace(A, ..., respond=B.respond, origin=B.origin)"),
        "tests/bot/inbound/test_commands.py::test_guests_of_a_group_repeat_their_own_message_with_their_own_rights",
    ),
    fault(
        "commands/a-code-counts-as-an-order",
        "refusal",
        code("A == 'order'", "A"),
        "tests/bot/people/test_access.py::test_direct_messages_are_let_in_by_policy_and_lists",
    ),
    fault(
        "choices/second-press-counts",
        "begin",
        code("A or not B", "A or not B or seq"),
        "tests/bot/test_choices.py::test_only_the_first_press_counts_and_the_same_click_is_one",
    ),
    fault(
        "undo/what-is-not-sent-is-sent",
        "_take_off",
        text("('planned','unknown')", "('unknown')"),
        "tests/bot/runs/test_undo.py::test_what_is_not_sent_yet_never_will_be",
    ),
    fault(
        "undo/what-is-under-way-stays",
        "_take_off",
        text("('sending','sent','uncertain')", "('sent','uncertain')"),
        "tests/bot/runs/test_undo.py::test_a_message_whose_sending_is_under_way_goes_when_it_has_arrived",
    ),
    fault(
        "freezing/model-is-asked-all-the-same",
        "begin_answer",
        text("NOT {frozen.ASKS_NOTHING}", "1"),
        f"{_FREEZES}results_are_kept_and_no_further_model_call_begins",
    ),
    fault(
        "freezing/beat-goes-on",
        "ASKS_NOTHING",
        text("what='beats'", "what='jobs'"),
        f"{_FREEZES}a_beat_under_way_stops_at_its_next_step_and_holds_up_nobody",
    ),
    fault(
        "freezing/tools-start",
        "Turns.start_calls",
        code("f'{A} AND NOT EXISTS (SELECT 1 FROM freeze)'", "A"),
        f"{_FREEZES}a_call_starts_only_where_nothing_holds_it",
    ),
    fault(
        "freezing/fired-beat-is-claimed",
        "Claims._begin",
        text("{frozen.BEATS})", "0)"),
        f"{_FREEZES}a_fired_beat_is_passed_over_and_people_are_not",
    ),
    fault(
        "freezing/said-later",
        "Deliveries.begin",
        text("NOT {HELD_BACK}", "1"),
        f"{_FREEZES}what_turns_say_waits_and_what_the_service_says_does_not",
    ),
    fault(
        "heartbeat/tasks-done-without-their-turn",
        "_end_due_run",
        code("A is Outcome.COMPLETED", "A"),
        f"{_BEATS}a_task_counts_as_done_only_when_its_turn_was_completed",
    ),
    fault(
        "heartbeat/event-told-twice",
        "noted",
        text("reason='{Cause.NOTED}', turn_id=?1", "turn_id=?1"),
        f"{_BEATS}an_event_reaches_the_next_turn_once",
    ),
    fault(
        "heartbeat/isolated-beats-cannot-be-stopped",
        "_stop_one",
        text("(session_key=?1 OR {_OF_ITS_OWN})", "session_key=?1"),
        f"{_BEATS}stop_reaches_isolated_beats",
    ),
    fault(
        "heartbeat/jobs-of-anybody",
        "Dispatcher._against",
        code("self.conversations.people.is_owner", "bool"),
        f"{_DUE_TIMES}who_is_no_owner_any_more_has_no_jobs",
    ),
    fault(
        "heartbeat-crash/next-due-time-in-another-transaction",
        "Starter.start",
        code(
            "A = await self.store.schedules.fire(B, C, D, ...)",
            "B = replace(B, next_at=D)\nawait self.store.schedules.put(B, 1000)\n"
            "A = await self.store.schedules.fire(B, C, D, ...)",
        ),
        f"{_EXPLORER}a_death_when_something_is_due[reminder]",
        f"{_EXPLORER}a_death_when_something_is_due[recurring]",
    ),
    fault(
        "heartbeat-crash/message-in-another-transaction",
        "Starter.start",
        code(
            "A = await self.store.schedules.fire(B, C, D, E, F)",
            "A = await self.store.schedules.fire(B, C, D, None, F)\nawait self.store.inbox.accept([E], None)",
        ),
        f"{_EXPLORER}a_death_when_something_is_due[reminder]",
        f"{_EXPLORER}a_death_when_something_is_due[recurring]",
    ),
    fault(
        "heartbeat-crash/tasks-of-a-cut-beat-are-done",
        "_end_due_run",
        code("A is Outcome.COMPLETED", "A in (Outcome.COMPLETED, Outcome.ABORTED)"),
        f"{_EXPLORER}a_death_when_something_is_due[tasks]",
    ),
    fault(
        "heartbeat-crash/a-reminder-is-done-when-it-begins",
        "Schedules.fire",
        code(
            "self._accept(db, run, now)",
            "self._accept(db, run, now)\ndb.execute('DELETE FROM job WHERE job_id=?', (job.job_id,))",
        ),
        f"{_EXPLORER}some_deaths_of_what_happens_by_itself[reminder-tried-again]",
    ),
    fault(
        "heartbeat-crash/a-stop-drops-reminders",
        "_stop_one",
        text("kind NOT IN ('wake','job') AND seq", "seq"),
        f"{_DUE_TIMES}a_reminder_that_waits_behind_what_is_stopped_comes_all_the_same",
    ),
    fault(
        "heartbeat-places/others-spend-the-budget-of-the-owner",
        "Beats.look",
        code("A == B or (C and self._is_owners(A))", "A"),
        f"{_BEATS}the_budget_of_an_owner_is_spent_by_their_own_beats",
    ),
    fault(
        "heartbeat-speak/the-tool-is-offered-to-anybody",
        "Permissions._decided",
        code("A.kind == 'main' or (B.owned and (not C))", "A.kind"),
        "tests/bot/background/test_schedule.py::test_it_is_there_where_only_owners_write",
    ),
    fault(
        "heartbeat-speak/a-command-for-anybody",
        "build",
        code("Command(..., name='schedule')", "Command(..., name='schedule', guests='direct')"),
        "tests/bot/background/test_schedule.py::test_for_others_there_is_no_such_command",
    ),
    fault(
        "children/goes-on-behind-a-stop",
        "stop_session",
        code("_busy(A, f'{B}{CHILD}')", "()"),
        "tests/bot/children/test_children.py::test_it_is_stopped_with_the_conversation_that_has_started_it",
    ),
    fault(
        "children/what-models-write-is-of-people",
        "of_others",
        code("_TASK.sub('', _without_blocks(A, 'subagent'))", "A"),
        f"{_WHAT_IT_READS}an_address_in_a_task_that_was_made_from_a_page_is_asked_about",
        f"{_WHAT_IT_READS}an_address_that_a_sub_agent_made_from_a_page_is_asked_about",
    ),
    fault(
        "children/leave-their-fence",
        "composer.lines",
        code("unfenced(A.text, 'subagent')", "A.text"),
        f"{_WHAT_IT_READS}what_it_says_does_not_leave_its_fence",
    ),
    fault(
        "children/end-twice-with-somebody",
        "stop_turn",
        text("turn_id=? AND {OPEN_TURN}", "turn_id=?"),
        "tests/bot/children/test_ends.py::test_somebody_who_is_shut_out_ends_both_once",
    ),
    fault(
        "children/labels-are-trusted",
        "_of_labels",
        code("(B for C in D if C.label for B in A)", "(B for C in () for B in A)"),
        "tests/bot/children/test_visibility.py::test_a_label_that_somebody_elses_model_has_chosen_bears_that",
    ),
    fault(
        "gateway/people-see-causes-in-events",
        "EventStream._kept",
        code("A if self.causes else _without_cause(B)", "A"),
        "tests/bot/gateway/test_agent.py::test_owners_are_told_why_a_run_failed",
    ),
    fault(
        "terminal/closed-before-the-service",
        "_run",
        code(
            "await B.close()\nif C is not None:\n    C.cancel()\n    A",
            "if C is not None:\n    C.cancel()\nawait B.close()\nif C is not None:\n    A",
        ),
        "tests/bot/cli/test_run.py::test_a_signal_lets_an_answer_finish_before_your_eyes",
    ),
)
