"""How much one answer of a model may hold, whatever its provider sends: what streams in is collected in memory.

The limit of output that a request names is the provider's to keep, and not all do.
"""

from collections import Counter

from agent.models.base import ArgumentsDelta, StreamPart, TextDelta, ThinkingDelta

# Characters of the arguments of one call: a `write` of a large file is within it.
MOST_ARGUMENTS = 1024 * 1024
# Characters of words, reasoning and calls together: several times the longest answer that any model gives.
MOST_CHARACTERS = 4 * 1024 * 1024
# Bytes as sent, for all that is no word and is kept as well (signatures, a line without end): an event of a hundred
# bytes or more often holds one token.
MOST_BYTES = 64 * 1024 * 1024
# Bytes of one event, which is read as a whole: some servers send a call in one piece.
MOST_EVENT_BYTES = 8 * 1024 * 1024


class Measure:
    """Counts what one answer holds; `is_over` becomes true once that is too much."""

    def __init__(self) -> None:
        self.is_over = False
        self._bytes = self._event_bytes = self._characters = 0
        self._calls: Counter[str] = Counter()

    def add_bytes(self, count: int, *, anew: bool) -> None:
        """Count what has been received, before it is decoded. anew: what came before it has completed an event."""
        self._bytes += count
        self._event_bytes = count if anew else self._event_bytes + count
        self.is_over = self.is_over or self._bytes > MOST_BYTES or self._event_bytes > MOST_EVENT_BYTES

    def add(self, part: StreamPart) -> None:
        """Count what a part holds; of a call, its id and name once."""
        match part:
            case TextDelta(text=text) | ThinkingDelta(text=text):
                self._characters += len(text)
            case ArgumentsDelta(call_id=call_id, name=name, text=text):
                held = len(text) if call_id in self._calls else len(text) + len(call_id) + len(name)
                self._characters += held
                self._calls[call_id] += held
                self.is_over = self.is_over or self._calls[call_id] > MOST_ARGUMENTS
        self.is_over = self.is_over or self._characters > MOST_CHARACTERS
