"""What accounts offer the model to do, where a test wants something else than their platform's own catalogue."""

from collections.abc import Iterator

import pytest

from channels.actions import ToolAction
from channels.settings import AccountSection


def offer(monkeypatch: pytest.MonkeyPatch, actions: tuple[ToolAction, ...]) -> None:
    """Every account of every platform offers these."""
    for section in (AccountSection, *_below(AccountSection)):
        monkeypatch.setattr(section, "offered", actions)


def _below(section: type) -> Iterator[type]:
    for one in section.__subclasses__():
        yield one
        yield from _below(one)
