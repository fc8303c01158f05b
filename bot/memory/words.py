"""How memories are shown to people."""

from agent.origins import sources
from bot.approvals.words import fenced, prose, revealed
from bot.persistence.memories import Memory
from channels.outgoing import Button
from channels.session_key import parse


def where(one: Memory) -> str:
    """Return in words where a memory was written."""
    key = parse(one.session_key)
    if key.kind == "job" or key.heartbeat or one.by_itself:
        return "a job" if key.kind == "job" else "a beat"
    if key.kind in ("group", "channel"):
        return f"the {key.kind} {key.id} on {key.channel.capitalize()}"
    return {"console": "the terminal", "http": "a program"}.get(key.channel, "a direct conversation")


def of(one: Memory) -> str:
    """Return in words where a memory was written, and from whose text it was made."""
    return where(one) + (f", from {sources(one.origins)}" if one.origins else "")


def names(one: Memory) -> set[str]:
    """Return all names by which people may say what a memory was made from, in small letters."""
    found = {where(one), one.session_key}
    for origin in one.origins:
        found |= {origin.what, sources((origin,)), f"{origin.channel}:{origin.sender}"}
    return {name.casefold() for name in found}


def waiting(one: Memory, when: str) -> str:
    """Return a memory that waits, with all of its text. when: it was written, in words."""
    shown = revealed(one.entry.rstrip())
    ident = one.memory_id
    return f"{fenced(shown)}\n{when}, {prose(of(one))}: `/memory keep {ident}` or `/memory drop {ident}`"


def buttons(one: Memory) -> tuple[Button, ...]:
    """Return the buttons below a memory that waits."""
    return tuple(Button(word.capitalize(), f"/memory {word} {one.memory_id}") for word in ("keep", "drop"))
