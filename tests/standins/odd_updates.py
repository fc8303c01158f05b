"""Updates that a bot must survive: other kinds, other content, and things that are not as documented.

`readable_updates` are as Telegram sends them, but no text message to answer; `broken_updates` are wrong in
one way each, and a library may read some of them nonetheless. `World.push_raw` gives the update_id.
"""

from tests.standins import telegram_updates as payloads
from tests.standins.telegram_ledger import Json
from tests.standins.telegram_updates import ALICE, Person, Room, private

DATE = 1_790_000_000
CHANNEL = Room(-1_001_777_000_111, "channel", "Announcements", "announcements")
GROUP = Room(-4_000_111, "group", "Kitchen")
SUPERGROUP = Room(-1_001_222_333_444, "supergroup", "Workshop")


def readable_updates(person: Person = ALICE) -> dict[str, Json]:
    """Name → update; all of them well formed."""
    room = private(person)
    text = payloads.message(person, room, 901, DATE, **payloads.text_content("later changed"))
    button = {"inline_keyboard": [[{"text": "Yes", "callback_data": "yes"}]]}
    asked = payloads.message(None, room, 902, DATE, text="Sure?", reply_markup=button)
    asked = {name: value for name, value in asked.items() if name != "sender_chat"}
    asked["from"] = payloads.bot_user()
    return {
        "edited_message": {"edited_message": text | {"edit_date": DATE + 5}},
        "channel_post": {"channel_post": payloads.message(None, CHANNEL, 12, DATE, **payloads.text_content("News"))},
        "edited_channel_post": {
            "edited_channel_post": payloads.message(
                None, CHANNEL, 12, DATE, edit_date=DATE + 60, **payloads.text_content("Old news")
            )
        },
        "my_chat_member blocked": {
            "my_chat_member": payloads.chat_member_change(person, room, DATE, "member", "kicked")
        },
        "my_chat_member added to a group": {
            "my_chat_member": payloads.chat_member_change(person, GROUP, DATE, "left", "member")
        },
        "callback_query": {"callback_query": payloads.callback_query("4382", person, asked, "yes")},
        "inline_query": {"inline_query": {"id": "99", "from": person.user(), "query": "weather", "offset": ""}},
        "poll_answer": {
            "poll_answer": {
                "poll_id": "54",
                "user": person.user(),
                "option_ids": [0],
                "option_persistent_ids": ["0"],
            }
        },
        **_messages(person, room),
    }


def _messages(person: Person, room: Room) -> dict[str, Json]:
    """Messages without a text of their own."""
    contents: dict[str, tuple[Room, Json]] = {
        "photo": (room, payloads.photo_content("AgACAgIAAxkBAAIphoto1", 84_211)),
        "photo with caption": (room, payloads.photo_content("AgACAgIAAxkBAAIphoto2", 84_211, "Look #here")),
        "document with caption": (
            room,
            payloads.document_content("BQACAgIAAxkBAAIdocum1", 120_400, "/sum @hark_test_bot"),
        ),
        "voice": (room, payloads.voice_content("AwACAgIAAxkBAAIvoice1", 15_020)),
        "voice with caption": (room, payloads.voice_content("AwACAgIAAxkBAAIvoice2", 15_020, "Hear this")),
        "location": (room, {"location": {"latitude": 52.52, "longitude": 13.405}}),
        "dice": (room, {"dice": {"emoji": "🎲", "value": 4}}),
        "migrate_to_chat_id": (GROUP, {"migrate_to_chat_id": SUPERGROUP.id}),
        "migrate_from_chat_id": (SUPERGROUP, {"migrate_from_chat_id": GROUP.id}),
        "new_chat_members": (GROUP, {"new_chat_members": [payloads.bot_user()]}),
        "new_chat_title": (GROUP, {"new_chat_title": "Kitchen and garden"}),
        "pinned_message": (
            GROUP,
            {"pinned_message": payloads.message(person, GROUP, 3, DATE, text="rules")},
        ),
    }
    return {
        name: {"message": payloads.message(person, where, 910 + number, DATE, **content)}
        for number, (name, (where, content)) in enumerate(contents.items())
    }


def broken_updates(person: Person = ALICE) -> dict[str, Json]:
    """Name → update; each misses something that the documentation promises, or comes from a later version."""
    room = private(person)
    good = payloads.message(person, room, 950, DATE, text="you cannot read this")

    def without(name: str) -> Json:
        return {"message": {key: value for key, value in good.items() if key != name}}

    return {
        "nothing but an id": {},
        "unknown kind": {"hologram_message": {"hologram_id": "h1", "from": person.user()}},
        "kind is null": {"message": None},
        "message is a list": {"message": [good]},
        "message is a string": {"message": "hello"},
        "message is empty": {"message": {}},
        "no chat": without("chat"),
        "no date": without("date"),
        "no message_id": without("message_id"),
        "no from": without("from"),
        "chat is a number": {"message": good | {"chat": room.id}},
        "chat without id": {"message": good | {"chat": {"type": "private"}}},
        "chat of an unknown type": {"message": good | {"chat": room.chat() | {"type": "hologram"}}},
        "from is a string": {"message": good | {"from": "alice"}},
        "date is a word": {"message": good | {"date": "yesterday"}},
        "date beyond every calendar": {"message": good | {"date": 10**18}},
        "text is an object": {"message": good | {"text": {"plain": "hi"}}},
        "text has half a surrogate pair": {"message": good | {"text": "broken \ud83d here"}},
        "entity beyond the text": {"message": good | {"entities": [{"type": "bold", "offset": 90, "length": 9}]}},
        "entities are a string": {"message": good | {"entities": "bold"}},
        "entity without a type": {"message": good | {"entities": [{"offset": 0, "length": 3}]}},
        "entity of an unknown type": {"message": good | {"entities": [{"type": "hologram", "offset": 0, "length": 3}]}},
    }
