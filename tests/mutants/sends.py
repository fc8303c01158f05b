"""Sending: what is known of a call that was cut, where it goes, and in which order it is acknowledged."""

from tests.mutants import Fault, code, fault, text

_MOVED = "tests/bot/inbound/test_moved.py::test_"
_DELIVERY = "tests/bot/test_delivery.py::test_"
_DISCORD_CHANNEL = "tests/wire/test_discord_channel.py::test_"
_PLATFORMS = "tests/wire/test_platforms.py::test_"
_SLACK_CHANNEL = "tests/wire/test_slack_channel.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "delivery/what-tells-of-the-expired-expires",
        "Deliveries.begin",
        text("? AND NOT {_TELLS}", "?"),
        f"{_DELIVERY}what_tells_of_it_waits_as_long_as_the_chat_cannot_be_reached_and_comes_once",
    ),
    fault(
        "delivery/fault-of-an-adapter-taken-for-not-sent",
        "Outbox._deliver",
        code("Unknown(str(A) or type(A).__name__)", "NotSent(1.0, str(A))"),
        f"{_DELIVERY}a_fault_of_an_adapter_is_a_send_of_unknown_outcome",
    ),
    fault(
        "delivery/newest-first",
        "Deliveries.next",
        text("LIMIT", "DESC LIMIT"),
        "tests/bot/replies/test_replies.py::test_a_stream_that_breaks_at_any_delta_is_delivered_whole",
    ),
    fault(
        "delivery/a-reaction-holds-the-answer",
        "Deliveries.next",
        text("action='react' AND {_PUT_OFF}, delivery_id", "delivery_id"),
        "tests/bot/inbound/test_references.py::test_a_flooded_reaction_holds_no_answer_and_comes_when_it_may",
    ),
    fault(
        "delivery/by-any-account",
        "is_of",
        code("(A.name, A.account) == (B.channel, B.account)", "A.name == B.channel"),
        "tests/bot/people/test_accounts.py::test_what_one_account_owes_waits_until_it_is_known",
    ),
    fault(
        "delivery/refused-counts-as-said",
        "STANDS",
        text("('failed','expired')", "('expired')"),
        "tests/bot/test_refused.py::test_after_a_cut_a_refused_block_is_not_said_to_have_been_delivered",
    ),
    fault(
        "delivery/a-doubtful-one-expires",
        "expire",
        text("state=CASE attempts WHEN 0 THEN 'expired' ELSE 'uncertain' END,", "state='expired',"),
        "tests/bot/test_refused.py::test_what_grew_old_while_its_outcome_was_unknown_is_uncertain",
    ),
    fault(
        "delivery/planned-where-the-chat-was",
        "plan",
        text("there.conv_id=coalesce(named.moved_to, named.conv_id)", "there.conv_id=named.conv_id"),
        f"{_MOVED}words_of_a_run_follow_a_chat_that_moves_meanwhile[an event tells it]",
    ),
    fault(
        "delivery/begun-where-the-chat-was",
        "Deliveries.begin",
        text("AND conv_id=?", "AND ?>0"),
        f"{_MOVED}a_delivery_is_begun_only_where_it_is",
    ),
    fault(
        "delivery/an-idempotent-call-cut-by-a-crash-is-settled",
        "Deliveries.recover",
        text("state=CASE WHEN {_IDEMPOTENT} THEN 'planned' ELSE 'unknown' END,", "state='unknown',"),
        "tests/bot/test_actions.py::test_a_call_that_a_crash_cut_is_repeated_or_settled[edit]",
    ),
    fault(
        "delivery/a-send-cut-by-a-crash-is-repeated-unasked",
        "IDEMPOTENT",
        code("{Action.EDIT, Action.DELETE, Action.REACT}", "Action"),
        "tests/bot/test_actions.py::test_a_call_that_a_crash_cut_is_repeated_or_settled[send]",
    ),
    fault(
        "sending/allowed-by-another-rule",
        "denied",
        code("A.action == 'deny'", "A.action == 'deny' and all((one.action == 'deny' for one in rules))"),
        "tests/bot/runs/test_sending.py::test_rules_are_about_channels_chats_and_keys_and_deny_wins",
    ),
    fault(
        "sending/only-where-it-goes",
        "_DENIED",
        text("(reply_conv, there.conv_id)", "(there.conv_id)"),
        "tests/bot/runs/test_sending.py::test_a_tool_sends_nothing_for_a_session_that_may_not_and_is_told_so",
    ),
    fault(
        "discord/deferred-before-it-is-stored",
        "DiscordReceiver._store",
        code(
            "A = list(self._waiting)",
            "A = list(self._waiting)\n[await self._acknowledge(item) for item in A if getattr(item, 'respond', '')]",
        ),
        f"{_DISCORD_CHANNEL}an_interaction_is_stored_then_deferred_then_answered_in_its_place",
    ),
    fault(
        "discord/cut-call-taken-for-not-sent",
        "Api.request",
        code("Trouble.UNKNOWN", "Trouble.NETWORK"),
        f"{_DISCORD_CHANNEL}a_wire_that_is_cut_leaves_the_outcome_unknown",
    ),
    fault(
        "discord/model-text-pings",
        "_body",
        code("{'parse': []}", "{'parse': ['everyone']}"),
        "tests/channels/discord/test_settings.py::test_the_arguments_of_a_message",
    ),
    fault(
        "slack/model-text-pings",
        "_escape",
        code("A.replace('<', '&lt;').replace('>', '&gt;')", "A"),
        "tests/channels/slack/test_render.py::test_what_notifications_say_are_its_words",
    ),
    fault(
        "slack/acknowledged-though-not-stored",
        "SlackReceiver.accept",
        code("self._refusing = self._gap = True\nreturn False", "self._refusing = self._gap = True"),
        f"{_SLACK_CHANNEL}what_cannot_be_stored_is_not_acknowledged_and_comes_again",
    ),
    fault(
        "slack/cut-call-taken-for-not-sent",
        "_broken",
        code("Trouble.NETWORK if isinstance(A, _NEVER_SENT) else Trouble.UNKNOWN", "Trouble.NETWORK"),
        f"{_SLACK_CHANNEL}a_wire_that_is_cut_leaves_the_outcome_unknown_and_no_server_at_all_does_not",
    ),
    fault(
        "slack/the-token-goes-anywhere",
        "is_slack",
        code("f'.{_HOST}'", "_HOST"),
        f"{_SLACK_CHANNEL}the_token_goes_to_nobody_but_slack",
        "tests/channels/slack/test_render.py::test_hosts_of_slack",
    ),
    fault(
        "slack_commands/any-address-is-used",
        "SlackChannel._respond",
        code("is_slack(A, self._section.base_url)", "A"),
        f"{_SLACK_CHANNEL}what_its_address_takes_no_more_of_is_for_that_persons_direct_messages[not Slack's]",
    ),
    fault(
        "telegram/offset-moves-before-the-store-has-the-batch",
        "TelegramReceiver._receive",
        code(
            "if A:\n    await self._take(A, B)",
            "self._offset = offset or self._offset\nif A:\n    await self._take(A, B)",
        ),
        "tests/wire/test_telegram_channel.py::test_what_cannot_be_stored_is_not_confirmed_and_comes_again",
    ),
    fault(
        "telegram/cut-call-taken-for-not-sent",
        "Api.call",
        code("Trouble.NETWORK if A else Trouble.UNKNOWN", "Trouble.NETWORK"),
        "tests/wire/test_telegram_channel.py::test_a_wire_that_is_cut_leaves_the_outcome_unknown",
    ),
    fault(
        "telegram/webhook-acknowledges-what-was-not-stored",
        "WebhookReceiver._request",
        code("web.Response(status=503)", "web.Response()"),
        "tests/wire/test_telegram_channel.py::test_a_webhook_stores_before_it_acknowledges",
    ),
    fault(
        "platforms/slack-acknowledges-what-is-not-stored",
        "_Before.async_process",
        code("500", "200"),
        f"{_PLATFORMS}it_is_stored_before_it_is_acknowledged_and_answered_once[slack-http]",
    ),
    fault(
        "platforms/telegram-polls-on-before-the-store",
        "TelegramReceiver._receive",
        code("await self._take(A, B)", "self._offset = offset\nawait self._take(A, B)"),
        f"{_PLATFORMS}it_is_stored_before_it_is_acknowledged_and_answered_once[telegram]",
    ),
    fault(
        "platforms/an-unknown-send-has-another-nonce",
        "post",
        code("A.nonce", "id(A)"),
        f"{_PLATFORMS}a_send_that_nobody_answers_is_not_lost_and_not_doubled_where_that_can_be_known[discord-True]",
    ),
    fault(
        "messaging/strangers-are-written-to",
        "Conversations.find",
        code("self.may_speak(found)", "self.accounts"),
        "tests/bot/runs/test_messaging.py::test_only_where_the_bot_may_speak",
    ),
    fault(
        "messaging/told-though-it-was-refused",
        "noted",
        text("not sent", ""),
        "tests/bot/runs/test_messaging.py::test_what_was_refused_elsewhere_is_not_told_there",
    ),
    fault(
        "replies/anybody-shows-reasoning-in-groups",
        "build",
        code("Command(..., name='reasoning', guests='direct')", "Command(..., name='reasoning', guests='everywhere')"),
        "tests/bot/replies/test_side_messages.py::test_in_groups_owners_decide_about_reasoning",
    ),
    fault(
        "replies/secrets-in-calls",
        "subject",
        code("mask_text(A.strip()[:1000])", "A.strip()[:1000]"),
        "tests/bot/replies/test_side_messages.py::test_a_call_is_one_line_without_markup_and_secrets",
    ),
)
