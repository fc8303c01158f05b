"""What Discord tells and takes."""

from tests.mutants import Fault

_WIRE = "tests/wire/test_discord_channel.py::test_"
_ACTIONS = "tests/wire/test_discord_actions.py::test_"
_EVENTS = "tests/channels/discord/test_events.py::test_"

FAULTS = (
    Fault(
        "discord/unreadable-events-dropped",
        "DiscordReceiver.take",
        "found = [unread(event, data, self.world, error)]",
        "found = []",
        (f"{_WIRE}what_cannot_be_read_is_kept_and_what_follows_comes",),
    ),
    Fault(
        "discord/what-was-not-stored-is-forgotten",
        "DiscordReceiver._store",
        "                await self._times.sleep(self._section.retry_first)\n                continue",
        "                await self._times.sleep(self._section.retry_first)",
        (f"{_WIRE}what_cannot_be_stored_waits_in_its_order",),
    ),
    Fault(
        "discord/accepted-before-the-gap-is-told",
        "DiscordReceiver._store",
        "if not self._waiting or self._awaited is not None:",
        "if not self._waiting:",
        (f"{_WIRE}what_comes_before_all_servers_have_told_their_channels_waits",),
    ),
    Fault(
        "discord/a-new-session-without-a-gap",
        "DiscordReceiver._follow",
        "            self._awaited, self._reached = set(), []\n",
        "            if self._since:\n                return\n            self._awaited, self._reached = set(), []\n",
        (f"{_WIRE}a_session_that_is_over_is_begun_anew_with_a_gap",),
    ),
    Fault(
        "discord/heartbeats-need-no-answer",
        "DiscordReceiver._step",
        "while not self._overdue():",
        "while True:",
        (f"{_WIRE}heartbeats_that_are_not_answered_count_although_events_come",),
    ),
    Fault(
        "discord/deferred-before-it-is-stored",
        "DiscordReceiver._store",
        "            batch = list(self._waiting)\n",
        "            batch = list(self._waiting)\n            for item in batch:\n"
        "                if isinstance(item, InboundMessage) and item.respond:\n"
        "                    await self._acknowledge(item)\n",
        (f"{_WIRE}an_interaction_is_stored_then_deferred_then_answered_in_its_place",),
    ),
    Fault(
        "discord/answered-before-it-is-deferred",
        "DiscordChannel._carry_out",
        "                await asyncio.wait([self._receiver.acknowledging[delivery.respond]])",
        "                pass",
        (f"{_WIRE}an_interaction_is_stored_then_deferred_then_answered_in_its_place",),
    ),
    Fault(
        "discord/a-failed-server-is-asked-again-by-the-library",
        "_raise_failed",
        "if response.status >= 500:",
        "if response.status >= 599:",
        (f"{_WIRE}what_became_of_a_send_is_told_by_where_it_failed",),
    ),
    Fault(
        "discord/cut-call-taken-for-not-sent",
        "Api.request",
        "raise ApiError(Trouble.UNKNOWN, reason_of(error)) from None",
        "raise ApiError(Trouble.NETWORK, reason_of(error)) from None",
        (f"{_WIRE}a_wire_that_is_cut_leaves_the_outcome_unknown",),
    ),
    Fault(
        "discord/no-nonce",
        "post",
        '"enforce_nonce": True',
        '"enforce_nonce": False',
        (f"{_WIRE}a_young_send_is_settled_by_its_nonce",),
    ),
    Fault(
        "discord/an-unreadable-history-is-an-empty-one",
        "Api.messages",
        "        if not found:\n",
        "        if False:\n",
        (
            f"{_WIRE}an_old_send_is_settled_by_what_stands_there",
            f"{_ACTIONS}what_may_not_be_read_is_said_with_its_permission",
        ),
    ),
    Fault(
        "discord/everybody-is-pinged",
        "message_of",
        '    message["allowed_mentions"] = {"parse": [], "replied_user": False}\n',
        "",
        (f"{_WIRE}a_message_pings_nobody_and_previews_nothing",),
    ),
    Fault(
        "discord/files-from-anywhere",
        "Api.file",
        "if not url.startswith(self._section.cdn):",
        "if False:",
        (f"{_WIRE}a_file_is_downloaded_and_its_address_renewed_once",),
    ),
    Fault(
        "discord/hears-itself",
        "read_message",
        "if (sender == world.me and not mine) or message",
        "if message",
        (f"{_WIRE}its_own_messages_and_notices_are_nothing",),
    ),
    Fault(
        "discord/previews-are-edits",
        "read_event",
        '_read_edit(fields, world) if fields.get("edited_timestamp") else []',
        '_read_edit({"edited_timestamp": fields["timestamp"], **fields} | {"edited_timestamp": '
        'fields.get("edited_timestamp") or fields["timestamp"]}, world)',
        (f"{_WIRE}edits_deletions_and_previews",),
    ),
    Fault(
        "discord/a-thread-is-never-opened",
        "DiscordChannel._carry_out",
        "if error.code != UNKNOWN_CHANNEL or not delivery.place.thread:",
        "if True:",
        (f"{_WIRE}a_thread_that_is_not_there_is_opened_on_its_message",),
    ),
    Fault(
        "discord/reacts-only-in-the-thread",
        "where_it_stands",
        "        return await call(place.chat)",
        "        raise",
        (
            f"{_WIRE}a_question_is_reacted_to_where_it_stands",
            f"{_ACTIONS}a_preview_grows_where_no_thread_could_be_opened",
        ),
    ),
    Fault(
        "discord/a-resumed-session-has-a-gap",
        "DiscordReceiver.take",
        '        if event in ("READY", "RESUMED"):\n',
        '        if event == "RESUMED":\n            self._sink.missed(self._name, self.world.me, [])\n'
        '        if event in ("READY", "RESUMED"):\n',
        (f"{_WIRE}a_session_that_is_resumed_has_no_gap_and_misses_nothing",),
    ),
    Fault(
        "discord/a-thread-is-a-way-into-another-channel",
        "World.check",
        "(spot is not None and spot.parent != place.chat)",
        "False",
        (f"{_ACTIONS}a_thread_is_no_way_into_another_conversation",),
    ),
    Fault(
        "discord/one-of-several-with-a-name-is-taken",
        "World.names",
        "if several[n[1:].casefold()] == 1 else",
        "if True else",
        (f"{_ACTIONS}conversations_are_found_by_id_and_name",),
    ),
    Fault(
        "discord/dots-are-ids",
        "Api.request",
        'if not {".", ".."}.isdisjoint(route.url.split("/")):',
        "if False:",
        (f"{_ACTIONS}an_id_that_is_none_asks_nothing",),
    ),
    Fault(
        "discord/frames-take-the-last-edit",
        "DiscordChannel.frame",
        "keep=1)",
        "keep=0)",
        (f"{_ACTIONS}frames_leave_a_place_for_the_words_that_are_final",),
    ),
    Fault(
        "discord/a-frame-waits-for-calls",
        "DiscordChannel.frame",
        "if not wait and not self._lock(place).locked():",
        "if not wait:",
        (f"{_ACTIONS}a_frame_waits_for_nobody_and_nothing_comes_behind_the_final_words",),
    ),
    Fault(
        "discord/the-library-waits-with-an-edit-too-many",
        "_raise_failed",
        'response.status == 429 and response.method == "PATCH"',
        "response.status == 599",
        (f"{_ACTIONS}a_frame_too_many_holds_up_no_message_and_the_next_frames",),
    ),
    Fault(
        "discord/an-edit-too-many-is-forgotten",
        "_Bucket.__aexit__",
        "            self.remaining, self.reset_after, self.expires = 0, 0.0, self._loop.time() + error.retry_after\n",
        "",
        (f"{_ACTIONS}a_frame_too_many_holds_up_no_message_and_the_next_frames",),
    ),
    Fault(
        "discord/emoji-of-a-server-in-brackets",
        "_change",
        '_CUSTOM_EMOJI.sub(r"\\1", delivery.body)',
        "delivery.body",
        (f"{_ACTIONS}reactions_with_emoji_of_a_server",),
    ),
    Fault(
        "discord/no-permission-is-named",
        "_refused",
        "if part in route.key)",
        'if part == "")',
        (
            f"{_ACTIONS}what_may_not_be_read_is_said_with_its_permission",
            f"{_ACTIONS}messages_are_pinned_where_it_is_allowed",
        ),
    ),
    Fault(
        "discord/hidden-words-look-like-none",
        "_read",
        "[_NO_CONTENT] * (not world.content)",
        "[]",
        (f"{_ACTIONS}hidden_words_are_said_to_be_hidden",),
    ),
)
