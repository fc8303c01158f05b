"""One row per rule that the Slack stand-in keeps: a call that breaks it and its accepted counterpart.

Placeholders of the world that test_slack_rules makes: in #general Alice's message HERS, the app's MINE with its reply
REPLY, and JOIN, which nobody can answer; in IM two pinned ones and one more; GONE, who has left. A thread's broken
rules are told by the error alone.
"""

from dataclasses import dataclass
from typing import Any

from tests.standins.slack_ledger import Json, Rule
from tests.standins.slack_shapes import ALICE, BOB, BOT, Person

NOW = 1_763_750_000
GENERAL, FAR, SECRET, OLD, IM = "C0GENERAL0", "C0FAR00000", "C0SECRET00", "C0OLD00000", "D00ALICE001"
HERS, MINE, REPLY, JOIN = (f"{NOW}.{number:06d}" for number in range(4))
GONE = Person("U0GONE0001", "gone", "Gone Girl", deleted=True)
FORMATTING, BAD_VALUE = Rule.FORMATTING, Rule.BAD_VALUE


@dataclass(frozen=True, slots=True)
class Row:
    """`broken` must be answered with `error` and be a violation of `rule`, `kept` be accepted without one."""

    method: str
    name: str
    broken: Json
    error: str
    rule: Rule | None
    kept: Json


def say(**args: Any) -> Json:
    return {"channel": GENERAL, **args}


def block(**fields: Any) -> Json:
    return {"channel": GENERAL, "text": "x", "blocks": [fields]}


def button(**fields: Any) -> Json:
    one = {"type": "button", "text": {"type": "plain_text", "text": "Yes"}, "action_id": "yes", **fields}
    return block(type="actions", elements=[one])


def post(name: str, broken: Json, error: str, kept: Json, rule: Rule | None = FORMATTING) -> Row:
    return Row("chat.postMessage", name, broken, error, rule, kept)


def blocks(name: str, broken: Json, kept: Json) -> Row:
    return post(name, broken, "invalid_blocks", kept)


def text(kind: str, count: int) -> Json:
    return {"type": kind, "text": "x" * count}


PLAIN = say(text="x")
RICH = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [text("text", 1)]}]}
META = {"event_type": "hark", "event_payload": {"n": 1}}

POST_ROWS = [
    post("the channel exists", {"channel": "C0NOWHERE0", "text": "x"}, "channel_not_found", PLAIN, None),
    post("a private channel is not seen", {"channel": SECRET, "text": "x"}, "channel_not_found", PLAIN, None),
    post("the app is a member", {"channel": FAR, "text": "x"}, "not_in_channel", PLAIN, None),
    post("the channel is not archived", {"channel": OLD, "text": "x"}, "is_archived", PLAIN, None),
    post("there is a text", say(), "no_text", say(blocks=[RICH])),
    post("the text is not blank", say(text=" \n"), "no_text", PLAIN),
    post("40,000 characters", say(text="x" * 40_001), "msg_too_long", say(text="x" * 40_000)),
    post("the parent exists", say(text="x", thread_ts="1.000001"), "thread_not_found", say(text="x", thread_ts=HERS),
        None),
    post("a join has no thread", say(text="x", thread_ts=JOIN), "cannot_reply_to_message", PLAIN, None),
    post("the channel is a text", {"channel": 7, "text": "x"}, "invalid_arguments", PLAIN, BAD_VALUE),
    post("the channel is named", {"text": "x"}, "invalid_arguments", PLAIN, BAD_VALUE),
    post("a flag is a flag", say(text="x", unfurl_links="maybe"), "invalid_arguments", say(text="x",
        unfurl_links=False), BAD_VALUE),
    post("metadata is JSON", say(text="x", metadata="{"), "invalid_metadata_format", say(text="x", metadata=META)),
    post("metadata has a payload", say(text="x", metadata={"event_type": "a"}), "invalid_metadata_schema",
        say(text="x", metadata=META)),
    post("metadata has nothing else", say(text="x", metadata={**META, "n": 1}), "invalid_metadata_schema",
        say(text="x", metadata=META)),
    post("blocks are a list", say(text="x", blocks="{}"), "invalid_blocks_format", say(text="x", blocks="[]")),
]  # fmt: skip
BLOCK_ROWS = [
    blocks("50 blocks", say(text="x", blocks=[RICH] * 51), say(text="x", blocks=[RICH] * 50)),
    blocks("known types", block(type="hologram"), block(**RICH)),
    blocks("known fields", block(**RICH, colour="red"), block(**RICH)),
    blocks("block_id of 255", block(**RICH, block_id="x" * 256), block(**RICH, block_id="x" * 255)),
    blocks("block_id once", say(text="x", blocks=[{**RICH, "block_id": "a"}] * 2), block(**RICH, block_id="a")),
    blocks("25 buttons", block(type="actions", elements=[{**button()["blocks"][0]["elements"][0],
        "action_id": str(n)} for n in range(26)]), block(type="actions",
        elements=[{**button()["blocks"][0]["elements"][0], "action_id": str(n)} for n in range(25)])),
    blocks("a button at least", block(type="actions", elements=[]), button()),
    blocks("75 on a button", button(text=text("plain_text", 76)), button(text=text("plain_text", 75))),
    blocks("a button's text is plain", button(text=text("mrkdwn", 1)), button()),
    blocks("action_id of 255", button(action_id="x" * 256), button(action_id="x" * 255)),
    blocks("action_id once", block(type="actions", elements=button()["blocks"][0]["elements"] * 2), button()),
    blocks("value of 2,000", button(value="x" * 2_001), button(value="x" * 2_000)),
    blocks("fields of a button", button(colour="red"), button()),
]  # fmt: skip


