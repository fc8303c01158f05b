"""Raw updates to messages: what a person sent is there, what Telegram tells by itself is not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import Attachment, ChatKind, ChatMoved, InboundKind, InboundMessage, Quoted, UnreadEvent
from channels.receiver import Unreadable
from channels.telegram.events import Me, read_me, read_update, unread
from channels.telegram.poll import Pastes

ME = Me("99", "hark_bot")
NOW = 1_790_000_100_000
ALICE = {"id": 7, "is_bot": False, "first_name": "Alice", "last_name": "Archer"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Alice"}
GROUP = {"id": -100, "type": "supergroup", "title": "Kitchen"}
FILE = {"file_id": "F1", "file_unique_id": "u", "file_size": 12}


def message(chat: dict[str, Any] = PRIVATE, **content: Any) -> dict[str, Any]:
    return {"message_id": 5, "from": ALICE, "chat": chat, "date": 1_790_000_000, **content}


def read(chat: dict[str, Any] = PRIVATE, **content: Any) -> InboundMessage:
    """The one message of an update."""
    (item,) = read_update({"update_id": 1, "message": message(chat, **content)}, ME, NOW)
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
        (
            {"voice": FILE | {"mime_type": "audio/ogg"}},
            Attachment(kind="audio", ref="F1", mime="audio/ogg", size=12, spoken=True),
        ),
        ({"audio": FILE}, Attachment(kind="audio", ref="F1", size=12)),
        ({"video_note": FILE}, Attachment(kind="video", ref="F1", mime="video/mp4", size=12, spoken=True)),
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
        ({"poll": {"question": "Tea?", "options": [{"text": "Yes"}, {"text": "No"}]}}, "[poll: Tea? / Yes / No]"),
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
        {"message": message(text="me") | {"from": {"id": 99, "is_bot": True, "first_name": "Hark"}}},
        {"edited_message": message(location={"latitude": 1, "longitude": 2}, edit_date=1_790_000_009)},
        {"callback_query": {"id": "1"}},
        {"my_chat_member": {}},
        {"something_new": {}},
    ],
)
def test_what_nobody_said_is_nothing(update: dict[str, Any]) -> None:
    assert read_update({"update_id": 1, **update}, ME, NOW) == []


def test_a_chat_may_write_in_its_own_name() -> None:
    anonymous = {"sender_chat": GROUP, "from": {"id": 1_087_968_824, "is_bot": True, "first_name": "Group"}}
    (item,) = read_update({"update_id": 1, "message": message(GROUP, text="a") | anonymous}, ME, NOW)
    assert isinstance(item, InboundMessage)
    assert (item.origin.sender, item.origin.sender_name) == ("-100", "Kitchen")


def test_another_bot_is_told_from_people() -> None:
    assert not read(text="a").origin.by_bot
    (item,) = read_update({"update_id": 1, "message": message(text="a") | {"from": ALICE | {"is_bot": True}}}, ME, NOW)
    assert isinstance(item, InboundMessage)
    assert item.origin.by_bot


def entity(kind: str, offset: int, length: int, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **fields}


BOB = {"id": 8, "is_bot": False, "first_name": "Bob"}


@pytest.mark.parametrize(
    ("text", "entities", "shown", "mentioned", "others"),
    [
        ("@hark_bot look", [entity("mention", 0, 9)], "look", True, False),
        ("@Hark_Bot: look", [entity("mention", 0, 9)], "look", True, False),
        ("😀 @hark_bot", [entity("mention", 3, 9)], "😀 @hark_bot", True, False),
        ("@bob look", [entity("mention", 0, 4)], "@bob look", False, True),
        ("@hark_bot2 look", [entity("mention", 0, 10)], "@hark_bot2 look", False, True),
        ("Bob look", [entity("text_mention", 0, 3, user=BOB)], "Bob look", False, True),
        ("Hark look", [entity("text_mention", 0, 4, user={"id": 99})], "Hark look", True, False),
        ("/stop@hark_bot", [entity("bot_command", 0, 14)], "/stop", True, False),
        ("/stop@other", [entity("bot_command", 0, 11)], "/stop@other", False, False),
        ("mail a@hark_bot", [entity("email", 5, 10)], "mail a@hark_bot", False, False),
        ("plain", [entity("mention", 90, 9), {"type": "mention"}, 5], "plain", False, False),
    ],
)
def test_whom_a_message_names(text: str, entities: list[Any], shown: str, mentioned: bool, others: bool) -> None:
    found = read(GROUP, text=text, entities=entities)
    assert (found.text, found.mentioned, found.names_others) == (shown, mentioned, others)
    caption = read(GROUP, photo=[FILE], caption=text, caption_entities=entities)
    assert (caption.text, caption.mentioned, caption.names_others) == (shown, mentioned, others)


def test_what_a_message_replies_to_comes_with_it() -> None:
    before = {"message_id": 4, "chat": GROUP, "date": 1, "from": BOB}
    assert read(GROUP, text="and this?", reply_to_message=before | {"text": "Tea at five"}).replied == Quoted(
        author="Bob", text="Tea at five"
    )
    mine = before | {"from": {"id": 99, "is_bot": True, "first_name": "Hark"}, "text": "Five."}
    assert read(GROUP, text="sure?", reply_to_message=mine).replied == Quoted(author="Hark", text="Five.", by_me=True)
    found = read(GROUP, text="this", reply_to_message=mine, quote={"text": "Fi", "position": 0})
    assert found.replied == Quoted(author="Hark", text="Fi", by_me=True)
    photo = (Attachment(kind="image", ref="F1", mime="image/jpeg", size=12),)
    found = read(GROUP, text="?", reply_to_message=before | {"photo": [FILE]})
    assert found.replied == Quoted(author="Bob", text="[image]", attachments=photo)
    assert [(one.ref, one.by) for one in found.files] == [("F1", str(BOB["id"]))]
    elsewhere = {"origin": {"type": "user", "sender_user": BOB, "date": 1}}
    found = read(text="look", external_reply=elsewhere, quote={"text": "far away", "position": 0})
    assert (found.reply_to, found.replied) == ("", Quoted(author="Bob", text="far away"))


@pytest.mark.parametrize(
    ("origin", "author"),
    [
        ({"type": "user", "sender_user": BOB}, "Bob"),
        ({"type": "hidden_user", "sender_user_name": "Somebody"}, "Somebody"),
        ({"type": "chat", "sender_chat": GROUP}, "Kitchen"),
        ({"type": "channel", "chat": {"id": -3, "type": "channel", "title": "News"}, "message_id": 1}, "News"),
        (None, ""),
    ],
)
def test_what_is_passed_on_is_nobody_s_order(origin: object, author: str) -> None:
    found = read(text="/stop", forward_origin=origin)
    assert (found.text, found.forwarded) == ("", Quoted(author=author, text="/stop"))


def test_the_bare_name_of_the_bot_is_a_message() -> None:
    before = message(GROUP, text="Deploy failed with code 4711") | {"message_id": 4, "from": BOB}
    found = read(GROUP, text="@hark_bot", reply_to_message=before)
    assert (found.text, found.mentioned, found.reply_to) == ("", True, "4")
    assert found.replied == Quoted(author="Bob", text="Deploy failed with code 4711")
    assert read(GROUP, text="@Hark_bot ").mentioned
    edited = {"update_id": 1, "edited_message": message(GROUP, text="@hark_bot", edit_date=1_790_000_009)}
    assert len(read_update(edited, ME, NOW)) == 1


def test_the_pictures_of_an_album_belong_together() -> None:
    assert read(photo=[FILE], media_group_id="12").part_of == "album:12"
    assert read(photo=[FILE]).part_of == ""


def test_a_click() -> None:
    below = message(GROUP, text="Tea?", message_thread_id=3, is_topic_message=True) | {"message_id": 6}
    click = {"id": "77", "from": BOB, "message": below, "data": "/drink tea", "chat_instance": "1"}
    (item,) = read_update({"update_id": 1, "callback_query": click}, ME, NOW)
    assert isinstance(item, InboundMessage)
    assert (item.kind, item.event_key, item.text) == (InboundKind.BUTTON, "b:77", "/drink tea")
    assert (item.reply_to, item.respond, item.sent_at) == ("6", "77", NOW)
    assert (item.origin.sender, item.origin.place.chat, item.origin.place.thread) == ("8", "-100", "3")
    assert item.origin.chat_name == "Kitchen"
    old = {"chat": GROUP, "message_id": 6, "date": 0}
    (item,) = read_update({"update_id": 1, "callback_query": click | {"message": old}}, ME, NOW)
    assert isinstance(item, InboundMessage)
    assert item.reply_to == "6"
    game = {name: value for name, value in click.items() if name != "data"}
    assert read_update({"update_id": 1, "callback_query": game}, ME, NOW) == []


def test_the_pieces_of_a_paste_belong_together() -> None:
    def piece(number: int, text: str, sender: dict[str, Any] = ALICE, later: int = 0) -> InboundMessage:
        fields = {"message_id": number, "from": sender, "date": 1_790_000_000 + later}
        (item,) = read_update({"update_id": number, "message": message(text=text) | fields}, ME, NOW)
        joined = pastes.joined(item)
        assert isinstance(joined, InboundMessage)
        return joined

    pastes = Pastes()
    long = "x" * 4096
    first = piece(1, long)
    assert first.part_of
    assert [piece(2, long).part_of, piece(3, "end").part_of] == [first.part_of] * 2
    assert piece(4, "another").part_of == ""
    piece(5, long)
    assert piece(6, "not mine", BOB).part_of == ""
    piece(7, long)
    assert piece(8, "much later", later=9).part_of == ""
    piece(9, long)
    assert piece(11, "not the next").part_of == ""


def test_an_edit_has_a_key_of_its_stamp_and_text() -> None:
    def edited(text: str, stamp: int) -> InboundMessage:
        (item,) = read_update({"update_id": 1, "edited_message": message(text=text, edit_date=stamp)}, ME, NOW)
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
    assert read_update({"update_id": 1, "message": message(old, migrate_to_chat_id=-100)}, ME, NOW) == moved
    assert read_update({"update_id": 1, "message": message(GROUP, migrate_from_chat_id=-5)}, ME, NOW) == moved


def test_what_cannot_be_read_is_kept_raw() -> None:
    update = {"update_id": 3, "message": {"text": "\ud83d" * 9000}}
    with pytest.raises(Unreadable, match="chat is no object") as caught:
        read_update(update, ME, NOW)
    kept = unread(update, ME, caught.value)
    assert kept.event_key == "u:3"
    assert kept.error == "Unreadable: chat is no object"
    assert len(kept.raw.encode()) <= 16_384
    assert unread({"a": 1}, ME, caught.value).event_key != unread({"a": 2}, ME, caught.value).event_key


def test_who_the_bot_is() -> None:
    assert read_me({"id": 99, "username": "hark_bot", "is_bot": True}) == ME
    with pytest.raises(Unreadable):
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
                    "entities",
                    "poll",
                    "forward_origin",
                    "quote",
                    "external_reply",
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
        items = read_update(update, ME, NOW)
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


def link(offset: int, length: int, url: str = "https://example.com/post") -> dict[str, Any]:
    return {"type": "text_link", "offset": offset, "length": length, "url": url}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"text": "read this", "entities": [link(5, 4)]}, "read this (https://example.com/post)"),
        ({"text": "😀 read this", "entities": [link(8, 4)]}, "😀 read this (https://example.com/post)"),
        ({"caption": "this", "caption_entities": [link(0, 4)], "photo": [FILE]}, "this (https://example.com/post)"),
        ({"text": "a b", "entities": [link(0, 1, "x:1"), link(2, 1, "x:2")]}, "a (x:1) b (x:2)"),
        ({"text": "example.com", "entities": [link(0, 11, "https://example.com/")]}, "https://example.com/"),
        ({"text": "@hark_bot read", "entities": [link(10, 4, "x:1")]}, "read (x:1)"),
        ({"text": "x", "entities": [link(0, 9), link(-1, 1), link(0, 0), {"type": "text_link"}]}, "x"),
    ],
)
def test_the_address_of_linked_words_stands_behind_them(content: dict[str, Any], text: str) -> None:
    assert read(**content).text == text
    replied = read(text="?", reply_to_message=message(**content) | {"message_id": 4}).replied
    assert (replied and replied.text) == text
    passed_on = read(**content, forward_origin={"type": "user", "sender_user": BOB}).forwarded
    assert (passed_on and passed_on.text) == text


def test_what_is_replied_to_in_another_chat_comes_with_its_files() -> None:
    elsewhere = {"origin": {"type": "user", "sender_user": BOB, "date": 1}, "photo": [FILE]}
    replied = read(text="look", external_reply=elsewhere).replied
    assert replied is not None
    assert (replied.author, replied.text, [file.ref for file in replied.attachments]) == ("Bob", "[image]", ["F1"])


def test_a_comment_stands_below_its_post_and_a_reply_elsewhere_does_not() -> None:
    me = Me("99", "hark_bot")

    def thread(**content: Any) -> str:
        (item,) = read_update({"update_id": 1, "message": message(GROUP, text="a", **content)}, me, NOW)
        assert isinstance(item, InboundMessage)
        return item.origin.place.thread

    deep = {"message_thread_id": 3, "reply_to_message": message(GROUP, text="b") | {"message_id": 4}}
    assert thread(**deep) == ""
    post = message(GROUP, text="news", is_automatic_forward=True) | {"message_id": 3}
    assert thread(message_thread_id=3, reply_to_message=post) == "c3"
    assert thread(**deep) == "c3"
    assert thread(**deep | {"message_thread_id": 9}) == ""
    for number in range(5000):
        thread(message_thread_id=number, reply_to_message=post | {"message_id": number})
    assert len(me.posts) == 4096
