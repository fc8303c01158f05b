"""Raw updates to messages: what a person sent is there, what Telegram tells by itself is not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import Attachment, ChatKind, ChatMoved, InboundKind, InboundMessage, UnreadEvent
from channels.telegram.events import Me, UnreadableUpdate, read_me, read_update, unread

ME = Me("99", "hark_bot")
ALICE = {"id": 7, "is_bot": False, "first_name": "Alice", "last_name": "Archer"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Alice"}
GROUP = {"id": -100, "type": "supergroup", "title": "Kitchen"}
FILE = {"file_id": "F1", "file_unique_id": "u", "file_size": 12}


def message(chat: dict[str, Any] = PRIVATE, **content: Any) -> dict[str, Any]:
    return {"message_id": 5, "from": ALICE, "chat": chat, "date": 1_790_000_000, **content}


def read(chat: dict[str, Any] = PRIVATE, **content: Any) -> InboundMessage:
    """The one message of an update."""
    (item,) = read_update({"update_id": 1, "message": message(chat, **content)}, ME)
    assert isinstance(item, InboundMessage)
    return item


def test_a_direct_message() -> None:
    found = read(text="hello", reply_to_message=message(text="before") | {"message_id": 4})
    place = found.origin.place
    assert (place.channel, place.account, place.chat, place.kind, place.thread) == (
        "telegram",
        "99",
        "7",
        ChatKind.DIRECT,
        "",
    )
    assert (found.origin.sender, found.origin.sender_name, found.origin.message_id) == ("7", "Alice Archer", "5")
    assert (found.event_key, found.kind, found.text) == ("m:7:5", InboundKind.MESSAGE, "hello")
    assert (found.sent_at, found.reply_to) == (1_790_000_000_000, "4")


def test_a_group_and_its_topics() -> None:
    assert read(GROUP, text="a").origin.place.kind is ChatKind.GROUP
    assert read(GROUP, text="a", message_thread_id=3).origin.place.thread == ""
    opened = message(GROUP, forum_topic_created={}) | {"message_id": 3}
    topic = read(GROUP, text="a", message_thread_id=3, is_topic_message=True, reply_to_message=opened)
    assert (topic.origin.place.thread, topic.reply_to) == ("3", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/stop@hark_bot", "/stop"),
        ("/stop@HARK_bot now @hark_bot", "/stop now @hark_bot"),
        ("/say@hark_bot\nlines", "/say\nlines"),
        ("/stop@other_bot", "/stop@other_bot"),
        ("/stop@hark_bot2", "/stop@hark_bot2"),
        ("write /stop@hark_bot", "write /stop@hark_bot"),
        ("a@hark_bot", "a@hark_bot"),
        ("/stop", "/stop"),
    ],
)
def test_a_command_for_this_bot_loses_its_address(text: str, expected: str) -> None:
    assert read(text=text).text == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            {"photo": [FILE | {"file_id": "small"}, FILE]},
            Attachment(kind="image", ref="F1", mime="image/jpeg", size=12),
        ),
        ({"voice": FILE | {"mime_type": "audio/ogg"}}, Attachment(kind="audio", ref="F1", mime="audio/ogg", size=12)),
        ({"video_note": FILE}, Attachment(kind="video", ref="F1", size=12)),
        (
            {"document": FILE | {"file_name": "a.pdf", "mime_type": "application/pdf"}},
            Attachment(kind="file", ref="F1", name="a.pdf", mime="application/pdf", size=12),
        ),
        (
            {"document": FILE | {"mime_type": "image/png"}},
            Attachment(kind="image", ref="F1", mime="image/png", size=12),
        ),
        ({"animation": FILE, "document": FILE}, Attachment(kind="video", ref="F1", size=12)),
        ({"sticker": FILE | {"emoji": "😀", "is_animated": True}}, Attachment(kind="file", ref="F1", size=12)),
        ({"sticker": FILE | {"is_video": True}}, Attachment(kind="video", ref="F1", size=12)),
    ],
)
def test_files_are_references(content: dict[str, Any], expected: Attachment) -> None:
    assert read(**content).attachments == (expected,)


def test_a_caption_is_the_text() -> None:
    found = read(photo=[FILE], caption="look")
    assert (found.text, len(found.attachments)) == ("look", 1)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"location": {"latitude": 1.5, "longitude": 2}}, "[location: 1.5, 2]"),
        (
            {"venue": {"title": "Zoo", "address": "Road 1", "location": {}}, "location": {}},
            "[venue: Zoo, Road 1]",
        ),
        ({"contact": {"first_name": "Bob", "phone_number": "+1"}}, "[contact: Bob +1]"),
        ({"poll": {}}, "[poll]"),
        ({"sticker": FILE | {"emoji": "😀"}}, "😀"),
    ],
)
def test_what_has_no_words_is_described(content: dict[str, Any], text: str) -> None:
    assert read(**content).text == text


@pytest.mark.parametrize(
    "update",
    [
        {"message": message(GROUP, new_chat_title="Garden")},
        {"message": message(GROUP, pinned_message=message(text="a"))},
        {"message": message(text="a") | {"from": ALICE | {"is_bot": True}}},
        {"message": message(text="me") | {"from": {"id": 99, "is_bot": True, "first_name": "Hark"}}},
        {"edited_message": message(location={"latitude": 1, "longitude": 2}, edit_date=1_790_000_009)},
        {"callback_query": {"id": "1"}},
        {"my_chat_member": {}},
        {"something_new": {}},
    ],
)
def test_what_nobody_said_is_nothing(update: dict[str, Any]) -> None:
    assert read_update({"update_id": 1, **update}, ME) == []


def test_a_chat_may_write_in_its_own_name() -> None:
    anonymous = {"sender_chat": GROUP, "from": {"id": 1_087_968_824, "is_bot": True, "first_name": "Group"}}
    (item,) = read_update({"update_id": 1, "message": message(GROUP, text="a") | anonymous}, ME)
    assert isinstance(item, InboundMessage)
    assert (item.origin.sender, item.origin.sender_name) == ("-100", "Kitchen")


def test_an_edit_has_a_key_of_its_stamp_and_text() -> None:
    def edited(text: str, stamp: int) -> InboundMessage:
        (item,) = read_update({"update_id": 1, "edited_message": message(text=text, edit_date=stamp)}, ME)
        assert isinstance(item, InboundMessage)
        return item

    first = edited("a", 1_790_000_001)
    assert first.kind is InboundKind.EDIT
    assert first.sent_at == 1_790_000_001_000
    assert first.event_key.startswith("e:7:5:1790000001:")
    keys = {first.event_key, edited("b", 1_790_000_001).event_key, edited("a", 1_790_000_002).event_key}
    assert len(keys) == 3
    assert edited("a", 1_790_000_001) == first


def test_a_group_that_moves_is_told_from_both_sides() -> None:
    old = GROUP | {"id": -5, "type": "group"}
    moved = [ChatMoved(channel="telegram", account="99", old_chat="-5", new_chat="-100")]
    assert read_update({"update_id": 1, "message": message(old, migrate_to_chat_id=-100)}, ME) == moved
    assert read_update({"update_id": 1, "message": message(GROUP, migrate_from_chat_id=-5)}, ME) == moved


def test_what_cannot_be_read_is_kept_raw() -> None:
    update = {"update_id": 3, "message": {"text": "\ud83d" * 9000}}
    with pytest.raises(UnreadableUpdate, match="chat is no object") as caught:
        read_update(update, ME)
    kept = unread(update, ME, caught.value)
    assert kept.event_key == "u:3"
    assert kept.error == "UnreadableUpdate: chat is no object"
    assert len(kept.raw.encode()) <= 16_384
    assert unread({"a": 1}, ME, caught.value).event_key != unread({"a": 2}, ME, caught.value).event_key


def test_who_the_bot_is() -> None:
    assert read_me({"id": 99, "username": "hark_bot", "is_bot": True}) == ME
    with pytest.raises(UnreadableUpdate):
        read_me({"id": "99"})


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["message", "chat", "id", "from", "text", "photo", "sticker", "date", "update_id"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@given(
    st.one_of(
        JSON,
        st.builds(
            lambda name, value: {"update_id": 1, "message": message(text="a") | {name: value}},
            st.sampled_from(
                [
                    *message(),
                    "text",
                    "photo",
                    "sticker",
                    "sender_chat",
                    "venue",
                    "contact",
                    "reply_to_message",
                    "migrate_to_chat_id",
                    "is_topic_message",
                ]
            ),
            JSON,
        ),
    )
)
def test_anything_is_read_or_refused_but_never_harms(update: Any) -> None:
    try:
        items = read_update(update, ME)
    except Exception as error:
        items = [unread(update, ME, error)]
    for item in items:
        if isinstance(item, UnreadEvent):
            assert item.raw == json.dumps(update)[:16_384]
        if isinstance(item, InboundMessage):
            item.text.encode()
            item.origin.sender_name.encode()
            for attachment in item.attachments:
                (attachment.name + attachment.ref + attachment.mime).encode()