def of_message(method: str, name: str, broken: Json, error: str, kept: Json, rule: Rule | None = None) -> Row:
    return Row(method, name, broken, error, rule, kept)


def at(ts: str, **more: Any) -> Json:
    return {"channel": GENERAL, "ts": ts, **more}


def pin(ts: str, channel: str = GENERAL) -> Json:
    return {"channel": channel, "timestamp": ts}


def react(name: str, ts: str = HERS) -> Json:
    return {"channel": GENERAL, "timestamp": ts, "name": name}


PAGE = {"channel": GENERAL}
METHOD_ROWS = [
    of_message("chat.update", "the message exists", at("1.1", text="y"), "message_not_found", at(MINE, text="y")),
    of_message("chat.update", "only own messages", at(HERS, text="y"), "cant_update_message", at(MINE, text="y")),
    of_message("chat.update", "4,000 characters", at(MINE, text="x" * 4_001), "msg_too_long", at(MINE,
        text="x" * 4_000), FORMATTING),
    of_message("chat.update", "says something", at(MINE), "no_text", at(MINE, text="y"), FORMATTING),
    of_message("chat.delete", "the message exists", at("1.1"), "message_not_found", at(REPLY)),
    of_message("chat.delete", "only own messages", at(HERS), "cant_delete_message", at(MINE)),
    of_message("conversations.history", "the app is a member", {"channel": FAR}, "not_in_channel", PAGE),
    of_message("conversations.history", "a conversation, not a person", {"channel": ALICE.id}, "channel_not_found",
        {"channel": IM}),
    of_message("conversations.history", "cursors come from Slack", {**PAGE, "cursor": "abc"}, "invalid_cursor", PAGE,
        BAD_VALUE),
    of_message("conversations.history", "times are ts", {**PAGE, "oldest": "now"}, "invalid_ts_oldest", {**PAGE,
        "oldest": HERS}, BAD_VALUE),
    of_message("conversations.history", "1,000 at once", {**PAGE, "limit": 1_001}, "invalid_limit", {**PAGE,
        "limit": 1_000}, BAD_VALUE),
    of_message("conversations.replies", "the thread exists", at("1.1"), "thread_not_found", at(MINE)),
    of_message("conversations.replies", "a join has no thread", at(JOIN), "thread_not_found", at(REPLY)),
    of_message("conversations.info", "the channel is seen", {"channel": SECRET}, "channel_not_found", {"channel": FAR}),
    of_message("users.conversations", "known types", {"types": "im,x"}, "invalid_types", {"types": "im"}, BAD_VALUE),
    of_message("conversations.open", "somebody is named", {}, "users_list_not_supplied", {"users": ALICE.id},
        BAD_VALUE),
    of_message("conversations.open", "who exists", {"users": "U0NOBODY"}, "user_not_found",
        {"users": f"{ALICE.id},{BOB.id}"}),
    of_message("users.info", "the person exists", {"user": "U0NOBODY"}, "user_not_found", {"user": BOT}),
    of_message("reactions.add", "once", react("eyes"), "already_reacted", react("tada")),
    of_message("reactions.add", "to a message", react("eyes", "1.1"), "message_not_found", react("eyes", MINE)),
    of_message("reactions.add", "with a ts", react("eyes", "now"), "bad_timestamp", react("x", MINE), BAD_VALUE),
    of_message("reactions.add", "a name without colons", react(":eyes:"), "invalid_name", react("wave::skin-tone-3"),
        BAD_VALUE),
    of_message("reactions.remove", "one's own", react("wave"), "no_reaction", react("eyes")),
    of_message("assistant.threads.setStatus", "in a thread", {"channel_id": GENERAL, "thread_ts": "1.1",
        "status": "x"}, "invalid_thread_ts", {"channel_id": GENERAL, "thread_ts": HERS, "status": "x"}),
    of_message("pins.add", "a message", pin("1.1"), "message_not_found", pin(MINE)),
    of_message("pins.add", "once", pin(MINE), "already_pinned", pin(REPLY)),
    of_message("pins.add", "no join", pin(JOIN), "not_pinnable", pin(HERS)),
    of_message("pins.add", "with a ts", pin("now"), "bad_timestamp", pin(REPLY, IM), BAD_VALUE),
    of_message("pins.remove", "what is pinned", pin(MINE), "no_pin", pin(HERS, IM)),
    of_message("users.list", "cursors come from Slack", {"cursor": "abc"}, "invalid_cursor", {"limit": 1_000},
        BAD_VALUE),
    of_message("conversations.open", "who is still there", {"users": GONE.id}, "user_disabled", {"users": ALICE.id}),
    of_message("files.getUploadURLExternal", "a length", {"filename": "a", "length": 0}, "invalid_arguments",
        {"filename": "a", "length": 1}, BAD_VALUE),
    of_message("files.info", "the file exists", {"file": "F0"}, "file_not_found", {"file": "F0FILE00001"}),
    of_message("files.completeUploadExternal", "uploaded first", {"channel_id": GENERAL,
        "files": [{"id": "F0FILE00001"}]}, "file_not_found", {"files": [{"id": "F0FILE00002"}], "channel_id": GENERAL},
        BAD_VALUE),
]  # fmt: skip
