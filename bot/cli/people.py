"""`hark people`: who may write to the bot and who may not; also where no service runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic_core import to_json

from bot import wording
from bot.cli.local import FAILED, asked, complain
from bot.cli.status import at
from bot.cli.terminal.client import Client
from bot.config.model import Config
from bot.inbound.pairing import NotChanged, Order, Pairing


async def show(as_json: bool, config: Config) -> int:
    """Print everybody. Returns the exit code."""
    async with _asked(config) as there:
        found = await there.everybody()
    text = to_json(found).decode() if as_json else "\n".join(wording.person(one, at) for one in found)
    print(text or wording.NOBODY_LET_IN)  # noqa: T201
    return 0


async def change(order: Order, who: str, config: Config) -> int:
    """Change what somebody may. Returns the exit code: 1 when nothing was changed."""
    try:
        async with _asked(config) as there:
            print(await there.stand(who, order))  # noqa: T201
    except NotChanged as error:
        complain(str(error))
        return FAILED
    return 0


@asynccontextmanager
async def _asked(config: Config) -> AsyncIterator[Client | Pairing]:
    async with asked(config) as found:
        if not isinstance(found, Client):
            found.pairing.begin = lambda *accepted: None  # what they had written is answered by the next service
        yield found if isinstance(found, Client) else found.pairing
