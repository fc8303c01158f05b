"""Extensions: what installed distributions add, by entry points, once `extensions` names them.

Nothing of a distribution that is not named is imported. What is broken is a sentence in `Loaded.problems`, for `hark
doctor` and the log, and keeps nothing from starting: what the configuration says of it is passed over, a model of it
fails with that sentence, and where a hook of it was to guard calls, no tool is called. Called when a configuration is
read, before it is checked, since its sections are checked as well; what is loaded stays for as long as the process.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any

import structlog

from agent.hooks import Hook
from channels import registry
from channels.settings import ChannelSection

if TYPE_CHECKING:  # only where there are extensions
    from agent.tools.base import RunContext, Tool, ToolFactory

log = structlog.get_logger()

PREFIX = "hark."
GROUPS = ("channels", "tools", "models", "hooks", "memory", "context")
# Groups whose place in the service is not there yet.
_LATER = ("memory", "context")
# First words of names of tools that the service has, or leaves to parts of its own.
_PARTS = ("session", "sessions", "memory", "skill", "skills", "mcp")
_TAKEN = (*_PARTS, "web", "task", "stay", "ask", "message", "schedule")


@dataclass(eq=False, slots=True)
class Loaded:
    """What the named distributions bring."""

    names: tuple[str, ...]
    # The sections of their channels, by name.
    channels: dict[str, type[ChannelSection]] = field(default_factory=dict)
    tools: list["ToolFactory"] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    # What is broken, one sentence each.
    problems: list[str] = field(default_factory=list)
    # What they bring, such as "tool dice", by distribution.
    found: dict[str, list[str]] = field(default_factory=dict)


class _NotUsed(Exception):
    """An entry point cannot be used; the text says why."""


@lru_cache(maxsize=8)
def load(names: tuple[str, ...]) -> Loaded:
    """Import what these distributions bring, and make channels, tools and models known. Never raises."""
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
            except (Exception, SystemExit) as error:
                why = str(error) if isinstance(error, _NotUsed) else f"{type(error).__name__}: {error}"
                sentence = f"{name}: {point.group} {point.name} ({point.value}) cannot be used: {why}"
                loaded.problems.append(sentence)
                _stand_in(kind, point.name, sentence, loaded)
    return loaded


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
            _stand_in("models", api, f"`api: {api}` needs an extension that is broken, see `hark doctor`", loaded)
    from agent.tools.registry import FURTHER

    FURTHER.add("*")
    return loaded, tree


def _take(kind: str, point: EntryPoint, name: str, loaded: Loaded) -> None:
    """Put what an entry point names in its place. Raises what is wrong with it."""
    if kind in _LATER:
        raise _NotUsed(f"this version of Hark takes no {kind} engine of an extension yet, it uses its own")
    if kind not in GROUPS:
        raise _NotUsed(f"there is no such group; there are {', '.join(PREFIX + one for one in GROUPS)}")
    {"channels": _channel, "tools": _tool, "models": _model, "hooks": _hook}[kind](point, name, loaded)


def _channel(point: EntryPoint, name: str, loaded: Loaded) -> None:
    if registry.FOLDERS.get(point.name, point.value) != point.value or point.name == registry.HTTP:
        raise _NotUsed(f"the name `{point.name}` is taken")
    section = registry.section_of(point.value)
    if not (isinstance(section, type) and issubclass(section, ChannelSection)):
        raise _NotUsed(f"`{point.value}.settings` must have a SECTION, a class below channels.settings.ChannelSection")
    section()  # all keys have defaults, as the section may be left out
    registry.FOLDERS[point.name] = point.value
    loaded.channels[point.name] = section


def _tool(point: EntryPoint, name: str, loaded: Loaded) -> None:
    from agent.tools.registry import FURTHER, NAMES

    taken = [one for one in (*NAMES, *_TAKEN) if one == point.name or one.startswith(f"{point.name}_")]
    taken += [one for one in _TAKEN if point.name.startswith(f"{one}_")]
    if taken or f"tool {point.name}" in (one for brings in loaded.found.values() for one in brings):
        raise _NotUsed(f"the name `{point.name}` is taken")
    factory = point.load()
    if not callable(factory):
        raise _NotUsed("it must be a function that makes the tools of a run, see agent.tools.base.ToolFactory")
    FURTHER.add(point.name)
    loaded.tools.append(partial(_guarded, factory, point.name, name))


def _model(point: EntryPoint, name: str, loaded: Loaded) -> None:
    from agent import models

    make = point.load()
    if not callable(make):
        raise _NotUsed("it must make an agent.models.base.ModelClient of a ModelSpec")
    if point.name in models.BUILT_IN or models.FURTHER.get(point.name, make) is not make:
        raise _NotUsed(f"the name `{point.name}` is taken")
    models.FURTHER[point.name] = make


def _hook(point: EntryPoint, name: str, loaded: Loaded) -> None:
    found = point.load()
    made = found() if callable(found) else found
    hooks = (made,) if isinstance(made, Hook) else made
    if not (isinstance(hooks, tuple | list) and hooks and all(isinstance(one, Hook) for one in hooks)):
        raise _NotUsed("it must be an agent.hooks.Hook, several in a list, or a function that makes them")
    loaded.hooks += hooks


def _stand_in(kind: str, name: str, sentence: str, loaded: Loaded) -> None:
    """Put in the place of what is broken what says so when it is used."""
    if kind == "hooks":

        async def shut(event: Any) -> Mapping[str, object]:
            """Forbid it, since nobody knows what the hook would have forbidden."""
            return {"block": True, "reason": f"No tool can be used: a hook is broken. {sentence}"}

        loaded.hooks += (Hook(point=point, name=name, call=shut) for point in ("before_tool_call", "before_install"))
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
    from agent.tools.base import Tool

    async with AsyncExitStack() as made:
        tools: list[Tool[Any]] = []
        try:
            for tool in await made.enter_async_context(factory(run)):
                if not isinstance(tool, Tool) or not (tool.name == prefix or tool.name.startswith(f"{prefix}_")):
                    wrong = f"its name must be `{prefix}` or begin with `{prefix}_`"
                elif type(tool).sink is Tool.sink:
                    wrong = "it must define `sink`, which says where its effect goes"
                else:
                    tools.append(tool)
                    continue
                _say("a tool of an extension is left out", distribution, str(getattr(tool, "name", tool)), wrong)
        except Exception as error:
            _say("an extension cannot make its tools", distribution, prefix, f"{type(error).__name__}: {error}")
        yield tools


@lru_cache(maxsize=100)
def _say(event: str, distribution: str, tool: str, reason: str) -> None:
    """Log it once, since it is the same in each run."""
    log.error(event, extension=distribution, tool=tool, reason=reason)
