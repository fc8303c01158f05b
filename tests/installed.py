"""Distributions that are there as if they were installed, for as long as a test lasts."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import models
from agent.tools import registry as tools
from bot.config import extensions, model
from channels import registry


class Site:
    """A folder in which distributions are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, points: dict[str, str], **modules: str) -> None:
        """Install a distribution. points: entry points as `group name`; modules: source by name, `a__b` for a.b."""
        info = self.folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"[{key.split()[0]}]\n{key.split()[1]} = {value}\n" for key, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for module, source in modules.items():
            file = self.folder / Path(*module.split("__")).with_suffix(".py")
            file.parent.mkdir(exist_ok=True)
            file.write_text(source)
        importlib.invalidate_caches()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """What is loaded from it is forgotten with the test."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    known = (registry.FOLDERS, models.FURTHER, tools.FURTHER, registry.ABSENT)
    copies = [one.copy() for one in known]
    extensions.load.cache_clear()
    model.shaped.cache_clear()
    yield Site(folder)
    extensions.load.cache_clear()
    model.shaped.cache_clear()
    for one, copy in zip(known, copies, strict=True):
        one.clear()
        one.update(copy)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
