"""One row per rule that the Slack stand-in keeps: a call that breaks it and its accepted counterpart.

Placeholders of the world that test_slack_rules makes: in #general Alice's message HERS, the app's MINE with its reply
REPLY, and JOIN, which nobody can answer; in IM two pinned ones; GONE, who has left. A thread's broken rules are told by
the error alone.
"""

from dataclasses import dataclass
from typing import Any

from tests.standins.slack_ledger import Json, Rule
from tests.standins.slack_shapes import ALICE, BOB, BOT, TEAM, Person

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


def table(rows: list[list[str]]) -> Json:
    return block(type="table", rows=[[{"type": "raw_text", "text": cell} for cell in row] for row in rows])


def post(name: str, broken: Json, error: str, kept: Json, rule: Rule | None = FORMATTING) -> Row:
    return Row("chat.postMessage", name, broken, error, rule, kept)


def blocks(name: str, broken: Json, kept: Json) -> Row:
    return post(name, broken, "invalid_blocks", kept)


def text(kind: str, count: int) -> Json:
    return {"type": kind, "text": "x" * count}


PLAIN = say(text="x")
SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "x"}}
DIVIDER = {"type": "divider"}
META = {"event_type": "hark", "event_payload": {"n": 1}}
ROW = ["a", "b"]

POST_ROWS = [
    post("the channel exists", {"channel": "C0NOWHERE0", "text": "x"}, "channel_not_found", PLAIN, None),
    post("a private channel is not seen", {"channel": SECRET, "text": "x"}, "channel_not_found", PLAIN, None),
    post("the app is a member", {"channel": FAR, "text": "x"}, "not_in_channel", PLAIN, None),
    post("the channel is not archived", {"channel": OLD, "text": "x"}, "is_archived", PLAIN, None),
    post("there is a text", say(), "no_text", say(blocks=[SECTION])),
    post("the text is not blank", say(text=" \n"), "no_text", PLAIN),
    post("40,000 characters", say(text="x" * 40_001), "msg_too_long", say(text="x" * 40_000)),
    post("markdown_text alone", say(markdown_text="x", text="y"), "markdown_text_conflict", say(markdown_text="x")),
    post("12,000 of markdown_text", say(markdown_text="x" * 12_001), "msg_too_long",
         say(markdown_text="x" * 12_000)),
    post("the parent exists", say(text="x", thread_ts="1.000001"), "thread_not_found", say(text="x", thread_ts=HERS),
         None),
    post("a join has no thread", say(text="x", thread_ts=JOIN), "cannot_reply_to_message", PLAIN, None),
    post("the channel is a text", {"channel": 7, "text": "x"}, "invalid_arguments", PLAIN, BAD_VALUE),
    post("the channel is named", {"text": "x"}, "invalid_arguments", PLAIN, BAD_VALUE),
    post("a flag is a flag", say(text="x", unfurl_links="maybe"), "invalid_arguments",
         say(text="x", unfurl_links=False),
         BAD_VALUE),
    post("metadata is JSON", say(text="x", metadata="{"), "invalid_metadata_format", say(text="x", metadata=META)),
    post("metadata has a payload", say(text="x", metadata={"event_type": "a"}), "invalid_metadata_schema",
         say(text="x", metadata=META)),
    post("metadata has nothing else", say(text="x", metadata={**META, "n": 1}), "invalid_metadata_schema",
         say(text="x", metadata=META)),
    post("blocks are a list", say(text="x", blocks="{}"), "invalid_blocks_format", say(text="x", blocks="[]")),
    post(
        "12,000 characters of markdown blocks in sum",
        say(blocks=[{"type": "markdown", "text": "x" * 6_000}, {"type": "markdown", "text": "x" * 6_001}]),
        "msg_blocks_too_long",
        say(blocks=[{"type": "markdown", "text": "x" * 6_000}, {"type": "markdown", "text": "y" * 6_000}]),
    ),
]  # fmt: skip
BLOCK_ROWS = [
    blocks("50 blocks", say(text="x", blocks=[DIVIDER] * 51), say(text="x", blocks=[DIVIDER] * 50)),
    blocks("known types", block(type="hologram"), block(**DIVIDER)),
    blocks("known fields", block(**SECTION, colour="red"), block(**SECTION)),
    blocks("block_id of 255", block(**DIVIDER, block_id="x" * 256), block(**DIVIDER, block_id="x" * 255)),
    blocks("block_id once", say(text="x", blocks=[{**DIVIDER, "block_id": "a"}] * 2), block(**DIVIDER, block_id="a")),
    blocks("3,000 in a section", block(type="section", text=text("mrkdwn", 3_001)),
           block(type="section", text=text("mrkdwn", 3_000))),
    blocks("a section says something", block(type="section"), block(**SECTION)),
    blocks("no empty text", block(type="section", text=text("mrkdwn", 0)), block(**SECTION)),
    blocks("10 fields", block(type="section", fields=[text("mrkdwn", 1)] * 11),
           block(type="section", fields=[text("mrkdwn", 1)] * 10)),
    blocks("2,000 in a field", block(type="section", fields=[text("mrkdwn", 2_001)]),
           block(type="section", fields=[text("mrkdwn", 2_000)])),
    blocks("emoji is for plain text", block(type="section", text={**text("mrkdwn", 1), "emoji": True}),
           block(type="section", text={**text("plain_text", 1), "emoji": True})),
    blocks("a header is plain", block(type="header", text=text("mrkdwn", 1)),
           block(type="header", text=text("plain_text", 1))),
    blocks("150 in a header", block(type="header", text=text("plain_text", 151)),
           block(type="header", text=text("plain_text", 150))),
    blocks("a markdown block is not blank", block(type="markdown", text=" "), block(type="markdown", text="# x")),
    blocks("10 in a context", block(type="context", elements=[text("mrkdwn", 1)] * 11),
           block(type="context", elements=[text("mrkdwn", 1)] * 10)),
    blocks("25 buttons", block(type="actions", elements=[{**button()["blocks"][0]["elements"][0], "action_id": str(n)}
                                                         for n in range(26)]),
           block(type="actions", elements=[{**button()["blocks"][0]["elements"][0], "action_id": str(n)}
                                           for n in range(25)])),
    blocks("a button at least", block(type="actions", elements=[]), button()),
    blocks("75 on a button", button(text=text("plain_text", 76)), button(text=text("plain_text", 75))),
    blocks("a button's text is plain", button(text=text("mrkdwn", 1)), button()),
    blocks("action_id of 255", button(action_id="x" * 256), button(action_id="x" * 255)),
    blocks("action_id once", block(type="actions", elements=button()["blocks"][0]["elements"] * 2), button()),
    blocks("value of 2,000", button(value="x" * 2_001), button(value="x" * 2_000)),
    blocks("style of a button", button(style="loud"), button(style="danger")),
    blocks("fields of a button", button(colour="red"), button()),
    blocks("a picture has words", block(type="image", image_url="https://example.com/x.png"),
           block(type="image", image_url="https://example.com/x.png", alt_text="x")),
    blocks("100 rows", table([ROW] * 101), table([ROW] * 100)),
    blocks("20 columns", table([["a"] * 21]), table([["a"] * 20])),
    blocks("rows of one length", table([ROW, ["a"]]), table([ROW, ROW])),
    blocks("no empty cell", table([["a", ""]]), table([ROW])),
    blocks("10,000 in a table", table([["x" * 5_000, "x" * 5_001]]), table([["x" * 5_000, "x" * 5_000]])),
    blocks("one table", say(text="x", blocks=table([ROW])["blocks"] * 2), table([ROW])),
]  # fmt: skip


