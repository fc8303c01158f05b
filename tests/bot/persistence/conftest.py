"""Runs each test of this folder against each store there is."""

from functools import partial
from pathlib import Path

import pytest

from tests.bot.persistence.contract import IMPLEMENTATIONS, Opens


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Opens:
    """Opens the same store again and again."""
    return partial(IMPLEMENTATIONS[request.param], tmp_path)
