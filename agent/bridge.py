"""Cleans the text of a model: separates reasoning in tags, and removes leaked markup of tool calls and control tokens.

Models whose servers do not know their format write into their text what belongs into fields of its own. Taken out are

- reasoning: `<think>`, `<thinking>`, `<thought>`, `<antthinking>` (with name spaces and attributes), `[THINK]`, the
  channels of gpt-oss and Gemma. It becomes thinking. Tags nest. An unclosed one hides what follows where it begins
  the message or a line; but where only an inner one was left open (reasoning that names its own tag), what stands
  behind the last closing is said. A closing without an opening is taken out alone: what stands before it may have
  been shown;
- tool calls that nobody will carry out, with what they hold: those of Hermes, Qwen, GLM, MiniMax, DeepSeek, Kimi,
  Mistral, Llama, LFM, Cohere, gpt-oss, Gemma and Anthropic. A tag that no call follows is talked about, and stays;
- `<final>` tags and control tokens such as `<|im_end|>`, these alone.

Behind words of the same line an unclosed tag of either kind is talked about, and text; `[TOOL_CALLS]` and the like,
which have no end, where more than a call follows. In code spans and fences, between two quotation marks and in a
quotation all of it is text. What may still become one of these is held, and the characters alone
decide: it does not matter how the stream was sliced. The work is linear in the text.
"""

import re
import string
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

import regex  # type: ignore[import-untyped]

from agent.message import Part, Text, Thinking, well_formed

Piece = tuple[Literal["text", "thinking"], str]

# Characters of a tag, a code span or the first line of a fence; what is longer is none.
_LONGEST = 1000
# Where a token may begin.
_SPECIAL = re.compile(r"[`~]|<(?=[\w/|｜]|\Z)|\[(?=[T/]|\Z)|[\"'“‘„«](?=[<\[]|\Z)")
# Where a piece of plain words may be more than that: a token, or half a pair of surrogates.
_MORE = re.compile(_SPECIAL.pattern + "|[\ud800-\udfff]")
_NAMED = r"(?:[a-z]+:)?(?:think|thinking|thought|antthinking)"
_TOOL = r"(?:[a-z]+:|[|｜]DSML[|｜])?(?:(?:tool|function)_(?:calls?|use|results?|response)|invoke|function)"
_TOKEN = r"tool[_▁](?:calls?|outputs?)(?:[_▁]section)?"
# How a call begins behind the tag that announces it.
_CALL = r"\s*+(?:[\w.:-]++(?:\s*+(?=\{)|\n*+(?=[(\[<]))|[\[{]|(?=<[a-z/|｜]))"

_FENCE = r"(?P<fence>`{3,}+[^`\n]*+\n|~{3,}+[^\n]*+\n)"
_FENCED = r"(?P<fenced>(?:`{3,}+|~{3,}+)[^\S\n]*+\n)|(?P<kept>`++|~++)"
_CODE = r"(?P<kept>(?P<ticks>`++)(?:[^`\n]++|(?!(?P=ticks)(?!`))`++)*+(?P=ticks)|`++|~++)"
_QUOTED = r"(?P<kept>[\"'“‘„«][<\[][^\"'“”’»\n]*+[\"'“”’»])"
_MENTION = rf"(?P<kept>`</?(?:{_NAMED}|final)[^<>`\n]*+>`)"
_THINK = rf"(?P<think><{_NAMED}(?:\s[^<>]*+)?(?<!/)>|(?-i:\[THINK\])|<\|START_THINKING\|>|<\|channel>(?:thought\b)?+)"
_THOUGHT = rf"(?P<end></{_NAMED}\s*+>|(?-i:\[/THINK\])|<\|(?:END_THINKING|end|call|return)\|>|<channel\|>)"
_CHANNEL = (
    r"(?P<channel>(?:<\|start\|>assistant[^<\n]*+)?<\|channel\|>[^<\n]*+(?:<\|constrain\|>[^<\n]*+)?<\|message\|>)"
)
_CALLING = (
    rf"(?P<calling><{_TOOL}(?:=|\s++name=)[^<>]*+>|<{_TOOL}(?:\s[^<>]*+)?>{_CALL}|(?-i:\[TOOL_CALLS?\]){_CALL}"
    rf"|<[|｜](?:{_TOKEN}(?:[_▁](?:begin|start))?|python_tag|START_ACTION)[|｜]>|<\|tool_(?:call|response)>)"
)
_CALLED = (
    rf"(?P<called></{_TOOL}\s*+>|(?-i:\[/TOOL_CALLS?\])|<tool_(?:call|response)\|>"
    rf"|<[|｜](?:{_TOKEN}[_▁]end|/tool_calls?|END_ACTION|call|end|return|e[om][mt]_id|im_end)[|｜]>)"
)
_FINAL = r"(?P<final><final(?:\s[^<>]*+)?>)"
_GONE = (
    rf"(?P<gone></final\s*+>|<{_NAMED}\s*+/>|<\|(?:im_start|start|start_header_id)\|>(?:assistant|user|system|tool)?+"
    r"|<[|｜][^\s<>|｜]{1,40}[|｜]>)"
)


