"""The terminal as a channel, alone and behind the real outbox and store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.message import Message, Text
from bot.clock import Clock
from bot.outbox import Outbox
from bot.persistence.values import AcceptedMessage, Fresh
from bot.replies import notice
from bot.store.store import Store
from channels.base import HealthState
from channels.console.adapter import ConsoleBlock, ConsoleChannel
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Action, NotSent, Outgoing, Sent

PLACE = Place(channel="console", account="", chat="local", kind=ChatKind.CONSOLE)


class Terminal:
    """A terminal that takes what it is shown, or goes away instead."""

    def __init__(self, *, stays: bool = True) -> None:
        self.blocks: list[ConsoleBlock] = []
        self.changed = asyncio.Condition()
        self._stays = stays

    async def show(self, block: ConsoleBlock) -> bool:
        if not self._stays:
            return False
        async with self.changed:
            self.blocks.append(block)
            self.changed.notify_all()
        return True

    async def texts(self, count: int) -> list[str]:
        async with self.changed, asyncio.timeout(10):
            await self.changed.wait_for(lambda: len(self.blocks) >= count)
        return [block.text for block in self.blocks]


class Sink:
    """Remembers who can send."""

    def __init__(self) -> None:
        self.ready: list[str] = []

    def can_send(self, channel: str, account: str) -> None:
        self.ready.append(channel)

    async def accept(self, batch: object, mark: object) -> None:
        raise AssertionError("a terminal sends through the gateway")

    async def mark(self, scope: str) -> None:
        return None


def block(number: int) -> Outgoing:
    return Outgoing(
        delivery_id=number,
        place=PLACE,
        action=Action.SEND,
        body="**hello**",
        nonce=number,
        source=f"turn:t:s0:b{number}",
        said="**hello**\n",
        planned_at=5,
    )


async def test_a_block_reaches_every_terminal_as_it_is() -> None:
    console = ConsoleChannel(lambda: 7)
    await console.start(Sink())
    first, second = Terminal(), Terminal()
    console.attach(first)
    console.attach(second)
    assert console.render("**hello**") == ("**hello**",)
    assert await console.send(block(1)) == Sent()
    expected = ConsoleBlock(delivery_id=1, text="**hello**", source="turn:t:s0:b1", said="**hello**\n", planned_at=5)
    assert first.blocks == second.blocks == [expected]


async def test_a_block_waits_when_no_terminal_takes_it() -> None:
    console = ConsoleChannel(lambda: 7)
    await console.start(Sink())
    assert await console.send(block(1)) == NotSent(None, "no terminal is open")
    console.attach(Terminal(stays=False))
    assert isinstance(await console.send(block(1)), NotSent)


async def test_what_waits_is_asked_for_when_a_terminal_opens_and_not_when_it_closes() -> None:
    console, sink = ConsoleChannel(lambda: 7), Sink()
    await console.start(sink)
    assert sink.ready == []
    detach = console.attach(Terminal())
    assert sink.ready == ["console"]
    detach()
    assert sink.ready == ["console"]
    assert isinstance(await console.send(block(1)), NotSent)


async def test_health_is_that_of_its_life() -> None:
    console = ConsoleChannel(lambda: 7)
    assert console.health().state is HealthState.STARTING
    await console.start(Sink())
    assert console.health().state is HealthState.READY
    await console.close()
    assert console.health().state is HealthState.DOWN


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store(
        tmp_path / "state", Clock(), lambda message, at: Message("user", (Text(message.text),)), lambda kept: None
    )
    await opened.open()
    yield opened
    await opened.close()


class Desk:
    """A console behind an outbox, and somebody who makes it say things."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = Clock()
        self.console = ConsoleChannel(self.clock.now)
        self.outbox = Outbox(store, self.clock, 86_400_000)
        self.outbox.add_channel(self.console)

    def can_send(self, channel: str, account: str) -> None:
        self.outbox.can_send(channel, account)

    async def accept(self, batch: object, mark: object) -> None:
        raise AssertionError("a terminal sends through the gateway")

    async def mark(self, scope: str) -> None:
        return None

    async def say(self, text: str) -> None:
        """Answer a command with text, as the service does."""
        message = InboundMessage(
            origin=Origin(place=PLACE, sender="local"),
            event_key=f"h:{self.clock.new_id()}",
            kind=InboundKind.COMMAND,
            text="/help",
            sent_at=1,
        )
        (answer,) = await self.store.inbox.accept([AcceptedMessage(message=message, session_key="k")])
        assert isinstance(answer, Fresh)
        blocks = notice(f"cmd:{answer.seq}", text, self.console, self.clock.nonce)
        kept = await self.store.commands.answer(answer.seq, blocks)
        self.outbox.send(PLACE, kept.deliveries)


async def test_held_blocks_follow_in_order_when_a_terminal_opens(store: Store) -> None:
    desk = Desk(store)
    await desk.console.start(desk)
    for text in ("one", "two", "three"):
        await desk.say(text)
    terminal = Terminal()
    desk.console.attach(terminal)
    assert await terminal.texts(3) == ["one", "two", "three"]
    await desk.outbox.close(0.0)


class Late(Terminal):
    """A terminal that goes away with the block in hand, just when another one opens."""

    def __init__(self, desk: Desk, other: Terminal) -> None:
        super().__init__(stays=False)
        self._desk = desk
        self._other = other

    async def show(self, block: ConsoleBlock) -> bool:
        self._desk.console.attach(self._other)
        return False


async def test_a_terminal_that_opens_while_another_goes_misses_nothing(store: Store) -> None:
    desk, other = Desk(store), Terminal()
    await desk.console.start(desk)
    desk.console.attach(Late(desk, other))
    await desk.say("one")
    assert await other.texts(1) == ["one"]
    await desk.outbox.close(0.0)


@pytest.mark.parametrize("held", [True, False])
async def test_the_end_does_not_wait_for_a_terminal(store: Store, held: bool) -> None:
    desk = Desk(store)
    await desk.console.start(desk)
    await desk.say("one")
    for _ in range(20 if held else 0):  # so that the block is held, and not on its way, when the end comes
        await store.try_write()
    async with asyncio.timeout(10):
        await desk.outbox.close(3600.0)
    again = Desk(store)
    await again.console.start(again)
    terminal = Terminal()
    again.console.attach(terminal)
    await again.outbox.start()
    assert await terminal.texts(1) == ["one"]
    await again.outbox.close(0.0)
