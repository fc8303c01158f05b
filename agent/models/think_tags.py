"""Parts reasoning from words where a server sends both as text: `<think>…</think>` at the beginning of an answer.

Servers that do not parse the output of open models (DeepSeek R1, Qwen, …) send it like this. Anywhere else the tags are
words like others.
"""

from collections.abc import Iterator

_OPENING = ("<think>", "<thinking>", "<thought>")


class ThinkTags:
    """Reads the text of one answer in pieces that may cut a tag anywhere."""

    def __init__(self) -> None:
        # Whether all further text is words.
        self.done = False
        # The tag that ends the reasoning; empty before it has begun.
        self._closing = ""
        # What may be the beginning of a tag.
        self._held = ""
        # Whether white space after a tag is left out.
        self._after_tag = False
        self._closed = False

    def are_words(self, piece: str) -> bool:
        """Whether a piece is nothing but words; a quick look for the beginning of nearly every answer."""
        if not (self.done or self._held or self._closing):
            begins = piece.lstrip()
            self.done = bool(begins) and begins[0] != "<"
        return self.done

    def feed(self, piece: str) -> Iterator[tuple[bool, str]]:
        """Yield what is certain by now: whether it is reasoning, and the text."""
        self._held += piece
        if not self._closing:
            begins = self._held.lstrip()
            tag = next((one for one in _OPENING if begins.startswith(one)), None)
            if tag is None:
                if not any(one.startswith(begins) for one in _OPENING):
                    yield from self.end()
                return
            self._closing, self._held, self._after_tag = f"</{tag[1:]}", begins[len(tag) :], True
        if self._after_tag:
            self._held = self._held.lstrip()
            self._after_tag = not self._held
        if self._closed:
            if self._held:
                yield from self.end()
            return
        thought, found, rest = self._held.partition(self._closing)
        if found:
            self._held, self._closed, self._after_tag = "", True, True
            if thought:
                yield True, thought
            yield from self.feed(rest)
            return
        keep = next((n for n in range(len(self._closing) - 1, 0, -1) if thought.endswith(self._closing[:n])), 0)
        self._held = thought[len(thought) - keep :]
        if thought := thought[: len(thought) - keep]:
            yield True, thought

    def end(self) -> Iterator[tuple[bool, str]]:
        """Yield what was held back, when the answer ends or other words come."""
        self.done, held = True, self._held
        self._held = ""
        if held:
            yield bool(self._closing) and not self._closed, held
