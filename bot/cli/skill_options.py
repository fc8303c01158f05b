"""The commands of `hark skills` and their options, and nothing of what they do; see `bot/cli/app.py`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.options import AsJson, ConfigOption, carry_out

skills_app = typer.Typer(help="Look at skills, and install them.", no_args_is_help=True, rich_markup_mode=None)

_SOURCE_HELP = "A folder with a SKILL.md, a .zip or a .tar.gz."
Source = Annotated[Path, typer.Argument(metavar="PATH|ARCHIVE", help=_SOURCE_HELP)]
Yes = Annotated[bool, typer.Option("--yes", help="Install it without a question.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="As the list names it.")]


@skills_app.command("list")
def skills_list(as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Show the skills of the workspace, and why some are not loaded."""
    from bot.cli.skills import show

    carry_out(config, partial(show, as_json))


@skills_app.command("install")
def skills_install(source: Source, yes: Yes = False, config: ConfigOption = None) -> None:
    """Copy a skill into the workspace, once you have seen what is in it. Exit code: 0 done, 1 not."""
    from bot.cli.skills import install

    carry_out(config, partial(install, source, yes))


@skills_app.command("accept")
def skills_accept(name: Name, config: ConfigOption = None) -> None:
    """Load a skill that is new or was changed: you have looked at it. Exit code: 0 done, 1 not."""
    from bot.cli.skills import accept

    carry_out(config, partial(accept, name))
