"""`hark pairing`: who asks to write to the bot, and whether they may."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from bot import wording
from bot.cli.local import FAILED, complain
from bot.cli.terminal.client import Client, Unreachable
from bot.clock import Clock
from bot.compose import composer
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.inbound.pairing import LOCALLY, digest
from bot.persistence.people import Settled, Standing
from bot.store.people import People
from bot.store.store import Store


async def show(config: Config) -> int:
    """Print who waits. Returns the exit code."""
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            found = await client.pairing()
    except Unreachable:
        async with _stored(config) as people:
            found = list(await people.pending())
    print("\n".join(map(wording.stranger, found)) or wording.NOBODY_WAITS)  # noqa: T201
    return 0


async def settle(code: str, standing: Standing, config: Config) -> int:
    """Use a code. Returns the exit code: 1 for a wrong or used one."""
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            found: Settled | None = Settled(person=await client.pair(code, standing))
    except Unreachable:
        async with _stored(config) as people:  # no word of welcome: what they wrote is answered by the next service
            found = await people.settle(digest(code), standing, (), LOCALLY)
    text = wording.settled(found)
    if found is None or found.used:
        complain(text)
        return FAILED
    print(text)  # noqa: T201
    return 0


@asynccontextmanager
async def _stored(config: Config) -> AsyncIterator[People]:
    """People in the store, while no service has it. Raises StoreError."""
    clock = Clock()
    store = Store(config.state, clock, composer(clock.stamp), lambda kept: None)
    try:
        await store.open()
        yield store.people
    finally:
        await store.close()
