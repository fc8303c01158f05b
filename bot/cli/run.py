"""`hark run`: the service in the foreground, with a terminal of its own where there is one.

SIGTERM and SIGINT drain; a second one leaves at once. What keeps the service from starting is said in one line.
"""

import asyncio
import gc
import os
import signal
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path

import structlog

from bot.cli.shield import shield
from bot.config.load import load
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.store.errors import StateLocked, StoreTooNew, StoreUnavailable
from bot.telemetry.logs import set_up
from bot.telemetry.redact import Redactor, mask_url

log = structlog.get_logger()

FAILED = 1
LOG_FILE = "hark.log"


def main(config_path: Path | None) -> int:
    """Run until told to stop. Returns the exit code: 0, or 1 when the service could not start.

    Raises ConfigError, which the command line shows.
    """
    environ = dict(os.environ)
    config = load(config_path, environ, Path.cwd(), service=True)
    interactive = config.channels.console.enabled and sys.stdin.isatty()
    from bot.gateway.server import GatewayError

    try:
        config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = secrets(config, environ)
        shield(known)
        set_up(Redactor(known), config.state / LOG_FILE if interactive else None)
        return asyncio.run(_run(config, interactive, environ))
    except (StateLocked, StoreTooNew, GatewayError) as error:
        print(error, file=sys.stderr)  # noqa: T201
    except (OSError, sqlite3.Error) as error:
        print(f"Hark cannot start: {error}", file=sys.stderr)  # noqa: T201
    return FAILED


def secrets(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Every secret of the configuration, those inside URLs too, and of the environment it reads."""
    found = [key.get_secret_value() for provider in config.providers.values() for key in provider.api_keys]
    found += [environ.get("ANTHROPIC_API_KEY", ""), environ.get("OPENAI_API_KEY", "")]
    urls = [environ.get("ANTHROPIC_BASE_URL", ""), environ.get("OPENAI_BASE_URL", "")]
    urls += [provider.base_url or "" for provider in config.providers.values()]
    urls += [config.channels.telegram.base_url, config.channels.telegram.base_file_url]
    found += [secret for url in urls for secret in mask_url(url)[1]]
    for secret in (config.channels.telegram.token, config.gateway.token):
        if secret is not None:
            found.append(secret.get_secret_value())
    return found


async def _run(config: Config, interactive: bool, environ: Mapping[str, str]) -> int:
    from bot.wiring import Surroundings, build

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(FAILED)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    # What the imports left stays for good: a full collection walks through it for up to 100 ms, all sessions waiting.
    around = Surroundings(environ=environ, on_warm=gc.freeze, on_wait=_waits if interactive else lambda error: None)
    service = await build(config, around)

    async def serve() -> None:
        await service.start()  # may take as long as the disk is full
        if interactive:
            await _terminal(config.state / SOCKET, stop)
        await stop.wait()

    serving = asyncio.create_task(serve(), name="serve")
    stopped = asyncio.create_task(stop.wait(), name="stopped")
    try:
        await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()  # raises what kept it from starting
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        stopped.cancel()
        await service.close()
    return 0


def _waits(error: StoreUnavailable) -> None:
    """The log goes into a file: say it on the terminal as well."""
    print(f"Hark waits with its start, and goes on by itself: {error}", file=sys.stderr)  # noqa: T201


async def _terminal(socket: Path, stop: asyncio.Event) -> None:
    """The console of the service: leaving it with Ctrl-C stops the service, its end-of-file or failure does not."""
    from bot.cli.terminal.session import Left, talk

    try:
        left = await talk(socket, "Ctrl-D closes this terminal, Ctrl-C twice stops Hark")
    except Exception:
        log.exception("the terminal has failed")
        return
    if left is Left.INTERRUPTED:
        stop.set()
    else:
        print("The terminal is closed, Hark goes on; Ctrl-C stops it.")  # noqa: T201
