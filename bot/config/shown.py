"""A configuration as it is shown to people: as a plain tree, with stars in place of secrets."""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from bot.config.errors import ConfigError, KeyPath, Problem, dotted
from bot.config.explain import is_secret, unknown_key
from bot.config.folders import FOLDERS
from bot.config.model import Config
from bot.telemetry.redact import STARS, mask_url


def value_at(config: Config, key: str | None) -> str:
    """Return the value at a dotted key, or everything: a text as it is, all else as JSON.

    Raises ConfigError for a key that does not exist.
    """
    tree = _starred(config.model_dump(mode="json", by_alias=True), ())
    return _written(tree if key is None else _at(tree, key, key), indent=2)


def differing(config: Config) -> Iterator[str]:
    """Yield a line for each value that is no default, in the order of the schema; without the two folders."""
    tree = config.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={*FOLDERS})
    yield from _lines(_starred(tree, ()), ())


def _lines(value: JsonValue, path: KeyPath) -> Iterator[str]:
    if isinstance(value, dict) and (value or not path):
        for name, below in value.items():
            yield from _lines(below, (*path, name))
    else:
        yield f"{dotted(path)}: {_written(value)}"


def _written(value: JsonValue, indent: int | None = None) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=indent, ensure_ascii=False)


def _starred(value: JsonValue, path: KeyPath) -> JsonValue:
    """The value at `path` with stars in place of what may be a secret."""
    if isinstance(value, dict):
        return {name: _starred(below, (*path, name)) for name, below in value.items()}
    if isinstance(value, list):
        return [_starred(below, (*path, number)) for number, below in enumerate(value)]
    if not isinstance(value, str):
        return value
    return STARS if is_secret(path) else mask_url(value)[0]


def _at(tree: JsonValue, rest: str, key: str) -> JsonValue:
    """The value at `rest` below `tree`. Model ids hold dots, so the longest key that fits is taken first."""
    if not rest:
        return tree
    names = tree if isinstance(tree, dict) else {}
    for name in sorted(names, key=len, reverse=True):
        if rest == name or rest.startswith(f"{name}."):
            return _at(names[name], rest[len(name) + 1 :], key)
    raise ConfigError((Problem("hark config get", None, (key,), unknown_key(rest.partition(".")[0], names)),))
