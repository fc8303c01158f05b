"""What Discord tells and takes."""

from tests.mutants import Fault

_WIRE = "tests/wire/test_discord_channel.py::test_"
_EVENTS = "tests/channels/discord/test_events.py::test_"

FAULTS = (
    Fault(
        "discord/unreadable-events-dropped",
        "channels/discord/gateway.py",
        "found = [unread(event, data, self.world, error)]",
        "found = []",
        (f"{_WIRE}what_cannot_be_read_is_kept_and_what_follows_comes",),
    ),
    Fault(
        "discord/what-was-not-stored-is-forgotten",
        "channels/discord/gateway.py",
        "                await self._times.sleep(self._settings.retry_first)\n                continue",
        "                await self._times.sleep(self._settings.retry_first)",
        (f"{_WIRE}what_cannot_be_stored_waits_in_its_order",),
    ),
    Fault(
        "discord/accepted-before-the-gap-is-told",
        "channels/discord/gateway.py",
        "if not self._waiting or self._awaited is not None:",
        "if not self._waiting:",
        (f"{_WIRE}what_comes_before_all_servers_have_told_their_channels_waits",),
    ),
    Fault(
        "discord/a-new-session-without-a-gap",
        "channels/discord/gateway.py",
        "            self._awaited, self._reached = set(), []\n",
        "            self._awaited, self._reached = self._awaited or set(), []\n            if self.ready.is_set():\n"
        "                self._awaited = None\n                return\n",
        (f"{_WIRE}a_session_that_is_over_is_begun_anew_with_a_gap",),
    ),
    Fault(
        "discord/heartbeats-need-no-answer",
        "channels/discord/gateway.py",
        "while not self._overdue():",
        "while True:",
        (f"{_WIRE}heartbeats_that_are_not_answered_count_although_events_come",),
    ),
    Fault(
        "discord/deferred-before-it-is-stored",
        "channels/discord/gateway.py",
        "            batch = list(self._waiting)\n",
        "            batch = list(self._waiting)\n            for item in batch:\n"
        "                if isinstance(item, InboundMessage):\n                    self._stored(item)\n",
        (f"{_WIRE}an_interaction_is_stored_then_deferred_then_answered_in_its_place",),
    ),
    Fault(
        "discord/answered-before-it-is-deferred",
        "channels/discord/adapter.py",
        "                await asyncio.wait([self._deferring[delivery.respond]])",
        "                pass",
        (f"{_WIRE}an_interaction_is_stored_then_deferred_then_answered_in_its_place",),
    ),
    Fault(
        "discord/a-failed-server-is-asked-again-by-the-library",
        "channels/discord/api.py",
        "if response.status >= 500:",
        "if response.status >= 599:",
        (f"{_WIRE}what_became_of_a_send_is_told_by_where_it_failed",),
    ),
    Fault(
        "discord/cut-call-taken-for-not-sent",
        "channels/discord/api.py",
        "raise ApiError(Trouble.UNKNOWN, reason_of(error)) from None",
        "raise ApiError(Trouble.NETWORK, reason_of(error)) from None",
        (f"{_WIRE}a_wire_that_is_cut_leaves_the_outcome_unknown",),
    ),
    Fault(
        "discord/no-nonce",
        "channels/discord/calls.py",
        '"enforce_nonce": True',
        '"enforce_nonce": False',
        (f"{_WIRE}a_young_send_is_settled_by_its_nonce",),
    ),
    Fault(
        "discord/an-unreadable-history-is-an-empty-one",
        "channels/discord/history.py",
        "                await _must_be_readable(api, delivery.place)\n",
        "",
        (f"{_WIRE}an_old_send_is_settled_by_what_stands_there",),
    ),
    Fault(
        "discord/everybody-is-pinged",
        "channels/discord/calls.py",
        '    message["allowed_mentions"] = {"parse": [], "replied_user": False}\n',
        "",
        (f"{_WIRE}a_message_pings_nobody_and_previews_nothing",),
    ),
    Fault(
        "discord/files-from-anywhere",
        "channels/discord/history.py",
        "if not url.startswith(settings.cdn):",
        "if False:",
        (f"{_WIRE}a_file_is_downloaded_and_its_address_renewed_once",),
    ),
    Fault(
        "discord/hears-itself",
        "channels/discord/events.py",
        "if sender == world.me or message",
        "if message",
        (f"{_WIRE}its_own_messages_and_notices_are_nothing",),
    ),
    Fault(
        "discord/previews-are-edits",
        "channels/discord/events.py",
        '_read_edit(fields, world) if fields.get("edited_timestamp") else []',
        '_read_edit({"edited_timestamp": fields["timestamp"], **fields} | {"edited_timestamp": '
        'fields.get("edited_timestamp") or fields["timestamp"]}, world)',
        (f"{_WIRE}edits_deletions_and_previews",),
    ),
    Fault(
        "discord/a-thread-is-never-opened",
        "channels/discord/adapter.py",
        "if error.code != UNKNOWN_CHANNEL or not delivery.place.thread:",
        "if True:",
        (f"{_WIRE}a_thread_that_is_not_there_is_opened_on_its_message",),
    ),
    Fault(
        "discord/reacts-only-in-the-thread",
        "channels/discord/calls.py",
        "        await _change(api, delivery, delivery.place.chat)",
        "        raise",
        (f"{_WIRE}a_question_is_reacted_to_where_it_stands",),
    ),
    Fault(
        "discord/a-resumed-session-has-a-gap",
        "channels/discord/gateway.py",
        '        if event in ("READY", "RESUMED"):\n',
        '        if event == "RESUMED":\n            self._sink.missed(self._name, self.world.me, [])\n'
        '        if event in ("READY", "RESUMED"):\n',
        (f"{_WIRE}a_session_that_is_resumed_has_no_gap_and_misses_nothing",),
    ),
)
