"""Keys and values that are planned but not in this version, in one place.

`load` takes them out of the tree and says so in a sentence of its own: whoever copies a configuration from
the plan learns that the key is right and the version is not. An entry goes when its part arrives.
"""

from collections.abc import Iterator

from bot.config.document import Tree
from bot.config.errors import KeyPath
from channels.registry import later, sections

SENTENCE = "this part of Hark is not in this version yet; remove it"

_KEYS = {
    "": "queue catch_up heartbeat approvals compaction budget send_policy memory skills mcp hooks extensions "
    "web transcription telemetry",
    "agent": "fallbacks",
    "providers.*": "command",
    "providers.*.models.*": "price",
    "channels": later(),
    "sessions": "reset",
    "tools": "profile",
    "tools.exec": "ask ask_fallback allowlist sandbox",
}
_VALUES = {
    "providers.*.api": "openai-responses cli",
    "tools.exec.security": "allowlist",
}
for _name, _section in sections().items():
    for _place in (f"channels.{_name}", f"channels.{_name}.accounts.*"):
        _KEYS |= {f"{_place}.{below}".rstrip("."): names for below, names in _section.later_keys.items()}
        _VALUES |= {f"{_place}.{below}": values for below, values in _section.later_values.items()}


def later_keys(tree: Tree) -> Iterator[tuple[KeyPath, str]]:
    """Yield path and sentence of everything in `tree` that a later version will understand."""
    for pattern, names in _KEYS.items():
        for path, mapping in _matching(tree, tuple(pattern.split(".")) if pattern else ()):
            if isinstance(mapping, dict):
                yield from (((*path, name), SENTENCE) for name in names.split() if name in mapping)
    for pattern, values in _VALUES.items():
        for path, value in _matching(tree, tuple(pattern.split("."))):
            if isinstance(value, str) and value in values.split():
                yield path, f"`{value}` is not in this version yet; choose another value or remove the key"


def _matching(tree: Tree, pattern: tuple[str, ...], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Tree]]:
    if not pattern:
        yield path, tree
    elif isinstance(tree, dict):
        for key in tree if pattern[0] == "*" else pattern[:1]:
            if key in tree:
                yield from _matching(tree[key], pattern[1:], (*path, key))
