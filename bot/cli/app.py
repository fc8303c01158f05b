"""The command line: which commands and options there are, and nothing of what they do.

Imports typer and the standard library only, so that `hark --help` answers at once; each command imports its
module when it is called. A mistake in the configuration is shown here, for all of them: exit code 2.
"""

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from bot.config.errors import ConfigError

USAGE = 2

app = typer.Typer(
    name="hark",
    help="A self-hosted assistant that lives where people already talk.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help: rich would cost more time than everything else together.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Look at the configuration.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(config_app, name="config")
pairing_app = typer.Typer(help="Let people in who ask to write.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(pairing_app, name="pairing")

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration file; otherwise HARK_CONFIG, ./config.yaml, the last `hark run`.",
    ),
]


def main() -> None:
    """Run the command in `sys.argv` and leave with its exit code."""
    try:
        app(prog_name="hark")
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        raise SystemExit(USAGE) from None


def _carry_out(context: typer.Context, config: Path | None, work: Callable[..., Awaitable[int]]) -> NoReturn:
    """See bot.cli.local."""
    from bot.cli.local import carry_out

    raise typer.Exit(carry_out(config or context.obj, work))


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hark {version('hark-bot')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    config: ConfigOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    context.obj = config


@app.command()
def run(context: typer.Context, config: ConfigOption = None) -> None:
    """Run the service in the foreground; SIGTERM lets it finish what it is doing."""
    from bot.cli.run import main as run_service

    raise typer.Exit(run_service(config or context.obj))


@app.command()
def chat(context: typer.Context, config: ConfigOption = None) -> None:
    """Talk in this terminal."""
    from bot.cli.local import chat as talk

    _carry_out(context, config, talk)


@app.command()
def agent(
    context: typer.Context,
    message: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--message",
            metavar="TEXT",
            help="What to say; what is piped in follows it. Without it, or with -, all comes from standard input.",
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="KEY", help="The session it belongs to; otherwise one of its own.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER/MODEL", help="Which model answers, unless a service runs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Wait no longer than this many seconds.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Let the agent do one turn. Exit code: 0 answered, 1 failed, 2 usage, 3 timed out."""
    from bot.cli.agent import main as one_turn

    raise typer.Exit(one_turn(config or context.obj, message, session, model, as_json, timeout))


@app.command()
def status(context: typer.Context, config: ConfigOption = None) -> None:
    """Show whether the service runs and what it is doing."""
    from bot.cli.status import status as show_status

    _carry_out(context, config, show_status)


@app.command()
def doctor(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    config: ConfigOption = None,
) -> None:
    """Look for what is missing or wrong, and say what to do. Exit code: 0 nothing is wrong, 1 something is."""
    from bot.cli.doctor import examine

    _carry_out(context, config, partial(examine, as_json))


@pairing_app.command("list")
def pairing_list(context: typer.Context, config: ConfigOption = None) -> None:
    """Show who waits to be let in: channel, id and name."""
    from bot.cli.pairing import show

    _carry_out(context, config, show)


@pairing_app.command()
def approve(
    context: typer.Context,
    code: str,
    owner: Annotated[bool, typer.Option("--owner", help="Make them an owner of the bot as well.")] = False,
    config: ConfigOption = None,
) -> None:
    """Let in whoever was given CODE. Exit code: 0 done, 1 wrong or used."""
    from bot.cli.pairing import settle

    _carry_out(context, config, partial(settle, code, "owner" if owner else "allowed"))


@pairing_app.command()
def deny(context: typer.Context, code: str, config: ConfigOption = None) -> None:
    """Shut out whoever was given CODE, for good. Exit code: 0 done, 1 wrong or used."""
    from bot.cli.pairing import settle

    _carry_out(context, config, partial(settle, code, "blocked"))


@config_app.command()
def check(context: typer.Context, config: ConfigOption = None) -> None:
    """Read the configuration and show every mistake in it. Exit code: 0 none, 2 mistakes."""
    from bot.cli.config import check as check_configuration

    raise typer.Exit(check_configuration(config or context.obj))


@config_app.command()
def schema() -> None:
    """Print the JSON schema of the configuration file."""
    from bot.cli.config import schema as print_schema

    raise typer.Exit(print_schema())


@config_app.command()
def get(
    context: typer.Context,
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="Such as agent.model; all without it.")] = None,
    config: ConfigOption = None,
) -> None:
    """Show the value in effect, defaults included. Secrets are not shown."""
    from bot.cli.config import get as get_value

    raise typer.Exit(get_value(config or context.obj, key))
