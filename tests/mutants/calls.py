"""Calls that came to nothing: where they are made again, and how often."""

from tests.mutants import Fault

_MOVED = "tests/bot/inbound/test_moved.py::test_"
_ON_ITS_WAY = f"{_MOVED}a_call_that_came_to_nothing_is_gone_on_with_where_the_chat_is_now"

FAULTS = (
    Fault(
        "calls/a-chat-that-moves-leaves-them-behind",
        "move_chat",
        'f"UPDATE delivery SET conv_id=? WHERE conv_id=? AND {OPEN_DELIVERY}"',
        "f\"UPDATE delivery SET conv_id=? WHERE conv_id=? AND {OPEN_DELIVERY} AND state<>'sending'\"",
        (f"{_ON_ITS_WAY}[an event came during the call-not sent]",),
    ),
    Fault(
        "calls/made-for-ever-where-the-chat-was",
        "_settle",
        "conv_id=(SELECT coalesce(moved_to, conv_id) FROM conversation WHERE conv_id=delivery.conv_id)",
        "conv_id=conv_id",
        (f"{_MOVED}a_preview_that_comes_to_nothing_is_taken_away_where_the_chat_is_now",),
    ),
    Fault(
        "calls/one-that-was-not-made-counts",
        "_settle",
        "undo = int(isinstance(result, NotSent | Moved)",
        "undo = int(isinstance(result, NotSent)",
        (f"{_ON_ITS_WAY}[nothing but the answer tells it-moved]",),
    ),
    Fault(
        "calls/sent-again-without-end-where-it-is-never-found",
        "SlackChannel.settle",
        "if delivery.attempts >= _MOST_SENDS:",
        "if False:",
        ("tests/wire/test_slack_channel.py::test_what_was_sent_five_times_is_not_sent_again",),
    ),
    Fault(
        "calls/sent-six-times",
        "channels/slack/adapter.py",
        "_MOST_SENDS = 5",
        "_MOST_SENDS = 6",
        ("tests/wire/test_slack_channel.py::test_what_was_sent_five_times_is_not_sent_again",),
    ),
)
