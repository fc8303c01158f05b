"""What Slack sends, as it is read: the corpus of payloads, and by which way they come must not matter."""

from typing import Any

import pytest

from channels.message import InboundMessage, Incoming
from channels.receiver import Unreadable
from channels.slack.events import read, read_message, unread
from channels.slack.known import Known
from channels.slack.text import markup_of, readable
from tests.standins import slack_corpus as corpus
from tests.standins.slack_shapes import ALICE, BOB, BOT, BOT_ID

# B: by another bot, M: names the bot, O: names somebody else
READ = {
    "direct message": ("message", "direct", False, "U0ALICE001", "", "hello"),
    "channel message": ("message", "channel", False, "U0ALICE001", "", "good morning"),
    "private channel message": ("message", "channel", False, "U0ALICE001", "", "between us"),
    "group direct message": ("message", "group", False, "U0ALICE001", "", "you two"),
    "emoji and international text": ("message", "direct", False, "U0ALICE001", "", "grüße 😀 :wave: 你好"),
    "escaped signs": ("message", "direct", False, "U0ALICE001", "", "a < b && c > d"),
    "links, users, channels and a date": (
        "message",
        "direct",
        False,
        "U0ALICE001",
        "O",
        "see the page (https://example.com/a?b=1&c=2) and https://example.org with @U0BOB00001 in #general, @ops, "
        "21 Nov, a@example.com",
    ),
    "whole channel is mentioned": ("message", "channel", False, "U0ALICE001", "", "@here and @channel and @everyone"),
    "formatted text": (
        "message",
        "direct",
        False,
        "U0ALICE001",
        "",
        "*bold*, ~struck~, `code`\n• one\n• two\n    1. three\n```print(1 < 2)```\n> said before",
    ),
    "only blocks, no text": (
        "message",
        "direct",
        False,
        "U0ALICE001",
        "",
        "bold, struck, code\n\n- one\n- two\n- three\n```\nprint(1 < 2)\n```\n> said before",
    ),
    "text that begins with the bot's label": ("message", "channel", False, "U0ALICE001", "M", "status"),
    "mention as message": ("message", "channel", False, "U0ALICE001", "M", "status"),
    "mention as its twin": ("message", "channel", False, "U0ALICE001", "M", "status"),
    "thread reply": ("message", "channel", True, "U0ALICE001", "", "more"),
    "thread reply that mentions": ("message", "channel", True, "U0ALICE001", "M", "and this?"),
    "reply in a direct message's thread": ("message", "direct", True, "U0ALICE001", "", "yes"),
    "thread reply sent to the channel too": ("message", "channel", True, "U0ALICE001", "", "everybody should know"),
    "files with words": ("message", "direct", False, "U0ALICE001", "", "read these"),
    "file without words": ("message", "direct", False, "U0ALICE001", "", ""),
    "voice message": ("message", "direct", False, "U0ALICE001", "", ""),
    "file of another workspace": ("message", "channel", False, "U0EXTERN01", "", "see"),
    "deleted file": ("message", "direct", False, "U0ALICE001", "", "old"),
    "file shared in a thread": ("message", "channel", True, "U0ALICE001", "", "in here"),
    "another app's message": ("message", "channel", False, "U0OTHERBOT", "B", "build failed"),
    "message of an incoming webhook": ("message", "channel", False, "B0WEBHOOK1", "B", "deployed"),
    "message of a workflow": ("message", "channel", False, "B0WORKFLOW", "B", "Daily: what did you do?"),
    "attachment of an integration, no text": (
        "message",
        "channel",
        False,
        "B0WEBHOOK1",
        "B",
        "Alert\ndisk full\nhost: db1",
    ),
    "me message": ("message", "channel", False, "U0ALICE001", "", "is away"),
    "forwarded message with words": ("message", "direct", False, "U0ALICE001", "", "what do you think?"),
    "forwarded message without words": ("message", "direct", False, "U0ALICE001", "", ""),
    "forwarded message with a file": ("message", "direct", False, "U0ALICE001", "", "look"),
    "link with its preview at once": ("message", "direct", False, "U0ALICE001", "", "https://example.com"),
    "edit": ("edit", "direct", False, "U0ALICE001", "", "hello"),
    "second edit with the same words": ("edit", "direct", False, "U0ALICE001", "", "hello"),
    "edit in a thread": ("edit", "channel", True, "U0ALICE001", "", "hello"),
    "edit that mentions now": ("edit", "channel", False, "U0ALICE001", "M", "hello"),
    "edit without previous_message": ("edit", "direct", False, "U0ALICE001", "", "hello"),
    "thread's parent was deleted": ("delete", "channel", False, "U0ALICE001", "", ""),
    "deletion": ("delete", "direct", False, "U0ALICE001", "", ""),
    "deletion of a reply": ("delete", "channel", True, "U0ALICE001", "", ""),
    "message in an assistant thread": ("message", "direct", True, "U0ALICE001", "", "what is new?"),
    "person of another workspace": ("message", "channel", False, "U0EXTERN01", "", "hi from outside"),
    "guest's message": ("message", "channel", False, "U0GUEST001", "", "hi"),
    "person with a W id": ("message", "direct", False, "W0GRID0001", "", "hi"),
    "person's message through an app": ("message", "channel", False, "U0ALICE001", "B", "sent by a script"),
    "as few fields as can be": ("message", "direct", False, "U0ALICE001", "", "plain"),
    "no authorizations": ("message", "direct", False, "U0ALICE001", "", "twice"),
    "edited mention": ("message", "channel", False, "U0ALICE001", "M", "status please"),
    "files with a mention": ("message", "channel", False, "U0ALICE001", "M", "read this"),
    "tombstone went with its last reply": ("delete", "channel", False, "USLACKBOT", "", ""),
    "slash command": ("command", "channel", False, "U0ALICE001", "", "/approve 7f3 once"),
    "slash command without words": ("command", "channel", False, "U0ALICE001", "", "/help"),
    "slash command in a direct message": ("command", "direct", False, "U0ALICE001", "", "/approve 7f3 once"),
    "slash command in a private channel": ("command", "channel", False, "U0ALICE001", "", "/approve 7f3 once"),
    "slash command in a group direct message": ("command", "group", False, "U0ALICE001", "", "/approve 7f3 once"),
    "slash command with a mention": ("command", "channel", False, "U0ALICE001", "", "/tell @bob in #general"),
    "slash command of a grid": ("command", "channel", False, "U0ALICE001", "", "/approve 7f3 once"),
    "button pressed": ("button", "channel", False, "U0ALICE001", "", "7f3 once"),
    "button pressed in a thread": ("button", "channel", True, "U0ALICE001", "", "7f3 once"),
    "button pressed in a direct message": ("button", "direct", False, "U0ALICE001", "", "7f3 once"),
    "button below an ephemeral message": ("button", "channel", False, "U0ALICE001", "", "7f3 once"),
    "button pressed by a guest of another workspace": ("button", "channel", False, "U0EXTERN01", "", "7f3 once"),
}
NOTHING = {
    "message_replied without its subtype",
    "own message",
    "own reply",
    "link preview arrived",
    "preview removed by its author",
    "own message was edited",
    "file was deleted from a message",
    "somebody joined",
    "the bot joined",
    "somebody left",
    "channel renamed, as message",
    "topic set",
    "purpose set",
    "channel archived, as message",
    "app added",
    "message pinned",
    "huddle started",
    "reminder of Slackbot",
    "subtype of a later time",
    "bot was invited",
    "member joined",
    "member left",
    "channel renamed",
    "channel archived",
    "channel unarchived",
    "reaction",
    "reaction with a skin tone",
    "reaction removed",
    "reaction to a file",
    "home opened",
    "assistant thread started",
    "assistant thread without context",
    "assistant context changed",
    "own root of an assistant thread",
    "new in the workspace",
    "app uninstalled",
    "tokens revoked",
    "the bot was removed",
    "app is rate limited",
    "url verification",
    "link button pressed",
    "choice made",
    "button in the home tab",
    "message shortcut",
    "global shortcut",
    "view submitted",
}


