"""What the model does on Discord beside answering, and the frames of a preview, against the stand-in."""

import asyncio
from dataclasses import replace

import pytest

from channels.actions import ActionFailed, Arguments
from channels.discord.adapter import DiscordChannel
from channels.message import Place
from channels.outgoing import Action, NotSent, Refused, Sent
from tests.deliveries import led_to
from tests.standins.discord_files import File
from tests.standins.discord_ledger import Rule
from tests.standins.discord_limits import RateLimits
from tests.standins.discord_objects import ALICE, BOB, CAROL, HARK, JOINED, OTHER_BOT, Intent, Permission
from tests.standins.discord_server import DiscordServer
from tests.wire.sink import Clock, RecordingSink
from tests.wire.test_discord_channel import (
    Json,
    channel,
    clock,
    discord,
    home,
    outgoing,
    place,
    room,
    say,
    settings_for,
    shown,
    sink,
)

__all__ = ["channel", "clock", "discord", "home", "room", "sink"]  # fixtures
EDIT = "PATCH /channels/*/messages/*"


async def perform(channel: DiscordChannel, name: str, where: Place, **arguments: object) -> str:
    return await channel.perform(name, where, Arguments.model_validate(arguments))


async def failed(channel: DiscordChannel, name: str, where: Place, **arguments: object) -> str:
    with pytest.raises(ActionFailed) as error:
        await perform(channel, name, where, **arguments)
    return str(error.value)


# -- reading ---------------------------------------------------------------------------------------------------------


async def test_what_was_said_is_read_oldest_first(
    discord: DiscordServer, home: Json, room: Json, channel: DiscordChannel
) -> None:
    first = discord.say(room, BOB, "one\n\n  and   more", files=[File("plan.txt", b"x", "text/plain")])
    second = discord.say(room, ALICE, "y" * 1000)
    discord.say(room, ALICE, type=JOINED)
    mine = await say(channel, "three", room)
    assert isinstance(mine, Sent)
    assert (await perform(channel, "read", place(room))).splitlines() == [
        f"{first['id']} · 2026-09-21 14:13Z · Bob ({BOB.id}): one and more [file plan.txt]",
        f"{second['id']} · 2026-09-21 14:13Z · Alice ({ALICE.id}): {'y' * 399}…",
        f"{mine.platform_id} · 2026-09-21 14:13Z · you: three",
    ]
    part = await perform(channel, "read", place(room), limit=1, before=second["id"])
    assert [line.split(" ")[0] for line in part.splitlines()] == [first["id"]]
    quiet = discord.add_channel(home, "quiet")
    assert await perform(channel, "read", place(quiet)) == "Nothing was said."


