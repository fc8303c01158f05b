"""What belongs together although it came in several messages, or stands behind a word of the platform's own."""

from tests.mutants import Fault

_PARTS = "tests/bot/inbound/test_debounce.py::test_"
_WIRE = "tests/wire/test_telegram_people.py::test_"

FAULTS = (
    Fault(
        "parts/a-bare-name-is-nothing",
        "_read_message",
        "if not (text or attachments or mentioned):",
        "if not (text or attachments):",
        (f"{_WIRE}the_bare_name_below_a_message_asks_about_that",),
    ),
    Fault(
        "parts/those-before-the-name-stay-behind",
        "Inbox._accept_message",
        'if message.part_of and message.kind is InboundKind.MESSAGE and item.state == "waiting":',
        "if False:",
        (f"{_PARTS}a_restart_between_two_parts_tears_nothing", f"{_WIRE}an_album_is_seen_whole[2]"),
    ),
    Fault(
        "parts/those-behind-the-name-do-not-pass",
        "_is_for_it",
        " or _has_other_part(db, item, conv_id):",
        ":",
        (f"{_WIRE}an_album_is_seen_whole[0]", f"{_WIRE}a_paste_that_the_client_cuts_is_read_whole[0]"),
    ),
    Fault(
        "parts/all-pass-that-are-parts",
        "_is_for_it",
        '    if activation or item.follows == "shut":\n        return False\n',
        '    if activation or item.follows == "shut":\n        return bool(item.message.part_of)\n',
        (f"{_PARTS}parts_of_others_and_of_nothing_that_names_it_stay_what_they_are",),
    ),
    Fault(
        "parts/one-that-comes-late-is-not-for-it",
        "_has_other_part",
        "(SELECT turn_id FROM turn WHERE session_key=?1 AND {OPEN_TURN})",
        "(NULL)",
        (f"{_PARTS}a_part_that_comes_while_the_others_are_worked_on_is_for_it",),
    ),
    Fault(
        "parts/kept-in-short",
        "overhear",
        "    line = message if message.part_of else line\n",
        "",
        (f"{_PARTS}a_restart_between_two_parts_tears_nothing",),
    ),
    Fault(
        "parts/whole-texts-as-context",
        "overheard_before",
        "replace(line, text=_shortened(line, place.thread)) for line",
        "line for line",
        (f"{_PARTS}parts_of_others_and_of_nothing_that_names_it_stay_what_they_are",),
    ),
    Fault(
        "parts/a-command-takes-pictures-along",
        "_has_other_part",
        "AND inbox.kind='message' AND {PART_OF}=?4",
        "AND {PART_OF}=?4",
        (f"{_PARTS}a_caption_that_is_a_command_joins_nothing",),
    ),
    Fault(
        "parts/start-swallows-the-question",
        "Routing.decide",
        "message = replace(message, text=asked[1])",
        "pass",
        (f"{_WIRE}what_a_stranger_asks_behind_start_is_answered_once_they_are_let_in",),
    ),
    Fault(
        "parts/what-a-link-brings-is-a-question",
        "bot/inbound/routing.py",
        "(?![\\w-]{1,64}\\s*$)",
        "",
        (
            "tests/bot/inbound/test_pairing.py::test_a_question_behind_start_is_answered_and_what_a_link_brings_along_is_none"
            "[/start Abc_-123-]",
        ),
    ),
)