def met() -> Known:
    """What is known when the bot knows itself alone."""
    known = Known()
    known.meet({"user_id": BOT, "bot_id": BOT_ID, "user": "hark"})
    return known


def one(body: Any, known: Known | None = None) -> InboundMessage:
    """The one message in it."""
    (item,) = read(body, known or met(), 0)
    assert isinstance(item, InboundMessage)
    return item


def payload(name: str) -> Any:
    """A payload of the corpus, which may be changed."""
    return corpus.readable()[name][1]


@pytest.mark.parametrize("name", READ)
def test_what_people_and_programs_say(name: str) -> None:
    message = one(payload(name))
    origin = message.origin
    marks = {"B": origin.by_bot, "M": message.mentioned, "O": message.names_others}
    assert (
        message.kind.value,
        origin.place.kind.value,
        bool(origin.place.thread),
        origin.sender,
        "".join(mark for mark, on in marks.items() if on),
        message.text,
    ) == READ[name]


def test_the_rest_is_nothing_and_the_corpus_is_complete() -> None:
    assert {name for name, (_, body) in corpus.readable().items() if not read(body, met(), 0)} == NOTHING
    assert READ.keys() | NOTHING == corpus.readable().keys()


def test_no_malformed_payload_is_read_halfway() -> None:
    """Each is read, is nothing, or is kept as it came, but for what verifies it."""
    kept = 0
    for name, (_, body) in corpus.malformed().items():
        try:
            items: list[Incoming] = read(body, met(), 0)
        except Exception as error:
            if isinstance(body, dict):
                event = unread(body, met(), error)
                assert event.event_key.startswith("u:"), name
                assert "standin-verification" not in event.raw, name
                kept += 1
        else:
            for item in items:
                assert isinstance(item, InboundMessage)
                assert item.origin.sender, name
                assert item.event_key.partition(":")[2], name
                item.text.encode()
    assert kept > 25


