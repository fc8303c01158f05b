"""Contexts of recent transcripts, kept in memory so that a turn appends instead of reading its history again.

Bounded by tokens; the store is the truth: a context is used only if its last line is directly before the new one.
"""

from collections import OrderedDict

from agent.context import Context
from bot.persistence.turns import Turn
from bot.store.store import Store

# Estimated tokens of all cached contexts, about 2 MB of text; others are read again.
MAX_TOKENS = 500_000


class Contexts:
    """A cache of contexts by transcript; one that is lent out is not in it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: OrderedDict[str, Context] = OrderedDict()
        self._tokens = 0

    async def take(self, turn: Turn) -> Context:
        """The context of a claimed turn, its own new lines included."""
        context = self._cached.pop(turn.transcript_id, None)
        if context is not None:
            self._tokens -= context.tokens
            if turn.entries and turn.entries[0].seq == context.end + 1:
                context.append(turn.entries)
                return context
        return Context(await self._store.reads.context(turn.transcript_id))

    def give_back(self, transcript_id: str, context: Context) -> None:
        """Keep a context for the next turn of its transcript; the least recently used go when there are too many."""
        self._cached[transcript_id] = context
        self._tokens += context.tokens
        while self._tokens > MAX_TOKENS and self._cached:
            _, old = self._cached.popitem(last=False)
            self._tokens -= old.tokens
