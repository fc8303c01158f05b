"""The whole service in a process of its own, to be killed: what `hark run` starts, against servers of the test.

Imported by the fork server, so that a child costs milliseconds: everything heavy is imported here.
"""

import asyncio
import importlib
import logging
import signal
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import structlog

from bot.clock import Clock
from bot.config.model import Config
from channels.failures import Rates
from channels.telegram.adapter import TelegramChannel
from channels.telegram.poll import Times
from channels.telegram.settings import TelegramAccount
from tests.channels.sections import account
from tests.serving import serving

for _module in (
    *("openai", "telegram", "agent.models.openai_chat", "agent.models.anthropic"),
    # what the libraries import with their first connection
    *("anyio._backends._asyncio", "certifi", "h11", "httpcore", "httpcore2", "truststore"),
):
    importlib.import_module(_module)


FAILURE = "failure.txt"
"""What ended a child that was not killed."""


def main(
    home: str,
    token: str,
    telegram_url: str,
    file_url: str,
    model_url: str,
    people: tuple[str, ...],
    mcp: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Serve until SIGTERM (or SIGKILL). mcp: the MCP servers of the configuration."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    config = Config.model_validate(
        {
            "agent": {"model": "test/gpt-test", "drain_seconds": 0},
            "owners": [f"telegram:{one}" for one in people],  # whose commands run on the host
            "queue": {"debounce_ms": 0, "mode": "followup", "cap": 1000},
            "providers": {"test": {"api": "openai-chat", "base_url": model_url, "api_keys": ["sk-test-key"]}},
            "channels": {
                "console": {"enabled": False},
                "telegram": {
                    "enabled": False,
                    "dm": {"allow_from": list(people)},
                    "streaming": {"min_chars": 40, "max_chars": 90},
                },
            },
            "tools": {"exec": {"allowlist": ["/**"]}, "untrusted": {"mcp": "allow"}},
            "mcp": {"servers": dict(mcp)},
            "workspace": Path(home) / "workspace",
            "state": Path(home) / "state",
        }
    )
    settings = account(
        TelegramAccount,
        token=token,
        base_url=telegram_url,
        base_file_url=file_url,
        poll_timeout=1,
        retry_first=0.01,
        retry_most=0.05,
        slow_retry=0.05,
        rates=Rates(chat_interval=0.0, group_per_minute=10_000, per_second=10_000),
    )
    try:
        asyncio.run(_serve(config, settings))
    except Exception:
        (Path(home) / FAILURE).write_text(traceback.format_exc())
        raise


async def _serve(config: Config, settings: TelegramAccount) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    clock = Clock()
    channel = TelegramChannel(settings, Times(now=clock.now, monotonic=clock.monotonic, sleep=clock.sleep))
    async with serving(config, clock=clock, channels=(channel,)):
        await stop.wait()
