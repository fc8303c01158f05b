"""Cuts the model's words into blocks as they stream, and renders the blocks as deliveries for the channel.

Each run has one `Replies`. Words that it has not returned as deliveries count as never said: of an answer that is cut,
only the planned blocks remain (promise 2 of the design).

The first block of an answer is sent as soon as it is whole; later words are joined until a message is full, the model
pauses, or the answer ends. Nothing of an answer is sent while it may still turn out to repeat an earlier text. From a
link by label (`[words][label]`) on the words wait for the end of the answer, because only then its address is known.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from bot import wording
from bot.persistence.turns import Said, Turn
from bot.replies.directives import Directives
from bot.replies.long_code import first_lines, name_of
from bot.replies.repeats import is_repeat, may_become
from bot.speech import spoken
from channels.base import Channel
from channels.markdown.parse import parse
from channels.outgoing import Action, Code, OutgoingFile, Planned, ReplyBlock
from channels.settings import ReplyTo, Streaming
from channels.sources import Source, SourceKind, answer, answer_file, side_message
from channels.stream.chunker import Chunker

# The least characters of a preview, because notifications quote it and should say something.
_PREVIEW_FROM = 30
# A link by its label, and the most characters that such a link may have.
_CITES, _LONGEST_LINK = re.compile(r"(?<![\w\])`])\[[^\[\]\n]+\]\[[^\[\]\n]*\](?![\[(])"), 400


def notice(
    source: Source, text: str, channel: Channel | None, nonce: Callable[[], int], *, ours: bool = True
) -> tuple[Planned, ...]:
    """Return the deliveries of a text from the service, such as an error or the answer to a command.

    ours: the service wrote every word, so names of commands in it are changed to what the channel lets people type.
    channel: None delivers the text as it is.
    """
    if channel is None:
        return _planned(source, (text,), text, nonce, None)
    shown = wording.typed(text, channel.capabilities.commands) if ours else text
    return _planned(source, channel.render(shown), text, nonce, None)


class Replies:
    """Cuts the answers of one turn. Only the first message of a turn makes a sound.

    channel: None for HTTP, which takes Markdown unchanged. cutting: how answers are cut. replying: which messages are
    shown as replies to the newest message of the turn. nonce: draws the number that tells deliveries of equal text
    apart. as_file: takes the name and the text of long code and returns its file, which must exist before the blocks
    are planned; None sends code in messages, however long.
    """

    def __init__(
        self,
        turn: Turn,
        channel: Channel | None,
        cutting: Streaming,
        replying: ReplyTo,
        nonce: Callable[[], int],
        as_file: Callable[[str, str], OutgoingFile] | None = None,
    ) -> None:
        self._turn_id = turn.turn_id
        self._replying = replying
        self._question = turn.messages[-1].origin.message_id
        self._spoken = any(said.step is not None for said in turn.said)
        self._channel = channel
        # A block is rendered to be measured and again to be planned, mostly with the same text.
        self._render = lru_cache(4)(lambda text: channel.render(spoken(text)) if channel else (text,))
        self._nonce = nonce
        self._as_file = as_file
        takes_files = as_file is not None and channel is not None and Action.FILE in channel.capabilities.actions
        self._file_bytes = channel.capabilities.file_bytes if channel and takes_files else 0
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

    def begin(self, step: int, after: str) -> None:
        """Begin the answer of a step; must be called before any other method.

        after: the text of the cut answer that this one continues, else empty.
        """
        self.step = step
        self._count = self._codes = 0
        self._unseen = ""
        self._shown = bool(after)
        self._directives = Directives(after)
        self._aloud = ""
        self._words: list[str] = []
        self._waiting: list[str] = []  # words that have not been cut into blocks yet
        self._tail, self._cites = "", False
        self._defined: dict[tuple[str, str], str] = {}  # definitions of cited links, by id and address
        whole = self._waits or self.previews or after
        least, most = (self._most, self._most) if whole and self._joins else (self._min, self._max)
        self._chunker = Chunker(
            least,
            most,
            self._most,
            after,
            joined=self._joins,
            messages=self._messages,
            file_bytes=self._file_bytes,
        )
        self._may_repeat = [] if after else [said for said in self._said if _counts(said)]

    def feed(self, delta: str) -> Sequence[Planned]:
        """Take a piece of text and return the blocks that are ready to be planned."""
        words = self._directives.feed(delta)
        self._words.append(words)
        self._waiting.append(words)
        self._tail = (self._tail + words)[-max(_LONGEST_LINK, len(words)) :]
        if "]" in words and not self._cites:
            self._cites = _CITES.search(self._tail) is not None
        if not words or self._waits or self._cites:
            return ()
        if self._may_repeat:
            words = "".join(self._words)
            self._may_repeat = [said for said in self._may_repeat if may_become(words, said.text)]
            if self._may_repeat:
                return ()
        blocks = self._chunker.feed(words if len(self._waiting) == 1 else "".join(self._waiting))
        self._waiting.clear()
        return self._named(blocks) if blocks else ()

    def pause(self) -> Sequence[Planned]:
        """Return what is whole of the words so far, because the model has been silent for a while."""
        if self._waits or self._cites or self._may_repeat or self.previews:
            return ()
        return self._named(self._chunker.pause(self._min))

    def frame(self) -> Planned | None:
        """Return a preview of the message that is being written; None while there is nothing to show."""
        if self._waits or self._may_repeat or self._channel is None:
            return None
        text = self._chunker.rest()
        bodies = self._render(text) if len(text) >= _PREVIEW_FROM else ()
        if not bodies:
            return None
        shown = Planned(source=self._source, body=bodies[0], nonce=self._nonce(), action=Action.PREVIEW)
        return replace(shown, silent=self._spoken, reply_to=self._reply_to(first=not self._spoken))

    def end(self) -> Sequence[Planned]:
        """End the answer and return its last blocks; if none of its words can be seen, they are shown as code."""
        last = self._directives.end()
        self._words.append(last)
        self._waiting.append(last)
        words = "".join(self._words)
        same = "" if self._shown else self._said_already(words)
        self._defined = _defined(words) if self._cites and self._channel is not None else {}
        planned = self._named(self._rest(), same)
        if self._cites and any(one.said for one in planned):  # the last blocks may be definitions that show nothing
            last_said = max(number for number, one in enumerate(planned) if one.said)
            planned[last_said] = replace(planned[last_said], said=planned[last_said].said + self._unseen)
        if self._unseen.strip() and not planned and not self._shown:
            literal = self._unseen[: self._max // 2].strip()
            planned = self._named([ReplyBlock(f"````\n{literal}\n````", "")])
        if self._shown and not same:
            self._aloud = words
            self._said.append(Said(source=answer(self._turn_id, self.step, 0), text=words, step=self.step))
        return planned

    def cut(self) -> Sequence[Planned]:
        """Return the rest of an answer that broke off and is not begun anew."""
        if self._may_repeat:  # so far it repeats what people have read
            return ()
        return self._named(self._rest())

    @property
    def has_planned(self) -> bool:
        """Whether any block of the answer was returned to be planned."""
        return self._count > 0

    def sent(self, said: Said) -> None:
        """Note a message that a tool has sent into the conversation of the turn, or a file that an answer has."""
        self._said.append(said)

    @property
    def aloud(self) -> str:
        """The words of the answer that has ended, if it is to be seen and says what was not said before."""
        return self._aloud

    def voice(self, file: OutgoingFile) -> Planned:
        """Return the delivery of the answer as it is said aloud."""
        source = side_message(self._turn_id, self.step, "voice")
        return self._in_answer(Planned(source=source, body="", nonce=self._nonce(), action=Action.FILE, file=file))

    @property
    def files(self) -> Sequence[str]:
        """Paths of the files that the answer so far wants to send."""
        return self._directives.files

    def file(self, number: int, file: OutgoingFile) -> Planned:
        """Return the delivery of a file of the answer, which is not sent if the file was sent before.

        number: counts the files of the answer.
        """
        source = answer_file(self._turn_id, self.step, number)
        same = next((said.source.key for said in self._said if said.file == file.path), "")
        if not same:
            self.sent(Said(source=source, text="", step=self.step, file=file.path))
        return self._in_answer(
            Planned(
                source=source, body="", nonce=self._nonce(), step=self.step, action=Action.FILE, file=file, unless=same
            )
        )

    @property
    def _source(self) -> Source:
        return answer(self._turn_id, self.step, self._count)

    def _named(self, blocks: Sequence[ReplyBlock], same: str = "") -> list[Planned]:
        """Return blocks as deliveries. same: the source key of an earlier text that says the same as all of them."""
        planned: list[Planned] = []
        for block in blocks:
            said = self._unseen + self._directives.written(block.said)
            made = self._code(block.code, said) if block.code else self._text(block.text, said)
            unless = same or self._said_already(block.text, tools=True)
            # A block may show nothing, such as a lone link definition: the next block then carries its words.
            self._unseen = "" if made else said
            self._shown = self._shown or bool(made)
            self._count += bool(made)
            planned.extend(self._in_answer(replace(piece, unless=unless)) for piece in made)
        return planned

    def _text(self, text: str, said: str) -> tuple[Planned, ...]:
        return _planned(self._source, self._render(self._linked(text)), said, self._nonce, self.step)

    def _code(self, code: Code, said: str) -> tuple[Planned, ...]:
        """Return the first lines of code and its file, which together are one block."""
        assert self._as_file is not None
        self._codes += 1
        name = name_of(code, self._codes)
        shown = self._text(first_lines(code, name, self._messages), said)
        file = Planned(source=self._source, piece=len(shown), body="", nonce=self._nonce(), step=self.step)
        return (*shown, replace(file, action=Action.FILE, file=self._as_file(name, code.content)))

    def _messages(self, text: str) -> int:
        """Return how many messages a text needs on the platform."""
        return len(self._render(self._linked(text)))

    def _rest(self) -> Sequence[ReplyBlock]:
        """Return all remaining words as blocks; programs get them in one piece, as they were written."""
        words = "".join(self._waiting)
        self._waiting.clear()
        if self._channel is None and self._waits:
            return [ReplyBlock(words.strip(), words)] if words.strip() else []
        return [*self._chunker.feed(words), *self._chunker.end()]

    def _linked(self, text: str) -> str:
        """Return a block with the definitions that its links need, and without those that only other blocks need."""
        if not self._defined:
            return text
        lines, known = text.split("\n"), parse("\n".join((f"{text}\n", *self._defined.values())))[1]
        for token in parse(text)[0]:
            key = (token.meta["id"], token.meta["url"]) if token.type == "definition" else None
            if key in self._defined and key not in known and token.map and token.level == 0:
                lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
        return "\n".join((*lines, "", *(line for key, line in self._defined.items() if key in known))).rstrip()

    def _said_already(self, text: str, *, tools: bool = False) -> str:
        """Return the source key of what said the same as a text before; empty if nothing did.

        tools: only messages of tools count.
        """
        for said in self._said:
            if _counts(said) and (said.step is None or not tools) and is_repeat(text, said.text):
                return said.source.key
        return ""

    def _in_answer(self, piece: Planned) -> Planned:
        """Return a message as the next of the turn, silent and shown as a reply according to its place."""
        first, self._spoken = not self._spoken, True
        return replace(piece, silent=not first, reply_to=self._reply_to(first=first))

    def _reply_to(self, *, first: bool) -> str:
        chosen = self._directives.reply_to
        known = self._channel.capabilities.message_id if self._channel else ""
        if chosen is not None and (not chosen or re.fullmatch(known, chosen, re.ASCII)):
            return chosen or self._question
        return self._question if self._replying == "all" or (first and self._replying == "first") else ""


def _counts(said: Said) -> bool:
    """Return whether an answer must not repeat this: it is a message of a tool, or an earlier answer."""
    return bool(said.text.strip()) and (said.step is not None or said.source.kind is SourceKind.TOOL)


def _defined(words: str) -> dict[tuple[str, str], str]:
    """Return the link definitions of a Markdown text that its links cite, by id and address."""
    tokens, cited = parse(words)
    found = (token.meta for token in tokens if token.type == "definition")
    return {key: f"[{one['label']}]: <{one['url']}>" for one in found if (key := (one["id"], one["url"])) in cited}


def _planned(
    source: Source, bodies: Sequence[str], said: str, nonce: Callable[[], int], step: int | None
) -> tuple[Planned, ...]:
    """Return one delivery per rendered message.

    said: the words they come from, carried by the first. step: None for texts that are no part of an answer.
    """
    return tuple(
        Planned(source=source, piece=n, body=body, nonce=nonce(), said="" if n else said, step=step)
        for n, body in enumerate(bodies)
    )
