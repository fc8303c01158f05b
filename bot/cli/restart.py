"""`hark restart`: the service that runs starts anew, as soon as nothing runs in it."""

import contextlib

from bot.cli.home import answers
from bot.cli.local import FAILED, complain
from bot.cli.terminal.client import Client
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET


async def restart(config: Config) -> int:
    """Ask for it. Returns the exit code: 1 when no service runs."""
    if not answers(config.state):
        complain(f"No service is running in {config.state}.")
        return FAILED
    async with contextlib.aclosing(Client(config.state / SOCKET)) as client:
        await client.restart()
    print("Hark restarts as soon as nothing runs.")  # noqa: T201
    return 0
