"""Extensions: what installed distributions add, by entry points, once `extensions` names them.

Nothing of a distribution that is not named is imported. What is broken, or takes too long, is a sentence in
`Loaded.problems`, for `hark doctor` and the log, and keeps nothing from starting: what the configuration says of it is
passed over, a model of it fails with that sentence, and what a hook of it was to guard is forbidden. Called when a
configuration is read, before it is checked, since its sections are checked as well; what is loaded stays for as long as
the process.
"""

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from agent.hooks import Hook
from channels import registry
from channels.settings import ChannelSection

if TYPE_CHECKING:  # only where there are extensions
    from agent.memory.base import MemoryEngine
    from agent.tools.base import RunContext, Tool, ToolFactory
    from agent.window import Summarizer

log = structlog.get_logger()

PREFIX = "hark."
# Seconds that an import, and the tools of a run at their beginning and end, may take.
PATIENCE = 10.0
# First words of names of tools that the service has, or leaves to parts of its own.
_PARTS = ("session", "sessions", "memory", "skill", "skills", "mcp")
_TAKEN = (*_PARTS, "web", "task", "stay", "ask", "message", "schedule")
# What providers take as the name of a tool.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@dataclass(eq=False, slots=True)
class Loaded:
    """What the named distributions bring."""

    names: tuple[str, ...]
    # The sections of their channels, by name.
    channels: dict[str, type[ChannelSection]] = field(default_factory=dict)
    tools: list["ToolFactory"] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    # What searches memories, and what sums conversations up, in place of Hark's own.
    memory: "MemoryEngine | None" = None
    context: "Summarizer | None" = None
    # What is broken, one sentence each.
    problems: list[str] = field(default_factory=list)
    # What they bring, such as "tool dice", by distribution.
    found: dict[str, list[str]] = field(default_factory=dict)


class _NotUsed(Exception):
    """An entry point cannot be used; the text says why."""


@lru_cache(maxsize=8)
def load(names: tuple[str, ...]) -> Loaded:
    """Import what these distributions bring, and make channels, tools and models known. Never raises; blocks."""
    loaded = Loaded(names)
    for name in dict.fromkeys(names):
        try:
            found = [one for one in distribution(name).entry_points if one.group.startswith(PREFIX)]
        except (PackageNotFoundError, ValueError):
            loaded.problems.append(f"{name} is not installed where Hark is; install it, or take it out of `extensions`")
            continue
        brings = loaded.found.setdefault(name, [])
        if not found:
            loaded.problems.append(f"{name} brings nothing for Hark: it has no entry point whose group is {PREFIX}…")
        for point in found:
            kind = point.group.removeprefix(PREFIX)
            try:
                _take(kind, point, name, loaded)
                brings.append(f"{kind.removesuffix('s')} {point.name}")
            except _NotUsed as error:
                sentence = f"{name}: {point.group} {point.name} ({point.value}) cannot be used: {error}"
                loaded.problems.append(sentence)
                _stand_in(kind, point.name, sentence, _guards(name), loaded)
    return loaded


def _beside(work: Callable[[], Any]) -> Any:
    """Call a function in a thread of its own, and return what it returns. Raises _NotUsed for whatever goes wrong.

    One that does not end is left behind. What it prints goes to standard error, since standard output may be JSON.
    """
    future: Future[Any] = Future()

    def called() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # also what would end the process
            future.set_exception(error if isinstance(error, _NotUsed) else _NotUsed(f"{type(error).__name__}: {error}"))

    try:
        with redirect_stdout(sys.stderr):
            threading.Thread(target=called, name="extension", daemon=True).start()
            return future.result(PATIENCE)
    except TimeoutError:
        raise _NotUsed(f"it took longer than {PATIENCE:g} s") from None


def _guards(name: str) -> Sequence[str]:
    """Return the guards that broken hooks of a distribution may have been: those of calls, and what its files name."""
    files = [Path(str(one.locate())) for one in distribution(name).files or () if one.suffix == ".py"]
    named = any(b"message_sending" in one.read_bytes() for one in files if one.is_file())
    return ("before_tool_call", "before_install", *(("message_sending",) if named else ()))


