"""What Slack sends, and what is said to it."""

from tests.mutants import Fault

_TESTS = "tests/wire/test_slack_channel.py::test_"
_EVENTS = "tests/channels/slack/test_events.py::test_"

FAULTS = (
    Fault(
        "slack/acknowledged-though-not-stored",
        "channels/slack/receive.py",
        "200 if not items or await self._store(items) else 500",
        "200 if not items or await self._store(items) else 200",
        (f"{_TESTS}what_cannot_be_stored_is_not_acknowledged_and_comes_again",),
    ),
    Fault(
        "slack/something-awaited-before-the-store",
        "channels/slack/receive.py",
        "        self._tell_gap()\n        try:",
        "        await asyncio.sleep(hash(str(body)) % 7 / 1e3)\n        self._tell_gap()\n        try:",
        (f"{_TESTS}many_at_once_are_in_order_and_wait_for_one_commit_alone",),
    ),
    Fault(
        "slack/a-broken-connection-is-no-gap",
        "channels/slack/receive.py",
        "self._gap = self._gap or before is None or not before.is_open",
        "pass",
        (f"{_TESTS}a_connection_that_ends_is_a_gap_and_made_anew", f"{_TESTS}a_refresh_that_fails_is_a_gap"),
    ),
    Fault(
        "slack/a-planned-refresh-is-a-gap",
        "channels/slack/receive.py",
        "        if not connection.planned:",
        "        if True:",
        (f"{_TESTS}a_planned_refresh_is_no_gap_and_no_moment_without_connection",),
    ),
    Fault(
        "slack/the-old-connection-goes-first",
        "channels/slack/receive.py",
        "        await connection.over.wait()\n",
        "        await connection.over.wait()\n        await connection.close()\n",
        (f"{_TESTS}a_planned_refresh_is_no_gap_and_no_moment_without_connection",),
    ),
    Fault(
        "slack/what-was-refused-is-no-gap",
        "channels/slack/receive.py",
        "            self._refusing = self._gap = True",
        "            self._refusing = True",
        (f"{_TESTS}what_cannot_be_stored_is_not_acknowledged_and_comes_again",),
    ),
    Fault(
        "slack/malformed-events-dropped",
        "channels/slack/receive.py",
        "items = [unread(body, self.me, error)]",
        "items = []",
        (f"{_TESTS}every_payload_of_the_corpus_is_taken_or_kept_unread",),
    ),
    Fault(
        "slack/a-silent-connection-is-not-noticed",
        "channels/slack/socket.py",
        "self.current_session_monitor = asyncio.ensure_future(self.monitor_current_session())",
        "pass",
        (f"{_TESTS}a_connection_that_ends_is_a_gap_and_made_anew[silent]",),
    ),
    Fault(
        "slack/a-mention-s-twin-has-a-key-of-its-own",
        "channels/slack/events.py",
        'key = message_key(_string(event, "channel"), message_id)',
        'key = message_key(_string(event, "channel"), message_id + event["type"])',
        (f"{_EVENTS}keys_are_those_of_the_history_and_each_event_has_its_own",),
    ),
    Fault(
        "slack/previews-are-edits",
        "channels/slack/events.py",
        'if not edited or edited == before.get("edited") or',
        "if not edited or",
        (f"{_EVENTS}the_rest_is_nothing_and_the_corpus_is_complete",),
    ),
    Fault(
        "slack/it-hears-itself",
        "channels/slack/events.py",
        'return message.get("user") == me.id or',
        "return False and",
        (f"{_EVENTS}the_rest_is_nothing_and_the_corpus_is_complete",),
    ),
    Fault(
        "slack/cut-call-taken-for-not-sent",
        "channels/slack/api.py",
        "Trouble.NETWORK if isinstance(error, _NEVER_SENT) else Trouble.UNKNOWN",
        "Trouble.NETWORK",
        (f"{_TESTS}a_wire_that_is_cut_leaves_the_outcome_unknown_and_no_server_at_all_does_not",),
    ),
    Fault(
        "slack/looked-for-once",
        "channels/slack/adapter.py",
        "            if absent:\n",
        "            if True:\n",
        (f"{_TESTS}a_server_that_fails_or_a_connection_that_breaks_leaves_the_outcome_unknown_and_it_is_looked_up",),
    ),
    Fault(
        "slack/sent-without-its-number",
        "channels/slack/calls.py",
        ', "metadata": metadata}',
        "}",
        (f"{_TESTS}a_server_that_fails_or_a_connection_that_breaks_leaves_the_outcome_unknown_and_it_is_looked_up",),
    ),
    Fault(
        "slack/a-file-is-sent-again",
        "channels/slack/adapter.py",
        "if delivery.action is not Action.SEND:\n            return Unknown(",
        "if delivery.action is not Action.SEND:\n            return NotSent(0.0, ",
        (f"{_TESTS}a_file_is_sent_with_its_words_and_never_twice",),
    ),
    Fault(
        "slack/the-token-goes-anywhere",
        "channels/slack/download.py",
        'host.endswith(f".{_HOST}")',
        "host.endswith(_HOST)",
        (f"{_TESTS}the_token_goes_to_nobody_but_slack", "tests/channels/slack/test_calls.py::test_hosts_of_slack"),
    ),
    Fault(
        "slack/flood-not-held",
        "channels/slack/adapter.py",
        "self._limits.hold(delivery.place.chat, error.retry_after)",
        "pass",
        (f"{_TESTS}429_waits_as_told_and_holds_back_that_conversation_alone",),
    ),
    Fault(
        "slack/buttons-stay-behind-an-edit",
        "channels/slack/calls.py",
        'arguments = {"blocks": [], **words,',
        "arguments = {**words,",
        (f"{_TESTS}buttons_are_shown_below_the_words_and_go_with_an_edit",),
    ),
    Fault(
        "slack/history-keeps-the-newest",
        "channels/slack/history.py",
        "        found = found[:most]\n",
        "        found = found[-most:]\n",
        (f"{_TESTS}history_is_read_over_several_pages",),
    ),
)
