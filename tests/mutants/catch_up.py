"""What was said while nobody listened: nothing of it is missing, doubled or out of order."""

from tests.mutants import Fault

_TEST = "tests/bot/inbound/test_catch_up.py::test_"
_STORE = "tests/bot/persistence/test_history.py::test_"

FAULTS = (
    Fault(
        "catch_up/live-messages-held-without-end",
        "bot/inbound/catch_up.py",
        "LONGEST_HOLD = 60.0",
        "LONGEST_HOLD = 1e9",
        (
            "tests/bot/inbound/test_catch_up.py"
            "::test_a_history_that_fails_again_and_again_holds_nobody_up_for_longer_than_a_minute",
        ),
    ),
    Fault(
        "catch-up/live-overtakes-what-was-missed",
        "CatchUp._behind",
        "return [replace(item, behind=True, delay=0, gathers=gap.patience > 0)]",
        "return [item]",
        (f"{_TEST}what_comes_live_waits_behind_what_was_missed_and_commands_do_not",),
    ),
    Fault(
        "catch-up/the-list-is-not-waited-for",
        "CatchUp._behind",
        "if account.listing or key_of(place) in account.gaps:",
        "if key_of(place) in account.gaps:",
        (f"{_TEST}what_comes_live_waits_behind_what_was_missed_and_commands_do_not",),
    ),
    Fault(
        "catch-up/a-second-break-is-not-read",
        "CatchUp.missed",
        "            gap.asked += 1\n        for one in reached:",
        "        for one in reached:",
        (f"{_TEST}a_break_while_a_history_is_read_is_read_as_well",),
    ),
    Fault(
        "catch-up/held-in-the-order-of-arrival",
        "History.release",
        '" ORDER BY length(message_id), message_id",\n            (place.channel',
        '" ORDER BY seq",\n            (place.channel',
        (f"{_STORE}what_waits_behind_a_history_is_released_in_the_order_of_the_platform",),
    ),
    Fault(
        "catch-up/held-keeps-its-place",
        "History.release",
        ", (anew, seq)",
        ", (seq, seq)",
        (f"{_STORE}what_waits_behind_a_history_is_released_in_the_order_of_the_platform",),
    ),
    Fault(
        "catch-up/found-in-the-history-keeps-its-place",
        "Inbox._accept_message",
        "if found and ((item.behind and not item.gathers) or not history.take_anew(db, found[0])):",
        "if found:",
        (f"{_STORE}what_waits_behind_a_history_is_released_in_the_order_of_the_platform",),
    ),
    Fault(
        "catch-up/what-comes-during-the-release-is-left",
        "CatchUp._release",
        "        while gap.held and asked == gap.asked:\n",
        "        if gap.held and asked == gap.asked:\n",
        (f"{_TEST}what_comes_while_others_are_released_is_released_as_well",),
    ),
    Fault(
        "catch-up/a-turn-for-each-that-was-missed",
        "bot/store/claims.py",
        "iif(ready_at < 0, 'missed', sender || ' ' || ready_at)",
        "sender || ' ' || ready_at",
        (f"{_TEST}what_several_people_said_in_a_group_meanwhile_is_one_turn",),
    ),
    Fault(
        "catch-up/a-turn-for-each-that-comes-late",
        "CatchUp.aged",
        "return replace(item, delay=0, gathers=True) if said and missed else item",
        "return item",
        (f"{_TEST}what_a_platform_brings_late_is_one_turn_as_well",),
    ),
    Fault(
        "catch-up/a-turn-for-each-page",
        "CatchUp._decide_read",
        "return replace(item, gathers=waits, behind=waits)",
        "return replace(item, gathers=waits)",
        (f"{_TEST}what_was_missed_is_answered_once_oldest_first_and_in_one_turn",),
    ),
    Fault(
        "catch-up/a-stop-that-is-found-stops-nothing",
        "History.release",
        "            if not read:\n",
        "            if True:\n",
        (f"{_TEST}a_stop_that_is_found_hours_later_stops_nothing_that_was_said_since",),
    ),
    Fault(
        "catch-up/places-that-are-not-let-in-are-read",
        "CatchUp._list",
        'wanted and self.routing.answers_in(gap.place, account.spaces.get(gap.place.chat, ""))',
        "wanted",
        (
            f"{_TEST}direct_messages_are_read_first_then_places_that_are_let_in_and_nothing_else",
            "tests/wire/test_platforms_missed.py::"
            "test_on_a_large_server_a_direct_message_is_read_before_channels_that_are_not_let_in",
        ),
    ),
    Fault(
        "catch-up/direct-messages-are-read-last",
        "rank",
        "return gap.place.kind is ChatKind.DIRECT, max(",
        "return gap.place.kind is not ChatKind.DIRECT, max(",
        (f"{_TEST}direct_messages_are_read_first_then_places_that_are_let_in_and_nothing_else",),
    ),
    Fault(
        "catch-up/channels-of-a-server-that-is-let-in-are-not-read",
        "World.reached",
        'yield Reached(self.place(identity(channel, "id"), space), newest, space)',
        'yield Reached(self.place(identity(channel, "id"), space), newest)',
        (
            "tests/wire/test_platforms_missed.py::"
            "test_on_a_large_server_a_direct_message_is_read_before_channels_that_are_not_let_in",
        ),
    ),
    Fault(
        "catch-up/what-was-not-looked-at-is-told-to-nobody-who-writes-again",
        "CatchUp._told_unread",
        'if source is None or item.state != "waiting":',
        "if True:",
        (f"{_TEST}who_wrote_long_ago_is_told_with_their_next_message_that_theirs_was_not_read",),
    ),
    Fault(
        "catch-up/who-wrote-directly-is-not-told-at-once",
        "CatchUp._tell_unread",
        "if gap.place.kind is ChatKind.DIRECT and id_order(gap.cursor) >= id_order(oldest):",
        "if False:",
        (f"{_TEST}only_so_many_conversations_are_read_and_who_wrote_in_others_is_told",),
    ),
    Fault(
        "catch-up/who-is-shut-out-takes-it-along",
        "bot/store/people.py",
        "_HELD = f\"{HELD} AND reason='{Cause.PAIRING}'\"",
        "_HELD = HELD",
        (f"{_STORE}who_is_shut_out_takes_nothing_along_that_waits_behind_a_history",),
    ),
    Fault(
        "catch-up/what-waits-joins-no-thread",
        "_takes_part",
        "{IS_BEHIND} AND conv_id=?1",
        "false",
        (f"{_STORE}a_thread_is_joined_also_while_what_asked_waits_behind_a_history",),
    ),
    Fault(
        "catch-up/cursor-goes-back",
        "move_cursor",
        "(length(cursor), cursor) < (length(?1), ?1)",
        "true",
        (f"{_STORE}a_cursor_never_goes_back_and_is_there_after_a_restart",),
    ),
    Fault(
        "catch-up/cursor-without-its-page",
        "CatchUp._read",
        "partial(self.keep, [Heard(gap.place, after), *items], None)",
        "partial(self.keep, items, None)",
        (f"{_TEST}what_was_missed_is_answered_once_oldest_first_and_in_one_turn",),
    ),
    Fault(
        "catch-up/refused-and-forgotten",
        "CatchUp.accept",
        "            self._refused(places.values())\n",
        "",
        (f"{_TEST}what_the_store_refuses_is_read_from_the_history",),
    ),
    Fault(
        "catch-up/cursor-passes-what-may-be-refused",
        "CatchUp._behind",
        " and not self._storing[key_of(place)]:",
        ":",
        (f"{_TEST}no_cursor_passes_a_message_that_may_still_be_refused",),
    ),
    Fault(
        "catch-up/everything-ever-said-is-read",
        "CatchUp._list",
        "wanted = not fresh and not",
        "wanted = not",
        (f"{_TEST}the_first_start_ever_begins_at_the_newest",),
    ),
    Fault(
        "catch-up/old-messages-are-answered",
        "CatchUp.aged",
        "if not said or not 0 < message.sent_at < oldest:",
        "if not said or not 0 < message.sent_at < 0:",
        (f"{_TEST}what_a_platform_delivers_too_late_is_dropped_which_is_said_once",),
    ),
    Fault(
        "catch-up/an-old-stop-stops-what-is-new",
        "reaches",
        "return said_at if",
        "return sys.maxsize if",
        (f"{_TEST}a_stop_that_is_found_hours_later_stops_nothing_that_was_said_since",),
    ),
    Fault(
        "catch-up/overheard-again-and-again",
        "overheard_before",
        "    if begun or not own:\n",
        "    if begun and own:\n",
        (f"{_STORE}what_was_overheard_before_a_message_stands_before_it_once",),
    ),
    Fault(
        "catch-up/overheard-leaves-its-fence",
        "overheard",
        "' '.join(harmless(one.text).split())",
        "' '.join(one.text.split())",
        ("tests/bot/test_compose.py::test_what_was_overheard_is_fenced_and_cannot_leave_its_line",),
    ),
)