def broken(names: tuple[str, ...]) -> list[str]:
    """Return a sentence for each extension that is broken, and for what the configuration has of it."""
    problems = load(names).problems
    absent = [f"channels.{one} is passed over, since an extension is broken" for one in sorted(registry.ABSENT)]
    return [*problems, *absent] if problems else []


def prepare(tree: Mapping[str, Any]) -> tuple[Loaded, Mapping[str, Any]]:
    """Load what a configuration names, and return it with the configuration, as it was read, that can be checked.

    Where an extension is broken, what only it could explain is passed over: sections of channels, names of people on
    them, protocols of models, names of tools.
    """
    written = tree.get("extensions")
    loaded = load(tuple(one for one in written if isinstance(one, str)) if isinstance(written, list) else ())
    if not loaded.problems:
        return loaded, tree
    channels, providers = tree.get("channels"), tree.get("providers")
    if isinstance(channels, dict):
        unknown = {one for one in channels if one not in registry.FOLDERS}
        registry.ABSENT.update(unknown)
        tree = {**tree, "channels": {name: one for name, one in channels.items() if name not in unknown}}
    for one in providers.values() if isinstance(providers, dict) else ():
        if isinstance(one, dict) and isinstance(api := one.get("api"), str):
            _stand_in("models", api, f"`api: {api}` needs an extension that is broken, see `hark doctor`", (), loaded)
    from agent.tools.registry import FURTHER

    FURTHER.add("*")
    return loaded, tree


def _take(kind: str, point: EntryPoint, name: str, loaded: Loaded) -> None:
    """Put what an entry point names in its place. Raises _NotUsed."""
    if kind not in _TAKES:
        raise _NotUsed(f"there is no such group; there are {', '.join(PREFIX + one for one in _TAKES)}")
    _TAKES[kind](point, name, loaded)


def _channel(point: EntryPoint, name: str, loaded: Loaded) -> None:
    if registry.FOLDERS.get(point.name, point.value) != point.value or point.name == registry.HTTP:
        raise _NotUsed(f"the name `{point.name}` is taken")

    def section() -> type[ChannelSection]:
        found = registry.section_of(point.value)
        if not (isinstance(found, type) and issubclass(found, ChannelSection)):
            raise _NotUsed(
                f"`{point.value}.settings` must have a SECTION, a class below channels.settings.ChannelSection"
            )
        found()  # all keys have defaults, as the section may be left out
        return found

    loaded.channels[point.name] = _beside(section)
    registry.FOLDERS[point.name] = point.value


def _tool(point: EntryPoint, name: str, loaded: Loaded) -> None:
    from agent.tools.registry import FURTHER, NAMES

    taken = [one for one in (*NAMES, *_TAKEN) if one == point.name or one.startswith(f"{point.name}_")]
    taken += [one for one in _TAKEN if point.name.startswith(f"{one}_")]
    if taken or f"tool {point.name}" in (one for brings in loaded.found.values() for one in brings):
        raise _NotUsed(f"the name `{point.name}` is taken")
    if not _NAME.fullmatch(point.name):
        raise _NotUsed("the name of a tool has letters, digits, `_` and `-` only")
    factory = _beside(point.load)
    if not callable(factory):
        raise _NotUsed("it must be a function that makes the tools of a run, see agent.tools.base.ToolFactory")
    FURTHER.add(point.name)
    loaded.tools.append(partial(_guarded, factory, point.name, name))


def _model(point: EntryPoint, name: str, loaded: Loaded) -> None:
    from agent import models

    make = _beside(point.load)
    if not callable(make):
        raise _NotUsed("it must make an agent.models.base.ModelClient of a ModelSpec")
    if point.name in models.BUILT_IN or models.FURTHER.get(point.name, make) is not make:
        raise _NotUsed(f"the name `{point.name}` is taken")
    models.FURTHER[point.name] = make


def _made(point: EntryPoint) -> Any:
    found = point.load()
    return found() if callable(found) else found


def _hook(point: EntryPoint, name: str, loaded: Loaded) -> None:
    made = _beside(partial(_made, point))
    hooks = (made,) if isinstance(made, Hook) else made
    if not (isinstance(hooks, tuple | list) and hooks and all(isinstance(one, Hook) for one in hooks)):
        raise _NotUsed("it must be an agent.hooks.Hook, several in a list, or a function that makes them")
    loaded.hooks += hooks


