"""`hark pairing`: who asks to write to the bot, and whether they may."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

from agent.message import Message
from bot import wording
from bot.cli.local import FAILED, carry_out, complain
from bot.cli.terminal.client import Client, Unreachable
from bot.clock import Clock
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.inbound.pairing import digest, welcome
from bot.persistence.protocols import People
from bot.persistence.values import Settled, Standing
from bot.replies import notice
from bot.store.store import Store
from channels.base import Channel, Times
from channels.outgoing import Planned


def show(config_path: Path | None) -> int:
    """Print who waits. Returns the exit code. Raises ConfigError."""
    return carry_out(config_path, _show)


def settle(config_path: Path | None, code: str, standing: Standing) -> int:
    """Use a code. Returns the exit code: 1 for a wrong or used one. Raises ConfigError."""
    return carry_out(config_path, partial(_settle, code, standing))


async def _show(config: Config) -> int:
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            found = await client.pairing()
    except Unreachable:
        async with _stored(config) as people:
            found = list(await people.pending())
    print("\n".join(map(wording.stranger, found)) or wording.NOBODY_WAITS)  # noqa: T201
    return 0


async def _settle(code: str, standing: Standing, config: Config) -> int:
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            found: Settled | None = Settled(person=await client.pair(code, standing))
    except Unreachable:
        tell = partial(welcome, partial(_notice, config), code, standing)
        async with _stored(config) as people:
            found = await people.settle(digest(code), standing, tell)
    text = wording.settled(found)
    if found is None or found.used:
        complain(text)
        return FAILED
    print(text)  # noqa: T201
    return 0


@asynccontextmanager
async def _stored(config: Config) -> AsyncIterator[People]:
    """People in the store, while no service has it. Raises StoreError."""
    store = Store(config.state, Clock(), _composes_nothing, lambda kept: None)
    try:
        await store.open()
        yield store.people
    finally:
        await store.close()


def _composes_nothing(message: object, at: int, before: object) -> Message:
    raise NotImplementedError("no turn begins here")


def _notice(config: Config, source: str, text: str, channel: str) -> Sequence[Planned]:
    """Rendered as the channel does, which is not connected for that; nothing where it is not configured any more."""
    clock = Clock()
    section = config.channels.sections().get(channel)
    for bot in section.bots().values() if section else ():
        adapter = bot.build(Times(now=clock.now, monotonic=clock.monotonic, sleep=asyncio.sleep))
        return notice(source, text, adapter if isinstance(adapter, Channel) else None, clock.nonce)
    return ()
