"""What the store knows of histories that a platform can be asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from channels.message import Place


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """A conversation as far as it was heard. cursor: see `Heard`, empty where there is none. held: messages wait there.

    listed: something may have been said to the bot there while it did not listen.
    """

    place: Place
    cursor: str
    held: bool
    listed: bool


@dataclass(frozen=True, slots=True)
class AccountHistory:
    """first: when the account was heard of for the first time, in milliseconds; fresh: that is now."""

    first: int
    fresh: bool
    conversations: Sequence[ConversationHistory]
