"""Sentences about what owners have frozen."""

from collections.abc import Callable, Sequence

from bot.persistence.freezes import Freeze, Thawed, What

# What cannot begin at present.
BEATS = "Beats and jobs are frozen; `/thaw` lets them go on."
COMPACT = "Everything is frozen, so no model can sum this up; `/thaw` lets it go on."
_NAMES: dict[What, str] = {
    "all": "everything",
    "tools": "tools",
    "network": "tools that reach out",
    "beats": "beats and jobs",
}
_MEANS: dict[What, str] = {
    "all": "Everything is frozen: no model is asked, no tool, beat or job begins, and nothing that turns say is sent."
    " What was running was stopped, commands in the background too. What people write is kept.",
    "tools": "Tools are frozen: none begins, and a turn that needs one waits. What runs already, runs to its end.",
    "network": "Tools that reach out of this machine are frozen: the web, messages elsewhere, and commands with the"
    " network or on the machine itself. A turn that needs one waits. What runs already may go on reaching out, and"
    " models are asked as before.",
    "beats": "Beats and jobs are frozen: none begins, and one under way stops at its next step.",
}
_TOLD: dict[What, str] = {
    "tools": "Tools are frozen for now. What you wrote is kept, and goes on when an owner lets them (`/thaw`).",
    "network": "Tools that reach out are frozen for now. What you wrote is kept, and goes on when an owner lets them"
    " (`/thaw`).",
}


def told(what: What) -> str:
    """What people are told whose messages wait because of a freeze."""
    return _TOLD.get(what, "I am frozen for now. What you write is kept, and answered when an owner lets me (`/thaw`).")


def frozen(found: Sequence[Freeze], stamp: Callable[[int], str]) -> str:
    """What is frozen, since when and by whom; empty if nothing is. stamp: writes a moment in milliseconds."""
    return "; ".join(f"{_NAMES[one.what]} since {stamp(one.since)} by {one.who} in {one.place}" for one in found)


def begun(what: What, found: Sequence[Freeze]) -> str:
    """The answer to /freeze. found: all that is frozen now."""
    others = [_NAMES[one.what] for one in found if one.what != what]
    also = f" Frozen besides: {', '.join(others)}." if others else ""
    return f"{_MEANS[what]}{also} `/thaw` lets all of it go on."


def thawed(found: Thawed) -> str:
    """The answer to /thaw."""
    if not found.freezes:
        return "Nothing was frozen."
    names = ", ".join(_NAMES[one.what] for one in found.freezes)
    one, more = ("stopped turn", "message", "delivery"), ("stopped turns", "messages", "deliveries")
    counts = zip((found.turns, found.messages, found.deliveries), one, more, strict=True)
    waits = ", ".join(f"{count} {single if count == 1 else several}" for count, single, several in counts if count)
    return f"Thawed: {names}. {f'In order there go on: {waits}.' if waits else 'Nothing waited.'}"
