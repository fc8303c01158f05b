"""What a session shows besides its answers, as `/verbose` and `/reasoning` say: calls of tools, the model's reasoning.

Each is a message without a sound. It is no words of the answer: `said` is empty and there is no step, so that nothing
takes it for what was said, or for the beginning of an answer that was cut.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from agent.message import ToolCall
from bot import wording
from bot.persistence.turns import Turn
from bot.speech import spoken
from channels.outgoing import Planned
from channels.sources import Source, side_message
from channels.stream.chunker import Chunker

# UTF-16 units of a piece of reasoning: as a quote it is one message anywhere.
_LEAST, _MOST = 400, 1400


class SideMessages:
    """Makes the side messages of one run.

    say: makes the deliveries of a text; it is given their source and the text. shown: False where there are no side
    messages, because programs and terminals read the events instead. in_full: whether calls are shown with their
    arguments, because only owners read along.
    """

    def __init__(
        self, turn: Turn, say: Callable[[Source, str], Sequence[Planned]], *, shown: bool, in_full: bool
    ) -> None:
        self._verbose = shown and turn.settings.verbose == "on"
        self._reasoning = turn.settings.reasoning if shown else "off"
        self._turn_id, self._say, self._in_full = turn.turn_id, say, in_full
        # By step, until there are words that they stand before.
        self._thoughts: dict[int, list[str]] = {}

    def begin(self, step: int) -> None:
        """An answer begins, or is begun anew."""
        self._step, self._numbers = step, itertools.count()
        self._thoughts[step] = []
        if self._reasoning == "stream":
            self._chunker = Chunker(_LEAST, _MOST)

    def think(self, delta: str) -> Sequence[Planned]:
        """A piece of the reasoning; returns what of it goes out at once."""
        if self._reasoning == "stream":
            return self._quoted(block.text for block in self._chunker.feed(delta))
        if self._reasoning == "on" and self._step in self._thoughts:
            self._thoughts[self._step].append(delta)
        return ()

    def before(self) -> Sequence[Planned]:
        """The reasoning that has not gone out, now that words go out: that of answers without any before it, too."""
        if self._reasoning == "stream":
            chunker, self._chunker = self._chunker, Chunker(_LEAST, _MOST)
            return self._quoted(block.text for block in chunker.end())
        text = "\n\n".join("".join(pieces) for pieces in self._thoughts.values()).strip()
        self._thoughts = {}
        return self._quoted([text if len(text) <= _MOST else f"{text[:_MOST]}…"] if text else ())[:1]

    def around(self, blocks: Sequence[Planned], calls: Sequence[ToolCall]) -> Sequence[Planned]:
        """The last blocks of an answer that is not silent, with what is shown before and behind them."""
        says = any(not block.unless for block in blocks) or (calls and self._reasoning == "stream")
        before = self.before() if says else ()
        lines = [wording.call(call.name, call.arguments if self._in_full else "") for call in calls if self._verbose]
        return (*before, *blocks, *(self._aside("t", "\n".join(lines)) if lines else ()))

    def _quoted(self, texts: Iterable[str]) -> list[Planned]:
        quotes = ("> " + text.replace("\n", "\n> ") for text in texts)
        return [one for quote in quotes for one in self._aside(f"r{next(self._numbers)}", spoken(quote))]

    def _aside(self, name: str, text: str) -> list[Planned]:
        found = self._say(side_message(self._turn_id, self._step, name), text)
        return [replace(one, said="", silent=True) for one in found]
