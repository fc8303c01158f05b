"""What differs between two configurations, key by key, and which keys a running service takes over.

`LIVE` is what `bot/reload/reload.py` makes anew from the configuration as a whole; every other key needs a restart. So
a new key needs one until somebody has made it take effect and has written it here.
"""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ValidationError

from bot.config.errors import KeyPath
from bot.config.model import Config


def _paths(*keys: str) -> tuple[KeyPath, ...]:
    return tuple(tuple(key.split(".")) for key in keys)


# Keys that take effect in a running service, with all keys below them except those in `STARTED`.
LIVE = _paths(
    "owners",
    "guests",
    "agent.fallbacks",
    "agent.thinking",
    "agent.max_concurrent",
    "agent.subagents",
    "agent.timeout_seconds",
    "agent.idle_timeout_seconds",
    "agent.max_steps",
    "agent.receipts",
    "agent.drain_seconds",
    "agent.guest_models",
    "channels",
    "sessions.reset",
    "sessions.prune",
    "queue",
    "heartbeat",
    "schedules.max_concurrent",
    "tools",
    "approvals",
    "compaction",
    "memory",
    "send_policy",
    "budget",
    "skills",
    "web",
)
# What is chosen at the start: the sandbox is proved, the model of beats gets its clients, the terminal is opened.
STARTED = _paths("channels.console", "heartbeat.model", "tools.exec.security", "tools.exec.sandbox")


def is_live(path: KeyPath) -> bool:
    """Whether a key takes effect in a running service."""
    return _is_below(path, LIVE) and not _is_below(path, STARTED)


def changed(old: object, new: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the keys whose values differ. An entry that one of the two does not have is one key, whatever it holds."""
    if isinstance(old, BaseModel) and isinstance(new, BaseModel):
        for name, field in type(new).model_fields.items():
            # a channel of an extension that was named meanwhile is not there yet
            yield from changed(getattr(old, name, None), getattr(new, name), (*path, field.alias or name))
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            if key in old and key in new:
                yield from changed(old[key], new[key], (*path, key))
            else:
                yield (*path, key)
    elif old != new:
        yield path


def merged(running: Config, new: Config) -> Config:
    """What a running service can take over of a new configuration: its values at live keys, else those that it has.

    Where they do not go together, such as a model of a provider that needs a restart, it is the running one.
    """
    found = _merged(running, new, ())
    assert isinstance(found, Config)
    try:
        Config.model_validate(dict(found))  # the sections hold already; here it is about rules between them
    except ValidationError:
        return running
    return found.of(new.source)


def _merged(old: BaseModel, new: BaseModel, path: KeyPath) -> BaseModel:
    values = {}
    for name, field in type(new).model_fields.items():
        if not hasattr(old, name):
            continue
        here, before, after = (*path, field.alias or name), getattr(old, name), getattr(new, name)
        if any(one[: len(here)] == here and one != here for one in (*LIVE, *STARTED)):
            values[name] = _merged(before, after, here)
        else:
            values[name] = after if is_live(here) else before
    return old.model_copy(update=values)


def _is_below(path: KeyPath, prefixes: tuple[KeyPath, ...]) -> bool:
    return any(path[: len(one)] == one for one in prefixes)
