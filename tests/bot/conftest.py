"""What tests of the bot's parts are given: a running service, one with its gateway, or a store alone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.store.store import Store
from tests.bot.gateway.house import House, house
from tests.bot.store.opened import opened
from tests.service import hark_as_it_comes

__all__ = ["hark_as_it_comes"]


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[House]:
    """A service with its gateway, as `house` makes it without further words."""
    async with house(tmp_path) as made:
        yield made


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store that is open while the test lasts."""
    async with opened(tmp_path) as made:
        yield made
