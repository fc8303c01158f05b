"""What people have set for a session, for as long as there is one, and what of a turn is decided by it.

It stays when a new transcript begins.
"""

from dataclasses import dataclass
from typing import Literal

# A setting, and what it becomes.
Change = tuple[Literal["verbose", "reasoning", "activation"], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """verbose: whether calls of tools are shown. reasoning: whether the model's reasoning is, whole or as it comes.
    activation: what is answered among several people: what names the bot, everything, or commands alone; empty: what
    the configuration says."""

    verbose: Literal["on", "off"] = "off"
    reasoning: Literal["on", "off", "stream"] = "off"
    activation: Literal["", "mention", "always", "off"] = ""


@dataclass(frozen=True, slots=True)
class AnsweredBy:
    """Which model answers a turn, and at which level of thinking it does so first."""

    model: str
    thinking: str
