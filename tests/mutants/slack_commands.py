"""What is typed where nobody else sees it: answers for one person, places that are none, stops that reach threads."""

from tests.mutants import Fault

_WIRE = "tests/wire/test_slack_commands.py::test_"
_CHANNEL = "tests/wire/test_slack_channel.py::test_"
_ADDRESS = f"{_CHANNEL}what_its_address_takes_no_more_of_is_for_that_persons_direct_messages"
_NOTICES = f"{_WIRE}a_command_between_two_people_moves_no_notices_to_them"

FAULTS = (
    Fault(
        "slack_commands/the-second-half-is-public",
        "Answer.blocks",
        "alone = len(blocks) if self.apart else 1",
        "alone = 1",
        (
            "tests/bot/test_choices.py::"
            "test_a_long_answer_to_a_native_command_stays_with_its_person_where_it_can[True]",
            f"{_WIRE}a_long_answer_is_seen_by_who_asked_alone_and_is_whole[2-2-a channel]",
        ),
    ),
    Fault(
        "slack_commands/one-message-is-edited-again-and-again",
        "Answer.blocks",
        "alone = len(blocks) if self.apart else 1",
        "alone = len(blocks)",
        (
            "tests/bot/test_choices.py::"
            "test_a_long_answer_to_a_native_command_stays_with_its_person_where_it_can[False]",
        ),
    ),
    Fault(
        "slack_commands/a-sixth-use-is-tried",
        "channels/slack/render.py",
        "_RESPONSES, _RESPONSE_LIFE = 5,",
        "_RESPONSES, _RESPONSE_LIFE = 6,",
        (f"{_ADDRESS}[five uses]",),
    ),
    Fault(
        "slack_commands/uses-are-not-counted",
        "ResponseUrls.used",
        "self._used.append(address)",
        "pass",
        (f"{_ADDRESS}[five uses]",),
    ),
    Fault(
        "slack_commands/a-late-use-is-tried",
        "ResponseUrls.good",
        "now < int(at) + _RESPONSE_LIFE and",
        "",
        (f"{_ADDRESS}[thirty minutes]", f"{_WIRE}a_late_answer_goes_to_direct_messages_whole_also_over_a_crash"),
    ),
    Fault(
        "slack_commands/any-address-is-used",
        "SlackChannel._respond",
        "if is_slack(address, self._section.base_url):",
        "if address:",
        (f"{_ADDRESS}[not Slack's]",),
    ),
    Fault(
        "slack_commands/a-used-address-swallows-the-rest",
        "SlackChannel._respond",
        "                if response.status == 200:\n                    self._response_urls.used(address)\n",
        "                if True:\n                    self._response_urls.used(address)\n",
        (f"{_ADDRESS}[forgotten]",),
    ),
    Fault(
        "slack_commands/a-conversation-that-was-not-opened-loses-the-rest",
        "SlackChannel._respond",
        "if error.trouble in (Trouble.FAILED, Trouble.UNKNOWN):",
        "if False:",
        (f"{_ADDRESS}[five uses]",),
    ),
    Fault(
        "slack_commands/the-rest-stays-where-it-was-asked",
        "Deliveries.settle",
        "there = rows.conversation(db, result.place)",
        "there = delivery.conv_id",
        (f"{_WIRE}a_late_answer_goes_to_direct_messages_whole_also_over_a_crash",),
    ),
    Fault(
        "slack_commands/the-rest-is-whispered-for-ever",
        "Deliveries.settle",
        "conv_id=?, respond=NULL,",
        "conv_id=?,",
        (f"{_WIRE}what_goes_to_direct_messages_is_not_said_twice",),
    ),
    Fault(
        "slack_commands/nobody-serves-direct-messages-then",
        "Outbox._carry_out_next",
        "if not isinstance(result, Sent | NotSent | Unknown):",
        "if isinstance(result, Refused | Moved):",
        (f"{_WIRE}a_long_answer_is_seen_by_who_asked_alone_and_is_whole[8-5-a channel]",),
    ),
    Fault(
        "slack_commands/every-direct-chat-is-the-bots-own",
        "_command",
        "outside = place.kind is ChatKind.DIRECT and not known.is_in(chat)",
        "outside = False",
        (_NOTICES,),
    ),
    Fault(
        "slack_commands/beats-go-where-the-bot-is-not",
        "Schedules.owner_places",
        '" AND reason IS NOT ? GROUP BY conv_id"',
        '" AND ?<>0 GROUP BY conv_id"',
        (_NOTICES,),
    ),
    Fault(
        "slack_commands/notices-go-where-the-bot-is-not",
        "tell_owner",
        "IS NOT ? AND reason IS NOT ? ORDER BY",
        "IS NOT ? AND ?<>0 ORDER BY",
        (_NOTICES,),
    ),
    Fault(
        "slack_commands/a-session-moves-where-the-bot-is-not",
        "InboundMessage.by_person",
        "ChatKind.API and not self.origin.outside",
        "ChatKind.API",
        (_NOTICES,),
    ),
    Fault(
        "slack_commands/histories-of-others-are-asked-for",
        "History.known",
        "AND message_id='' AND reason='{Cause.OUTSIDE}')",
        "AND message_id='' AND reason='{Cause.OUTSIDE}' AND 0)",
        (_NOTICES,),
    ),
    Fault(
        "slack_commands/a-welcome-where-the-bot-is-not",
        "People._released",
        "welcome = [replace(block, respond=message.respond) for block in welcome]",
        "pass",
        (f"{_WIRE}a_stranger_between_two_people_is_welcomed_where_they_asked",),
    ),
    Fault(
        "slack_commands/stop-stops-nothing-in-threads",
        "StopCommands.stop",
        "if answer.apart else",
        "if False else",
        (f"{_WIRE}stop_reaches_the_runs_in_the_threads_of_its_channel",),
    ),
    Fault(
        "slack_commands/stop-reaches-the-channel-next-door",
        "threads_of",
        'return f"{key}:thread:"',
        "return key.partition('channel')[0]",
        (f"{_WIRE}stop_reaches_the_runs_in_the_threads_of_its_channel",),
    ),
    Fault(
        "slack_commands/who-waits-in-a-thread-is-not-told",
        "Stops.stop",
        "told.extend(rows.plan(db, PlanIn(conv_id), say, None, now))",
        "pass",
        (f"{_WIRE}stop_reaches_the_runs_in_the_threads_of_its_channel",),
    ),
    Fault(
        "slack_commands/commands-in-the-background-go-on-in-threads",
        "Background.stop",
        "if below and one.session_key.startswith(below)",
        "if False",
        ("tests/agent/tools/test_background.py::test_a_stop_reaches_the_sessions_below",),
    ),
)
