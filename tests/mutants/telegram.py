"""What Telegram sends."""

from tests.mutants import Fault

_TESTS = "tests/wire/test_telegram_channel.py::test_"

FAULTS = (
    Fault(
        "telegram/unreadable-updates-dropped",
        "channels/telegram/poll.py",
        "return [unread(update, me, error)]",
        "return []",
        (f"{_TESTS}an_update_that_cannot_be_read_is_kept_and_passed_over",),
    ),
    Fault(
        "telegram/offset-moves-before-the-store-has-the-batch",
        "channels/telegram/poll.py",
        "        if updates:\n            await self._accept(",
        "        self._offset = offset or self._offset\n        if updates:\n            await self._accept(",
        (f"{_TESTS}what_cannot_be_stored_is_not_confirmed_and_comes_again",),
    ),
    Fault(
        "telegram/offset-not-stored",
        "channels/telegram/poll.py",
        "None if offset is None else Mark(scope, str(offset))",
        "None",
        (f"{_TESTS}a_restart_goes_on_from_the_mark",),
    ),
    Fault(
        "telegram/flood-not-held",
        "channels/telegram/adapter.py",
        "                self._limits.hold(delivery.place.chat, error.retry_after)\n                return",
        "                return",
        ("tests/wire/test_telegram_channel.py::test_429_waits_as_told_and_holds_that_chat_back",),
    ),
    Fault(
        "telegram/cut-call-taken-for-not-sent",
        "channels/telegram/api.py",
        "Trouble.NETWORK if never_sent else Trouble.UNKNOWN",
        "Trouble.NETWORK",
        ("tests/wire/test_telegram_channel.py::test_a_wire_that_is_cut_leaves_the_outcome_unknown",),
    ),
    Fault(
        "telegram/four-sends",
        "channels/telegram/adapter.py",
        "_MOST_SENDS = 3",
        "_MOST_SENDS = 4",
        ("tests/wire/test_telegram_channel.py::test_what_was_sent_three_times_is_not_sent_again",),
    ),
    Fault(
        "telegram/link-previews",
        "channels/telegram/render.py",
        '{"is_disabled": True}',
        '{"is_disabled": False}',
        ("tests/wire/test_telegram_channel.py::test_markdown_arrives_as_text_with_entities_and_without_preview",),
    ),
    Fault(
        "telegram/no-limit-per-chat",
        "channels/limits.py",
        "waits.append(sent[-1] + self._limits.chat_interval - now)",
        "pass",
        ("tests/channels/test_limits.py::test_one_message_a_second_in_a_chat",),
    ),
    Fault(
        "telegram/a-failed-server-taken-for-not-sent",
        "channels/telegram/adapter.py",
        "case Trouble.UNKNOWN | Trouble.FAILED:",
        "case Trouble.UNKNOWN:",
        ("tests/wire/test_telegram_channel.py::test_a_server_that_fails_leaves_the_outcome_unknown",),
    ),
    Fault(
        "telegram/sent-again-before-telegram-lives",
        "channels/telegram/adapter.py",
        "while self._api.answers == known:",
        "while False:",
        ("tests/wire/test_telegram_channel.py::test_what_is_unknown_is_sent_again_once_telegram_has_answered",),
    ),
    Fault(
        "telegram/a-refused-form-is-given-up",
        "channels/telegram/adapter.py",
        "plain_body(delivery.body) if formatted else None",
        "None",
        ("tests/wire/test_telegram_channel.py::test_a_form_that_is_refused_is_to_be_sent_plain",),
    ),
    Fault(
        "telegram/links-to-port-0",
        "channels/telegram/links.py",
        "port != 0 and ",
        "",
        ("tests/channels/telegram/test_links.py::test_not_taken",),
    ),
    Fault(
        "telegram/links-to-any-host",
        "channels/telegram/links.py",
        'return plain and _HOST.fullmatch(parts.hostname or "") is not None',
        "return plain",
        (
            "tests/channels/telegram/test_links.py::test_not_taken",
            "tests/wire/test_telegram_channel.py::test_no_link_that_a_model_writes_is_refused",
        ),
    ),
    Fault(
        "telegram/rules-of-an-outer-link-lost-by-a-look-ahead",
        "channels/markdown/render.py",
        "state.md.validateLink = before  #",
        "state.md.validateLink = _is_address  #",
        ("tests/channels/markdown/test_render.py::test_what_it_becomes",),
    ),
    Fault(
        "telegram/done-before-counts-as-refused",
        "channels/telegram/calls.py",
        "return action in _DONE_BEFORE and",
        "return False and",
        (f"{_TESTS}a_message_is_edited_reacted_to_and_deleted_and_again_without_harm",),
    ),
    Fault(
        "telegram/a-reaction-has-a-plain-form",
        "channels/telegram/adapter.py",
        "error.status == 400 and delivery.action in WITH_TEXT",
        "error.status == 400",
        (f"{_TESTS}what_is_about_a_message_that_is_gone_is_given_up[react]",),
    ),
    Fault(
        "telegram/buttons-forgotten",
        "channels/telegram/calls.py",
        "if delivery.buttons:",
        "if False:",
        (f"{_TESTS}an_answer_is_shown_below_its_question_with_its_buttons",),
    ),
    Fault(
        "telegram/nothing-is-said-to-what-was-deleted",
        "channels/telegram/calls.py",
        '"allow_sending_without_reply": True',
        '"allow_sending_without_reply": False',
        (f"{_TESTS}an_answer_to_a_message_that_was_deleted_is_sent",),
    ),
    Fault(
        "telegram/declares-what-it-cannot-do",
        "channels/telegram/calls.py",
        "ACTIONS = frozenset(_METHODS)",
        "ACTIONS = frozenset(Action)",
        ("tests/wire/test_channel_contract.py::test_what_it_declares_it_carries_out[telegram-file]",),
    ),
)
