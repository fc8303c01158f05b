"""Runs each test of this folder against each store there is."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from bot.store.store import Store
from tests.bot.persistence.contract import IMPLEMENTATIONS, Opens


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Opens:
    """Opens the same store again and again."""
    return partial(IMPLEMENTATIONS[request.param], tmp_path)


@pytest.fixture
async def store(opens: Opens) -> AsyncIterator[Store]:
    """A store that is open while the test lasts."""
    async with opens() as made:
        yield made
