"""`hark people` and `hark pairing`: who may write to the bot, who may not and who asks to; also without a service."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from pydantic_core import to_json

from bot import wording
from bot.cli.local import FAILED, asked, complain
from bot.cli.status import at
from bot.cli.terminal.client import Client, Unreachable
from bot.clock import Clock
from bot.compose import composer
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.inbound.pairing import LOCALLY, NotChanged, Order, Pairing, digest
from bot.persistence.people import Settled, Standing
from bot.store.people import People
from bot.store.store import Store

if TYPE_CHECKING:  # it imports the whole service
    from bot.service import Parts


async def show(as_json: bool, config: Config) -> int:
    """Print everybody. Returns the exit code."""
    async with asked(config, _pairing) as there:
        found = await there.everybody()
    text = to_json(found).decode() if as_json else "\n".join(wording.person(one, at) for one in found)
    print(text or wording.NOBODY_LET_IN)  # noqa: T201
    return 0


async def change(order: Order, who: str, config: Config) -> int:
    """Change what somebody may. Returns the exit code: 1 when nothing was changed."""
    try:
        async with asked(config, _pairing) as there:
            print(await there.stand(who, order))  # noqa: T201
    except NotChanged as error:
        complain(str(error))
        return FAILED
    return 0


def _pairing(parts: "Parts") -> Pairing:
    parts.pairing.begin = lambda *accepted: None  # what they had written is answered by the next service
    return parts.pairing


async def show_waiting(config: Config) -> int:
    """Print who waits to be let in. Returns the exit code."""
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            found = await client.pairing()
    except Unreachable:
        async with _stored(config) as people:
            found = list(await people.pending())
    print("\n".join(map(wording.stranger, found)) or wording.NOBODY_WAITS)  # noqa: T201
    return 0


async def settle(code: str, standing: Standing, config: Config) -> int:
    """Give whoever has the pairing code this standing. Returns the exit code: 1 for a wrong or used code."""
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
    """The people table of the store, opened while no service has it. Raises StoreError."""
    clock = Clock()
    store = Store(config.state, clock, composer(clock.stamp), lambda kept: None)
    try:
        await store.open()
        yield store.people
    finally:
        await store.close()
