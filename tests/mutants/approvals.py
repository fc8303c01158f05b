"""What people are asked, and who may decide."""

from tests.mutants import Fault

_TESTS = "tests/bot/test_approvals.py::test_"
_ELSEWHERE = "tests/bot/test_decided_elsewhere.py::test_"
_HTTP = "tests/bot/gateway/test_approvals.py::test_"

FAULTS = (
    Fault(
        "approvals/unseen-characters-stay-unseen",
        "bot/approvals/words.py",
        'seen = _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)',
        "seen = text",
        (f"{_HTTP}at_the_command_line_with_a_service",),
    ),
    Fault(
        "approvals/words-of-others-are-markup",
        "bot/approvals/words.py",
        "found[1] else found[0]",
        "False else found[0]",
        (f"{_TESTS}what_is_asked_and_how_it_reads_once_it_is_decided",),
    ),
    Fault(
        "approvals/a-long-command-is-cut-off",
        "bot/approvals/words.py",
        "        text = text[line or size :]",
        '        text = ""',
        ("tests/wire/test_requests_shown.py::test_a_command_of_thirty_thousand_characters[telegram]",),
    ),
    Fault(
        "approvals/always-is-offered-without-a-rule",
        "bot/approvals/words.py",
        "    if not ask.grants:\n        del",
        "    if False:\n        del",
        (f"{_TESTS}what_is_not_understood_decides_nothing",),
    ),
    Fault(
        "approvals/everybody-may-decide",
        "bot/commands/approvals.py",
        "if not requests.may_decide(approval, call.message) and not (",
        "if False and not (",
        (f"{_TESTS}who_may_decide_and_where",),
    ),
    Fault(
        "approvals/bots-may-decide",
        "bot/approvals/requests.py",
        "return who in approval.approvers and still and not origin.by_bot",
        "return who in approval.approvers and still",
        (f"{_TESTS}who_may_decide_and_where",),
    ),
    Fault(
        "approvals/decided-in-another-group",
        "bot/approvals/requests.py",
        "return forward is not None and chat_of(place) == chat_of(forward)",
        "return True",
        (f"{_TESTS}who_may_decide_and_where",),
    ),
    Fault(
        "approvals/others-read-what-one-is-told",
        "bot/commands/answers.py",
        "(private or call.message.kind is InboundKind.COMMAND)",
        "call.message.kind is InboundKind.COMMAND",
        (f"{_TESTS}who_may_decide_and_where",),
    ),
    Fault(
        "approvals/a-group-reads-what-waits-elsewhere",
        "bot/commands/approvals.py",
        "everywhere=private and call.by_owner",
        "everywhere=call.by_owner",
        (f"{_TESTS}who_may_decide_and_where",),
    ),
    Fault(
        "approvals/nobody-is-waited-for",
        "bot/approvals/requests.py",
        "if not approvers and not (place.kind in LOCAL and is_trusted(turn.messages[-1])):",
        "if False:",
        (f"{_TESTS}where_nobody_may_decide_it_is_said_at_once",),
    ),
    Fault(
        "approvals/an-owner-elsewhere-is-not-told",
        "bot/approvals/requests.py",
        "return replace(request, blocks=blocks, notice=notice)",
        "return replace(request, blocks=blocks)",
        (f"{_TESTS}an_owner_who_does_not_read_along_is_told_directly",),
    ),
    Fault(
        "approvals/only-one-copy-shows-what-was-decided",
        "bot/store/approvals.py",
        "WHERE source >= ?1 AND source < ?1 || ';'\"\n            \" AND (buttons",
        'WHERE source = ?1"\n            " AND (buttons',
        (f"{_TESTS}requests_are_forwarded",),
    ),
    Fault(
        "approvals/asked-again-by-anybody",
        "bot/commands/approvals.py",
        'not (order == "again" and asker)',
        'not (order == "again")',
        (f"{_TESTS}it_expires_in_time_and_can_be_asked_again",),
    ),
    Fault(
        "approvals/told-with-every-message",
        "bot/approvals/requests.py",
        "if not message.by_person or now - self._told.get(approval_id, 0) < _MINUTE:",
        "if not message.by_person:",
        (f"{_TESTS}whoever_writes_meanwhile_is_told_once_a_minute",),
    ),
    Fault(
        "approvals/open-to-every-program",
        "bot/gateway/approval_routes.py",
        "if caller(request) is Caller.PERSON:",
        "if False:",
        (f"{_HTTP}without_a_token_it_is_shut",),
    ),
    Fault(
        "approvals/forgotten-rules-still-allow",
        "bot/approvals/requests.py",
        "        await self.load()\n        return known",
        "        return known",
        (f"{_HTTP}a_request_is_seen_decided_and_allowed_for_always",),
    ),
    Fault(
        "approvals/asked-again-in-the-name-of-the-press",
        "bot/store/commands.py",
        "origin=approvals.asked_by(db, again) or message.origin)",
        "origin=message.origin)",
        (f"{_ELSEWHERE}what_is_asked_again_from_elsewhere_keeps_the_tools_of_where_it_was_asked",),
    ),
    Fault(
        "approvals/older-words-answer",
        "bot/store/approvals.py",
        "message.sent_at + _CLOCKS if message.sent_at else now",
        "now",
        (f"{_ELSEWHERE}what_was_written_before_a_question_is_no_answer",),
    ),
    Fault(
        "approvals/words-answer-one-of-several",
        "bot/store/approvals.py",
        "if len(theirs) == 1 else None",
        "if theirs else None",
        (f"{_ELSEWHERE}words_that_may_mean_several_questions_answer_none",),
    ),
    Fault(
        "approvals/an-edit-of-nothing",
        "bot/store/outbox.py",
        """if rows.expire(db, never, (delivery_id,), "nothing to edit", now):""",
        "if False:",
        (f"{_ELSEWHERE}a_request_that_was_never_shown_is_not_edited",),
    ),
    Fault(
        "approvals/secrets-in-requests",
        "agent/tools/pipeline.py",
        "self._shown(ask) if ask else",
        "ask if ask else",
        (f"{_ELSEWHERE}no_secret_is_in_what_is_asked",),
    ),
    Fault(
        "approvals/approvers-write-as-they-like",
        "bot/inbound/routing.py",
        """command[0].name == "approve" and""",
        "True and",
        (f"{_ELSEWHERE}an_approver_who_may_not_write_may_decide",),
    ),
)
