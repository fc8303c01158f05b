"""Options that several modules of the command line share, and how a command is carried out."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer


def seconds(text: str) -> float:
    """Return the seconds of a time such as 15m. Raises typer.BadParameter."""
    from bot.approvals.decisions import seconds as read

    if (found := read(text)) is None:
        raise typer.BadParameter(f"{text!r} is no time such as 15m, 1h30m or 45s")
    return found


def _given(context: typer.Context, config: Path | None) -> Path | None:
    """Behind a command, else in front of it."""
    return config or context.obj


_CONFIG_HELP = "Configuration file; otherwise HARK_CONFIG, ./config.yaml, the last `hark run`."
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="FILE", help=_CONFIG_HELP, callback=_given)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def carry_out(config: Path | None, work: Callable[..., Awaitable[int]]) -> NoReturn:
    """Do the work of a command, and leave with its exit code."""
    from bot.cli.local import carry_out as do

    raise typer.Exit(do(config, work))
