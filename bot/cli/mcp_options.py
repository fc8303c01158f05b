"""The commands of `hark mcp` and their options, and nothing of what they do; see `bot/cli/app.py`."""

from functools import partial
from typing import Annotated

import typer

from bot.cli.options import AsJson, ConfigOption, carry_out

_HELP = "MCP servers; without a command: be one on standard input and output, for Claude Code and other clients."
mcp_app = typer.Typer(help=_HELP, rich_markup_mode=None)

ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", help="Its name in the configuration.")]


@mcp_app.callback(invoke_without_command=True)
def mcp(context: typer.Context, config: ConfigOption = None) -> None:
    """Let an MCP client read sessions, send messages and talk to the agent, through the service that runs."""
    context.obj = config
    if context.invoked_subcommand is None:
        from bot.cli.mcp_server import serve

        carry_out(config, serve)


@mcp_app.command("list")
def mcp_list(as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Show the tools of MCP servers, and which of them are off until somebody has looked."""
    from bot.cli.mcp import show

    carry_out(config, partial(show, as_json))


@mcp_app.command("accept")
def mcp_accept(server: ServerArgument, config: ConfigOption = None) -> None:
    """Let the tools of SERVER be called as it shows them now. Exit code: 0 done, 1 there is none."""
    from bot.cli.mcp import accept

    carry_out(config, partial(accept, server))


@mcp_app.command("login")
def mcp_login(server: ServerArgument, config: ConfigOption = None) -> None:
    """Log in to SERVER with a browser. Exit code: 0 done, 1 not."""
    from bot.cli.mcp import login

    carry_out(config, partial(login, server))
