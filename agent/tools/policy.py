"""Which tools may be used: rules one behind the other, of which each only takes tools away.

A pattern is a name in any case, in which `*` stands for anything, or the name of a group. Pure: the rules come from the
configuration, in the order of its layers (`bot/runs/permissions.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Also of tools that come later, so that a rule for a group goes on to mean what it says.
GROUPS = {
    "group:fs": ("read", "write", "edit", "glob", "grep"),
    "group:runtime": ("exec", "process"),
    "group:web": ("web_*",),
    "group:sessions": ("sessions_*",),
    "group:memory": ("memory_*",),
    "group:messaging": ("message", "ask_person"),
    "group:automation": ("schedule",),
}
_MINIMAL = ("stay_silent", "ask_person")
# Of people who are no owners. Each tool stands here by its name, so that none of later versions comes in by itself.
GUEST = (*_MINIMAL, "message", "read", "write", "edit", "glob", "grep", "exec", "process")
_MESSAGING = (*_MINIMAL, "message", "group:sessions")
PROFILES = {
    "minimal": _MINIMAL,
    "guest": GUEST,
    "messaging": _MESSAGING,
    "coding": (*_MESSAGING, "group:fs", "group:runtime", "group:web", "group:memory", "group:automation"),
    "full": ("*",),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One of them. key: where it stands in the configuration. only: these tools and no others; else all but these."""

    key: str
    patterns: tuple[str, ...]
    only: bool


class Policy(tuple[Rule, ...]):
    """All of them; without any every tool may be used."""

    def why_not(self, name: str) -> str | None:
        """The key of the first rule by which a tool may not be used; None: it may."""
        return next((rule.key for rule in self if matches(name, rule.patterns) is not rule.only), None)


def rules(key: str, allow: tuple[str, ...] | None, deny: tuple[str, ...]) -> Iterable[Rule]:
    """Of a layer with a list of tools that it allows, None for all, and one of tools that it does not."""
    if allow is not None:
        yield Rule(f"{key}.allow", allow, only=True)
    if deny:
        yield Rule(f"{key}.deny", deny, only=False)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a tool's name fits one of these."""
    return any(
        fnmatchcase(name.lower(), one.lower())
        for pattern in patterns
        for one in GROUPS.get(pattern.lower(), (pattern,))
    )
