"""From the model's words to blocks in the ledger: cuts the stream, renders for the channel, names each block.

One object per run; it reads agent events and nothing else. What it has not yet handed out does not exist: when an
answer is cut, only planned blocks count (promise 2).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from bot.persistence.values import Turn
from channels.base import Channel
from channels.outgoing import Planned, ReplyBlock
from channels.settings import ReplyTo, Streaming
from channels.stream.chunker import Chunker


def notice(source: str, text: str, channel: Channel | None, nonce: Callable[[], int]) -> tuple[Planned, ...]:
    """Deliveries of a sentence of the service itself (an error, a command's answer)."""
    return _planned(source, text, text, channel, nonce, None)


class Replies:
    """Cuts the answers of one turn. channel: None for HTTP, which takes Markdown as it is.

    replying: which of the messages are shown as replies to the newest that the turn answers. Behind the first one they
    make no sound.
    """

    def __init__(
        self, turn: Turn, channel: Channel | None, cutting: Streaming, replying: ReplyTo, nonce: Callable[[], int]
    ) -> None:
        self._turn_id = turn.turn_id
        self._replying = replying
        self._question = turn.messages[-1].origin.message_id
        self._spoken = turn.spoken
        self._channel = channel
        self._nonce = nonce
        limit = channel.capabilities.block_chars if channel else cutting.max_chars
        self._max = min(cutting.max_chars, limit)
        self._min = min(cutting.min_chars, self._max)
        self._hold = cutting.break_at == "message_end"
        self._chunker = Chunker(self._min, self._max)
        self._held: list[ReplyBlock] = []
        self._unseen = ""
        self._shown = False
        self._step = 0
        self._count = 0

    def begin(self, step: int, after: str) -> None:
        """An answer begins. after: the text of a cut answer that it continues, else empty."""
        self._step = step
        self._count = 0
        self._held.clear()
        self._unseen = ""
        self._shown = False
        self._chunker = Chunker(self._min, self._max, after)

    def feed(self, delta: str) -> Sequence[Planned]:
        """A piece of text; returns blocks that are ready to be planned."""
        blocks = self._chunker.feed(delta)
        if self._hold:
            self._held.extend(blocks)
            return ()
        return self._named(blocks)

    def end(self) -> Sequence[Planned]:
        """The answer is whole; returns its last blocks. One that would show nothing is shown as it was written."""
        blocks = [*self._held, *self._chunker.end()]
        self._held.clear()
        planned = self._named(blocks)
        if self._unseen.strip() and not planned and not self._shown:
            literal = self._unseen[: self._max // 2].strip()
            planned = self._named([ReplyBlock(f"````\n{literal}\n````", "")])
        return planned

    def _named(self, blocks: Sequence[ReplyBlock]) -> Sequence[Planned]:
        planned: list[Planned] = []
        for block in blocks:
            source = f"turn:{self._turn_id}:s{self._step}:b{self._count}"
            said = self._unseen + block.said
            made = _planned(source, block.text, said, self._channel, self._nonce, self._step)
            pieces = [self._in_answer(piece) for piece in made]
            # a block that shows nothing (a link definition alone): the next one carries its words
            self._unseen = "" if pieces else said
            self._shown = self._shown or bool(pieces)
            self._count += 1
            planned.extend(pieces)
        return planned

    def _in_answer(self, piece: Planned) -> Planned:
        """A message as the next one of the answer."""
        first, self._spoken = not self._spoken, True
        replies = self._replying == "all" or (first and self._replying == "first")
        return replace(piece, silent=not first, reply_to=self._question if replies else "")


def _planned(
    source: str, text: str, said: str, channel: Channel | None, nonce: Callable[[], int], step: int | None
) -> tuple[Planned, ...]:
    """One delivery per message the channel needs; the first carries the model's words."""
    bodies = channel.render(text) if channel else (text,)
    return tuple(
        Planned(
            source=f"{source}.{n}" if n else source,
            body=body,
            nonce=nonce(),
            said="" if n else said,
            step=step,
        )
        for n, body in enumerate(bodies)
    )
