"""What the model does on Telegram that is no delivery, and frames of previews, against a server that speaks the API."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from pydantic import ValidationError

from channels.actions import ActionFailed, Arguments
from channels.base import Times
from channels.message import ChatKind, Place
from channels.outgoing import Action, NotSent, Refused, Sent
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import ACTIONS, Telegram, TelegramAccount
from tests.channels.sections import account
from tests.deliveries import delivery, led_to
from tests.standins.telegram_ledger import Rule
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOT_ID, Room
from tests.watch import PATIENCE, LoopTime
from tests.wire.sink import Clock, RecordingSink

FORUM = Room(-1_001_222_333_444, "supergroup", "Workshop", username="the_workshop", topics=frozenset({7}))


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
async def telegram(clock: Clock) -> AsyncIterator[TelegramServer]:
    async with TelegramServer(clock=lambda: clock.seconds) as server:
        server.meet(FORUM)
        server.rights[FORUM.id] = {"can_pin_messages", "can_manage_topics"}
        server.write("hello")
        yield server


@pytest.fixture
async def channel(telegram: TelegramServer, clock: Clock) -> AsyncIterator[TelegramChannel]:
    """A channel that receives."""
    urls = {"base_url": telegram.base_url, "base_file_url": telegram.base_file_url}
    channel = TelegramChannel(account(TelegramAccount, token=telegram.token, rich="auto", **urls), clock.times)
    sink = RecordingSink()
    await channel.start(sink)
    await sink.until(lambda: sink.ready)
    yield channel
    await channel.close()


def place(room: Room | None = None, thread: str = "") -> Place:
    kind, chat = (ChatKind.GROUP, room.id) if room else (ChatKind.DIRECT, ALICE.id)
    return Place(channel="telegram", account=str(BOT_ID), chat=str(chat), kind=kind, thread=thread)


async def say(channel: TelegramChannel, text: str, to: Place) -> str:
    """The id of a message of the bot."""
    while wait := channel.pass_limit(to):
        await channel._times.sleep(wait)
    sent = await channel.send(delivery(channel.render(text)[0], to))
    assert isinstance(sent, Sent)
    return sent.platform_id


def methods(telegram: TelegramServer) -> list[str]:
    """Calls of the bot beside its polls."""
    return [call.method for call in telegram.ledger.calls if call.method not in ("getMe", "getUpdates")]


def frames(telegram: TelegramServer) -> int:
    return methods(telegram).count("editMessageText")


# -- actions ---------------------------------------------------------------------------------------------------------


async def test_messages_are_pinned_and_unpinned_without_calling_anybody(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    for room, where in ((FORUM.id, place(FORUM)), (ALICE.id, place())):
        first, second = await say(channel, "first", where), await say(channel, "second", where)
        for message in (first, second):
            assert await channel.perform("pin", where, Arguments(message_id=message)) == "Done."
        assert await channel.perform("unpin", where, Arguments(message_id=first)) == "Done."
        assert telegram.pinned[room] == [int(second)]


async def test_a_topic_is_made_renamed_and_spoken_in(telegram: TelegramServer, channel: TelegramChannel) -> None:
    made = await channel.perform("topic_create", place(FORUM), Arguments(name="Plans"))
    thread = made.removeprefix("Done: thread ")
    assert telegram.topic_names == {(FORUM.id, int(thread)): "Plans"}
    await channel.perform("topic_edit", place(FORUM), Arguments(name="Other plans", thread=thread))
    assert telegram.topic_names == {(FORUM.id, int(thread)): "Other plans"}
    await channel.perform("topic_edit", place(FORUM, thread), Arguments(name="This one"))
    assert telegram.topic_names == {(FORUM.id, int(thread)): "This one"}
    await say(channel, "here", place(FORUM, thread))
    assert telegram.sent[-1].thread_id == int(thread)


async def test_what_a_conversation_is(channel: TelegramChannel) -> None:
    told = [await channel.perform("chat_info", where, Arguments()) for where in (place(FORUM), place())]
    assert told == [
        f"id: {FORUM.id}\ntype: supergroup\ntitle: Workshop\nusername: the_workshop\nis_forum: True",
        f"id: {ALICE.id}\ntype: private\nfirst_name: Alice\nlast_name: Archer\nusername: alice_a",
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("pin", Arguments(message_id="9999"), "Bad Request: message to pin not found"),
        ("pin", Arguments(), "message_id has to be the id of one, a whole number"),
        ("unpin", Arguments(message_id="²"), "message_id has to be the id of one, a whole number"),
        ("topic_edit", Arguments(name="x"), "thread has to be the id of one, a whole number"),
        ("topic_edit", Arguments(name="x", thread="8"), "Bad Request: TOPIC_ID_INVALID"),
    ],
)
async def test_what_cannot_be_done_is_said(channel: TelegramChannel, name: str, arguments: Arguments, why: str) -> None:
    with pytest.raises(ActionFailed) as told:
        await channel.perform(name, place(FORUM), arguments)
    assert str(told.value) == why


async def test_a_right_that_is_missing_is_named(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.rights.clear()
    message = await say(channel, "first", place(FORUM))
    for name, right in (
        ("pin", "Pin Messages"),
        ("unpin", "Pin Messages"),
        ("topic_create", "Manage Topics"),
        ("topic_edit", "Manage Topics"),
    ):
        with pytest.raises(ActionFailed, match=f"not enough rights.*give the bot the right {right}"):
            await channel.perform(name, place(FORUM), Arguments(message_id=message, name="x", thread="7"))


async def test_what_fails_on_the_way_is_said(telegram: TelegramServer, channel: TelegramChannel, clock: Clock) -> None:
    for status, words in ((500, "it is not known whether this was done"), (429, "retry after 7")):
        telegram.fail_next("createForumTopic", status=status, retry_after=7)
        with pytest.raises(ActionFailed, match=words):
            await channel.perform("topic_create", place(FORUM), Arguments(name="Plans"))
    assert channel.pass_limit(place(FORUM)) == 7
    before = len(telegram.ledger.calls)
    with pytest.raises(ActionFailed, match="leave that chat alone for 7 seconds"):
        await channel.perform("topic_create", place(FORUM), Arguments(name="Plans"))
    assert methods(telegram)[before:] == []
    clock.seconds += 7
    assert await channel.perform("topic_create", place(FORUM), Arguments(name="Plans"))


async def test_conversations_are_found_by_what_telegram_knows(channel: TelegramChannel) -> None:
    for wanted in (str(FORUM.id), "@the_workshop"):
        assert led_to(await channel.find(wanted)) == place(FORUM)
    assert led_to(await channel.find(str(ALICE.id))) == place()
    for unknown in ("999", "@nobody_at_all", "@alice_a", "Workshop", "#workshop", ""):
        assert led_to(await channel.find(unknown)) == ()


async def test_a_search_that_fails_is_no_miss(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.fail_next("getChat", drop=True)
    with pytest.raises(ActionFailed):
        await channel.find(str(FORUM.id))


def test_actions_can_be_taken_away_by_their_names() -> None:
    settings = Telegram(token="1:x", actions={"pin": False, "delete": False})
    left = {one.name for one in settings.tool_actions()}
    assert {one.name for one in ACTIONS} - left == {"pin", "delete"}
    with pytest.raises(ValidationError, match="`read` is no action"):
        Telegram(token="1:x", actions={"read": False})
    for one in ACTIONS:
        assert {*one.needs, *one.takes} <= set(Arguments.model_fields)


# -- reactions and edits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("emoji", "known"), [("❤️", "❤"), ("❤️‍🔥", "❤‍🔥"), ("🦖", ""), (":tada:", "")])
async def test_reactions_are_those_of_telegram(
    telegram: TelegramServer, channel: TelegramChannel, emoji: str, known: str
) -> None:
    telegram.tolerate(Rule.BAD_VALUE)
    message = await say(channel, "first", place())
    result = await channel.send(delivery(emoji, place(), action=Action.REACT, target=message))
    if known:
        assert result == Sent(message)
        assert telegram.sent[-1].params["reaction"] == [{"type": "emoji", "emoji": known}]
    else:
        assert isinstance(result, Refused)
        assert result.reason.startswith(f"{emoji} is no reaction that may be used there; most chats take 👍")


async def test_the_last_form_of_a_message_that_cannot_be_edited_is_refused_as_it_is(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    (body,) = channel.render("**bold**")
    hers = telegram.write("mine")["message"]["message_id"]
    for target, why in (("9999", "message to edit not found"), (str(hers), "message can't be edited")):
        edit = delivery(body, place(), action=Action.EDIT, target=target)
        assert await channel.send(edit) == Refused(f"Bad Request: {why}")


async def test_an_edit_says_nothing_that_only_a_new_message_has(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    message = await say(channel, "first", place())
    for text, method in (("second", "text"), ("|a|b|\n|-|-|\n|1|2|", "rich_message")):
        (body,) = channel.render(text)
        edit = delivery(body, place(), action=Action.EDIT, target=message, reply_to=message, silent=True)
        assert await channel.send(edit) == Sent(message)
        assert set(telegram.ledger.calls[-1].params) - {"link_preview_options"} == {"chat_id", "message_id", method}


# -- frames of previews ----------------------------------------------------------------------------------------------


async def test_a_frame_shows_what_there_is_and_the_last_form_follows_at_once(
    telegram: TelegramServer, channel: TelegramChannel, clock: Clock
) -> None:
    message = await say(channel, "one", place())
    assert 0 < await channel.frame(place(), message, channel.render("one **two**")[0]) <= 1.0
    assert frames(telegram) == 0, "less than a second after the message"
    clock.seconds += 1
    assert await channel.frame(place(), message, channel.render("one **two**")[0]) == 1.0
    assert (telegram.sent[-1].text, len(telegram.sent[-1].entities)) == ("one two", 1)
    assert await channel.frame(place(), message, channel.render("one two three")[0]) == 1.0
    assert frames(telegram) == 1
    assert channel.pass_limit(place()) == 0
    final = delivery(channel.render("one two three four")[0], place(), action=Action.EDIT, target=message)
    assert await channel.send(final) == Sent(message)
    assert telegram.sent[-1].text == "one two three four"


async def test_frames_leave_the_last_places_of_a_group_to_messages(
    telegram: TelegramServer, channel: TelegramChannel, clock: Clock
) -> None:
    message = await say(channel, "0", place(FORUM))
    began = clock.seconds
    while clock.seconds < began + 59:
        wait = await channel.frame(place(FORUM), message, channel.render(str(clock.seconds))[0])
        assert wait > 0
        clock.seconds += min(wait, 59)
    assert frames(telegram) == 14, "each four seconds, and with the message three quarters of twenty"
    clock.seconds = began + 59
    for number in range(5):
        await say(channel, f"message {number}", place(FORUM))
    assert clock.seconds < began + 59 + 5, "none of them has waited for a frame"


async def test_a_flood_of_frames_holds_frames_alone(
    telegram: TelegramServer, channel: TelegramChannel, clock: Clock
) -> None:
    telegram.tolerate(Rule.EARLY)
    message = await say(channel, "one", place())
    clock.seconds += 1
    telegram.fail_next("editMessageText", status=429, retry_after=9)
    assert await channel.frame(place(), message, channel.render("two")[0]) == 9.0
    assert channel.pass_limit(place()) == 0, "the last form is tried at once"
    clock.seconds += 8
    assert await channel.frame(place(), message, channel.render("three")[0]) == 1.0
    assert frames(telegram) == 1
    clock.seconds += 1
    await channel.frame(place(), message, channel.render("three")[0])
    assert telegram.sent[-1].text == "three"


async def test_frames_wait_for_nobody_and_nothing_passes_them(
    telegram: TelegramServer, channel: TelegramChannel, clock: Clock
) -> None:
    message = await say(channel, "one", place())
    clock.seconds += 1
    held = telegram.hold_next("editMessageText")
    last = delivery(channel.render("three")[0], place(), action=Action.EDIT, target=message)
    async with asyncio.TaskGroup() as group:
        group.create_task(channel.frame(place(), message, channel.render("two")[0]))
        await asyncio.wait_for(held.reached.wait(), PATIENCE)
        clock.seconds += 2
        async with asyncio.timeout(PATIENCE):
            assert await channel.frame(place(), message, channel.render("two and")[0]) == 1.0
        group.create_task(channel.send(last))
        await channel.working(place())
        held.release()
    assert [one.text for one in telegram.sent] == ["one", "two", "three"]
    assert methods(telegram)[-2:] == ["editMessageText"] * 2


@pytest.mark.parametrize("status", [400, 403, 404, 500, 502])
async def test_a_frame_that_fails_is_no_matter(
    telegram: TelegramServer, channel: TelegramChannel, clock: Clock, status: int
) -> None:
    message = await say(channel, "one", place())
    for target, method in ((message, "editMessageText"), ("", "sendMessageDraft")):
        clock.seconds += 1
        telegram.fail_next(method, status=status)
        assert await channel.frame(place(), target, channel.render("two")[0]) == 1.0
    assert channel.pass_limit(place()) == 0


async def test_a_frame_that_hangs_gives_the_chat_back(telegram: TelegramServer, clock: Clock) -> None:
    time = LoopTime()
    settings = account(TelegramAccount, token=telegram.token, base_url=telegram.base_url)
    times = Times(now=lambda: 0, monotonic=lambda: clock.seconds, sleep=clock.sleep)
    channel = TelegramChannel(settings, times)
    message = await say(channel, "one", place())
    clock.seconds += 1
    held = telegram.hold_next("editMessageText")
    showing = asyncio.create_task(channel.frame(place(), message, channel.render("two")[0]))
    await held.reached.wait()
    await time.advance(TelegramAccount.typing_timeout)
    assert await showing == 1.0
    assert await channel.send(delivery("{}", place(), action=Action.DELETE, target=message)) == Sent(message)
    held.release()
    await channel.close()


async def test_a_draft_is_no_message_and_goes_with_it(
    telegram: TelegramServer, channel: TelegramChannel, clock: Clock
) -> None:
    for text, shown in (("half *of*", "half of"), ("half of\n\n|a|b|\n|-|-|\n|1|2|", "half of")):
        assert await channel.frame(place(), "", channel.render(text)[0]) == 1.0
        draft = telegram.drafts[ALICE.id]
        assert draft["text"].startswith(shown)
        assert draft["draft_id"] != 0
        assert draft["entities"]
        clock.seconds += 1
    assert telegram.sent == []
    await say(channel, "half of it", place())
    assert telegram.drafts == {}


async def test_a_form_that_a_rich_edit_may_not_have_is_made_plainer(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    message = await say(channel, "one", place())
    telegram.fail_next("editMessageText", status=400, description="Bad Request: RICH_INVALID")
    (body,) = channel.render("|a|b|\n|-|-|\n|1|2|")
    refused = await channel.send(delivery(body, place(), action=Action.EDIT, target=message))
    assert isinstance(refused, NotSent)
    assert "entities" in json.loads(refused.body or "")
