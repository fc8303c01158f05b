"""Takes directives, which a model writes for the service, out of the words for people as they stream.

Silent tokens (`heartbeat/quiet`): an answer that is only a token says nothing; at the beginning or end of an answer the
token is removed. `[[reply_to_current]]` and `[[reply_to:<id>]]` choose the message that the answer replies to. A line
`MEDIA: <path>` sends a file. In code and between quotation marks these are plain text.
"""

import re
from collections import deque

import regex  # type: ignore[import-untyped]

from heartbeat.quiet import LONGEST_TAIL, is_silent, leading, may_be_silent, may_trail, trailing

_TAG = re.compile(
    r"(?<![`\"'“‘„«])\[\[\s*(?:reply_to_current|reply_to:\s*([^\]\s]{1,80}))\s*\]\](?![`\"'”’“»])[ \t]{0,9}",
    re.IGNORECASE,
)
_MAY_BE_TAG = re.compile(r"\[(?:\[[^\]\n]{0,100}+(?:\](?:\][ \t]{0,9})?)?)?\Z")
_MEDIA = re.compile(r"[ \t]{0,8}MEDIA:[ \t]*[\"'`]?(?!\w+://)([^\s][^\n]*?)[\"'`]?")
_FENCE = re.compile(r"[ \t>]{0,8}(?:`{3}|~{3})")
# Words in a line that are no part of a directive, whatever follows: they contain no mark of a directive, and a space is
# followed by a letter or digit that begins no token (`heartbeat/quiet.may_trail`).
_PLAIN = re.compile(r"(?: (?![NH])[^\W_]|(?!_)\w|[.,;:!?'’…)-])++")
_MAY_BE_LINE = regex.compile(r"[ \t]{0,8}MEDIA:[^\n]{0,2000}|[ \t>]{0,8}(?:`{3}|~{3})")


def for_people(text: str) -> str:
    """Return a whole answer without its directives."""
    directives = Directives()
    return directives.feed(text) + directives.end()


class Directives:
    """The directives of one answer, fed as it streams. The result does not depend on how the stream was sliced.

    after: the text of the cut answer that this one continues, else empty.
    """

    def __init__(self, after: str = "") -> None:
        # The id that the last tag chose; empty: the message that is answered; None: there was no tag.
        self.reply_to: str | None = None
        # Paths of the files to send.
        self.files: list[str] = []
        # Words that cannot be decided yet, because more of a directive may follow.
        self._held = ""
        self._begun = bool(after)
        self._in_code = False
        self._in_line = False  # whether the beginning of the present line is decided
        self._in_span = False  # whether a backtick is open in it
        # How many characters for people were returned, and how many of these `written` was asked about.
        self._out = 0
        self._taken = 0
        # The directives that were removed, each with the number of characters for people before it.
        self._hidden: deque[tuple[int, str]] = deque()
        if after:
            self._decide(after)
            self.reply_to, self._out = None, 0
            self._hidden.clear()

    def feed(self, delta: str) -> str:
        """Take a piece of the model's words; returns the words for people, as far as that is certain."""
        self._held += delta
        size = len(self._held) - self._held.endswith(" ")  # a space is held, because a token may follow
        if self._begun and self._in_line and _PLAIN.fullmatch(self._held, 0, size):
            words, self._held = self._held[:size], self._held[size:]
            self._out += size
            return words
        if not self._begun and may_be_silent(self._held):
            return ""
        shown = self._begin()
        size = self._certain(self._held)
        certain, self._held = self._held[:size], self._held[size:]
        return shown + self._decide(certain)

    def end(self) -> str:
        """Return the rest of the words for people, once no more words come."""
        if not self._begun and is_silent(self._held):
            self._hide(self._held)
            return ""
        shown = self._begin()
        rest, self._held = self._held, ""
        start, end = trailing(rest)
        shown += self._decide(rest[:start])
        if self._in_code:
            return shown + self._decide(rest[start:])
        self._hide(rest[start:end])
        return shown + self._decide(rest[end:])

    def written(self, shown: str) -> str:
        """Return the next words for people as the model wrote them, with their directives.

        shown: these words; each call goes on where the last one ended.
        """
        begin, at, pieces = self._taken, 0, []
        self._taken += len(shown)
        while self._hidden and self._hidden[0][0] < self._taken:
            position, hidden = self._hidden.popleft()
            pieces += [shown[at : position - begin], hidden]
            at = position - begin
        return "".join((*pieces, shown[at:]))

    def _begin(self) -> str:
        """Remove a token from the beginning of an answer; returns the words before it."""
        if self._begun:
            return ""
        self._begun = True
        start, end = leading(self._held)
        shown = self._decide(self._held[:start])
        self._hide(self._held[start:end])
        self._held = self._held[end:]
        return shown

    def _hide(self, words: str) -> None:
        self._hidden.append((self._out, words))

    def _certain(self, text: str) -> int:
        """Return how many characters of a text can be decided without knowing what follows."""
        size = may_trail(text)
        if tag := _MAY_BE_TAG.search(text, max(0, len(text) - 2 * LONGEST_TAIL)):
            size = min(size, tag.start())
        line = text.rfind("\n", 0, size) + 1
        begins = line or not self._in_line
        return line if begins and _MAY_BE_LINE.fullmatch(text, line, size, partial=True) else size

    def _decide(self, text: str) -> str:
        """Return the words for people in a text that can be decided; its directives are carried out and noted."""
        shown = []
        for line in text.splitlines(keepends=True) if self._unusual(text) else (text,):
            words, bare = line, line.rstrip("\n").rstrip(" \t\r")
            if not self._in_line and _FENCE.match(line):
                self._in_code = not self._in_code
            elif not self._in_code and not self._in_line and (media := _MEDIA.fullmatch(bare)):
                self.files.append(media[1])
                self._hide(line)
                words = ""
            elif not self._in_code and "[[" in line:
                words = self._without_tags(line)
            self._in_span = "\n" not in line and self._in_span ^ (line.count("`") % 2 == 1)
            self._out += len(words)
            shown.append(words)
            if line:
                self._in_line = not line.endswith("\n")
        return "".join(shown)

    def _unusual(self, text: str) -> bool:
        return any(mark in text for mark in ("[[", "MEDIA:", "`", "~~~"))

    def _without_tags(self, line: str) -> str:
        shown, at = "", 0
        for tag in _TAG.finditer(line):
            if self._in_span ^ (line.count("`", 0, tag.start()) % 2 == 1):
                continue
            shown += line[at : tag.start()]
            self._hidden.append((self._out + len(shown), tag[0]))
            self.reply_to, at = tag[1] or "", tag.end()
        return shown + line[at:]
