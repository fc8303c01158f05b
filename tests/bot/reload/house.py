"""A service whose configuration is a file that tests change, with a still clock and its log."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import structlog

from bot import restart
from bot.config.file import ConfigFile
from bot.reload import reload as reloading
from bot.reload.reload import Reload
from bot.service import Service
from tests.scripted_model import ScriptedModel
from tests.service import RecordingChannel, running
from tests.watch import ManualTime

Json = dict[str, Any]
LOOK = 0.437
"""Seconds between two looks at the files: a pause that nobody else makes."""
WAITS = 0.431
"""Seconds between two looks of a restart whether anything runs."""
HOME: Json = {
    "agent": {"drain_seconds": 0},
    "owners": ["telegram:1"],
    "queue": {"debounce_ms": 0},
    "heartbeat": {"every": 0},
    "channels": {"console": {"enabled": False}},
}


@dataclass
class House:
    """A service, and the file that it works by."""

    folder: Path
    service: Service
    reload: Reload
    channel: RecordingChannel
    model: ScriptedModel
    time: ManualTime
    log: list[Json]

    def write(self, document: Json | str) -> None:
        """Write the configuration."""
        text = document if isinstance(document, str) else json.dumps(document)
        (self.folder / "config.yaml").write_text(text)

    def lines(self, part: str) -> list[str]:
        """What the log has with these words."""
        return [one["event"] for one in self.log if part in one["event"]]

    async def looks(self, count: int) -> None:
        """Let the watch look so often."""
        for _ in range(count):
            await self.time.until_pause(LOOK)
            self.time.advance(LOOK)
        await self.time.until_pause(LOOK)


@contextlib.asynccontextmanager
async def house(
    folder: Path, document: Json, environ: dict[str, str] | None = None, **around: Any
) -> AsyncIterator[House]:
    """`running` with this configuration in a file. around: see there."""
    (folder / "config.yaml").write_text(json.dumps(document))
    file = ConfigFile(None, environ or {}, folder)
    with (
        structlog.testing.capture_logs() as log,
        patch.object(reloading, "LOOK", LOOK),
        patch.object(restart, "LOOK", WAITS),
    ):
        async with running(folder, whole=file.load(), file=file, **around) as hark:
            found = hark.service, reload_of(hark.service), hark.channel, hark.model, hark.time
            yield House(folder, *found, log)


def reload_of(service: Service) -> Reload:
    """The part of a service that takes over what has changed."""
    watch: Callable[[], Any] | None = dict(service.parts.serving).get("watch-configuration")
    found = getattr(watch, "__self__", None)
    assert isinstance(found, Reload)
    return found
