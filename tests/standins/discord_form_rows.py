"""One row per rule that the Discord stand-in keeps for messages and their parts: text, embeds, components, mentions."""

from tests.standins.discord_ledger import Rule
from tests.standins.discord_rows import EMOJI, SEND, Row, bad, button, ping, row, text

FIELDS = [
    bad("a field that no one documents", SEND, text(colour=1), "UNKNOWN_FIELD", text(), rule=Rule.UNKNOWN_FIELD),
    bad("content is text", SEND, {"content": ["x"]}, "STRING_TYPE_CONVERT", text()),
    bad("at most 2000 code points", SEND, text(EMOJI * 2001), "BASE_TYPE_MAX_LENGTH", text(EMOJI * 2000)),
    bad("a flag is a number", SEND, text(flags="4"), "NUMBER_TYPE_COERCE", text(flags=4)),
    bad("only some flags can be set", SEND, text(flags=1 << 5), "MESSAGE_FLAGS_INVALID", text(flags=4 | 4096)),
    bad("a nonce of 25 characters", SEND, text(nonce="9" * 26), "BASE_TYPE_MAX_LENGTH", text(nonce="9" * 25)),
    bad("a query that no one documents", "GET /channels/$room/messages?page=2", None, "UNKNOWN_FIELD", None,
        rule=Rule.UNKNOWN_FIELD, kept_call="GET /channels/$room/messages"),
    bad("a history of 1 to 100", "GET /channels/$room/messages?limit=101", None, "NUMBER_TYPE_MAX", None,
        kept_call="GET /channels/$room/messages?limit=100"),
    bad("a history of at least one", "GET /channels/$room/messages?limit=0", None, "NUMBER_TYPE_MIN", None,
        kept_call="GET /channels/$room/messages?limit=1"),
    bad("one anchor of a history", "GET /channels/$room/messages?before=$mine&after=$hers", None,
        "BASE_TYPE_EXCLUSIVE", None, kept_call="GET /channels/$room/messages?before=$mine"),
    bad("an anchor is an id", "GET /channels/$room/messages?after=yesterday", None, "NUMBER_TYPE_COERCE", None,
        kept_call="GET /channels/$room/messages?after=$hers"),
    bad("no body where none belongs", "POST /channels/$room/typing", {"seconds": 5}, "UNKNOWN_FIELD", None,
        rule=Rule.UNKNOWN_FIELD),
    bad("a person to write to", "POST /users/@me/channels", {}, "BASE_TYPE_REQUIRED", {"recipient_id": "$alice"}),
    bad("links to refresh", "POST /attachments/refresh-urls", {"attachment_urls": []}, "BASE_TYPE_BAD_LENGTH",
        {"attachment_urls": ["http://example.org/"]}),
    Row("something to say", SEND, {}, 400, 50006, "", None, text(), SEND),
    Row("something to see", SEND, text(" \n "), 400, 50006, "", None, text(" x "), SEND),
]  # fmt: skip

PARTS = [
    bad("five rows", SEND, text(components=[{"type": 1, "components": [button(custom_id=str(n))]} for n in range(6)]),
        "BASE_TYPE_BAD_LENGTH", text(components=[{"type": 1,
        "components": [button(custom_id=str(n))]} for n in range(5)])),
    bad("five buttons in a row", SEND, row(*[button(custom_id=str(n)) for n in range(6)]), "BASE_TYPE_BAD_LENGTH",
        row(*[button(custom_id=str(n)) for n in range(5)])),
    bad("no empty row", SEND, row(), "BASE_TYPE_BAD_LENGTH", row(button())),
    bad("a button stands in a row", SEND, text(components=[button()]), "UNION_TYPE_CHOICES", row(button())),
    bad("a label of 80", SEND, row(button(label="x" * 81)), "BASE_TYPE_BAD_LENGTH", row(button(label="x" * 80))),
    bad("a custom_id of 100", SEND, row(button(custom_id="x" * 101)), "BASE_TYPE_BAD_LENGTH",
        row(button(custom_id="x" * 100))),
    bad("each custom_id once", SEND, row(button(), button()), "COMPONENT_CUSTOM_ID_DUPLICATED", row(button(),
        button(custom_id="no"))),
    bad("a known style", SEND, row(button(style=9)), "BASE_TYPE_CHOICES", row(button(style=4))),
    bad("a button has a custom_id", SEND, row({"type": 2, "style": 1, "label": "x"}), "BASE_TYPE_REQUIRED",
        row(button())),
    bad("known kinds of mentions", SEND, ping(parse=["here"]), "BASE_TYPE_CHOICES", ping(parse=["everyone"])),
    bad("no reply to system messages", SEND, text(message_reference={"message_id": "$joined"}),
        "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", text(message_reference={"message_id": "$hers"})),
    Row("a reply to what is there", SEND, text(message_reference={"message_id": "1"}), 400, 50035,
        "MESSAGE_REFERENCE_UNKNOWN_MESSAGE", None, text(message_reference={"message_id": "1",
        "fail_if_not_exists": False}), SEND),
]  # fmt: skip

FORM_ROWS: dict[str, list[Row]] = {"fields": FIELDS, "parts": PARTS}
