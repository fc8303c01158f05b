"""From the model's words to blocks in the ledger: cuts the stream, renders for the channel, names each block.

One object per run; it reads agent events and nothing else. What it has not yet handed out does not exist: when an
answer is cut, only planned blocks count (promise 2).

The first block of an answer goes out as soon as it is whole; what follows is joined until a message is full, the model
pauses, or the answer ends. Nothing of an answer goes out while it could still be a repetition of what was said.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from bot.directives import Directives
from bot.persistence.values import TOOL, Said, Turn
from bot.repeats import is_repeat, may_become
from bot.speech import spoken
from channels.base import Channel
from channels.outgoing import Action, OutgoingFile, Planned, ReplyBlock
from channels.settings import ReplyTo, Streaming
from channels.stream.chunker import Chunker

# Characters from which on the beginning of an answer is shown: what a notification quotes should say something.
_PREVIEW_FROM = 30


def notice(source: str, text: str, channel: Channel | None, nonce: Callable[[], int]) -> tuple[Planned, ...]:
    """Deliveries of a sentence of the service itself (an error, a command's answer)."""
    return _planned(source, channel.render(text) if channel else (text,), text, nonce, None)


class Replies:
    """Cuts the answers of one turn. step: of the present one. channel: None for HTTP, which takes Markdown as it is.

    replying: which of the messages are shown as replies to the newest that the turn answers. Behind the first one they
    make no sound.
    """

    def __init__(
        self, turn: Turn, channel: Channel | None, cutting: Streaming, replying: ReplyTo, nonce: Callable[[], int]
    ) -> None:
        self._turn_id = turn.turn_id
        self._replying = replying
        self._question = turn.messages[-1].origin.message_id
        self._spoken = any(said.step is not None for said in turn.said)
        self._channel = channel
        # what is cut is measured before it is planned, mostly as it stands then
        self._render = lru_cache(4)(lambda text: channel.render(spoken(text)) if channel else (text,))
        self._nonce = nonce
        self.streaming = cutting
        self._most = channel.capabilities.block_chars if channel else cutting.max_chars
        self._max = min(cutting.max_chars, self._most)
        self._min = min(cutting.min_chars, self._max)
        self._joins = "max_chars" not in cutting.model_fields_set
        self._waits = cutting.break_at == "message_end" or cutting.mode == "off"
        self.previews = (
            cutting.mode == "preview" and channel is not None and Action.EDIT in channel.capabilities.actions
        )
        self._said = list(turn.said)
        self.begin(turn.step + 1, "")

    def begin(self, step: int, after: str) -> None:
        """An answer begins. after: the text of a cut answer that it continues, else empty."""
        self.step = step
        self._count = 0
        self._unseen = ""
        self._shown = bool(after)
        self._directives = Directives(after)
        self._words: list[str] = []
        whole = self._waits or self.previews or after
        least, most = (self._most, self._most) if whole and self._joins else (self._min, self._max)
        self._chunker = Chunker(
            least, most, self._most, after, joined=self._joins, messages=lambda text: len(self._render(text))
        )
        self._may_repeat = [] if after else [said for said in self._said if _counts(said)]

    def feed(self, delta: str) -> Sequence[Planned]:
        """A piece of text; returns blocks that are ready to be planned."""
        words = self._directives.feed(delta)
        self._words.append(words)
        if not words or self._waits:
            return ()
        if self._may_repeat:
            words = "".join(self._words)
            self._may_repeat = [said for said in self._may_repeat if _may_become(words, said)]
            if self._may_repeat:
                return ()
        return self._named(self._chunker.feed(words))

    def pause(self) -> Sequence[Planned]:
        """The model has been silent for a while: what is whole of its words so far goes out."""
        if self._waits or self._may_repeat or self.previews:
            return ()
        return self._named(self._chunker.pause(self._min))

    def frame(self) -> Planned | None:
        """The message that is being written, as far as it goes, for a preview; None while nothing is to be shown."""
        if self._waits or self._may_repeat or self._channel is None:
            return None
        text = self._chunker.rest()
        bodies = self._render(text) if len(text) >= _PREVIEW_FROM else ()
        if not bodies:
            return None
        shown = Planned(source=self._source, body=bodies[0], nonce=self._nonce(), action=Action.PREVIEW)
        return replace(shown, silent=self._spoken, reply_to=self._reply_to(first=not self._spoken))

    def end(self, *, silent: bool = False) -> Sequence[Planned]:
        """The answer is whole; returns its last blocks. One that would show nothing is shown as it was written.

        silent: the model has chosen to say nothing; what has not gone out never will.
        """
        last = self._directives.end()
        self._words.append(last)
        if silent:
            return ()
        words = "".join(self._words)
        same = "" if self._shown else self._said_already(words)
        fed = words if self._waits or self._may_repeat else last
        planned = self._named([*self._chunker.feed(fed), *self._chunker.end()], same)
        if self._unseen.strip() and not planned and not self._shown:
            literal = self._unseen[: self._max // 2].strip()
            planned = self._named([ReplyBlock(f"````\n{literal}\n````", "")])
        if self._shown and not same:
            self._said.append(Said(source=f"{self._answer}:b0", text=words, step=self.step))
        return planned

    def sent(self, said: Said) -> None:
        """A call of a tool has put a message into the conversation of the turn, or the answer a file."""
        self._said.append(said)

    @property
    def files(self) -> Sequence[str]:
        """Paths that the answer so far wants to be sent."""
        return self._directives.files

    def file(self, number: int, file: OutgoingFile) -> Planned:
        """A file of the answer; not sent where a tool has sent it already."""
        same = next((said.source for said in self._said if said.file == file.path), "")
        if not same:
            self.sent(Said(source=f"{self._answer}:f{number}", text="", step=self.step, file=file.path))
        return self._in_answer(
            Planned(
                source=f"{self._answer}:f{number}",
                body="",
                nonce=self._nonce(),
                step=self.step,
                action=Action.FILE,
                file=file,
                unless=same,
            )
        )

    @property
    def _answer(self) -> str:
        return f"turn:{self._turn_id}:s{self.step}"

    @property
    def _source(self) -> str:
        return f"{self._answer}:b{self._count}"

    def _named(self, blocks: Sequence[ReplyBlock], same: str = "") -> list[Planned]:
        """Blocks as deliveries. same: source of what says the same as all of them together."""
        planned: list[Planned] = []
        for block in blocks:
            said = self._unseen + self._directives.written(block.said)
            made = _planned(self._source, self._render(block.text), said, self._nonce, self.step)
            unless = same or self._said_already(block.text, tools=True)
            # a block that shows nothing (a link definition alone): the next one carries its words
            self._unseen = "" if made else said
            self._shown = self._shown or bool(made)
            self._count += bool(made)
            planned.extend(self._in_answer(replace(piece, unless=unless)) for piece in made)
        return planned

    def _said_already(self, text: str, *, tools: bool = False) -> str:
        """The source of what said the same as a text; empty where nothing did. tools: only their messages count."""
        for said in self._said:
            if (
                _counts(said)
                and (said.step is None or not tools)
                and is_repeat(text, said.text, near=said.step is None)
            ):
                return said.source
        return ""

    def _in_answer(self, piece: Planned) -> Planned:
        """A message as the next one of the answer."""
        first, self._spoken = not self._spoken, True
        return replace(piece, silent=not first, reply_to=self._reply_to(first=first))

    def _reply_to(self, *, first: bool) -> str:
        if self._directives.reply_to is not None:
            return self._directives.reply_to or self._question
        return self._question if self._replying == "all" or (first and self._replying == "first") else ""


def _counts(said: Said) -> bool:
    """Whether an answer may say the same as this: as a message of a tool, or as a whole answer before it."""
    return bool(said.text.strip()) and (said.step is not None or said.source.startswith(TOOL))


def _may_become(words: str, said: Said) -> bool:
    """Whether an answer that begins so could be left out."""
    return len(words) <= 1.2 * len(said.text) if said.step is None else may_become(words, said.text)


def _planned(
    source: str, bodies: Sequence[str], said: str, nonce: Callable[[], int], step: int | None
) -> tuple[Planned, ...]:
    """One delivery per message that the channel has rendered; the first carries the model's words."""
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
