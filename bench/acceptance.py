"""From an event to its acknowledgement, when 200 people write at once.

Slack waits for three seconds, and so does Discord for the first sign that a command has arrived. Telegram waits for
ever, and forgets an update when the next poll asks for later ones.

The platforms are the stand-ins of the tests, on loopback sockets and in this process, so their own work is in the
figures. The service is what `hark run` builds; one run at a time is under way beside the acceptance.
"""

import asyncio
import contextlib
import re
import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Row, Scale, mid
from bench.model import Model
from bench.service import folder, logs, settings
from bot.config.model import Config
from bot.service import Service
from tests.standins import discord_objects, slack_shapes, telegram_updates
from tests.standins.discord_server import DiscordServer
from tests.standins.slack_delivery import Envelope
from tests.standins.slack_server import SlackServer
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import private

TITLE = "Acceptance: 200 events at once, from the event to its acknowledgement"
EVENTS = 200
PATIENCE = 60.0
_LOOK = 0.005
_CALLBACK = re.compile(r"POST /interactions/(\d+)/.*/callback")


@dataclass(slots=True)
class Noted:
    """Of one server: when each event began and when it was acknowledged, by its id; seconds."""

    begun: dict[object, float]
    done: dict[object, float]

    def took(self) -> list[float]:
        """Milliseconds of each."""
        return [1000 * (self.done[one] - self.begun[one]) for one in self.begun]


class Telegram(TelegramServer):
    """Notes which updates the offset of a poll has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = Noted({}, {})

    def confirm(self, offset: int) -> None:
        """See World."""
        super().confirm(offset)
        for update in self.noted.begun:
            if isinstance(update, int) and update < offset:
                self.noted.done.setdefault(update, time.monotonic())

    def burst(self, count: int) -> None:
        """So many people write."""
        for number in range(count):
            person = telegram_updates.Person(1_000_000 + number, f"Person {number}")
            update = self.write(f"hello, bench-{number}", user=person, chat=private(person))
            self.noted.begun[update["update_id"]] = time.monotonic()


class Slack(SlackServer):
    """Notes what was acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = Noted({}, {})

    def acknowledged(self, envelope: Envelope, answer: Any = None) -> None:
        """See Delivering."""
        super().acknowledged(envelope, answer)
        if envelope.is_event:
            self.noted.done[envelope.payload["event"]["ts"]] = time.monotonic()

    def burst(self, count: int) -> None:
        """So many people write."""
        for number in range(count):
            person = slack_shapes.Person(f"U0BENCH{number:03}", f"person{number}", f"Person {number}")
            begun = time.monotonic()
            self.noted.begun[self.dm(person, f"hello, bench-{number}")["ts"]] = begun


class Discord(DiscordServer):
    """Notes which interactions were answered for the first time; messages are not acknowledged there."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: dict[object, float] = {}

    @property
    def noted(self) -> Noted:
        """From the calls."""
        found = ((_CALLBACK.fullmatch(call.route), call.at) for call in self.ledger.calls)
        return Noted(self.begun, {match[1]: at for match, at in found if match})

    def burst(self, count: int) -> None:
        """So many people call a command."""
        for number in range(count):
            person = discord_objects.Person(50_000_000_000_000_000 + number, f"person{number}")
            begun = time.monotonic()
            self.begun[self.slash(person, self.open_dm(person), "help").id] = begun


Server = Telegram | Slack | Discord


@dataclass(frozen=True, slots=True)
class Platform:
    """section: of the configuration, given its server. limit: milliseconds within which it has to be."""

    what: str
    server: Callable[[], Server]
    section: Callable[[Any], dict[str, Any]]
    limit: str = ""


def _slack(mode: str) -> Callable[[Any], dict[str, Any]]:
    def section(server: Any) -> dict[str, Any]:
        tokens = {name: getattr(server, name) for name in ("bot_token", "app_token", "signing_secret")}
        return {"slack": {"base_url": server.base_url, "mode": mode, "listen": {"port": 0}, **tokens}}

    return section


PLATFORMS = (
    Platform("Telegram, polls", Telegram, lambda on: {"telegram": {"token": on.token, "base_url": on.base_url}}),
    Platform("Slack, Socket Mode", Slack, _slack("socket"), "< 3,000"),
    Platform("Slack, HTTP", Slack, _slack("http"), "< 3,000"),
    Platform(
        "Discord, commands",
        Discord,
        lambda on: {"discord": {"token": on.token, "base_url": on.base_url, "gateway_url": on.gateway_url}},
        "< 3,000",
    ),
)


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Each platform with a service of its own for each round."""
    rows: list[Row] = []
    for platform in PLATFORMS:
        rounds: list[Sequence[float]] = []
        for _ in range(scale.rounds):
            with folder() as home:
                rounds.append(await _round(platform, home, model, min(EVENTS, scale.messages)))
        for name, part in (("p50", 0.5), ("p99", 0.99)):
            row = Row(what=f"{platform.what}: {name}", unit="ms", hark=mid(rounds, part), target=platform.limit)
            rows.append(row)
    return rows


async def _round(platform: Platform, home: Path, model: Model, count: int) -> list[float]:
    async with platform.server() as server, _running(home, model, platform.section(server)) as service:
        await _until(lambda: service.parts.health.view().ready)
        if isinstance(server, Slack) and (
            url := re.search(r"http://\S+", service.parts.health.view().channels["slack"].detail)
        ):
            await server.use_url(url.group())
        if isinstance(server, Discord):
            await _until(lambda: server.commands)
        server.burst(count)
        await _until(lambda: len(server.noted.done) >= count)
        return server.noted.took()


async def _until(ready: Callable[[], object]) -> None:
    for _ in range(int(PATIENCE / _LOOK)):
        if ready():
            return
        await asyncio.sleep(_LOOK)
    raise TimeoutError


@contextlib.asynccontextmanager
async def _running(home: Path, model: Model, sections: dict[str, dict[str, Any]]) -> AsyncIterator[Service]:
    from bot.wiring import Dependencies, build

    document = settings(home, model, "anthropic")
    document["agent"] |= {"max_concurrent": 1, "drain_seconds": 0}
    opened = {name: {"dm": {"policy": "open"}, **section} for name, section in sections.items()}
    document["channels"] = {"console": {"enabled": False}, **opened}
    with logs(home), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'audioop' is deprecated", DeprecationWarning)  # of discord.py
        service = await build(Config.model_validate(document), Dependencies(environ={}, gateway=False))
        await service.start()
        try:
            yield service
        finally:
            await service.close()
