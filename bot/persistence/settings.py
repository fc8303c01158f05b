"""The settings that people make for a session. They stay when a new transcript begins."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.models.base import ThinkingLevel
from channels.settings import QueueMode

# A level of thinking that somebody chose; empty: nobody has.
Thinking = Literal["", ThinkingLevel]
# The name of a setting and its new value.
Change = tuple[Literal["verbose", "reasoning", "activation", "voice", "model", "thinking", "send", "queue"], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRules:
    """What a sub-agent may do, as it was when it was started; what the configuration takes away later counts too."""

    # The tools that the turn which started it could call, and those of them that it could call only to look.
    tools: tuple[str, ...] = ()
    as_guest: tuple[str, ...] = ()
    # Whether owners alone wrote that turn.
    by_owners: bool = False
    # The running time of each of its turns in seconds; 0: as configured.
    timeout: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The settings of one session."""

    # Whether tool calls are shown.
    verbose: Literal["on", "off"] = "off"
    # Whether the reasoning of the model is shown: not, when it is complete, or while it is streamed.
    reasoning: Literal["on", "off", "stream"] = "off"
    # Which messages of a group are answered: those that name the bot, all, or commands alone. Empty: as configured.
    activation: Literal["", "mention", "always", "off"] = ""
    # Whether answers are said aloud, too.
    voice: Literal["on", "off"] = "off"
    # The model that people chose; empty: as configured.
    model: str = ""
    # The level of thinking that people chose; empty: as configured.
    thinking: Thinking = ""
    # Whether what turns say is sent; empty: as configured.
    send: Literal["", "on", "off"] = ""
    # What becomes of what is written while a run is active; empty: as configured.
    queue: Literal["", QueueMode] = ""
    # The model that answers because the wanted one does not; empty while that one does.
    away: str = ""
    # The highest level of thinking that models have not refused, by their names; auto: people know what it lacks.
    levels: Mapping[str, ThinkingLevel] = field(default_factory=dict)
    # Of the session of a sub-agent; nobody changes them.
    child: ChildRules | None = None


@dataclass(frozen=True, slots=True)
class AnsweredBy:
    """The model that answers a turn, and the level of thinking with which it begins."""

    model: str
    thinking: str
