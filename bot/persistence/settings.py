"""The settings that people make for a session. They stay when a new transcript begins."""

from dataclasses import dataclass
from typing import Literal

# The name of a setting and its new value.
Change = tuple[Literal["verbose", "reasoning", "activation"], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The settings of one session."""

    # Whether tool calls are shown.
    verbose: Literal["on", "off"] = "off"
    # Whether the reasoning of the model is shown: not, when it is complete, or while it is streamed.
    reasoning: Literal["on", "off", "stream"] = "off"
    # Which messages of a group are answered: those that name the bot, all, or commands alone. Empty: as configured.
    activation: Literal["", "mention", "always", "off"] = ""


@dataclass(frozen=True, slots=True)
class AnsweredBy:
    """The model that answers a turn, and the level of thinking with which it begins."""

    model: str
    thinking: str
