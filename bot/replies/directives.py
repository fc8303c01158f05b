"""What a model writes for the service and not for people, taken out of the words as they stream.

Silence (`heartbeat/quiet`): an answer that is nothing but a token says nothing; at an edge the token is taken away.
`[[reply_to_current]]` and `[[reply_to:<id>]]` choose what the answer is shown to reply to. A line `MEDIA: <path>` sends
a file. In code and between quotation marks all of it is text.
"""

import re
from collections import deque

import regex  # type: ignore[import-untyped]

from heartbeat.quiet import LONGEST_TAIL, is_silent, leading, may_be_silent, may_trail, trailing

_TAG = re.compile(
    r"(?<![`\"'“‘„«])\[\[\s*(?:reply_to_current|reply_to:\s*([^\]\s]{1,80}))\s*\]\](?![`\"'”’“»])[ \t]{0,9}",
    re.IGNORECASE,
)
_MAY_BE_TAG = re.compile(r"\[(?:\[[^\]\n]{0,100}(?:\](?:\][ \t]{0,9})?)?)?\Z")
_MEDIA = re.compile(r"[ \t]{0,8}MEDIA:[ \t]*[\"'`]?(?!\w+://)([^\s][^\n]*?)[\"'`]?[ \t\r]*")
_FENCE = re.compile(r"[ \t>]{0,8}(?:`{3}|~{3})")
# Words in a line that are no part of a directive, whatever follows: behind a space stands a letter or digit that begins
# no token (`heartbeat/quiet.may_trail`), and there is no mark that a directive could begin with.
_PLAIN = re.compile(r"(?: (?![NH])[^\W_]|(?!_)\w|[.,;:!?'’…)-])++")
_MAY_BE_LINE = regex.compile(r"[ \t]{0,8}MEDIA:[^\n]{0,2000}|[ \t>]{0,8}(?:`{3}|~{3})")


def for_people(text: str) -> str:
    """What of a whole answer is for people."""
    directives = Directives()
    return directives.feed(text) + directives.end()


class Directives:
    """Those of one answer, fed as it streams. after: what stands before it, of a cut answer that it continues.

    reply_to: what the last tag chose: an id, empty for the message that is answered; None without a tag. files: paths
    to be sent. The result does not depend on how the stream was sliced.
    """

    def __init__(self, after: str = "") -> None:
        self.reply_to: str | None = None
        self.files: list[str] = []
        self._held = ""
        self._begun = bool(after)
        self._in_code = False
        self._in_line = False  # the beginning of the line under way is decided
        self._in_span = False  # a backtick was opened in it
        self._out = 0
        self._taken = 0
        self._hidden: deque[tuple[int, str]] = deque()
        if after:
            self._decide(after)
            self.reply_to, self._out = None, 0
            self._hidden.clear()

    def feed(self, delta: str) -> str:
        """A piece of the model's words; returns what of them is for people, as far as that is certain."""
        self._held += delta
        size = len(self._held) - self._held.endswith(" ")  # a space is held: a token may follow
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
        """No more words come: the rest of what is for people."""
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
        """What the model wrote where the next of its words for people are these."""
        begin, at, pieces = self._taken, 0, []
        self._taken += len(shown)
        while self._hidden and self._hidden[0][0] < self._taken:
            position, hidden = self._hidden.popleft()
            pieces += [shown[at : position - begin], hidden]
            at = position - begin
        return "".join((*pieces, shown[at:]))

    def _begin(self) -> str:
        """Take a token from the beginning of an answer; returns what stands before it."""
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
        """How much of a text can be decided without knowing what follows it."""
        size = may_trail(text)
        if tag := _MAY_BE_TAG.search(text, max(0, len(text) - 2 * LONGEST_TAIL)):
            size = min(size, tag.start())
        line = text.rfind("\n", 0, size) + 1
        begins = line or not self._in_line
        return line if begins and _MAY_BE_LINE.fullmatch(text, line, size, partial=True) else size

    def _decide(self, text: str) -> str:
        """What is for people of words that are certain; the rest is carried out and noted."""
        shown = []
        for line in text.splitlines(keepends=True) if self._unusual(text) else (text,):
            words = line
            if not self._in_line and _FENCE.match(line):
                self._in_code = not self._in_code
            elif not self._in_code and not self._in_line and (media := _MEDIA.fullmatch(line.rstrip("\n"))):
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
