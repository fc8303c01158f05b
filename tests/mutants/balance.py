"""The book of messages: what it counts, what it names, and what keeps count of rows."""

from tests.mutants import Fault

_BOOK = "tests/bot/store/test_balance.py::test_"
_NAMED = f"{_BOOK}what_rows_do_not_explain_is_named"
_EACH = f"{_BOOK}each_message_is_answered_told_or_pending"
_PRUNED = f"{_BOOK}what_was_pruned_stays_counted_and_what_was_not_explained_stays_named"
_TWICE = f"{_BOOK}what_is_offered_twice_leaves_no_gap"
_CLI = "tests/bot/cli/test_balance.py::test_the_service_that_runs_is_asked_and_is_not_ready_until_it_is_accepted"
_FORGOTTEN = "tests/bot/sessions/test_forgetting.py::test_no_byte_of_somebody_is_left"

FAULTS = (
    Fault(
        "balance/deliveries-of-a-turn-not-listed",
        "bot/store/gone.py",
        "(SELECT json_group_array(delivery_id) FROM delivery WHERE delivery.turn_id=turn.turn_id)",
        "'[]'",
        (_NAMED,),
    ),
    Fault(
        "balance/answer-to-a-command-not-listed",
        "bot/store/commands.py",
        "    list_told(db, begun.seq, deliveries)\n",
        "",
        (f"{_BOOK}an_answer_to_a_command_that_is_missing_is_named",),
    ),
    Fault(
        "balance/missing-rows-not-counted",
        "bot/store/gone.py",
        "if rows + gone == top:",
        "if rows + gone <= top:",
        (_NAMED,),
    ),
    Fault(
        "balance/number-of-a-final-preview-is-lost",
        "bot/store/rows.py",
        "if not inserted or made[-1].nonce != block.nonce:",
        "if not inserted:",
        (_TWICE,),
    ),
    Fault(
        "balance/number-of-a-skipped-block-is-lost",
        "bot/store/rows.py",
        "if not inserted or made[-1].nonce != block.nonce:",
        "if inserted and made[-1].nonce != block.nonce:",
        (_TWICE,),
    ),
    Fault(
        "balance/number-of-an-unread-event-is-lost",
        "Inbox._accept",
        """\
                if made is None:
                    give_back(db, "inbox")
""",
        "",
        (_TWICE,),
    ),
    Fault(
        "balance/what-is-not-to-be-sent-is-no-explanation",
        "bot/store/balance.py",
        "    WHEN said & {_UNSENT} THEN 'told'\n",
        "",
        (f"{_BOOK}what_was_kept_from_being_sent_is_told",),
    ),
    Fault(
        "balance/requests-of-pruned-transcripts-are-missing",
        "bot/store/sessions.py",
        '    db.executemany(f"UPDATE delivery SET subject=NULL WHERE {requests}", turns)  # the book would miss them\n',
        "",
        ("tests/bot/sessions/test_sessions.py::test_the_book_balances_without_the_requests_of_what_was_pruned",),
    ),
    Fault(
        "balance/forgotten-messages-are-missing",
        "bot/store/forgetting.py",
        "    balance.carry(db, [seq for (seq,) in messages])\n",
        "",
        (_FORGOTTEN,),
    ),
    Fault(
        "balance/forgotten-deliveries-are-missing",
        "bot/store/forgetting.py",
        '    note_gone(db, "delivery", [delivery_id for (delivery_id,) in deliveries])\n',
        "",
        (_FORGOTTEN,),
    ),
    Fault(
        "balance/pruned-messages-not-counted",
        "bot/store/prune.py",
        "balance.carry(db, numbers)",
        'note_gone(db, "inbox", numbers)',
        (_PRUNED,),
    ),
    Fault(
        "balance/pruned-deliveries-are-missing",
        "bot/store/prune.py",
        'note_gone(db, "delivery", numbers)',
        "pass",
        (_PRUNED,),
    ),
    Fault(
        "balance/what-is-not-explained-is-pruned-away",
        "bot/store/balance.py",
        "for number in numbers if number not in kept",
        "for number in numbers",
        (_PRUNED,),
    ),
    Fault(
        "balance/what-was-accepted-comes-back",
        "bot/store/balance.py",
        "        if seq in numbers:",
        "        if False:",
        (_PRUNED,),
    ),
    Fault(
        "balance/what-was-begun-is-never-sent",
        "Keeping.lasts",
        "await run_to_completion(self._tell())",
        "await self._tell()",
        ("tests/bot/runs/test_compaction.py::test_a_run_that_is_stopped_meanwhile_has_sent_what_it_began_to_send",),
    ),
    Fault("balance/silence-is-no-answer", "Turns.step", ", silent=silent)", ")", (_EACH,)),
    Fault(
        "balance/a-refused-answer-counts-as-answered",
        "bot/store/balance.py",
        "    WHEN said & {_LOST} THEN 'told'\n",
        "    WHEN said & {_LOST} THEN 'answered'\n",
        (_EACH,),
    ),
    Fault(
        "balance/not-checked-by-itself",
        "_serving",
        """        ("balance", book.serve),\n""",
        "",
        ("tests/bot/gateway/test_health.py::test_it_is_checked_at_the_start_and_again_by_itself",),
    ),
    Fault("balance/readyz-does-not-say-so", "Health.view", "if self.unexplained:", "if False:", (_CLI,)),
    Fault(
        "balance/accepted-and-forgotten",
        "bot/store/balance.py",
        "if made.rowcount and is_missing:",
        "if False:",
        (_PRUNED,),
    ),
)
