"""Hark inside the benchmark's own process, as `hark run` builds it, with the in-process channel."""

import asyncio
import contextlib
import gc
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from agent.models.base import ModelApi
from bench.channel import BenchChannel
from bench.model import KEY, Model
from bot.config.model import Config
from bot.store.writer import CommitProbe
from bot.telemetry.logs import set_up
from bot.telemetry.redact import Redactor

PLACES = 1000
"""`agent.max_concurrent` here: the model takes no time, so the queue would be all that 500 sessions at once show."""


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A directory for one service."""
    with tempfile.TemporaryDirectory(prefix="hark-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def settings(home: Path, model: Model, api: ModelApi, *, port: int = 0, window: int = 200_000) -> dict[str, Any]:
    """A configuration as it would be written, with the scripted server as provider."""
    provider = {
        "api": api,
        "base_url": model.base_url(api),
        "api_keys": [KEY],
        "models": {"model": {"context_window": window, "max_output": 1024}},
    }
    return {
        "agent": {"model": "bench/model", "max_concurrent": PLACES},
        "providers": {"bench": provider},
        "queue": {"debounce_ms": 0, "mode": "followup"},
        "channels": {"console": {"enabled": False}, "telegram": {"dm": {"policy": "open"}}},
        "gateway": {"port": port},
        "workspace": str(home / "workspace"),
        "state": str(home / "state"),
    }


@contextlib.asynccontextmanager
async def hark(
    home: Path, model: Model, api: ModelApi, *, window: int = 200_000, probe: CommitProbe | None = None
) -> AsyncIterator[BenchChannel]:
    """A service that runs while the context lasts, with its logs written to a file, and its SDK imported."""
    from bot.wiring import Dependencies, build

    channel = BenchChannel()
    preloaded = asyncio.Event()

    def on_preloaded() -> None:
        gc.freeze()  # as `hark run` does
        preloaded.set()

    around = Dependencies(environ={}, channels=[channel], gateway=False, on_preloaded=on_preloaded, commit_probe=probe)
    with logs(home):
        service = await build(Config.model_validate(settings(home, model, api, window=window)), around)
        await service.start()
        try:
            await preloaded.wait()
            yield channel
        finally:
            await service.close()
            gc.unfreeze()


@contextlib.contextmanager
def logs(home: Path) -> Iterator[None]:
    """Logs as `hark run` writes them into a file; of several services at once the last one's file gets all lines."""
    set_up(Redactor([KEY]), home / "hark.log")
    (handler,) = logging.getLogger().handlers
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