def _memory(point: EntryPoint, name: str, loaded: Loaded) -> None:
    if loaded.memory is not None:
        raise _NotUsed("there is a memory engine already")
    engine = _beside(partial(_made, point))
    if not iscoroutinefunction(getattr(engine, "search", None)):
        raise _NotUsed("it must make an agent.memory.base.MemoryEngine, which has an `async def search`")
    loaded.memory = engine


def _context(point: EntryPoint, name: str, loaded: Loaded) -> None:
    if loaded.context is not None:
        raise _NotUsed("there is a context engine already")
    engine = _beside(point.load)
    if not iscoroutinefunction(engine):
        raise _NotUsed("it must be an `async def` that sums up, see agent.window.Summarizer")
    loaded.context = engine


_TAKES = {
    "channels": _channel,
    "tools": _tool,
    "models": _model,
    "hooks": _hook,
    "memory": _memory,
    "context": _context,
}


def _stand_in(kind: str, name: str, sentence: str, guards: Sequence[str], loaded: Loaded) -> None:
    """Put in the place of what is broken what says so when it is used. guards: the points where hooks may forbid."""
    if kind == "hooks":

        async def shut(event: Any) -> Mapping[str, object]:
            """Forbid it, since nobody knows what the hook would have forbidden."""
            return {"block": True, "reason": f"Nothing passes here: a hook is broken. {sentence}"}

        loaded.hooks += (Hook(point=point, name=name, call=shut) for point in guards)
    elif kind == "models":
        from agent import models
        from agent.errors import ErrorKind, ModelError
        from agent.models.base import ModelClient

        class Broken(ModelClient):
            """Fails every call."""

            async def stream(self, request: Any) -> Any:
                raise ModelError(ErrorKind.INVALID_REQUEST, sentence)
                yield

        if name not in models.BUILT_IN:
            models.FURTHER.setdefault(name, Broken)


@asynccontextmanager
async def _guarded(
    factory: "ToolFactory", prefix: str, distribution: str, run: "RunContext"
) -> AsyncIterator[Sequence["Tool[Any]"]]:
    """Make the tools of a run; those that cannot be made, or may not be as they are, are left out, which is logged."""
    made, tools = AsyncExitStack(), dict[str, "Tool[Any]"]()
    try:
        try:
            async with asyncio.timeout(PATIENCE):
                for tool in await made.enter_async_context(factory(run)):
                    if wrong := _wrong(tool, prefix, tools):
                        _say(
                            "a tool of an extension is left out", distribution, str(getattr(tool, "name", tool)), wrong
                        )
                    else:
                        tools[tool.name] = tool
        except (Exception, SystemExit) as error:
            _say("an extension cannot make its tools", distribution, prefix, f"{type(error).__name__}: {error}")
        yield tuple(tools.values())
    finally:
        try:
            async with asyncio.timeout(PATIENCE):
                await made.aclose()
        except (Exception, SystemExit) as error:
            _say("an extension cannot close its tools", distribution, prefix, f"{type(error).__name__}: {error}")


def _wrong(tool: object, prefix: str, others: Mapping[str, object]) -> str:
    """Return why a tool of an extension cannot be offered; empty: it can."""
    from agent.tools.base import Tool
    from agent.tools.schema import spec

    if not isinstance(tool, Tool):
        return "it is no agent.tools.base.Tool"
    try:
        name = spec(tool).name
    except Exception as error:
        return f"it cannot be described to the model ({type(error).__name__}: {error})"
    if not (name == prefix or name.startswith(f"{prefix}_")) or not _NAME.fullmatch(name):
        return f"its name must be `{prefix}` or begin with `{prefix}_`, and have letters, digits, `_` and `-` only"
    if name in others:
        return "there is one of that name already"
    return "it must define `sink`, which says where its effect goes" if type(tool).sink is Tool.sink else ""


@lru_cache(maxsize=100)
def _say(event: str, distribution: str, tool: str, reason: str) -> None:
    """Log it once, since it is the same in each run."""
    log.error(event, extension=distribution, tool=tool, reason=reason)
