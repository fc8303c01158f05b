"""The commands of `hark sessions` and their options, and nothing of what they do; see `bot/cli/app.py`."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from bot.cli.options import AsJson, ConfigOption, carry_out, seconds

sessions_app = typer.Typer(help="Look at transcripts.", no_args_is_help=True, rich_markup_mode=None)

_NAME_HELP = "A session's key, a transcript's id, or the beginning of one."
Name = Annotated[str, typer.Argument(metavar="KEY|TRANSCRIPT", help=_NAME_HELP)]
Words = Annotated[list[str], typer.Argument(metavar="WORDS", help="All of them stand in what is found.")]
Form = Annotated[Literal["jsonl", "markdown", "html"], typer.Option("--format", help="What the file is to be.")]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="The file; otherwise it is printed.")]
_FILE_HELP = "JSON lines of Hark, OpenClaw or nanobot."
File = Annotated[Path, typer.Argument(metavar="FILE", help=_FILE_HELP)]
Session = Annotated[str, typer.Option(metavar="KEY", help="The session that it belongs to; otherwise by the file.")]
_AGE_HELP = "Those that nobody has used for so long, such as 30d."
OlderThan = Annotated[float | None, typer.Option("--older-than", metavar="TIME", parser=seconds, help=_AGE_HELP)]
Whom = Annotated[str, typer.Argument(metavar="CHANNEL:ID", help="Who, as `hark people` names them.")]
Yes = Annotated[bool, typer.Option("--yes", help="It is meant: nothing of it comes back.")]
Keep = Annotated[int | None, typer.Option(min=1, metavar="N", help="Those beyond the newest N of each session.")]


@sessions_app.command("list")
def sessions_list(as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Show the transcripts of all sessions."""
    from bot.cli.sessions import show_list

    carry_out(config, partial(show_list, as_json))


@sessions_app.command("show")
def sessions_show(name: Name, config: ConfigOption = None) -> None:
    """Print a transcript. Exit code: 0 done, 1 there is none."""
    from bot.cli.sessions import show

    carry_out(config, partial(show, name))


@sessions_app.command("search")
def sessions_search(words: Words, as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Find what was said. Exit code: 0 found, 1 nothing was."""
    from bot.cli.sessions import search

    carry_out(config, partial(search, " ".join(words), as_json))


@sessions_app.command("export")
def sessions_export(name: Name, form: Form = "jsonl", output: Output = None, config: ConfigOption = None) -> None:
    """Write a transcript to a file. Exit code: 0 done, 1 there is none."""
    from bot.cli.sessions import export

    carry_out(config, partial(export, name, form, output))


@sessions_app.command("import")
def sessions_import(file: File, session: Session = "", config: ConfigOption = None) -> None:
    """Take a transcript from FILE; `/sessions resume` goes on with it. Exit code: 0 done, 1 not."""
    from bot.cli.sessions import take_in

    carry_out(config, partial(take_in, file.absolute(), session))


@sessions_app.command("prune")
def sessions_prune(older_than: OlderThan = None, keep: Keep = None, config: ConfigOption = None) -> None:
    """Delete old transcripts, by sessions.prune of the configuration unless it is said here."""
    from bot.cli.sessions import prune

    carry_out(config, partial(prune, None if older_than is None else timedelta(seconds=older_than), keep))


@sessions_app.command("forget")
def sessions_forget(who: Whom, yes: Yes = False, config: ConfigOption = None) -> None:
    """Delete all that is stored of a person. Exit code: 0 done, 1 nothing is stored of them, 2 without --yes."""
    from bot.cli.sessions import forget

    carry_out(config, partial(forget, who, yes))
