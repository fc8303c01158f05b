"""`hark freeze` and `hark thaw`; also where no service runs, for the next one."""

from bot.cli.local import asked
from bot.cli.terminal.client import Client
from bot.config.model import Config
from bot.inbound.pairing import LOCALLY
from bot.persistence.freezes import What
from bot.runs import freeze_words


async def freeze(what: What, config: Config) -> int:
    """Freeze it. Returns the exit code."""
    async with asked(config, lambda parts: parts.freezer) as there:
        if isinstance(there, Client):
            found = await there.freeze(what)
        else:
            found, _ = await there.freeze(what, LOCALLY, "a terminal")
    print(freeze_words.begun(what, found).replace("`/thaw`", "`hark thaw`"))  # noqa: T201
    return 0


async def thaw(config: Config) -> int:
    """Let all go on. Returns the exit code."""
    async with asked(config, lambda parts: parts.freezer) as there:
        found = await there.thaw() if isinstance(there, Client) else (await there.thaw())[0]
    print(freeze_words.thawed(found))  # noqa: T201
    return 0