def of_message(method: str, name: str, broken: Json, error: str, kept: Json, rule: Rule | None = None) -> Row:
    return Row(method, name, broken, error, rule, kept)


def at(ts: str, **more: Any) -> Json:
    return {"channel": GENERAL, "ts": ts, **more}


def pin(ts: str, channel: str = GENERAL) -> Json:
    return {"channel": channel, "timestamp": ts}


def react(name: str, ts: str = HERS) -> Json:
    return {"channel": GENERAL, "timestamp": ts, "name": name}


STREAM = {"channel": GENERAL, "thread_ts": HERS, "recipient_user_id": ALICE.id, "recipient_team_id": TEAM}
PAGE = {"channel": GENERAL}
METHOD_ROWS = [
    of_message("chat.update", "the message exists", at("1.1", text="y"), "message_not_found", at(MINE, text="y")),
    of_message("chat.update", "only own messages", at(HERS, text="y"), "cant_update_message", at(MINE, text="y")),
    of_message("chat.update", "4,000 characters", at(MINE, text="x" * 4_001), "msg_too_long",
               at(MINE, text="x" * 4_000), FORMATTING),
    of_message("chat.update", "says something", at(MINE), "no_text", at(MINE, text="y"), FORMATTING),
    of_message("chat.delete", "the message exists", at("1.1"), "message_not_found", at(REPLY)),
    of_message("chat.delete", "only own messages", at(HERS), "cant_delete_message", at(MINE)),
    of_message("chat.postEphemeral", "somebody who is there", say(user=BOB.id, text="x"), "user_not_in_channel",
               say(user=ALICE.id, text="x")),
    of_message("chat.getPermalink", "the message exists", say(message_ts="1.1"), "message_not_found",
               say(message_ts=REPLY)),
    of_message("conversations.history", "the app is a member", {"channel": FAR}, "not_in_channel", PAGE),
    of_message("conversations.history", "a conversation, not a person", {"channel": ALICE.id}, "channel_not_found",
               {"channel": IM}),
    of_message("conversations.history", "cursors come from Slack", {**PAGE, "cursor": "abc"}, "invalid_cursor", PAGE,
               BAD_VALUE),
    of_message("conversations.history", "times are ts", {**PAGE, "oldest": "now"}, "invalid_ts_oldest",
               {**PAGE, "oldest": HERS}, BAD_VALUE),
    of_message("conversations.history", "1,000 at once", {**PAGE, "limit": 1_001}, "invalid_limit",
               {**PAGE, "limit": 1_000}, BAD_VALUE),
    of_message("conversations.replies", "the thread exists", at("1.1"), "thread_not_found", at(MINE)),
    of_message("conversations.replies", "a join has no thread", at(JOIN), "thread_not_found", at(REPLY)),
    of_message("conversations.info", "the channel is seen", {"channel": SECRET}, "channel_not_found", {"channel": FAR}),
    of_message("conversations.members", "the channel exists", {"channel": "C0"}, "channel_not_found", PAGE),
    of_message("conversations.list", "known types", {"types": "dm"}, "invalid_types", {"types": "im,mpim"}, BAD_VALUE),
    of_message("users.conversations", "known types", {"types": "im,x"}, "invalid_types", {"types": "im"}, BAD_VALUE),
    of_message("conversations.open", "somebody is named", {}, "users_list_not_supplied", {"users": ALICE.id},
               BAD_VALUE),
    of_message("conversations.open", "who exists", {"users": "U0NOBODY"}, "user_not_found",
               {"users": f"{ALICE.id},{BOB.id}"}),
    of_message("users.info", "the person exists", {"user": "U0NOBODY"}, "user_not_found", {"user": BOT}),
    of_message("bots.info", "the bot exists", {"bot": "B0NOBODY"}, "bot_not_found", {"bot": "B0HARKBOT1"}),
    of_message("reactions.add", "once", react("eyes"), "already_reacted", react("tada")),
    of_message("reactions.add", "to a message", react("eyes", "1.1"), "message_not_found", react("eyes", MINE)),
    of_message("reactions.add", "with a ts", react("eyes", "now"), "bad_timestamp", react("x", MINE), BAD_VALUE),
    of_message("reactions.add", "a name without colons", react(":eyes:"), "invalid_name",
               react("wave::skin-tone-3"), BAD_VALUE),
    of_message("reactions.remove", "one's own", react("wave"), "no_reaction", react("eyes")),
    of_message("reactions.remove", "from something", {"name": "eyes"}, "no_item_specified", react("+1"), BAD_VALUE),
    of_message("assistant.threads.setStatus", "in a thread", {"channel_id": GENERAL, "thread_ts": "1.1", "status": "x"},
               "invalid_thread_ts", {"channel_id": GENERAL, "thread_ts": HERS, "status": "x"}),
    of_message("pins.add", "a message", pin("1.1"), "message_not_found", pin(MINE)),
    of_message("pins.add", "once", pin(MINE), "already_pinned", pin(REPLY)),
    of_message("pins.add", "no join", pin(JOIN), "not_pinnable", pin("stream")),
    of_message("pins.add", "with a ts", pin("now"), "bad_timestamp", pin(HERS), BAD_VALUE),
    of_message("pins.remove", "what is pinned", pin(MINE), "no_pin", pin(HERS, IM)),
    of_message("pins.remove", "something", {"channel": GENERAL}, "no_item_specified", pin(MINE, IM), BAD_VALUE),
    of_message("users.list", "cursors come from Slack", {"cursor": "abc"}, "invalid_cursor", {"limit": 1_000},
               BAD_VALUE),
    of_message("conversations.open", "who is still there", {"users": GONE.id}, "user_disabled", {"users": ALICE.id}),
    of_message("files.getUploadURLExternal", "a length", {"filename": "a", "length": 0}, "invalid_arguments",
               {"filename": "a", "length": 1}, BAD_VALUE),
    of_message("files.info", "the file exists", {"file": "F0"}, "file_not_found", {"file": "F0FILE00001"}),
    of_message("files.completeUploadExternal", "uploaded first", {"files": [{"id": "F0FILE00001"}]}, "file_not_found",
               {"files": [{"id": "F0FILE00002"}], "channel_id": GENERAL}, BAD_VALUE),
    of_message("chat.startStream", "for somebody", {**STREAM, "recipient_user_id": ""}, "missing_recipient_user_id",
               STREAM, BAD_VALUE),
    of_message("chat.startStream", "of a team", {**STREAM, "recipient_team_id": ""}, "missing_recipient_team_id",
               STREAM, BAD_VALUE),
    of_message("chat.startStream", "in a thread", {**STREAM, "thread_ts": "1.1"}, "thread_not_found", STREAM),
    of_message("chat.startStream", "12,000 characters", {**STREAM, "markdown_text": "x" * 12_001}, "msg_too_long",
               {**STREAM, "markdown_text": "x" * 12_000}, FORMATTING),
    of_message("chat.appendStream", "while it streams", at(MINE, markdown_text="x"), "message_not_in_streaming_state",
               at("stream", markdown_text="x")),
    of_message("chat.stopStream", "while it streams", at(MINE), "message_not_in_streaming_state", at("stream")),
]  # fmt: skip
