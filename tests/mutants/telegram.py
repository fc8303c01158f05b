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
        "                self._limits.hold(outgoing.place.chat, error.retry_after)\n                return",
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
        "channels/telegram/limits.py",
        "waits.append(sent[-1] + self._limits.chat_interval - now)",
        "pass",
        ("tests/channels/telegram/test_limits.py::test_one_message_a_second_in_a_chat",),
    ),
)
