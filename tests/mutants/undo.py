"""Exchanges that are taken back, and copies of conversations."""

from tests.mutants import Fault

_UNDO = "tests/bot/runs/test_undo.py::test_"
_FORK = "tests/bot/runs/test_fork.py::test_"
_STORE = "tests/bot/store/test_exchanges.py::test_"
_GONE = f"{_UNDO}an_exchange_is_gone_from_the_chat_and_from_what_the_model_is_shown"
_ANEW = f"{_UNDO}an_edited_question_is_answered_anew_once"
_COVERED = f"{_UNDO}what_a_summary_stands_for_cannot_be_taken_back"
_EDITED = f"{_UNDO}nothing_of_it_is_in_a_summary_or_mentioned_when_its_message_is_edited"

FAULTS = (
    Fault(
        "undo/lines-stay",
        "_hide",
        "UPDATE entry SET hidden={hidden}",
        "UPDATE entry SET hidden=hidden",
        (_GONE,),
    ),
    Fault(
        "undo/contexts-in-memory-stay",
        "_hide",
        'line = rows.append_entry(db, transcript_id, "note", Message("user", (Text(note),)), None, 0).seq',
        'line = db.execute("SELECT max(seq) FROM entry WHERE transcript_id=?", (transcript_id,)).fetchone()[0]',
        (_GONE,),
    ),
    Fault(
        "undo/what-is-not-sent-is-sent",
        "_take_off",
        "'planned','unknown'",
        "'unknown'",
        (f"{_UNDO}what_is_not_sent_yet_never_will_be",),
    ),
    Fault(
        "undo/what-is-under-way-stays",
        "_take_off",
        "state IN ('sending','sent','uncertain')",
        "state IN ('sent','uncertain')",
        (f"{_UNDO}a_message_whose_sending_is_under_way_goes_when_it_has_arrived",),
    ),
    Fault(
        "undo/second-copies-are-kept-quiet",
        "_take_off",
        "lost += again or not known",
        "lost += not known",
        (f"{_UNDO}a_second_copy_that_may_be_there_is_named",),
    ),
    Fault(
        "undo/a-refused-deletion-is-the-end",
        "UndoCommands._take_off",
        "edits=shown.delivery_id), edit",
        "edits=shown.delivery_id),",
        (f"{_UNDO}what_cannot_be_deleted_is_struck_out_once_and_else_told",),
    ),
    Fault(
        "undo/struck-out-although-it-is-gone",
        "UndoCommands._take_off",
        "unless=source.key",
        "unless=''",
        (_GONE,),
    ),
    Fault(
        "undo/nobody-is-told-of-what-stays",
        "Outbox._settle",
        "delivery.action is Action.EDIT and delivery.unless",
        "False",
        (f"{_UNDO}what_cannot_be_deleted_is_struck_out_once_and_else_told",),
    ),
    Fault(
        "undo/age-does-not-count",
        "UndoCommands._take_off",
        "if within and",
        "if not within and",
        (f"{_UNDO}what_is_too_old_to_be_deleted_is_struck_out",),
    ),
    Fault(
        "undo/nothing-is-stopped",
        "_take_back",
        "stop_session(db, session_key, begun.seq, now, Cause.UNDONE)",
        "Stopped()",
        (f"{_UNDO}a_run_is_stopped_and_what_waits_is_dropped",),
    ),
    Fault(
        "undo/others-are-told-of-it",
        "_take_back",
        "reason='{Cause.NOTED}'",
        "reason=reason",
        (f"{_UNDO}a_message_into_another_chat_goes_too_and_nobody_is_told_of_it",),
    ),
    Fault("undo/out-of-a-summary", "_refusal", '"summed up" if', '"" if', (_COVERED,)),
    Fault("undo/lines-before-count-as-left-out", "Context.start", "self.entries[0].since or ", "", (_COVERED,)),
    Fault(
        "undo/a-summary-keeps-it",
        "Compactions.ended",
        " or taken_back",
        "",
        (f"{_STORE}a_summary_that_was_made_meanwhile_of_what_is_taken_back_is_not_stored",),
    ),
    Fault("undo/a-summary-names-its-files", "Compactions.files", " AND hidden=0)", ")", (_EDITED,)),
    Fault("undo/an-edit-of-it-is-told", "noted", " AND hidden=0)", ")", (_EDITED,)),
    Fault(
        "undo/guests-take-anything-back",
        "_refusal",
        "if not by_owner and",
        "if by_owner and",
        (f"{_UNDO}a_guest_takes_nothing_of_others_back",),
    ),
    Fault(
        "undo/what-came-after-is-taken-back",
        "_refusal",
        "HAVING min(seq) > ?3 OR",
        "HAVING",
        (f"{_STORE}what_was_begun_after_the_command_is_left_alone",),
    ),
    Fault(
        "undo/late-commands-reach-everything",
        "_refusal",
        " OR min({SAID_AT}) > ?4",
        " OR ?4 < 0",
        (f"{_STORE}a_command_that_was_found_in_a_history_takes_nothing_newer_back",),
    ),
    Fault(
        "undo/redo-over-what-is-newer",
        "_not_again",
        'return "newer" if said or',
        'return "newer" if',
        (f"{_UNDO}what_was_taken_back_stays_so_once_something_newer_was_said",),
    ),
    Fault("undo/anew-for-each-press", "Exchanges.ask_anew", "() if refused and first else chosen", "()", (_ANEW,)),
    Fault("undo/anew-with-the-old-words", "Exchanges.ask_anew", "text=edited.text", "text=words.text", (_ANEW,)),
    Fault(
        "undo/offered-for-each-edit",
        "_offer",
        "one.source.also(turn_id)",
        "one.source.also(edited.message.event_key)",
        (_ANEW,),
    ),
    Fault(
        "undo/anybody-asks-anew",
        "_not_anew",
        "asker is not None and",
        "asker is None and",
        (f"{_UNDO}only_who_asked_or_an_owner_has_it_answered_anew",),
    ),
    Fault(
        "undo/a-copy-has-open-calls",
        "_last",
        "seq < coalesce(({before}), seq + 1)",
        "coalesce(({before}), 1)",
        (f"{_FORK}a_turn_under_way_is_not_copied_and_ends_in_the_old_one",),
    ),
    Fault(
        "undo/a-copy-has-another-prompt",
        "Forks.fork",
        "(SELECT prompt, fingerprint,",
        "(SELECT NULL, NULL,",
        (f"{_FORK}a_copy_goes_on_with_the_same_prefix_and_the_old_one_stays",),
    ),
    Fault(
        "undo/a-copy-has-hidden-lines",
        "Forks.fork",
        "AND hidden=0 AND (seq",
        "AND (seq",
        (f"{_FORK}what_was_taken_back_is_not_copied",),
    ),
    Fault(
        "undo/a-copy-knows-what-came-later",
        "_beginning",
        "if start <= last:",
        "if start:",
        (f"{_FORK}a_copy_has_a_summary_unless_that_stands_for_what_came_later",),
    ),
)
