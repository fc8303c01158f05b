"""`hark doctor`: what is right, what is missing and what is wrong, one line each with what to do."""

import asyncio
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import aclosing, suppress
from dataclasses import asdict
from typing import Literal

from agent.sandbox.confinement import Confinement
from agent.sandbox.proof import choose
from bot.cli.local import FAILED
from bot.cli.terminal.client import Client, Rejected, Unreachable
from bot.cli.trials import Finding, tried
from bot.config.checks import service_conflicts, warnings
from bot.config.errors import dotted
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.gateway.views import ReadinessView


async def examine(as_json: bool, config: Config) -> int:
    """Print what was found. Returns the exit code: 0 when nothing is wrong, else 1."""
    environ, sandbox = config.environ(os.environ), ""
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            readiness = await client.readiness()
            found = [*_configured(config, readiness.channels), *_running(readiness)]
            with suppress(Rejected):  # it is starting
                sandbox = (await client.status()).sandbox
    except Unreachable:
        wrong = [f"{dotted(key)}: {text}" for key, text in service_conflicts(config, environ)]
        found = [Finding("wrong", "configuration", text) for text in wrong] or list(_configured(config))
        found.append(Finding("wrong", "service", f"is not running in {config.state}; `hark run` starts it"))
        found += await tried(config, environ)
    found.append(await _held(config, sandbox))
    if as_json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))  # noqa: T201
    else:
        width = max(len(one.about) for one in found)
        print("\n".join(f"{one.state:<6}{one.about:<{width + 2}}{one.text}" for one in found))  # noqa: T201
    return FAILED if any(one.state == "wrong" for one in found) else 0


def _configured(config: Config, served: Iterable[str] = ()) -> Iterator[Finding]:
    """How the configuration is. served: the channels of the service that runs."""
    for mistake in config.source.mistakes:
        # what is not set here the service has been given
        yield Finding("note" if mistake.unset else "wrong", "configuration", str(mistake))
    if not config.source.mistakes:
        yield Finding("ok", "configuration", "no mistakes")
    for warning in warnings(config):
        yield Finding("note", "configuration", warning)
    sections = config.channels.sections()
    served = {name.partition(":")[0] for name in served}
    if not any(not one.local and (one.enabled or name in served) for name, one in sections.items()):
        reached = "the bot can be reached in the terminal and over HTTP"
        yield Finding("note", "platforms", f"none is enabled: {reached}; docs/channels says how to add one")


async def _held(config: Config, sandbox: str) -> Finding:
    """What holds commands in. sandbox: as the service says it, which may run elsewhere; empty: it says nothing."""
    if not sandbox:
        proved = await asyncio.to_thread(choose, config.tools.exec.sandbox)
        sandbox = Confinement(sandbox=proved.sandbox, why=proved.why).shown
    return Finding("note" if sandbox.startswith("none") else "ok", "sandbox", sandbox)


def _running(readiness: ReadinessView) -> Iterator[Finding]:
    text = "running and ready" if readiness.ready else "running, and not ready: see below"
    yield Finding("ok" if readiness.ready else "wrong", "service", text)
    for name, channel in readiness.channels.items():
        ready = channel.state == "ready"
        for number, sentence in enumerate((channel.detail or channel.state).split("; ")):
            state: Literal["ok", "note", "wrong"] = ("note" if number else "ok") if ready else "wrong"
            yield Finding(state, name, sentence)
