"""What a model writes for the service and not for people, taken out of the words as they stream.

Silence: an answer that is nothing but a token (in any case, marked up, or as JSON) says nothing; in capitals at an edge
the token is taken away, in the middle it is text. `[[reply_to_current]]` and `[[reply_to:<id>]]` choose what the answer
is shown to reply to. A line `MEDIA: <path>` sends a file. In code all of it is text.
"""

import re
from collections import deque

import regex  # type: ignore[import-untyped]

NO_REPLY, HEARTBEAT_OK = "NO_REPLY", "HEARTBEAT_OK"
_TOKEN = f"(?:{NO_REPLY}|{HEARTBEAT_OK})"
_MARKS = r"[\s*_~`\"'().!\[\]]*"
_SILENT = regex.compile(
    rf"{_MARKS}{_TOKEN}{_MARKS}|\s*(?:```(?:json)?\s*)?\{{\s*\"action\"\s*:\s*\"{_TOKEN}\"\s*\}}\s*(?:```\s*)?",
    regex.IGNORECASE,
)
_LEADING = re.compile(rf"[\s*_]*{_TOKEN}(?:[*_]*\s+)+")
_TRAILING = re.compile(rf"(?:\A|[\s*_`]+){_TOKEN}[\s*_`.!]*\Z")
_MAY_TRAIL = regex.compile(rf"[\s*_`]+{_TOKEN}[\s*_`.!]*")
# Characters beyond which nothing is held back.
_LONGEST_TAIL, _LONGEST_TOKEN = 64, 256
_TAG = re.compile(r"(?<!`)\[\[\s*(?:reply_to_current|reply_to:\s*([^\]\s]{1,80}))\s*\]\](?!`)[ \t]{0,9}", re.IGNORECASE)
_MAY_BE_TAG = re.compile(r"\[(?:\[[^\]\n]{0,100}(?:\](?:\][ \t]{0,9})?)?)?\Z")
_MEDIA = re.compile(r"[ \t]{0,8}MEDIA:[ \t]*[\"'`]?(?!\w+://)([^\s][^\n]*?)[\"'`]?[ \t\r]*")
_FENCE = re.compile(r"[ \t>]{0,8}(?:`{3}|~{3})")
_MAY_BE_LINE = regex.compile(r"[ \t]{0,8}MEDIA:[^\n]{0,2000}|[ \t>]{0,8}(?:`{3}|~{3})")


def is_silent(text: str) -> bool:
    """Whether a message says that there is nothing to say, in whatever form."""
    return _SILENT.fullmatch(text) is not None


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
        self._line = ""  # as much of the line under way as has been decided
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
        if not self._begun:
            if len(self._held) < _LONGEST_TOKEN and _SILENT.fullmatch(self._held, partial=True):
                return ""
            self._begun = True
            self._hide(_LEADING.match(self._held))
        size = self._certain(self._held)
        certain, self._held = self._held[:size], self._held[size:]
        return self._decide(certain)

    def end(self) -> str:
        """No more words come: the rest of what is for people."""
        rest, self._held = self._held, ""
        if not self._begun and is_silent(rest):
            self._hidden.append((self._out, rest))
            return ""
        trailing = _TRAILING.search(rest, max(0, len(rest) - _LONGEST_TAIL))
        shown = self._decide(rest[: trailing.start()] if trailing and not self._in_code else rest)
        if trailing and not self._in_code:
            self._hidden.append((self._out, trailing[0]))
        return shown

    def written(self, shown: str, last: bool = False) -> str:
        """What the model wrote where the next of its words for people are these; last: with all that follows."""
        pieces, at = [], self._taken
        self._taken += len(shown)
        while self._hidden and (last or self._hidden[0][0] < self._taken):
            position, hidden = self._hidden.popleft()
            pieces += [shown[at - self._taken + len(shown) : position - self._taken + len(shown)], hidden]
            at = position
        return "".join((*pieces, shown[at - self._taken + len(shown) :]))

    def _hide(self, found: "re.Match[str] | None") -> None:
        if found:
            self._hidden.append((self._out, found[0]))
            self._held = self._held[found.end() :]

    def _certain(self, text: str) -> int:
        """How much of a text can be decided without knowing what follows it."""
        tail = max(0, len(text) - _LONGEST_TAIL)
        found = _MAY_TRAIL.search(text, tail, partial=True)
        size: int = found.start() if found and found.end() == len(text) else len(text)
        if tag := _MAY_BE_TAG.search(text, max(0, len(text) - 2 * _LONGEST_TAIL)):
            size = min(size, tag.start())
        line = text.rfind("\n", 0, size) + 1
        begins = line or not self._line
        return line if begins and _MAY_BE_LINE.fullmatch(text, line, size, partial=True) else size

    def _decide(self, text: str) -> str:
        """What is for people of words that are certain; the rest is carried out and noted."""
        shown = []
        for line in text.splitlines(keepends=True) if self._unusual(text) else (text,):
            whole, words = self._line + line, line
            if not self._line and _FENCE.match(line):
                self._in_code = not self._in_code
            elif not self._in_code and not self._line and (media := _MEDIA.fullmatch(line.rstrip("\n"))):
                self.files.append(media[1])
                words = ""
                self._hidden.append((self._out, line))
            elif not self._in_code and "[[" in line:
                words = self._without_tags(line)
                shown.append(words)
                self._line = "" if line.endswith("\n") else whole[-1:]
                continue
            self._out += len(words)
            shown.append(words)
            self._line = "" if line.endswith("\n") else whole[-1:]
        return "".join(shown)

    def _unusual(self, text: str) -> bool:
        return any(mark in text for mark in ("[[", "MEDIA:", "```", "~~~"))

    def _without_tags(self, line: str) -> str:
        shown, at = [], 0
        for tag in _TAG.finditer(line):
            shown.append(line[at : tag.start()])
            self._out += tag.start() - at
            self._hidden.append((self._out, tag[0]))
            self.reply_to, at = tag[1] or "", tag.end()
        self._out += len(line) - at
        return "".join((*shown, line[at:]))