async def test_a_thread_is_read_with_the_message_it_is_about(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    asked = discord.say(room, BOB, "how?")
    before = place(room, asked["id"])
    assert f"Bob ({BOB.id}): how?" in await perform(channel, "read", before), "the thread is not opened yet"
    thread = discord.add_thread(room, "details", BOB, message=asked)
    discord.say(thread, ALICE, "so")
    for where, named in ((before, ""), (place(room), thread["id"])):
        lines = (await perform(channel, "read", where, thread=named)).splitlines()
        assert [line.partition("Z · ")[2] for line in lines] == [f"Bob ({BOB.id}): how?", f"Alice ({ALICE.id}): so"]


async def test_what_may_not_be_read_is_said_with_its_permission(
    discord: DiscordServer, home: Json, room: Json, channel: DiscordChannel
) -> None:
    discord.say(room, BOB, "hello")
    discord.overwrite(room, HARK, deny=Permission.READ_MESSAGE_HISTORY)
    assert "allow it Read Message History in Discord" in await failed(channel, "read", place(room))
    discord.overwrite(room, HARK, deny=Permission.VIEW_CHANNEL)
    assert "allow it View Channel in Discord" in await failed(channel, "read", place(room))
    other = discord.add_channel(home, "other")
    discord.tolerate(Rule.FORM)
    assert "Invalid Form Body" in await failed(channel, "read", place(other), before="yesterday")


async def test_hidden_words_are_said_to_be_hidden(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    discord.granted = Intent(0)
    discord.say(room, BOB, "psst")
    channel = DiscordChannel(settings_for(discord), clock.times)
    await channel.start(sink)
    await sink.until(lambda: sink.missing)
    text = await perform(channel, "read", place(room))
    await channel.close()
    assert "psst" not in text
    assert text.endswith("Message Content Intent is off in the Developer Portal.")


# -- pins, people, channels ------------------------------------------------------------------------------------------


async def test_messages_are_pinned_where_it_is_allowed(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    asked = discord.say(room, BOB, "the plan")
    assert "allow it Pin Messages in Discord" in await failed(channel, "pin", place(room), message_id=asked["id"])
    discord.overwrite(room, HARK, allow=Permission.PIN_MESSAGES)
    discord.add_thread(room, "details", BOB, message=asked)
    for where in (place(room), place(room, asked["id"])):
        assert await perform(channel, "pin", where, message_id=asked["id"]) == "pinned"
        assert list(discord.pins[room["id"]]) == [asked["id"]]
        assert await perform(channel, "unpin", where, message_id=asked["id"]) == "unpinned"
        assert not discord.pins[room["id"]]
    assert not discord.calls("PUT /channels/*/pins/*"), "that endpoint is an old one"
    assert "Unknown Message" in await failed(channel, "pin", place(room), message_id="1234")


async def test_who_somebody_is(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    direct = discord.dm(ALICE, "hello")
    discord.add_member(home, BOB, roles=[discord.add_role(home, "cooks")])
    discord.say(room, BOB, "me")
    await sink.until(lambda: len(sink.items) == 2)
    told = f"id: {BOB.id}\nname: Bob\nusername: bob\nroles: cooks\njoined_at: 2026-09-21"
    for named in (str(BOB.id), f"<@{BOB.id}>", "@bob", "Bob"):
        assert (await perform(channel, "member_info", place(room), person=named)).partition("T")[0] == told
    there = place(discord.open_dm(ALICE))
    assert direct["channel_id"] == there.chat
    assert (
        await perform(channel, "member_info", there, person=str(ALICE.id))
        == f"id: {ALICE.id}\nname: Alice\nusername: alice"
    )
    assert "Unknown Member" in await failed(channel, "member_info", place(room), person=str(CAROL.id))
    assert await failed(channel, "member_info", place(room), person="bobby") == "nobody is known as bobby; near: @Bob"


async def test_what_a_channel_is(discord: DiscordServer, home: Json, room: Json, channel: DiscordChannel) -> None:
    discord.change_channel(room, topic="Soup")
    server = f"server: Home\nguild_id: {home['id']}\nmembers: 3"
    told = f"id: {room['id']}\nname: general\nkind: channel\ntopic: Soup\n{server}"
    assert await perform(channel, "channel_info", place(room)) == told
    thread = discord.add_thread(room, "details", BOB, text="so")
    discord.archive(thread)
    inside = f"parent: general\nparent_id: {room['id']}\narchived: True"
    told = f"id: {thread['id']}\nname: details\nkind: thread\n{inside}\n{server}"
    assert await perform(channel, "channel_info", place(room), thread=thread["id"]) == told
    told = f"Direct messages with Alice, id {ALICE.id}"
    assert await perform(channel, "channel_info", place(discord.open_dm(ALICE))) == told


# -- finding ---------------------------------------------------------------------------------------------------------


async def test_conversations_are_found_by_id_and_name(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    thread = discord.add_thread(room, "Details", BOB, text="so")
    away = discord.add_channel(discord.add_guild("Work", ALICE, OTHER_BOT), "General")
    discord.say(away, OTHER_BOT, "beep")
    discord.say(away, ALICE, "boop")
    await sink.until(lambda: "boop" in sink.texts)
    direct = place(discord.open_dm(ALICE))
    for wanted, found in {
        room["id"]: place(room),
        f"<#{room['id']}>": place(room),
        thread["id"]: place(room, thread["id"]),
        "#details": place(room, thread["id"]),
        f"#general ({room['id']})": place(room),
        "@Alice": direct,
        "alice": direct,
        f"<@{ALICE.id}>": direct,
        str(ALICE.id): direct,
        direct.chat: direct,
        "#general": (f"#general ({room['id']})", f"#General ({away['id']})"),
        "#detail": ("#Details",),
        "@otherbot": (),
        "#alice": (),
    }.items():
        got = led_to(await channel.find(wanted))
        if found and isinstance(found, tuple):
            assert set(found) <= set(got), wanted  # type: ignore[arg-type]
        else:
            assert got == found, wanted
    discord.archive(thread)
    channel._world.spots.pop(thread["id"])  # as after a start: the gateway does not tell of archived ones
    assert led_to(await channel.find(thread["id"])) == place(room, thread["id"])
    with pytest.raises(ActionFailed, match="there is no such conversation or person"):
        await channel.find("1234")


async def test_a_person_is_written_to_and_another_channel(
    discord: DiscordServer, home: Json, room: Json, channel: DiscordChannel
) -> None:
    other = discord.add_channel(home, "other")
    for number, wanted in enumerate((f"@{BOB.id}", "#other")):
        found = led_to(await channel.find(wanted))
        assert isinstance(found, Place)
        assert isinstance(await channel.send(outgoing(shown("hello"), found, nonce=number)), Sent)
    assert [one.channel_id for one in discord.sent] == [discord.open_dm(BOB)["id"], other["id"]]


# -- what deliveries of the model may be -----------------------------------------------------------------------------


async def test_a_thread_is_no_way_into_another_conversation(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    secret = discord.add_channel(home, "secret")
    inside = discord.add_thread(secret, "inside", BOB, text="psst")
    discord.dm(ALICE, "mark")
    await sink.until(lambda: "mark" in sink.texts)
    direct = place(discord.open_dm(ALICE))
    foreign = [place(room, secret["id"]), place(room, inside["id"]), replace(direct, thread=room["id"])]
    for number, where in enumerate(foreign):
        result = await channel.send(outgoing(shown("hello"), where, nonce=number))
        assert result == Refused(f"this conversation has no thread {where.thread}")
        assert await failed(channel, "read", replace(where, thread=""), thread=where.thread) == result.reason
    told = discord.open_dm(ALICE)["id"]
    assert await failed(channel, "read", place(room), thread=told) == f"this conversation has no thread {told}"
    assert not discord.sent


async def test_an_id_that_is_none_asks_nothing(discord: DiscordServer, room: Json, channel: DiscordChannel) -> None:
    sent = await say(channel, "first", room)
    asked = len(discord.ledger.calls)
    for number in ("..", "."):
        for action in (Action.EDIT, Action.REACT, Action.DELETE):
            body = "👀" if action is Action.REACT else shown("x")
            result = await channel.send(outgoing(body, place(room), action=action, target=number))
            assert isinstance(result, Refused), action
        assert await failed(channel, "unpin", place(room), message_id=number) == "not an id of Discord"
    assert len(discord.ledger.calls) == asked
    assert isinstance(sent, Sent)


async def test_a_thread_where_none_can_be_is_refused_in_plain_words(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    thread = discord.add_thread(room, "details", BOB, text="so")
    inside = discord.say(thread, BOB, "deeper")
    result = await channel.send(outgoing(shown("no"), place(room, inside["id"])))
    assert isinstance(result, Refused)
    assert "stands in another channel" in result.reason
    assert not discord.sent


async def test_reactions_with_emoji_of_a_server(discord: DiscordServer, room: Json, channel: DiscordChannel) -> None:
    asked = discord.say(room, BOB, "hello")
    custom = "blobcat:356198724152098816"
    for body in (f"<:{custom}>", f"<a:{custom}>", f":{custom}", custom, "👀"):
        reaction = outgoing(body, place(room), action=Action.REACT, target=asked["id"])
        assert await channel.send(reaction) == Sent(asked["id"]), body
    assert [one.text for one in discord.sent] == [custom] * 4 + ["👀"]
    unknown = await channel.send(outgoing(":thumbsup:", place(room), action=Action.REACT, target=asked["id"]))
    assert isinstance(unknown, Refused)
    assert "an emoji is one character, or <:name:id>" in unknown.reason


async def test_a_missing_permission_is_named(discord: DiscordServer, room: Json, channel: DiscordChannel) -> None:
    asked = discord.say(room, BOB, "hello")
    for number, (denied, words, fields) in enumerate(
        (
            (Permission.SEND_MESSAGES, "Send Messages", {}),
            (Permission.ADD_REACTIONS, "Add Reactions", {"action": Action.REACT, "target": asked["id"]}),
            (Permission.ADD_REACTIONS, "Manage Messages", {"action": Action.DELETE, "target": asked["id"]}),
        )
    ):
        discord.overwrite(room, HARK, deny=denied)
        body = "👀" if fields.get("action") is Action.REACT else shown("x")
        result = await channel.send(outgoing(body, place(room), nonce=number, **fields))
        assert isinstance(result, Refused)
        assert f"the bot lacks a permission; allow it {words}" in result.reason


# -- frames of a preview ---------------------------------------------------------------------------------------------


async def test_frames_leave_a_place_for_the_words_that_are_final(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    discord.limiter.limits = RateLimits()
    sent = await say(channel, "0", room)
    assert isinstance(sent, Sent)
    waits = [await channel.frame(place(room), sent.platform_id, shown(f"{number}")) for number in range(1, 8)]
    assert waits[:4] == [1.0] * 4
    assert all(4 < wait <= 5 for wait in waits[4:])
    final = outgoing(shown("all"), place(room), action=Action.EDIT, target=sent.platform_id)
    assert await channel.send(final) == Sent(sent.platform_id)
    assert [one.text for one in discord.sent] == ["0", "1", "2", "3", "4", "all"]
    assert channel.pass_limit(place(room)) == 0


async def test_a_frame_waits_for_nobody_and_nothing_comes_behind_the_final_words(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    sent = await say(channel, "0", room)
    assert isinstance(sent, Sent)
    held = discord.hold_next(EDIT)
    frame = asyncio.create_task(channel.frame(place(room), sent.platform_id, shown("1")))
    await discord.wait_for(lambda: held.reached.is_set())
    assert await channel.frame(place(room), sent.platform_id, shown("2")) == 1.0, "a call is under way"
    final = outgoing(shown("all"), place(room), action=Action.EDIT, target=sent.platform_id)
    ends = asyncio.create_task(channel.send(final))
    await asyncio.sleep(0)
    held.release()
    assert await ends == Sent(sent.platform_id)
    assert await frame == 1.0
    assert [one.text for one in discord.sent] == ["0", "1", "all"]


async def test_a_frame_too_many_holds_up_no_message_and_the_next_frames(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    sent = await say(channel, "0", room)
    assert isinstance(sent, Sent)
    discord.fail_next(EDIT, status=429, retry_after=40.0)
    assert await channel.frame(place(room), sent.platform_id, shown("1")) == 1.0
    assert isinstance(await say(channel, "meanwhile", room, nonce=2), Sent)
    assert 39 < await channel.frame(place(room), sent.platform_id, shown("2")) <= 40
    final = outgoing(shown("all"), place(room), action=Action.EDIT, target=sent.platform_id)
    result = await channel.send(final)
    assert isinstance(result, NotSent)
    assert result.retry_after is not None
    assert 39 < result.retry_after <= 40
    assert len(discord.calls(EDIT)) == 1


async def test_a_frame_that_fails_is_nothing(discord: DiscordServer, room: Json, channel: DiscordChannel) -> None:
    for fault in ({"status": 500}, {"drop": True}):
        discord.fail_next(EDIT, **fault)
        assert await channel.frame(place(room), "1234", shown("1")) == 1.0
    assert await channel.frame(place(room), "1234", shown("1")) == 1.0, "a message that is gone"
    gone = outgoing(shown("all"), place(room), action=Action.EDIT, target="1234")
    assert isinstance(await channel.send(gone), Refused)


async def test_a_preview_grows_where_no_thread_could_be_opened(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    discord.overwrite(room, HARK, deny=Permission.CREATE_PUBLIC_THREADS)
    there = place(room, discord.say(room, BOB, "how?")["id"])
    sent = await channel.send(outgoing(shown("so"), there))
    assert isinstance(sent, Sent)
    await channel.frame(there, sent.platform_id, shown("so it"))
    final = outgoing(shown("so it is"), there, action=Action.EDIT, target=sent.platform_id)
    assert await channel.send(final) == Sent(sent.platform_id)
    assert [one.text for one in discord.sent] == ["so", "so it", "so it is"]
    discord.overwrite(room, HARK)
    other = place(room, discord.say(room, BOB, "and?")["id"])
    first = await channel.send(outgoing(shown("in"), other, nonce=2))
    assert isinstance(first, Sent)
    await channel.frame(other, first.platform_id, shown("in it"))
    assert [(one.text, one.channel_id) for one in discord.sent[3:]] == [("in", other.thread), ("in it", other.thread)]
