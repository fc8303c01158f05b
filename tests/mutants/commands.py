"""What people command."""

from tests.mutants import Fault

_TABLE = "tests/bot/commands/test_who_has_which.py::test_a_command_is_"
_STOP = "tests/bot/inbound/test_stop_words.py::test_"
_NEW = "tests/bot/inbound/test_new.py::test_"
_RETRY = "tests/bot/inbound/test_commands.py::test_"

FAULTS = (
    Fault(
        "commands/stop-drops-what-came-later",
        "_stop_one",
        "NOT IN ('wake','job') AND seq < ? AND",
        "NOT IN ('wake','job') AND seq <> ? AND",
        ("tests/bot/store/test_steering.py::test_what_is_written_after_a_stop_is_not_dropped_by_it",),
    ),
    Fault(
        "commands/carried-out-twice",
        "begin",
        "SET state='done' WHERE seq=? AND state='waiting' RETURNING",
        "SET state='done' WHERE seq=? RETURNING",
        ("tests/bot/store/test_steering.py::test_a_command_has_its_effect_once",),
    ),
    Fault(
        "commands/stop-still-says-what-was-planned",
        "stop_turn",
        "turn_id=? AND state IN ('planned','unknown')",
        "turn_id=? AND state='unknown'",
        ("tests/bot/inbound/test_commands.py::test_stop_takes_back_what_was_not_sent_yet",),
    ),
    Fault(
        "commands/not-carried-out-after-a-restart",
        "Service.start",
        "await self._once_possible(parts.commands.recover)",
        "pass",
        (
            "tests/bot/inbound/test_commands.py::test_a_command_that_was_accepted_before_the_end_is_carried_out_after_the_start",
        ),
    ),
    Fault(
        "commands/stop-forgets-what-is-in-doubt",
        "stop_turn",
        "turn_id=? AND state IN ('planned','unknown')",
        "turn_id=? AND state='planned'",
        ("tests/bot/test_refused.py::test_what_is_stopped_while_its_outcome_is_unknown_stays_uncertain",),
    ),
    Fault(
        "commands/guests-have-what-is-for-owners",
        "Command.is_for",
        'self.guests == "direct" and asker.direct',
        'self.guests == "direct"',
        (f"{_TABLE}there_for_who_may_use_it_and_for_nobody_else[guest-group]",),
    ),
    Fault(
        "commands/deciders-have-nothing",
        "Command.is_for",
        "(asker.is_approver or asker.presses)",
        "asker.presses",
        (f"{_TABLE}there_for_who_may_use_it_and_for_nobody_else[approver-thread]",),
    ),
    Fault(
        "commands/menus-name-what-is-for-owners",
        "Registry.infos",
        ' and (one.guests != "nowhere" or one.approvers)',
        "",
        ("tests/bot/commands/test_who_has_which.py::test_menus_name_what_somebody_but_owners_has",),
    ),
    Fault(
        "commands/words-are-no-stop",
        "Registry.find",
        "if word in self._stop_words else None",
        "if False else None",
        (f"{_STOP}a_word_alone_stops_in_any_case_and_language[STOP!!]",),
    ),
    Fault(
        "commands/anybody-stops-by-a-word-in-groups",
        "_is_for_it",
        "if is_word and _has_run(db, item):",
        "if is_word:",
        (f"{_STOP}in_a_group_a_word_counts_for_who_has_a_run_there_or_names_the_bot",),
    ),
    Fault(
        "commands/guests-stop-the-runs-of-others",
        "StopCommands.stop",
        "only=call.message.origin.sender if shared else",
        "only='' if shared else",
        (f"{_STOP}guests_of_a_group_end_what_is_theirs_and_owners_everything[/stop]",),
    ),
    Fault(
        "commands/stop-says-nothing-of-what-was-done",
        "_stop_one",
        "WHERE turn_id=? AND state='done'",
        "WHERE turn_id=? AND state='cut'",
        (f"{_STOP}it_names_what_was_done_before",),
    ),
    Fault(
        "commands/guests-read-arguments",
        "done_before",
        "args if by_owner else",
        "args if True else",
        (f"{_STOP}it_names_what_was_done_before",),
    ),
    Fault(
        "commands/new-forgets-the-words",
        "StopCommands.renew",
        "if words else None",
        "if False else None",
        (f"{_NEW}words_are_the_first_message_and_are_answered",),
    ),
    Fault(
        "commands/new-keeps-the-model",
        "Stops.stop",
        "db.execute(change, (ending.model, session_key))",
        "pass",
        (f"{_NEW}a_model_answers_from_then_on_and_settings_stay[/new]",),
    ),
    Fault(
        "commands/guests-choose-any-model",
        "ModelCommands.refusal",
        "or call.by_owner or",
        "or True or",
        (f"{_NEW}guests_choose_within_what_is_theirs",),
    ),
    Fault(
        "commands/no-last-notes",
        "CommandRunner._carry_out",
        "await kept.afterwards()",
        "pass",
        (f"{_NEW}notes_are_saved_of_the_old_conversation_while_the_new_one_begins",),
    ),
    Fault(
        "commands/new-waits-for-the-notes",
        "StopCommands.renew",
        "        return replace(kept, afterwards=partial(self.notes.save, call, kept.stopped.left))",
        "        await self.notes.save(call, kept.stopped.left)\n        return kept",
        (f"{_NEW}notes_are_saved_of_the_old_conversation_while_the_new_one_begins",),
    ),
    Fault(
        "commands/retry-with-the-rights-of-who-repeats",
        "Retries.retry",
        "            message, kind=InboundKind.MESSAGE,",
        "            message, origin=command.origin, kind=InboundKind.MESSAGE,",
        (f"{_RETRY}guests_of_a_group_repeat_their_own_message_with_their_own_rights",),
    ),
    Fault(
        "commands/retry-of-anybody",
        "Retry.persist",
        '"" if call.asker.is_owner or call.asker.direct else call.message.origin.sender',
        '""',
        (f"{_RETRY}guests_of_a_group_repeat_their_own_message_with_their_own_rights",),
    ),
    Fault(
        "commands/retry-while-it-is-answered",
        "Retries.retry",
        'if found[2] not in ("done", "dropped"):',
        "if False:",
        (f"{_RETRY}not_while_it_is_being_answered_and_not_without_a_message",),
    ),
    Fault(
        "commands/an-order-lets-nobody-in",
        "refusal",
        ' or let_in_by == "order"',
        "",
        ("tests/bot/people/test_allowlist.py::test_who_is_added_is_let_in_until_they_are_removed[allowlist]",),
    ),
    Fault(
        "commands/a-code-counts-as-an-order",
        "refusal",
        'let_in_by == "order"',
        "let_in_by",
        ("tests/bot/people/test_access.py::test_direct_messages_are_let_in_by_policy_and_lists",),
    ),
    Fault(
        "commands/status-without-the-tool-at-work",
        "Reads.at_work",
        "AND state='running' ORDER BY ordinal",
        "AND state='asked' ORDER BY ordinal",
        ("tests/bot/gateway/test_health.py::test_the_tool_at_work_and_how_long",),
    ),
)
