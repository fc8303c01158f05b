"""`hark doctor`: what is right, what is missing and what is wrong, one line each with what to do."""

import json
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Literal

from bot.cli.local import FAILED
from bot.cli.terminal.client import Client, Unreachable
from bot.config.checks import warnings
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.gateway.views import ReadinessView


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. about: the part that was looked at."""

    state: Literal["ok", "note", "wrong"]
    about: str
    text: str


async def examine(as_json: bool, config: Config) -> int:
    """Print what was found. Returns the exit code: 0 when nothing is wrong, else 1."""
    found = list(_configured(config))
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            found += _running(await client.readiness())
    except Unreachable:
        found.append(Finding("wrong", "service", f"is not running in {config.state}; `hark run` starts it"))
    if as_json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))  # noqa: T201
    else:
        width = max(len(one.about) for one in found)
        print("\n".join(f"{one.state:<6}{one.about:<{width + 2}}{one.text}" for one in found))  # noqa: T201
    return FAILED if any(one.state == "wrong" for one in found) else 0


def _configured(config: Config) -> Iterator[Finding]:
    yield Finding("ok", "configuration", "no mistakes")
    for warning in warnings(config):
        yield Finding("note", "configuration", warning)
    sections = config.channels.sections().items()
    platforms = [name for name, section in sections if section.enabled and not section.local]
    if not platforms:
        reached = "the bot can be reached in the terminal and over HTTP"
        yield Finding("note", "platforms", f"none is enabled: {reached}; docs/channels says how to add one")


def _running(readiness: ReadinessView) -> Iterator[Finding]:
    text = "running and ready" if readiness.ready else "running, and not ready: see below"
    yield Finding("ok" if readiness.ready else "wrong", "service", text)
    for name, channel in readiness.channels.items():
        ready = channel.state == "ready"
        for number, sentence in enumerate((channel.detail or channel.state).split("; ")):
            state: Literal["ok", "note", "wrong"] = ("note" if number else "ok") if ready else "wrong"
            yield Finding(state, name, sentence)