def _tokens(*tokens: str) -> Any:
    return regex.compile("|".join(tokens), regex.IGNORECASE)


# what the text is at the moment, as the tokens that count then
_SAID = _tokens(_FENCE, _CODE, _QUOTED, _THINK, _CHANNEL, _CALLING, _CALLED, _THOUGHT, _FINAL, _GONE)
_IN_FENCE = _tokens(_FENCED)
_THINKING = _tokens(_MENTION, _THINK, _CHANNEL, _THOUGHT, _FINAL)
_IN_CALL = _tokens(_CHANNEL, _CALLED)
_LINE_START = re.compile(r"\n(?:[ \t>]|[-+*] |\d{1,9}[.)] )*\Z")
_INDENT = re.compile(r"\n[ \t>]*\Z")
# Of what was said: a tag behind it begins a line, or stands in a quotation. Of what follows a tag: it is a call.
_BEGINS, _IN_QUOTATION, _IS_CALL = re.compile(r"\n\s*\Z"), re.compile(r"\n[ \t]*>[^\n]*\Z"), re.compile(r"[\]}]\s*\Z")


class Bridge:
    """Cleans the text of one answer: `feed` takes text and returns pieces, `end` returns the rest."""

    def __init__(self, after: str = "") -> None:
        """after: the text of the cut answer that this answer continues."""
        self._mode = _SAID
        self._held = ""
        self._fence = ""
        self._depth = 0
        self._doubtful: list[str] | None = None  # behind a closing, while another one is missing, or behind this tag:
        self._tag = ""
        self._talked: set[str] = {"think", "calling"}  # kinds of tags that are text behind words of the same line
        self._tail = "\n"  # of what was said
        self._trim = ""  # what the next piece does not begin with
        self._out: list[Piece] = []
        if after:
            self._scan(after, whole=True)
        self._talked.clear()

    def feed(self, delta: str) -> list[Piece]:
        """Take the next piece of text; returns the pieces that are certain by now."""
        is_said = self._mode is _SAID or self._mode is _IN_FENCE
        if delta and is_said and not self._held and not self._trim and _MORE.search(delta) is None:
            self._tail = (self._tail + delta)[-400:]
            return [("text", delta)]
        return self._scan(delta)

    def end(self) -> list[Piece]:
        """Return the rest, because no more text comes."""
        pieces = self._scan("", whole=True)
        while self._doubtful is not None:
            tag, rest = self._tag, "".join(self._doubtful)
            if tag.startswith("[TOOL") and _IS_CALL.search(rest):
                break
            if tag:
                self._talked.add("think" if self._mode is _THINKING else "calling")
            self._tag, self._doubtful = "", None
            self._say_again()
            self._trim = "" if tag else self._trim
            self._give(tag)
            pieces += self._scan(rest, whole=True)
        return pieces

    def _scan(self, delta: str, *, whole: bool = False) -> list[Piece]:
        text = self._held + delta
        half = text[-1] if not whole and text and "\ud800" <= text[-1] <= "\udbff" else ""
        text = well_formed(text[:-1] if half else text)
        at = start = 0
        while found := _SPECIAL.search(text, at):
            at, tokens = found.start(), self._mode
            if not whole and len(text) - at < _LONGEST and tokens.fullmatch(text, at, partial=True):
                break
            token = tokens.match(text, at, at + _LONGEST)
            if token is None:
                at += 1
            elif token.lastgroup == "kept":
                at = token.end()
            else:
                self._give(text[start:at])
                start = at if self._turn(token.lastgroup, token[0]) else token.end()
                at = token.end()
        else:
            at = len(text)
        self._give(text[start:at])
        self._held = text[at:] + half
        out, self._out = self._out, []
        return [(kind, "".join(words for _, words in of)) for kind, of in groupby(out, itemgetter(0))]

    def _give(self, text: str) -> None:
        """Output text as what it is at the moment: words, reasoning, doubtful, or dropped."""
        if self._trim and text:
            text = text.lstrip(self._trim)
            self._trim = "" if text else self._trim
        if not text:
            return
        if self._mode not in (_THINKING, _IN_CALL):
            self._tail = (self._tail + text[-400:])[-400:]
            self._out.append(("text", text))
        elif self._doubtful is not None:
            self._doubtful.append(text)
        elif self._mode is _THINKING:
            self._out.append(("thinking", text))

    def _turn(self, name: str, token: str) -> bool:
        """Apply a token; returns whether it stays in the text."""
        tag = self._mode is _SAID and name != "fence" and token[1] not in "|｜"
        behind = tag and name in ("think", "calling") and not _BEGINS.search(self._tail)
        if (behind and name in self._talked) or (tag and _IN_QUOTATION.search(self._tail)):
            return True
        match name:
            case "fence":
                if _LINE_START.search(self._tail):
                    self._mode, self._fence = _IN_FENCE, _run(token)
                return True
            case "fenced":
                if _INDENT.search(self._tail) and _run(token).startswith(self._fence):
                    self._mode = _SAID
                return True
            case "channel" if "to=" in token:
                self._settle()
                self._mode = _IN_CALL
            case "channel" if "analysis" in token:
                self._settle()
                self._think()
            case "think" if self._mode is not _THINKING:
                self._think()
            case "think":
                self._depth += 1
                return self._doubtful is not None
            case "end" if self._mode is _THINKING and self._depth > 1:
                self._depth -= 1
                self._settle()
                self._doubtful = []
            case "calling":
                self._mode = _IN_CALL
            case _:
                self._settle()
                self._say_again()
        if behind:
            self._tag, self._doubtful, self._trim = token, [], ""
        return False

    def _think(self) -> None:
        self._mode, self._depth, self._trim = _THINKING, 1, string.whitespace

    def _settle(self) -> None:
        """Decide that the doubtful text is reasoning, or part of a call."""
        self._out += [("thinking", text) for text in self._doubtful or () if self._mode is _THINKING]
        self._doubtful, self._tag = None, ""

    def _say_again(self) -> None:
        """Continue with words, without the empty lines around what was taken out."""
        self._mode = _SAID
        self._trim = string.whitespace if self._tail == "\n" else "\n" if self._tail[-1] == "\n" else ""


def bridged(parts: Iterable[Part], after: str = "") -> Iterator[Part]:
    """Yield the parts of a complete answer with its text cleaned as it was streamed, reasoning as Thinking parts.

    after: the text of the cut answer that this answer continues.
    """
    bridge, given = Bridge(after), tuple(parts)
    last = max((n for n, part in enumerate(given) if isinstance(part, Text)), default=0)
    for n, part in enumerate(given):
        if not isinstance(part, Text):
            yield part
            continue
        for kind, text in (*bridge.feed(part.text), *(bridge.end() if n == last else ())):
            yield Text(text) if kind == "text" else Thinking(text)


def _run(token: str) -> str:
    """Return the run of backticks or tildes that a line of a fence begins with."""
    return token[: len(token) - len(token.lstrip(token[0]))]