def test_keys_are_those_of_the_history_and_each_event_has_its_own() -> None:
    said, twin = one(payload("mention as message")), one(payload("mention as its twin"))
    assert said.event_key == twin.event_key == f"m:C0GENERAL0:{said.origin.message_id}"
    assert said == twin
    edits = {one(payload(name)).event_key for name in ("edit", "second edit with the same words")}
    assert len(edits) == 2
    assert all(key.startswith("e:D00ALICE001:1763750001.104729:") for key in edits)
    assert one(payload("deletion")).event_key == "d:D00ALICE001:1763750001.104729"
    click = one(payload("button pressed"))
    assert click.event_key == f"b:{payload('button pressed')['actions'][0]['action_ts']}"
    assert click.respond.startswith("http")
    assert click.reply_to == payload("button pressed")["container"]["message_ts"]
    command = one(payload("slash command"))
    assert command.event_key == f"c:{payload('slash command')['trigger_id']}"
    assert command.respond.startswith("http")


def test_a_mention_says_where_it_is_as_its_twin_does_where_the_place_is_known() -> None:
    known = met()
    twin = payload("mention as its twin")
    twin["event"]["channel"] = "C0MPDM0001"
    assert one(twin, known).origin.place.kind.value == "channel"
    message = payload("mention as message")
    message["event"] |= {"channel": "C0MPDM0001", "channel_type": "mpim"}
    assert one(message, known).origin.place.kind.value == "group"
    assert one(twin, known).origin.place.kind.value == "group"


def test_names_are_shown_where_they_are_known() -> None:
    known = met()
    known.keep_room("C0GENERAL0", known.kind("C0GENERAL0", "channel"), "general")
    known._people[BOB.id] = "Bob"
    event = {"type": "message", "channel": "C0GENERAL0", "channel_type": "channel", "user": BOB.id, "ts": "1.000000"}
    event["text"] = f"<@{BOT}>: ask <@{ALICE.id}|al> or <@{BOB.id}> in <#C0GENERAL0> about <@{BOT}>"
    message = one({"type": "event_callback", "event": event}, known)
    assert message.text == "ask @al or @Bob in #general about @hark"
    assert (message.origin.sender_name, message.origin.chat_name) == ("Bob", "general")
    assert (known._wanted.qsize(), known._wanted.get_nowait()) == (1, ALICE.id)


