"""The command line: which commands and options there are, and nothing of what they do.

Imports typer, options and the standard library only, so that `hark --help` answers at once; each command imports its
module when it is called. A mistake in the configuration is shown here, for all of them: exit code 2.
"""

import sys
from copy import copy
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal, cast

import typer

from bot.cli.mcp_options import mcp_app
from bot.cli.options import AsJson, ConfigOption
from bot.cli.options import carry_out as _carry_out
from bot.cli.options import seconds as _seconds
from bot.cli.session_options import sessions_app
from bot.cli.skill_options import skills_app
from bot.config.errors import ConfigError

USAGE = 2
# What can be frozen.
What = Literal["all", "tools", "network", "beats"]

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
heartbeat_app = typer.Typer(help="What it looks after by itself.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(heartbeat_app, name="heartbeat")
approvals_app = typer.Typer(help="Decide what it asks for.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(approvals_app, name="approvals")
security_app = typer.Typer(help="Look at what lets others in.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(security_app, name="security")
app.add_typer(sessions_app, name="sessions")
app.add_typer(mcp_app, name="mcp")
app.add_typer(skills_app, name="skills")


AsOwner = Annotated[bool, typer.Option("--owner", help="Make them an owner of the bot as well.")]
KeyArgument = Annotated[str | None, typer.Argument(metavar="[KEY]", help="Such as agent.model; all without it.")]
ChangedKey = Annotated[str, typer.Argument(metavar="KEY", help="Such as queue.debounce_ms.")]
NewValue = Annotated[str, typer.Argument(metavar="VALUE", help="Such as 30m, true or [a, b].")]

_MESSAGE_HELP = "What to say; what is piped in follows it. Without it, or with -, all comes from standard input."
_SESSION_HELP = "The session it belongs to; otherwise one of its own."
_MODEL_HELP = "Which model answers, unless a service runs."
Message = Annotated[str | None, typer.Option("-m", "--message", metavar="TEXT", help=_MESSAGE_HELP)]
Session = Annotated[str | None, typer.Option(metavar="KEY", help=_SESSION_HELP)]
Model = Annotated[str | None, typer.Option(metavar="PROVIDER/MODEL", help=_MODEL_HELP)]
Dry = Annotated[bool, typer.Option("--dry", help="Only print what would be asked, and whether.")]
Event = Annotated[str, typer.Option("--text", metavar="TEXT", help="What has happened.")]
Now = Annotated[bool, typer.Option("--now", help="Beat at once, instead of waiting for the next turn.")]
Told = Annotated[str | None, typer.Option(metavar="KEY", help="Who is told; otherwise the session of the heartbeat.")]
RequestId = Annotated[str, typer.Argument(metavar="REQUEST", help="Its id, or the beginning of it.")]
Always = Annotated[bool, typer.Option("--always", help="Allow the same from now on, too.")]
Only = Annotated[list[int] | None, typer.Option(metavar="N", help="Of several calls only this one; again for more.")]
_SPAN_HELP = "Allow the same for so long in its session, too, such as 15m."
Span = Annotated[float | None, typer.Option("--for", metavar="TIME", parser=_seconds, help=_SPAN_HELP)]
BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="A file that is not there yet.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; the model is told.")]
_ORDER_HELP = "Take back what was said of somebody, shut them out everywhere, or make them an owner."
OrderArgument = Annotated[Literal["revoke", "block", "owner"] | None, typer.Argument(help=_ORDER_HELP)]
Whom = Annotated[str, typer.Argument(metavar="[CHANNEL:ID]", help="Who, as the list names them.")]
BalanceOrder = Annotated[Literal["accept"] | None, typer.Argument(help="Accept MESSAGE without an explanation.")]
MessageArgument = Annotated[str, typer.Argument(metavar="[MESSAGE]", help="As the book names it.")]
_SINCE_HELP = "Only of messages since then: a duration such as 24h, or a date."
Since = Annotated[str, typer.Option(metavar="TIME", help=_SINCE_HELP)]
Timeout = Annotated[float | None, typer.Option(min=0, metavar="S", help="Wait no longer than this many seconds.")]


def main() -> None:
    """Run the command in `sys.argv` and leave with its exit code."""
    try:
        _called(sys.argv[1:])(prog_name="hark")
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        raise SystemExit(USAGE) from None


def _called(arguments: list[str]) -> typer.Typer:
    """Return the application with only the command that is called, because typer reads the signature of each one."""
    name = arguments[0] if arguments else ""
    commands = [one for one in app.registered_commands if one.callback and name == (one.name or one.callback.__name__)]
    groups = [one for one in app.registered_groups if name == one.name]
    if not commands and not groups:
        return app
    called = copy(app)
    called.registered_commands, called.registered_groups = commands, groups
    return called


def _import_structlog_without_rich() -> None:
    """Save 5 MiB of a running service: structlog imports rich wherever it is, and the log of a service needs none."""
    if "rich" not in sys.modules:
        sys.modules["rich"] = cast(ModuleType, None)  # stands for a module that is not there
        import structlog  # noqa: F401

        del sys.modules["rich"]


def _show_version(wanted: bool) -> None:
    if wanted:
        from bot.cli.version import described

        typer.echo(described())
        raise typer.Exit


_VERSION = typer.Option("--version", callback=_show_version, is_eager=True, help="Show version, commit and schema.")


@app.callback()
def _options(context: typer.Context, config: ConfigOption = None, version: Annotated[bool, _VERSION] = False) -> None:
    context.obj = config


@app.command()
def run(config: ConfigOption = None) -> None:
    """Run the service in the foreground; SIGTERM lets it finish what it is doing."""
    _import_structlog_without_rich()
    from bot.cli.run import main as run_service

    raise typer.Exit(run_service(config))


@app.command()
def chat(config: ConfigOption = None) -> None:
    """Talk in this terminal."""
    from bot.cli.local import chat as talk

    _carry_out(config, talk)


@app.command()
def agent(
    message: Message = None,
    session: Session = None,
    model: Model = None,
    as_json: AsJson = False,
    timeout: Timeout = None,
    config: ConfigOption = None,
) -> None:
    """Let the agent do one turn. Exit code: 0 answered, 1 failed, 2 usage, 3 timed out."""
    from bot.cli.agent import main as one_turn

    raise typer.Exit(one_turn(config, message, session, model, as_json, timeout))


@app.command()
def status(config: ConfigOption = None) -> None:
    """Show whether the service runs and what it is doing."""
    from bot.cli.status import status as show_status

    _carry_out(config, show_status)


@app.command()
def restart(config: ConfigOption = None) -> None:
    """Start the service anew as soon as nothing runs in it. Exit code: 0 it will, 1 it does not."""
    from bot.cli.restart import restart as begin

    _carry_out(config, begin)


@app.command()
def usage(as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Show what models have used, today and in seven days."""
    from bot.cli.usage import show as show_usage

    _carry_out(config, partial(show_usage, as_json))


@app.command()
def balance(
    order: BalanceOrder = None,
    message: MessageArgument = "",
    as_json: AsJson = False,
    since: Since = "",
    config: ConfigOption = None,
) -> None:
    """Show whether each message was answered, told why not or waits; or accept one that is not explained.

    Exit code: 0 all are explained, or MESSAGE is accepted; 1 not.
    """
    from bot.cli.balance import accept, show

    _carry_out(config, partial(accept, message) if order else partial(show, as_json, since))


@app.command()
def doctor(as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Look for what is missing or wrong, and say what to do. Exit code: 0 nothing is wrong, 1 something is."""
    from bot.cli.doctor import examine

    _carry_out(config, partial(examine, as_json))


@app.command()
def backup(file: BackupFile, config: ConfigOption = None) -> None:
    """Copy the store to FILE, also while the service runs. Exit code: 0 done, 1 not."""
    from bot.cli.backup import backup as back_up

    _carry_out(config, partial(back_up, file))


@app.command()
def freeze(
    what: Annotated[What, typer.Argument(metavar="[all|tools|network|beats]")] = "all", config: ConfigOption = None
) -> None:
    """Stop everything, or a part of it, until `hark thaw`; it survives restarts."""
    from bot.cli.freeze import freeze as stop

    _carry_out(config, partial(stop, what))


@app.command()
def thaw(config: ConfigOption = None) -> None:
    """Let go on what was frozen, in order."""
    from bot.cli.freeze import thaw as go_on

    _carry_out(config, go_on)


@pairing_app.command("list")
def pairing_list(config: ConfigOption = None) -> None:
    """Show who waits to be let in: channel, id and name."""
    from bot.cli.people import show_waiting

    _carry_out(config, show_waiting)


@pairing_app.command()
def approve(code: str, owner: AsOwner = False, config: ConfigOption = None) -> None:
    """Let in whoever was given CODE. Exit code: 0 done, 1 wrong or used."""
    from bot.cli.people import settle

    _carry_out(config, partial(settle, code, "owner" if owner else "allowed"))


@pairing_app.command()
def deny(code: str, config: ConfigOption = None) -> None:
    """Shut out whoever was given CODE, for good. Exit code: 0 done, 1 wrong or used."""
    from bot.cli.people import settle

    _carry_out(config, partial(settle, code, "blocked"))


@app.command()
def people(order: OrderArgument = None, who: Whom = "", as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Show owners, who is let in, shut out or waits; or change it. Exit code: 0 done, 1 nothing was changed."""
    from bot.cli.people import change, show

    _carry_out(config, partial(change, order, who) if order else partial(show, as_json))


@heartbeat_app.command("status")
def heartbeat_status(config: ConfigOption = None) -> None:
    """Show whether it beats, when next, what today has cost, and the last beats."""
    from bot.cli.heartbeat import status as show_heartbeat

    _carry_out(config, show_heartbeat)


@heartbeat_app.command("run")
def heartbeat_run(dry: Dry = False, config: ConfigOption = None) -> None:
    """Beat now. Exit code: 0 it does, 1 something keeps it."""
    from bot.cli.heartbeat import run as beat

    _carry_out(config, partial(beat, dry))


@heartbeat_app.command("wake")
def heartbeat_wake(text: Event, now: Now = False, session: Told = None, config: ConfigOption = None) -> None:
    """Tell the bot of an event: its next turn sees it."""
    from bot.cli.heartbeat import wake

    _carry_out(config, partial(wake, text, now, session))


@approvals_app.command("list")
def approvals_list(as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Show what waits for a decision."""
    from bot.cli.approvals import show

    _carry_out(config, partial(show, as_json))


@approvals_app.command("approve")
def approvals_approve(
    request: RequestId,
    always: Always = False,
    span: Span = None,
    only: Only = None,
    config: ConfigOption = None,
) -> None:
    """Allow what REQUEST asks for. Exit code: 0 done, 1 unknown, ambiguous or decided."""
    from bot.cli.approvals import settle
    from bot.persistence.approvals import Choice

    choice = Choice(verdict="always" if always or span else "once", picked=tuple(only or ()), seconds=span or 0)
    _carry_out(config, partial(settle, request, choice))


@approvals_app.command("deny")
def approvals_deny(request: RequestId, reason: Reason = "", config: ConfigOption = None) -> None:
    """Deny it. Exit code: 0 done, 1 unknown, ambiguous or decided."""
    from bot.cli.approvals import settle
    from bot.persistence.approvals import Choice

    _carry_out(config, partial(settle, request, Choice(verdict="denied", reason=reason)))


@approvals_app.command("rules")
def approvals_rules(config: ConfigOption = None) -> None:
    """Show what was allowed for always."""
    from bot.cli.approvals import rules

    _carry_out(config, rules)


@approvals_app.command("forget")
def approvals_forget(number: int, config: ConfigOption = None) -> None:
    """Ask again about what was allowed for always, by its NUMBER. Exit code: 0 done, 1 there is none."""
    from bot.cli.approvals import forget

    _carry_out(config, partial(forget, number))


@security_app.callback()
def _security() -> None:
    """Look at what lets others in."""


@security_app.command()
def audit(as_json: AsJson = False, config: ConfigOption = None) -> None:
    """Show what lets others in further than need be. Exit code: 0 notes at most, 1 a warning, 3 a critical finding."""
    from bot.cli.audit import audit as look

    raise typer.Exit(look(config, as_json))


@config_app.command()
def check(config: ConfigOption = None) -> None:
    """Read the configuration and show every mistake in it. Exit code: 0 none, 2 mistakes."""
    from bot.cli.config import check as check_configuration

    raise typer.Exit(check_configuration(config))


@config_app.command()
def schema() -> None:
    """Print the JSON schema of the configuration file."""
    from bot.cli.config import schema as print_schema

    raise typer.Exit(print_schema())


@config_app.command()
def get(key: KeyArgument = None, config: ConfigOption = None) -> None:
    """Show the value in effect, defaults included. Secrets are not shown."""
    from bot.cli.config import get as get_value

    raise typer.Exit(get_value(config, key))


@config_app.command("set")
def set_value(key: ChangedKey, value: NewValue, config: ConfigOption = None) -> None:
    """Change KEY in the file to VALUE, written as there; comments stay. Exit code: 0 done, 2 it would not load."""
    from bot.cli.config import change

    raise typer.Exit(change(config, key, value))
