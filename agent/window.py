"""What a run needs to keep its requests within the window: the rules, the corrected estimates, and the durable side."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.message import Entry, Message, Usage
from agent.models.fleet import Route

# Bounds for how many tokens a model counts for each estimated one.
_LEAST_SCALE, _MOST_SCALE = 0.5, 4.0
# A count that is so many times smaller than the estimate leaves something out, such as what was read from a cache.
_LEAST_COUNT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRules:
    """When and how conversations are summed up, by the section `compaction` of the configuration."""

    # The fraction of the window above which that is done at the end of a turn.
    threshold: float
    # Tokens that a request leaves free at least, as far as half the window allows; the limit of output always counts.
    reserve: int
    # How many of the newest tokens are kept word for word, at most a quarter of a request.
    keep: int
    # Tries for one summary, and the seconds for all of them.
    attempts: int
    timeout: float
    # The name of the model that sums up; empty: the one that answers.
    model: str


@dataclass(eq=False, slots=True)
class Scale:
    """How many tokens each model counts for one that is estimated, as its answers have shown."""

    # The factors, by the names of models; 1 for those that are not in it.
    by_model: dict[str, float] = field(default_factory=dict)

    def learn(self, model: str, estimated: int, counted: int) -> bool:
        """Take what a provider has counted for a request; False for next to nothing, which is no count of all of it."""
        if counted * _LEAST_COUNT < estimated:
            return False
        found = min(max(counted / max(estimated, 1), _LEAST_SCALE), _MOST_SCALE)
        self.by_model[model] = (self.by_model.get(model, found) + found) / 2
        return True


class Keeper(Protocol):
    """The durable side of compaction, which the service implements. Each method may raise what the store raises."""

    async def reserve(self, model: str, most: Usage) -> None:
        """Reserve what a call may use at most. Raises BudgetReached."""

    async def used(self, model: str, usage: Usage) -> None:
        """Persist what a call has used."""

    async def began(self, tokens: int, end: int) -> None:
        """Persist and publish that a summary is being made.

        tokens: of the next request without it, about. end: the seq of the last line of the transcript.
        """

    async def flushes(self) -> bool:
        """Persist that the model is asked to save notes; False if it was since the newest summary."""

    async def lasts(self) -> None:
        """Tell people that a summary is being made."""

    async def state(self) -> str:
        """Return what goes on besides the conversation, as the rows of the store have it; may be empty."""

    async def ended(self, message: Message | None, start: int, before: int) -> Entry | None:
        """Persist a summary that stands for the lines before a seq; or that there is none, and everything stays.

        before: the seq of the summary that was shown before, else 0. Returns the line of the summary; None
        without one, or where another summary was persisted meanwhile.
        """


# Sums up the older part of a conversation in place of a model. Takes its messages, what is to be kept above all, or
# empty, and how many words are wanted at most; returns the words.
Summarizer = Callable[[Sequence[Message], str, int], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What compaction of one conversation needs besides the conversation."""

    rules: CompactionRules
    scale: Scale
    keeper: Keeper
    # Returns the way to the model that sums up.
    summing: Callable[[], Route]
    # Is asked before that model; None: there is none.
    engine: Summarizer | None = None
