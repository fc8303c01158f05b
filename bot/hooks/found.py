"""Finds the hooks of a service: those of the folder `hooks/` beside the configuration, and of the configuration.

A file or command that cannot be used is a mistake that `hark doctor` and the log name, and the start goes on without
it. But for each guard that its text names everything is forbidden until it is mended or taken away: a guard that could
not be loaded must not let everything pass. Nothing is loaded from where the agent can write.
"""

import asyncio
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import structlog

from agent.hooks import PATIENCE, Hook, HookEvent, Hooks
from agent.tools.exec import scrubbed
from bot.config.document import VARIABLES
from bot.config.hooks import HookSettings
from bot.config.model import Config
from bot.hooks.calling import Beside, post, run_command
from bot.hooks.points import POINTS, BeforeInstall, GatewayStart, GatewayStop

log = structlog.get_logger()

FOLDER = "hooks"
# Seconds that a file may take to be loaded, and that hooks have at the end.
_LOADING = 10.0
_GRACE = 10.0
_GUARDS = tuple(name for name, point in POINTS.items() if point.guards)


@dataclass(frozen=True, slots=True)
class Found:
    """The hooks of a configuration, and a sentence for each that cannot be used."""

    hooks: tuple[Hook, ...]
    mistakes: tuple[str, ...]


def find(config: Config, environ: Mapping[str, str], clean: Callable[[str], str]) -> Found:
    """Find the hooks of a configuration; files are run for that, each in a thread of its own. Blocks, and must not be
    called in the loop.

    environ: of the service. clean: returns a text without secrets.
    """
    found: list[Hook] = []
    mistakes: list[str] = []
    for file in _files(config):
        try:
            found += _of_file(file, config)
        except (Exception, SystemExit) as error:
            text = _text_of(file)
            why = f"{file} cannot be used as hooks: {type(error).__name__}: {error}"
            shut = [name for name in _GUARDS if re.search(rf"\b{name}\b|import\s*\*", text)]
            mistakes.append(f"{why}{_forbids(shut)}")
            found += _shut(shut, file.name)
    for point, settings in config.hooks.items():
        for number, one in enumerate(settings):
            name = f"hooks.{point}[{number}]"
            if why := _cannot_run(one, config):
                shut = [point] if POINTS[point].guards else []
                mistakes.append(f"{name} cannot be used: {why}{_forbids(shut)}")
                found += _shut(shut, name)
            else:
                found.append(_of_settings(point, name, one, config, environ, clean))
    return Found(tuple(found), tuple(mistakes))


def _home(config: Config) -> Path | None:
    """Return the folder of the configuration file; None where there is no file."""
    file = next(iter(config.source.files), None)
    return None if file is None or file.name == VARIABLES else file.parent.resolve()


def _files(config: Config) -> Sequence[Path]:
    home = _home(config)
    return sorted(one for one in (home / FOLDER).glob("*.py") if not one.name.startswith("_")) if home else ()


def _text_of(file: Path) -> str:
    """Return the text of a file that cannot be used; of one that cannot be read the names of all guards."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return " ".join(_GUARDS)


def _of_file(file: Path, config: Config) -> Iterator[Hook]:
    """Yield the hooks of a file. Raises whatever is wrong with it."""
    if why := _within_reach(file, config):
        raise PermissionError(why)
    beside = Beside()
    module = _loaded(file, beside)
    priority, timeout = getattr(module, "PRIORITY", 0), getattr(module, "TIMEOUT", PATIENCE)
    if type(priority) is not int or type(timeout) not in (int, float) or not 0 < timeout <= 600:
        raise ValueError("PRIORITY must be a whole number, and TIMEOUT seconds, at most 600")
    for name in POINTS:
        if (function := getattr(module, name, None)) is not None:
            if not inspect.iscoroutinefunction(function):
                raise TypeError(f"{name} must be an `async def`")
            call = partial(beside.call, function)
            yield Hook(point=name, name=file.name, call=call, priority=priority, timeout=timeout)


def _loaded(file: Path, beside: Beside) -> ModuleType:
    """Run a file as a module, in the thread of its hooks."""
    spec = importlib.util.spec_from_file_location(f"hark_hooks_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look for their module there
    beside.load(partial(spec.loader.exec_module, module), _LOADING)
    return module


def _within_reach(file: Path, config: Config) -> str:
    """Return why the agent could write a file; empty if it cannot."""
    for folder, what in ((config.workspace, "workspace"), (config.state / "commands", "temporary folder of commands")):
        if file.resolve().is_relative_to(folder.resolve()):
            return f"it lies in the agent's {what}, where the agent can change it; move it elsewhere"
    return ""


def _cannot_run(one: HookSettings, config: Config) -> str:
    home = _home(config) or Path.cwd()
    reached = (_within_reach(home / part, config) for part in one.command if os.sep in part)
    return next((why for why in reached if why), "")


def _of_settings(
    point: str,
    name: str,
    one: HookSettings,
    config: Config,
    environ: Mapping[str, str],
    clean: Callable[[str], str],
) -> Hook:
    call: Callable[[Any], Any] = partial(post, one.url or "", clean)
    if one.command:
        call = partial(run_command, one.command, _home(config) or Path.cwd(), scrubbed(environ), clean)
    matcher = None if one.matcher is None else re.compile(one.matcher)
    return Hook(point=point, name=name, call=call, priority=one.priority, timeout=one.timeout, matcher=matcher)


def _forbids(guards: Sequence[str]) -> str:
    return f". Until that is mended, {' and '.join(guards)} forbids everything" if guards else ""


def _shut(guards: Iterable[str], name: str) -> Iterator[Hook]:
    async def forbid(event: HookEvent) -> object:
        return {"block": True, "reason": f"the hook {name} could not be loaded, so nothing passes"}

    for guard in guards:
        yield Hook(point=guard, name=name, call=forbid)


async def load(
    config: Config, environ: Mapping[str, str], clean: Callable[[str], str], others: Iterable[Hook] = ()
) -> "ServiceHooks":
    """Find the hooks of a configuration, log what is wrong with them, and return all. others: handed in."""
    if not (config.hooks or _files(config)):
        return ServiceHooks(others)
    found = await asyncio.to_thread(find, config, environ, clean)
    for mistake in found.mistakes:
        log.error(mistake)
    log.info("hooks", loaded=len(found.hooks))
    return ServiceHooks((*others, *found.hooks))


class ServiceHooks(Hooks):
    """The hooks of a service."""

    async def serve(self) -> None:
        """Tell hooks that the service runs."""
        await self.ask(GatewayStart())

    async def stop(self) -> None:
        """Tell hooks that the service stops, and wait for those under way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await self.ask(GatewayStop())
                await self.close()

    async def may_install(self, name: str, folder: str) -> str:
        """Return why a skill may not be installed from a folder; empty if it may."""
        return (await self.ask(BeforeInstall(name=name, folder=folder)))[1] or ""
