"""`hark mcp list`, `accept` and `login`: what MCP servers show, that an owner has looked at it, and their logins."""

from typing import TYPE_CHECKING

from pydantic_core import to_json

from agent.errors import ToolError
from bot.cli.local import FAILED, asked, complain
from bot.cli.terminal.client import Rejected
from bot.config.model import Config
from bot.mcp.servers import NoServer, Servers, settings_of

if TYPE_CHECKING:  # it imports the whole service
    from bot.service import Parts


async def show(as_json: bool, config: Config) -> int:
    """Print all tools that servers have shown, and which of them are off. Returns the exit code."""
    async with asked(config, _servers) as there:
        found = [one for one in await there.mcp() if one.server in config.mcp.servers]
    if as_json:
        print(to_json(found, indent=2).decode())  # noqa: T201
        return 0
    for server, one in config.mcp.servers.items():
        print(f"{server}: {'a command' if one.command else one.url}")  # noqa: T201
        for tool in found:
            if tool.server == server:
                more = f": {tool.description}" if tool.state in ("new", "changed") else ""
                print(f"  {tool.name} {tool.digest} {_STATES.get(tool.state, tool.state)}{more}")  # noqa: T201
        if not any(tool.server == server for tool in found):
            print("  it has shown nothing yet")  # noqa: T201
    return 0


_STATES = {
    "new": "OFF, new until `hark mcp accept`",
    "changed": "OFF, changed until `hark mcp accept`",
    "gone": "not there any more",
}


async def accept(server: str, config: Config) -> int:
    """Let the tools of a server be called as it shows them. Returns the exit code: 1 when there is no such server."""
    try:
        async with asked(config, _servers) as there:
            found = await there.accept_mcp(server)
    except (NoServer, Rejected) as error:
        complain(str(error))
        return FAILED
    for one in found:
        print(f"{one.name} {one.digest} is on: {one.description}")  # noqa: T201
    if not found:
        print(f"Nothing of {server} was off.")  # noqa: T201
    return 0


async def login(server: str, config: Config) -> int:
    """Log in to a server that speaks HTTP. Returns the exit code: 1 when it did not come about."""
    one = config.mcp.servers.get(server)
    if one is None or one.url is None:
        complain(f"There is no MCP server {server!r} with a URL in the configuration.")
        return FAILED
    from agent.mcp.login import login as log_in  # heavy

    try:
        await log_in(settings_of(server, one, config), _show)
    except Exception as error:
        complain(f"The login did not come about: {error if isinstance(error, ToolError) else repr(error)}")
        return FAILED
    print(f"{server}: logged in. A running service uses it with its next connection.")  # noqa: T201
    return 0


def _show(address: str) -> None:
    print(f"Open this address in a browser on this machine:\n{address}", flush=True)  # noqa: T201


def _servers(parts: "Parts") -> Servers:
    return parts.mcp
