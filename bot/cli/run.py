"""`hark run`: the service in the foreground, with a terminal of its own where there is one.

SIGTERM, SIGINT and a closed terminal drain; a second SIGTERM or SIGINT leaves at once. What keeps the service from
starting is said in one line.
"""

import asyncio
import gc
import os
import shutil
import signal
import sqlite3
import sys
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path

import structlog

from agent.sandbox.base import ONLY_LOOKS
from bot.cli.home import beginning, is_begun, note
from bot.config.checks import warnings
from bot.config.file import ConfigFile
from bot.config.model import Config
from bot.config.secrets import secrets, shield
from bot.gateway.unix_socket import SOCKET
from bot.persistence.errors import StateLocked, StoreTooNew, StoreUnavailable
from bot.telemetry.logs import set_up
from bot.telemetry.redact import Redactor

log = structlog.get_logger()

FAILED = 1
LOG_FILE = "hark.log"


def main(config_path: Path | None) -> int:
    """Run until told to stop. Returns the exit code: 0, or 1 when the service could not start.

    Raises ConfigError, which the command line shows.
    """
    file = ConfigFile(config_path, dict(os.environ), Path.cwd())  # with the secrets that this process soon hides
    config = file.load()
    environ = config.environ(os.environ)
    interactive = config.channels.sections()["console"].enabled and sys.stdin is not None and sys.stdin.isatty()
    from bot.gateway.server import GatewayError

    try:
        redactor = prepare(config, environ, log_to_file=interactive)
        code = asyncio.run(_run(config, file, interactive, environ, redactor))
        if code is not None:
            return code
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], file.environ)
    except (StateLocked, StoreTooNew, GatewayError) as error:
        print(error, file=sys.stderr)  # noqa: T201
    except (OSError, sqlite3.Error) as error:
        print(f"Hark cannot start: {error}", file=sys.stderr)  # noqa: T201
    return FAILED


def prepare(config: Config, environ: Mapping[str, str], *, log_to_file: bool) -> Redactor:
    """Make the state directory, hide this process's secrets and begin the log, in that order; returns what keeps
    secrets out of the log. Raises OSError.
    """
    config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = secrets(config, environ)
    shield(known)
    set_up(redactor := Redactor(known), config.state / LOG_FILE if log_to_file else None)
    return redactor


async def _run(
    config: Config, file: ConfigFile, interactive: bool, environ: Mapping[str, str], redactor: Redactor
) -> int | None:
    """Serve until told to stop, or until a restart is due: then None is returned, and the process is to be replaced."""
    from bot.wiring import Dependencies, build

    for warning in warnings(config):
        log.warning(warning)
        if interactive:
            print(f"Warning: {warning}.")  # noqa: T201
    begun = is_begun(config)
    stop, told = asyncio.Event(), asyncio.Event()  # told: by a signal or at the terminal, and not by a restart
    loop = asyncio.get_running_loop()
    screen = termios.tcgetattr(sys.stdin) if interactive else None

    def on_hangup() -> None:
        told.set()
        stop.set()

    def on_signal() -> None:
        if told.is_set():
            if screen is not None:
                termios.tcsetattr(sys.stdin, termios.TCSANOW, screen)
            os._exit(FAILED)
        on_hangup()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` leaves it
        loop.add_signal_handler(signal.SIGHUP, on_hangup)  # a closed terminal sends several, which is no haste
    # What the imports left stays for good: a full collection walks through it for up to 100 ms, all sessions waiting.
    on_wait = _waits if interactive else lambda error: None
    outside = Dependencies(environ=environ, on_preloaded=gc.freeze, on_wait=on_wait, file=file, learn=redactor.learn)
    service = await build(config, outside)
    service.parts.restart.on_due = stop.set
    starting = asyncio.create_task(service.start(), name="start")  # may take as long as the disk is full
    stopped = asyncio.create_task(stop.wait(), name="stopped")
    terminal = None
    try:
        await asyncio.wait((starting, stopped), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()  # raises what kept it from starting
            if not begun:
                print(beginning(config)) if interactive else log.info(beginning(config))  # noqa: T201
            note(file.named, config.state)
            for line in (_held(config, service.parts.sandbox), *_command()):
                print(line) if interactive else log.info(line)  # noqa: T201
            if interactive:
                print(f"The log is {config.state / LOG_FILE}.")  # noqa: T201
                terminal = asyncio.create_task(_terminal(config.state / SOCKET, stop), name="terminal")
            await stopped
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        stopped.cancel()
        await service.close()
        if terminal is not None:
            terminal.cancel()
            await asyncio.wait([terminal])
    return None if service.parts.restart.is_due and not told.is_set() else 0


def _held(config: Config, sandbox: str) -> str:
    """Where commands run, for whoever starts the service."""
    if config.tools.exec.security == "deny":
        return "Commands: none run (tools.exec.security: deny)."
    if config.tools.exec.security == "full" and ONLY_LOOKS not in sandbox:
        return (
            f"Sandbox for commands: {sandbox}. With tools.exec.security: full they run there without a question, with "
            "network and in the workspace; what is to run outside of it is asked about."
        )
    return f"Sandbox for commands: {sandbox.rstrip('.')}."


def _command() -> Iterator[str]:
    """How other commands are typed, where the shell does not find this program as `hark`."""
    own, found = Path(sys.prefix, "bin", "hark"), shutil.which("hark")
    if own.exists() and not (found and own.samefile(found)):
        yield f"Other commands are `{own} …`; to type `hark …`, copy this line into your shell: alias hark=\"'{own}'\""


def _waits(error: StoreUnavailable) -> None:
    """The log goes into a file: say it on the terminal as well."""
    print(f"Hark waits with its start, and goes on by itself: {error}", file=sys.stderr)  # noqa: T201


async def _terminal(socket: Path, stop: asyncio.Event) -> None:
    """The console of the service: leaving it with Ctrl-C stops the service, its end-of-file or failure does not."""
    from bot.cli.terminal.session import FINISHING, talk

    try:
        done = await talk(socket, "Ctrl-D closes this terminal, Ctrl-C twice stops Hark", stop)
    except Exception:
        if not stop.is_set():
            log.exception("the terminal has failed")
        return
    if stop.is_set():
        return
    if done:
        print(FINISHING)  # noqa: T201
        stop.set()
    else:
        print("The terminal is closed, Hark goes on; Ctrl-C stops it.")  # noqa: T201
