"""Values of the store about exchanges that are taken back, and about transcripts that are copied."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agent.message import ToolCall
from bot.persistence.turns import Stopped
from channels.message import Place
from channels.outgoing import Planned


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the bot that is, or is about to be, on a platform."""

    delivery_id: int
    place: Place
    # The words of the model in it; empty if they are not kept.
    words: str
    # When it was sent, in milliseconds.
    at: int


# Makes what takes a message off its platform: first its deletion, unless that is known to be impossible, then the edit
# that is made if the deletion is refused. It has no effects.
TakeOff = Callable[[Shown], Sequence[Planned]]
# Why nothing was taken back or brought back. nothing: there is no such exchange. newer: something was said since.
# summed up: a summary stands for it. others: it is not the exchange of who asks. unedited: nothing of it was edited.
Refusal = Literal["", "nothing", "newer", "summed up", "others", "unedited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What was taken back or brought back, and what of it stays as it is."""

    refused: Refusal = ""
    # What people had asked, oldest first.
    asked: tuple[str, ...] = ()
    stopped: Stopped = field(default_factory=Stopped)
    # How many messages are deleted; how many are changed instead, because they are too old to be deleted; and how many
    # may stay, because it is not known whether or where they arrived.
    deleted: int = 0
    struck: int = 0
    lost: int = 0
    # The calls that have begun, oldest first.
    calls: tuple[ToolCall, ...] = ()
    # How many requests were allowed for always.
    granted: int = 0


@dataclass(frozen=True, slots=True)
class Forked:
    """A copy of a transcript, with which its session goes on."""

    # The id of the transcript it was copied from; empty: there was nothing to copy.
    of: str = ""
    # How many lines that a model is shown were copied.
    lines: int = 0
