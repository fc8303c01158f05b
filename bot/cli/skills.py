"""`hark skills`: what skills there are, installing one, and accepting one that has changed; also without a service."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_core import to_json

from agent.skills.manifest import SkillError
from agent.tools.workspace import printable
from bot.cli.local import FAILED, asked, complain
from bot.config import extensions
from bot.config.model import Config
from bot.config.secrets import secrets
from bot.hooks.found import load as find_hooks
from bot.skills import commands
from bot.skills.install import install as put
from bot.skills.shelf import FOLDER, Shelf
from bot.telemetry.redact import Redactor

if TYPE_CHECKING:  # it imports the whole service
    from bot.service import Parts


async def show(as_json: bool, config: Config) -> int:
    """Print the skills. Returns the exit code."""
    async with asked(config, _shelf) as there:
        found = await there.skills()
    print(to_json(found, indent=2).decode() if as_json else commands.lines(found))  # noqa: T201
    return 0


async def accept(name: str, config: Config) -> int:
    """Let a skill count as looked at. Returns the exit code."""
    try:
        async with asked(config, _shelf) as there:
            await there.accept(name)
    except SkillError as error:
        complain(str(error))
        return FAILED
    print(commands.accepted(name))  # noqa: T201
    return 0


async def install(source: Path, yes: bool, config: Config) -> int:
    """Install a skill, if somebody confirms it. Returns the exit code."""

    def confirm(name: str, description: str, found: Sequence[str]) -> bool:
        shown = (f"{name}: {description}", *(f"- {line}" for line in found))
        print("\n".join(map(printable, shown)))  # noqa: T201
        if yes:
            return True
        if not sys.stdin.isatty():
            complain("Nothing is installed: there is no terminal to ask in. With --yes nobody is asked.")
            return False
        with suppress(EOFError):
            return input("Install it? [y/N] ").strip().lower() in ("y", "yes")
        return False

    environ = config.environ(os.environ)
    clean, others = Redactor(secrets(config, environ)).clean, extensions.load(config.extensions).hooks
    hooks = await find_hooks(config, environ, clean, others)
    try:
        done = await put(source, config.workspace / FOLDER, confirm, hooks.may_install)
        if done is None:
            return FAILED
        async with asked(config, _shelf) as there:
            await there.accept(done.name, done.digest)
    except SkillError as error:
        complain(printable(f"Not installed: {error}."))
        return FAILED
    print(commands.accepted(done.name))  # noqa: T201
    return 0


def _shelf(parts: "Parts") -> Shelf:
    return parts.skills
