"""`hark status`: whether the service runs, and what it is doing."""

import sqlite3
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

from bot.cli.home import DATABASE, is_begun
from bot.cli.local import FAILED
from bot.cli.terminal.client import Client, Rejected, Unreachable
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.gateway.views import ReadinessView, StatusView
from bot.store.reads import look


async def status(config: Config) -> int:
    """Print it. Returns the exit code: 0 when the service runs and is ready, else 1."""
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            readiness, view = await client.readiness(), None
            with suppress(Rejected):  # it is starting, or its store cannot be read; the readiness says why
                view = await client.status()
    except Unreachable:
        print(f"No service is running in {config.state}. `hark run` starts one.")  # noqa: T201
        if is_begun(config):
            print(_stored(config.state / DATABASE))  # noqa: T201
        return FAILED
    print(describe(readiness, view))  # noqa: T201
    return 0 if readiness.ready else FAILED


def describe(readiness: ReadinessView, status: StatusView | None) -> str:
    """The service in a few lines. status: None when it cannot be told."""
    width = max((len(name) for name in readiness.channels), default=0)
    channels = [
        f"{name:<{width}}  {channel.state} since {_local(datetime.fromisoformat(channel.since))}"
        + (f": {channel.detail}" if channel.detail else "")
        for name, channel in readiness.channels.items()
    ]
    lines = [
        "Hark is running and ready." if readiness.ready else "Hark is running, but not ready.",
        *(f"{'' if number else 'channels':<12}{line}" for number, line in enumerate(channels)),
    ]
    if status is not None:
        lines.insert(1, f"model       {status.model} ({status.model_reason})")
        lines += [f"{name:<12}{text}" for name, text in status.rows(at)]
    return "\n".join(lines)


def _stored(file: Path) -> str:
    """What a service would find."""
    try:
        held = look(file)
    except sqlite3.Error as error:
        return f"The store {file} cannot be read: {error}."
    used = "" if held.used_at is None else f", last used {at(held.used_at)}"
    runs = f"{held.begun} to go on, {held.waiting} waiting"
    deliveries = f"{held.undelivered} open, {held.failed_deliveries} refused"
    return f"sessions    {held.sessions}{used}\nruns        {runs}\ndeliveries  {deliveries}"


def at(moment: int) -> str:
    """Milliseconds since the epoch on this machine's clock."""
    return _local(datetime.fromtimestamp(moment / 1000, UTC))


def _local(moment: datetime) -> str:
    """A moment on this machine's clock."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")
