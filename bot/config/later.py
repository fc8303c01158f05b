"""Keys and values that are planned but not in this version, in one place.

Whoever copies a configuration from the plan learns that the key is right and the version is not. An entry goes when
its part arrives. Called by `explain`.
"""

from bot.config.errors import KeyPath

_KEYS = {
    "": "compaction budget send_policy memory skills mcp hooks extensions web transcription telemetry",
    "agent": "fallbacks",
    "providers.*": "command",
    "queue": "mode cap drop",
}
_VALUES = {
    "providers.*.api": "openai-responses cli",
}


def later(path: KeyPath, value: object = None) -> str | None:
    """The sentence for an unknown key, or for the value of a known one, that a later version will understand."""
    if any(path[-1] in names.split() and _fits(place, path[:-1]) for place, names in _KEYS.items()):
        return "this part of Hark is not in this version yet; remove it"
    if any(value in values.split() and _fits(place, path) for place, values in _VALUES.items()):
        return f"`{value}` is not in this version yet; choose another value or remove the key"
    return None


def _fits(place: str, path: KeyPath) -> bool:
    parts = place.split(".") if place else []
    return len(parts) == len(path) and all(part in ("*", key) for part, key in zip(parts, path, strict=True))
