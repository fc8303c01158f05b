"""`hark run`: the service in the foreground, with a terminal of its own where there is one.

SIGTERM and SIGINT drain; a second one leaves at once. What keeps the service from starting is said in one line.
"""

import asyncio
import gc
import os
import signal
import sqlite3
import sys
import termios
from pathlib import Path

import structlog

from bot.cli.home import beginning, is_begun, note
from bot.config.checks import warnings
from bot.config.load import load
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.store.errors import StateLocked, StoreTooNew
from bot.telemetry.logs import set_up
from bot.telemetry.redact import Redactor

log = structlog.get_logger()

FAILED = 1
LOG_FILE = "hark.log"


def main(config_path: Path | None) -> int:
    """Run until told to stop. Returns the exit code: 0, or 1 when the service could not start.

    Raises ConfigError, which the command line shows.
    """
    config = load(config_path, os.environ, Path.cwd())
    interactive = config.channels.console.enabled and sys.stdin is not None and sys.stdin.isatty()
    from bot.gateway.server import GatewayError

    try:
        config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        set_up(Redactor(secrets(config)), config.state / LOG_FILE if interactive else None)
        if not is_begun(config):
            print(beginning(config)) if interactive else log.info(beginning(config))  # noqa: T201
        return asyncio.run(_run(config, config_path, interactive))
    except (StateLocked, StoreTooNew, GatewayError) as error:
        print(error, file=sys.stderr)  # noqa: T201
    except (OSError, sqlite3.Error) as error:
        print(f"Hark cannot start: {error}", file=sys.stderr)  # noqa: T201
    return FAILED


def secrets(config: Config) -> list[str]:
    """Every secret of the configuration and of the environment it reads, for the redactor."""
    found = [key.get_secret_value() for provider in config.providers.values() for key in provider.api_keys]
    found += [os.environ.get("ANTHROPIC_API_KEY", ""), os.environ.get("OPENAI_API_KEY", "")]
    for secret in (config.channels.telegram.token, config.gateway.token):
        if secret is not None:
            found.append(secret.get_secret_value())
    return found


async def _run(config: Config, config_path: Path | None, interactive: bool) -> int:
    from bot.wiring import Surroundings, build

    for warning in warnings(config):
        log.warning(warning)
        if interactive:
            print(f"Warning: {warning}.")  # noqa: T201
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    screen = termios.tcgetattr(sys.stdin) if interactive else None

    def on_signal() -> None:
        if stop.is_set():
            if screen is not None:
                termios.tcsetattr(sys.stdin, termios.TCSANOW, screen)
            os._exit(FAILED)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    # What the imports left stays for good: a full collection walks through it for up to 100 ms, all sessions waiting.
    service = await build(config, Surroundings(environ=os.environ, on_warm=gc.freeze))
    terminal = None
    try:
        await service.start()
        note(config_path, config.state)
        if interactive:
            terminal = asyncio.create_task(_terminal(config.state / SOCKET, stop), name="terminal")
        await stop.wait()
    finally:
        await service.close()
        if terminal is not None:
            terminal.cancel()
            await asyncio.wait([terminal])
    return 0


async def _terminal(socket: Path, stop: asyncio.Event) -> None:
    """The console of the service: leaving it with Ctrl-C stops the service, its end-of-file or failure does not."""
    from bot.cli.terminal.session import FINISHING, Left, talk

    try:
        left = await talk(socket, "Ctrl-D closes this terminal, Ctrl-C twice stops Hark", stopping=stop)
    except Exception:
        if not stop.is_set():
            log.exception("the terminal has failed")
        return
    if left is Left.INTERRUPTED and not stop.is_set():
        print(FINISHING)  # noqa: T201
        stop.set()
    elif left is Left.END_OF_INPUT and not stop.is_set():
        print("The terminal is closed, Hark goes on; Ctrl-C stops it.")  # noqa: T201
