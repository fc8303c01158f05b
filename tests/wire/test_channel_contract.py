"""What every channel owes the outbox, asked of the one that tests use and of platforms over their stand-ins.

A further channel adds itself to `SIDES`: how it is started on a server of its own, and what that server has seen.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot import clock as service_clock
from bot import wording
from bot.outbox import Outbox
from bot.people.people import People
from bot.persistence.inbox import AcceptedMessage, Duplicate
from channels.base import Channel
from channels.discord.adapter import DiscordChannel
from channels.discord.settings import DiscordAccount
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import (
    IDEMPOTENT,
    Action,
    Button,
    Delivery,
    NotSent,
    OutgoingFile,
    Planned,
    Refused,
    SendResult,
    Sent,
    Unknown,
)
from channels.slack.adapter import SlackChannel
from channels.slack.settings import SlackAccount
from channels.sources import sentence
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import TelegramAccount
from tests.bot.store.opened import opened
from tests.channels.sections import account
from tests.deliveries import delivery
from tests.service import RecordingChannel
from tests.standins.discord_ledger import Rule
from tests.standins.discord_objects import ALICE as DISCORD_ALICE
from tests.standins.discord_objects import HARK
from tests.standins.discord_server import DiscordServer
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import BOT
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOT_ID
from tests.watch import PATIENCE, Watch
from tests.wire.sink import Clock, RecordingSink

LONG = "\n\n".join(
    f"Paragraph {number} with *some* **words** 😀 and `code`:\n\n```py\nprint({number})\n```\n\n- one\n- two"
    for number in range(200)
)
DIGITS = "".join(str(number) for number in range(5000))
FACES = "".join(chr(0x1F600 + number % 60) for number in range(5000))


@dataclass(frozen=True, slots=True)
class Side:
    """A started channel, and the time that it goes by.

    place: a chat where it may speak. message: id of a message of its own there. visible: how many calls its server has
    seen that a person can see.
    """

    channel: Channel
    time: Clock
    place: Place
    message: str
    visible: Callable[[], int]


@asynccontextmanager
async def recording() -> AsyncIterator[Side]:
    """The channel of most tests, as a platform that has neither previews nor files."""
    channel = RecordingChannel(Watch(), actions=frozenset(Action) - {Action.PREVIEW, Action.FILE})
    await channel.start(RecordingSink())
    place = Place(channel=channel.name, account=channel.account, chat="1", kind=ChatKind.DIRECT)
    yield Side(channel, Clock(1000.0), place, "1", lambda: len(channel.sent))


@asynccontextmanager
async def telegram() -> AsyncIterator[Side]:
    """Over its own library."""
    time = Clock(1000.0)
    async with TelegramServer() as server:
        settings = account(
            TelegramAccount, token=server.token, base_url=server.base_url, base_file_url=server.base_file_url
        )
        channel = TelegramChannel(settings, time.times)
        sink = RecordingSink()
        await channel.start(sink)
        await sink.until(lambda: sink.ready)
        server.write("hello")
        place = Place(channel="telegram", account=str(BOT_ID), chat=str(ALICE.id), kind=ChatKind.DIRECT)
        sent = await channel.send(delivery(channel.render("first")[0], place))
        assert isinstance(sent, Sent)
        yield Side(channel, time, place, sent.platform_id, lambda: len(server.sent))
        await channel.close()


@asynccontextmanager
async def discord() -> AsyncIterator[Side]:
    """Over its own library, in direct messages."""
    time = Clock(1000.0)
    async with DiscordServer(clock=lambda: time.seconds, wall=lambda: time.seconds + 1_790_000_000) as server:
        server.tolerate(Rule.REPEATED_TEXT)
        settings = account(
            DiscordAccount,
            token=server.token,
            base_url=server.base_url,
            gateway_url=server.gateway_url,
            close_timeout=0.1,
        )
        channel = DiscordChannel(settings, time.times)
        sink = RecordingSink(("discord", str(HARK.id)))
        await channel.start(sink)
        await sink.until(lambda: sink.ready)
        written = server.dm(DISCORD_ALICE, "hello")
        place = Place(channel="discord", account=channel.account, chat=written["channel_id"], kind=ChatKind.DIRECT)
        sent = await channel.send(delivery(channel.render("first")[0], place, nonce=4711))
        assert isinstance(sent, Sent)
        yield Side(channel, time, place, sent.platform_id, lambda: len(server.sent))
        await channel.close()


@asynccontextmanager
async def slack() -> AsyncIterator[Side]:
    """Over its own libraries, by Socket Mode."""
    time = Clock(1000.0)
    async with SlackServer(clock=lambda: time.seconds, wall=lambda: time.seconds) as server:
        settings = account(
            SlackAccount, bot_token=server.bot_token, app_token=server.app_token, base_url=server.base_url
        )
        channel = SlackChannel(settings, time.times)
        sink = RecordingSink(("slack", BOT))
        await channel.start(sink)
        await sink.until(lambda: sink.ready)
        room = server.channel("general")
        place = Place(channel="slack", account=channel.account, chat=room.id, kind=ChatKind.CHANNEL)
        sent = await channel.send(delivery(channel.render("first")[0], place))
        assert isinstance(sent, Sent)
        yield Side(channel, time, place, sent.platform_id, lambda: len(server.sent))
        await channel.close()


SIDES: dict[str, Callable[[], AbstractAsyncContextManager[Side]]] = {
    "recording": recording,
    "telegram": telegram,
    "discord": discord,
    "slack": slack,
}


@pytest.fixture(params=list(SIDES))
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    async with SIDES[request.param]() as started:
        yield started


def planned(side: Side, action: Action) -> Planned:
    """A call of that kind with everything that it can be about."""
    bodies = {Action.REACT: "👀", Action.DELETE: ""}
    made = Planned(
        source=sentence(f"a:{action}"),
        body=bodies.get(action) or "",
        nonce=1,
        action=action,
        target=side.message,
        step=1,
    )
    if action in bodies:
        return made
    (body,) = side.channel.render(f"**words** of {action}")
    buttons = (Button("Yes", "/yes"), Button("No", "n" * 64))
    file = OutgoingFile(__file__, "contract.py", "text/x-python") if action is Action.FILE else None
    return replace(made, body=body, buttons=buttons, file=file, reply_to="" if action is Action.EDIT else side.message)


def delivered(side: Side, action: Action) -> Delivery:
    """The same as the store hands it out."""
    made = planned(side, action)
    fields = {name: getattr(made, name) for name in Planned.__dataclass_fields__}
    return delivery(place=side.place, **fields)


async def test_it_sends(side: Side) -> None:
    assert Action.SEND in side.channel.capabilities.actions
    assert side.channel.account, "nothing is sent before it is known"


@pytest.mark.parametrize("action", list(Action))
async def test_what_it_declares_it_carries_out(side: Side, action: Action) -> None:
    if action not in side.channel.capabilities.actions:
        return  # see below: it is never asked
    before = side.visible()
    assert isinstance(await side.channel.send(delivered(side, action)), Sent)
    assert side.visible() == before + 1


async def test_no_link_leads_to_another_file(side: Side, tmp_path: Path) -> None:
    """Though it was a file when the call was planned."""
    if Action.FILE not in side.channel.capabilities.actions:
        return
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "file").write_text("a secret")
    (tmp_path / "folder").symlink_to("private")
    (tmp_path / "file").symlink_to("private/file")
    os.mkfifo(tmp_path / "pipe")
    before = side.visible()
    for path in ("folder/file", "file", "pipe", "private"):
        asked = replace(delivered(side, Action.FILE), file=OutgoingFile(str(tmp_path / path), "notes.txt"))
        assert isinstance(await side.channel.send(asked), Refused), path
    assert side.visible() == before
    asked = replace(delivered(side, Action.FILE), file=OutgoingFile(str(tmp_path / "private" / "file"), "notes.txt"))
    assert isinstance(await side.channel.send(asked), Sent)


@pytest.mark.parametrize("action", sorted(IDEMPOTENT))
async def test_what_is_idempotent_succeeds_again(side: Side, action: Action) -> None:
    if action in side.channel.capabilities.actions:
        for _ in range(2):
            assert isinstance(await side.channel.send(delivered(side, action)), Sent)


async def test_what_it_does_not_declare_it_is_never_asked(side: Side, tmp_path: Path) -> None:
    asked: list[Action] = []
    send = side.channel.send

    async def noted(delivery: Delivery) -> SendResult:
        asked.append(delivery.action)
        return await send(delivery)

    side.channel.send = noted  # type: ignore[method-assign]
    declared = [action for action in Action if action in side.channel.capabilities.actions]
    assert len(declared) < len(Action)
    assert Action.FILE not in declared or side.channel.capabilities.file_bytes
    loop, written = asyncio.get_running_loop(), asyncio.Event()
    async with opened(tmp_path, probe=lambda at: loop.call_soon_threadsafe(written.set)) as store:
        message = InboundMessage(
            origin=Origin(place=side.place, sender="1", message_id="1"),
            event_key="m:1",
            kind=InboundKind.COMMAND,
            text="/help",
            sent_at=0,
        )
        (answer,) = await store.inbox.accept([AcceptedMessage(message=message, session_key="s")])
        assert not isinstance(answer, Duplicate)
        kept = await store.commands.answer(
            answer.seq, [planned(side, one) for one in Action if one is not Action.PREVIEW]
        )
        times = side.time.times
        clock = service_clock.Clock(times.now, times.monotonic, times.sleep)
        outbox = Outbox(store, clock, 10**12, People(store, ()))
        outbox.add_channel(side.channel)
        outbox.send(kept.deliveries)
        async with asyncio.timeout(PATIENCE):
            while not written.clear() and await store.deliveries.open_conversations():
                await written.wait()
        await outbox.close(0)
        assert asked == declared
        refused = {lost.error for lost in await store.reads.lost_deliveries(99)}
        assert {wording.lacks(action) for action in set(Action) - {Action.PREVIEW, *declared}} <= refused


@pytest.mark.parametrize(
    "text", ["plain words", "**bold** and [a link](https://example.org)", LONG, DIGITS, FACES], ids=range(5)
)
async def test_every_body_it_renders_is_within_its_limits(side: Side, text: str) -> None:
    bodies = side.channel.render(text)
    assert bodies == side.channel.render(text), "rendering is pure"
    for number, body in enumerate(bodies):
        result = await side.channel.send(delivery(body, side.place, nonce=number))
        assert isinstance(result, Sent), result


@pytest.mark.parametrize("attempts", [1, 2, 3, 99])
async def test_what_it_settles_is_sent_to_be_sent_again_or_never_to_be_known(side: Side, attempts: int) -> None:
    async with asyncio.timeout(PATIENCE):
        result = await side.channel.settle(replace(delivered(side, Action.SEND), attempts=attempts))
    assert isinstance(result, Sent | NotSent | Unknown)
    if attempts == 99:
        assert not isinstance(result, NotSent), "nothing is sent for ever"
    elif isinstance(result, NotSent):
        assert result.retry_after is not None, "it is the next try that waits for the channel"


async def test_signs_of_work_never_fail(side: Side) -> None:
    for place in (replace(side.place, chat="999"), side.place):
        assert side.channel.pass_limit(place) >= 0
        await side.channel.working(place)
    assert isinstance(await side.channel.send(delivered(side, Action.SEND)), Sent)
