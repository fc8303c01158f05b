"""Recorded events of Discord's gateway to what the service takes in, sound and malformed."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from channels.discord.events import read_event, snowflake_at, time_of, unread
from channels.discord.world import World
from channels.message import ChatKind, InboundKind, InboundMessage, Quoted
from channels.receiver import Unreadable

CORPUS = json.loads((Path(__file__).parents[1] / "fixtures" / "discord_events.json").read_text())
EVENTS: dict[str, dict[str, Any]] = {one["name"]: one for one in CORPUS["events"]}
ME, OTHER, ROLE, PARENT = CORPUS["bot_id"], "53908232506183680", "613426354632654868", "613425648685547545"
GUILD = EVENTS["guild: talk between people"]["d"]["guild_id"]
THREAD = EVENTS["thread: message"]["d"]["channel_id"]
HOME = {
    "id": GUILD,
    "roles": [
        {"id": "1", "name": "Hark", "tags": {"bot_id": ME}},
        {"id": ROLE, "name": "Staff"},
        {"id": "3", "name": "Other bot", "tags": {"bot_id": OTHER}},
    ],
    "channels": [{"id": PARENT, "type": 0, "name": "general", "last_message_id": "5"}, {"id": 7, "type": 0}],
    "threads": [{"id": THREAD, "type": 11, "name": "details", "parent_id": PARENT, "last_message_id": "6"}],
}


@pytest.fixture
def world() -> World:
    made = World(me=ME)
    made.learn("GUILD_CREATE", HOME)
    return made


def read(name: str, world: World, **changes: Any) -> list[InboundMessage]:
    event = EVENTS[name]
    return read_event(event["t"], event["d"] | changes, world, 5)


def one(name: str, world: World, **changes: Any) -> InboundMessage:
    (found,) = read(name, world, **changes)
    return found


def test_every_sound_event_is_taken_or_passed_over(world: World) -> None:
    quiet = ("system:", "bots: own", "typing", "reaction", "channel", "thread ", "link preview", "pinned", "modal")
    quiet += ("ready", "guild: without", "guild: own", "autocompletion", "choice", "context menu", "dm: own", "guild")
    for name, event in EVENTS.items():
        world.learn(event["t"], event["d"])
        found = read(name, world)
        if event["t"] not in ("MESSAGE_CREATE", "INTERACTION_CREATE", "MESSAGE_UPDATE") or not found:
            assert event["t"].startswith("MESSAGE_DELETE") or name.startswith(
                (*quiet, "event", "forum: post", "thread")
            )
        assert len({message.event_key for message in found}) == len(found)
        for message in found:
            assert message.origin.place.account == ME
            assert message.origin.sender != ME


@pytest.mark.parametrize("name", [one["name"] for one in CORPUS["malformed"]])
def test_a_malformed_event_is_read_or_unreadable_and_nothing_else(world: World, name: str) -> None:
    event = next(one for one in CORPUS["malformed"] if one["name"] == name)
    with suppress(Unreadable):
        if isinstance(event["d"], dict):
            world.learn(event["t"], event["d"])
        for message in read_event(event["t"], event["d"], world, 5):
            message.text.encode()
            assert message.origin.message_id or message.kind is not InboundKind.MESSAGE
    kept = unread(event["t"], event["d"], world, Unreadable("it is odd"))
    assert json.loads(kept.raw) == {"t": event["t"], "d": event["d"]}
    assert (kept.event_key[:2], kept.error) == ("u:", "Unreadable: it is odd")


def test_an_unreadable_event_is_kept_in_bounds(world: World) -> None:
    kept = unread("MESSAGE_CREATE", {"content": "\ud83d" + "x" * 100_000}, world, ValueError("no"))
    assert len(kept.raw) == 16_384
    kept.raw.encode()


def test_a_direct_message(world: World) -> None:
    message = one("dm", world)
    origin = message.origin
    assert (origin.place.kind, origin.place.thread, origin.space, origin.chat_name) == (ChatKind.DIRECT, "", "", "")
    assert (message.text, origin.sender_name, origin.by_bot) == ("Are you there?", "Alice", False)
    assert message.event_key == f"m:{origin.place.chat}:{origin.message_id}"
    assert message.sent_at == 1_763_679_257_178


def test_a_server_is_the_space_of_its_channels(world: World) -> None:
    message = one("guild: talk between people", world)
    origin = message.origin
    assert (origin.place.chat, origin.place.kind, origin.space) == (PARENT, ChatKind.CHANNEL, GUILD)
    assert (origin.chat_name, origin.sender_name, origin.roles) == ("general", "Ally", (ROLE,))
    assert not message.mentioned
    assert not message.names_others


def test_a_thread_is_a_place_below_its_channel(world: World) -> None:
    origin = one("thread: message", world).origin
    assert (origin.place.chat, origin.place.thread, origin.chat_name) == (PARENT, THREAD, "details")
    assert origin.place.kind is ChatKind.CHANNEL
    deleted = one("deleted", world, channel_id=THREAD)
    assert deleted.origin.place == origin.place
    assert deleted.event_key.startswith(f"d:{PARENT}:")
    world.learn("THREAD_DELETE", {"id": THREAD})
    assert one("thread: message", world).origin.place.thread == ""


@pytest.mark.parametrize(
    ("content", "users", "roles", "text", "mentioned", "others"),
    [
        (f"<@{ME}> hi", [ME], [], "hi", True, False),
        (f"  <@!{ME}>, <@{ME}>: hi", [ME], [], "hi", True, False),
        (f"hi <@{ME}>", [ME], [], "hi @hark", True, False),
        (f"<@{ME}> ask <@{OTHER}>", [ME, OTHER], [], "ask @bob", True, True),
        (f"<@{OTHER}> hi", [OTHER], [], "@bob hi", False, True),
        ("<@&1> hi", [], ["1"], "hi", True, False),
        (f"<@&{ROLE}> hi", [], [ROLE], "@Staff hi", False, True),
        ("<@&3> hi", [], ["3"], "@Other bot hi", False, True),
        ("@everyone hi", [], [], "@everyone hi", False, False),
        (f"see <#{PARENT}>, <#9>, <:wave:1>, <a:wave:1>, </help:1>, <t:1>", [], [],
         "see #general, <#9>, :wave:, :wave:, /help, <t:1>", False, False),
        ("<@4711> who?", [], [], "<@4711> who?", False, False),
        (f"<@{ME}>", [ME], [], "@hark", True, False),
    ],
)  # fmt: skip
def test_names_in_a_text(
    world: World, content: str, users: list[str], roles: list[str], text: str, mentioned: bool, others: bool
) -> None:
    known = {ME: "hark", OTHER: "bob"}
    mentions = [{"id": user, "username": known[user]} for user in users]
    found = read("guild: talk between people", world, content=content, mentions=mentions, mention_roles=roles)
    (message,) = found
    assert (message.text, message.mentioned, message.names_others) == (text, mentioned, others)


def test_replies_and_forwards_bring_what_they_are_about(world: World) -> None:
    reply = one("guild: reply", world)
    assert reply.replied == Quoted(author="Alice", text="Lunch at one?")
    assert reply.reply_to == EVENTS["guild: talk between people"]["d"]["id"]
    assert reply.names_others
    to_me = one("guild: reply to the bot with a ping", world)
    assert to_me.replied == Quoted(author="hark", text="It is noon.", by_me=True)
    assert to_me.mentioned
    gone = one("guild: reply whose original was deleted", world)
    assert gone.reply_to
    assert gone.replied is None
    forward = one("guild: forward", world)
    assert forward.forwarded == Quoted(author="", text="The key is under the mat")
    assert (forward.text, forward.reply_to) == ("", "")
    (file,) = one("dm: forward with an attachment, from a place that the bot cannot see", world).attachments
    assert file.name == "cat.png"


def test_what_has_no_words_is_described(world: World) -> None:
    assert one("guild: poll", world).text == "[poll: Lunch? / Pizza / Soup]"
    assert one("guild: sticker", world).text == "[sticker: Wave]"
    boxes = [{"title": "Build 7", "description": "passed"}]
    assert one("bots: webhook", world, content="", embeds=boxes).text == "Build 7\npassed"


def test_files_are_references_that_can_be_renewed(world: World) -> None:
    image, notes = one("guild: attachments", world).attachments
    assert (image.kind, image.mime, image.size) == ("image", "image/png", 48212)
    assert (notes.kind, notes.mime) == ("file", "text/plain")
    event = EVENTS["guild: attachments"]["d"]
    assert image.ref == event["attachments"][0]["url"]
    (voice,) = one("dm: voice message", world).attachments
    assert (voice.kind, voice.spoken, image.spoken) == ("audio", True, False)


def test_other_bots_are_bots(world: World) -> None:
    for name in ("bots: webhook", "bots: another bot", "system user of Discord in a direct message"):
        assert one(name, world).origin.by_bot


def test_an_edit_has_a_key_of_its_own_and_a_later_preview_the_same(world: World) -> None:
    edit = one("edited", world)
    assert (edit.kind, edit.text) == (InboundKind.EDIT, "Lunch at two?")
    assert edit.event_key.startswith(f"e:{PARENT}:{edit.origin.message_id}:{edit.sent_at}:")
    previewed = one("edited", world, embeds=[{"type": "link", "title": "Example"}])
    assert previewed.event_key == edit.event_key
    assert one("edited", world, content="Lunch at three?").event_key != edit.event_key
    assert read("edited", world, author={"id": ME}) == []


def test_a_deletion_in_bulk_is_one_of_each(world: World) -> None:
    found = read("deleted in bulk", world)
    assert [message.event_key for message in found] == [
        f"d:{PARENT}:{number}" for number in EVENTS["deleted in bulk"]["d"]["ids"]
    ]
    assert {message.sent_at for message in found} == {5}


def test_a_command_is_typed_in_the_order_of_its_options(world: World) -> None:
    world.orders = {"approve": ("id", "decision")}
    options = [{"name": "decision", "type": 3, "value": "once"}, {"name": "id", "type": 3, "value": "7f3"}]
    command = one("slash command with options", world, data={"type": 1, "name": "approve", "options": options})
    assert (command.kind, command.text, command.mentioned) == (InboundKind.COMMAND, "/approve 7f3 once", True)
    event = EVENTS["slash command with options"]["d"]
    assert command.event_key == f"c:{event['id']}"
    assert command.respond == f"{ME} {event['token']} {time_of(event['id'])}"
    assert command.origin.space == GUILD
    direct = one("slash command in direct messages", world)
    assert (direct.origin.place.kind, direct.origin.sender_name) == (ChatKind.DIRECT, "Alice")
    below = one("slash command in a thread", world)
    assert (below.origin.place.chat, below.origin.place.thread) == (PARENT, THREAD)


def test_a_click_sends_what_its_button_says(world: World) -> None:
    click = one("button in a guild", world)
    event = EVENTS["button in a guild"]["d"]
    assert (click.kind, click.text) == (InboundKind.BUTTON, event["data"]["custom_id"])
    assert (click.event_key, click.reply_to) == (f"b:{event['id']}", event["message"]["id"])


def test_what_a_server_reached(world: World) -> None:
    found = [(reached.place.chat, reached.place.thread, reached.newest) for reached in world.reached(HOME)]
    assert found == [(PARENT, "", "5"), (PARENT, THREAD, "6")]


def test_whose_message_was_deleted_is_known_of_the_last_ones(world: World) -> None:
    said = [one("guild: talk between people", world, id=str(number)) for number in range(1, 2002)]
    for message in said:
        world.remember(message.origin)
    assert one("deleted", world, id="2001").origin.sender == said[-1].origin.sender
    assert one("deleted", world, id="1").origin.sender == ""


def test_ids_hold_times() -> None:
    assert time_of(snowflake_at(1_763_679_257_178)) == 1_763_679_257_178
    assert snowflake_at(0) == "0"


BOX = {
    "type": "rich",
    "title": "Build 7",
    "url": "https://ci.example/7",
    "author": {"name": "CI"},
    "fields": [{"name": "branch", "value": "main"}],
    "footer": {"text": "2 min"},
}
BOXED = "CI\nBuild 7\nhttps://ci.example/7\nbranch: main\n2 min"
PREVIEW = {"type": "article", "title": "A page"}
TEXTS = [{"type": 17, "components": [{"type": 10, "content": "in a box"}, {"type": 1, "components": []}]}]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"embeds": [BOX]}, f"look\n{BOXED}"),
        ({"content": "", "embeds": [BOX, PREVIEW]}, f"{BOXED}\nA page"),
        ({"embeds": [PREVIEW]}, "look"),
        ({"components": TEXTS}, "look\nin a box"),
    ],
)
def test_what_stands_beside_the_words_is_read(world: World, changes: dict[str, Any], text: str) -> None:
    assert one("bots: webhook", world, **{"content": "look"} | changes).text == text


def test_what_is_replied_to_comes_with_its_files_and_what_it_forwards(world: World) -> None:
    card = {"id": "9", "url": "https://cdn.example/9", "filename": "card.txt", "size": 4, "content_type": "text/plain"}
    forward = EVENTS["guild: forward"]["d"]
    replied = one("guild: reply", world, referenced_message=forward | {"attachments": [card]}).replied
    assert replied is not None
    assert (replied.text, [file.name for file in replied.attachments]) == ("The key is under the mat", ["card.txt"])