def test_what_is_known_is_bounded() -> None:
    known = Known()
    for number in range(5000):
        known.name(f"U{number}")
        known.kind(f"C{number}", "channel")
    assert known._wanted.qsize() == 256
    assert len(known._rooms) == 4096


def test_forwarded_words_and_files() -> None:
    quoted = one(payload("forwarded message without words")).forwarded
    assert quoted is not None
    assert (quoted.author, quoted.text, quoted.by_me) == ("Bob Baker", "good morning", False)
    files = one(payload("files with words")).attachments
    assert [(file.kind, file.name, file.mime, file.size) for file in files] == [
        ("file", "notes.txt", "text/plain", 4),
        ("image", "photo.png", "image/png", 80123),
    ]
    assert files[0].ref.startswith("F0FILE00001 https://files.slack.com/")
    assert one(payload("file of another workspace")).attachments[0].ref == "F0FILE00009"


def test_a_tombstone_in_the_history_is_a_deletion() -> None:
    event = {"subtype": "tombstone", "channel": "C1", "channel_type": "channel", "ts": "1.000000", "user": "USLACKBOT"}
    (item,) = read_message(event, met())
    assert item.event_key == "d:C1:1.000000"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<https://a.org/?x=1&amp;y=2>", "https://a.org/?x=1&y=2"),
        ("<https://a.org|the page>", "the page (https://a.org)"),
        ("<http://a.org|a.org>", "http://a.org"),
        ("<mailto:a@b.org|a@b.org> <tel:+49|+49>", "a@b.org tel:+49"),
        ("<!here> <!channel|channel> <!subteam^S1|@ops> <!subteam^S1>", "@here @channel @ops @subteam"),
        ("<!date^1^{date}|1 May>", "1 May"),
        ("<unclosed and < alone", "<unclosed and < alone"),
        ("&lt;@U1&gt;", "<@U1>"),
    ],
)
def test_markup_as_people_read_it(text: str, shown: str) -> None:
    assert readable(text, lambda ident: "") == shown


def test_what_blocks_say_is_escaped_like_a_text() -> None:
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": "<@U0ALICE001> & co"}]}
    assert markup_of([{"type": "rich_text", "elements": [section]}]) == "&lt;@U0ALICE001&gt; &amp; co"


def test_an_error_says_what_is_wrong() -> None:
    with pytest.raises(Unreadable, match="ts is no time: yesterday"):
        read(corpus.malformed()["ts is no time"][1], met(), 0)


CELLS = [[{"type": "raw_text", "text": "Name"}, {"type": "raw_number", "value": 5}]]
TABLE = {"type": "table", "rows": CELLS}
FORWARD = {"is_share": True, "author_name": "Bob", "text": "see", "message_blocks": [{"message": {"blocks": [TABLE]}}]}


@pytest.mark.parametrize(
    ("event", "text", "forwarded"),
    [
        ({"attachments": [{"blocks": [TABLE], "fallback": "[no preview available]"}]}, "look\nName | 5", None),
        ({"blocks": [{"type": "rich_text", "elements": []}, TABLE]}, "look\nName | 5", None),
        ({"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "look"}}]}, "look", None),
        (
            {"attachments": [{"title": "Alert", "fields": [{"title": "host", "value": "db1"}]}]},
            "look\nAlert\nhost: db1",
            None,
        ),
        ({"attachments": [{"from_url": "https://example.com", "text": "preview"}]}, "look", None),
        ({"attachments": [{"fallback": "[no preview available]"}]}, "look", None),
        ({"attachments": [FORWARD, FORWARD | {"text": "and"}]}, "look", "see\nName | 5\nand\nName | 5"),
    ],
)
def test_what_stands_beside_the_text_is_read(event: dict[str, Any], text: str, forwarded: str | None) -> None:
    spoken = {"type": "message", "channel": "C1", "channel_type": "channel", "user": ALICE.id, "ts": "1.000000"}
    found = one({"type": "event_callback", "event": spoken | {"text": "look"} | event})
    assert (found.text, found.forwarded and found.forwarded.text) == (text, forwarded)
