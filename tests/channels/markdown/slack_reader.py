"""A Slack message as a client shows it: its blocks where it has some, else its text as mrkdwn. An oracle.

mrkdwn by docs.slack.dev ("Formatting message text"): `&`, `<` and `>` are entities, `<...>` is a link or a mention,
marks work within a line, tight around their words and not beside letters; here nothing but ASCII punctuation or white
space counts as no letter.
"""

import html
import re
from typing import Any

from tests.channels.markdown.reading import Seen, seen

_PRE = re.compile(r"```\n?([\s\S]+?)\n?```")
_QUOTE = re.compile(r"(?m)^(?:>|&gt;) ?(.*)$")
_CODE = re.compile(r"`([^`\n]+)`")
_ANGLE = re.compile(r"<([^<>\n]+)>")
_EMOJI = re.compile(r":[\w+-]+:")
_NO_LETTER = r"[\s!-/:-@\[-`{-~\u200b]"
_MARKS = {"*": "bold", "_": "italic", "~": "strikethrough"}
_STYLES = {"bold": "bold", "italic": "italic", "strike": "strikethrough", "code": "code"}
_ELEMENTS = {"rich_text_section": set(), "rich_text_preformatted": {"pre"}, "rich_text_quote": {"quote"}}


def read(body: dict[str, Any]) -> Seen:
    """The characters of a message."""
    if "blocks" not in body:
        return read_text(body["text"])
    found: Seen = []
    for block in body["blocks"]:
        assert block["type"] == "rich_text"
        for element in block["elements"]:
            for part in element["elements"]:
                looks = {_STYLES[name] for name, is_on in part.get("style", {}).items() if is_on}
                looks |= {"link"} if part["type"] == "link" else set()
                found += seen(part["text"], looks | _ELEMENTS[element["type"]])
    return found


def read_text(text: str, looks: frozenset[str] = frozenset()) -> Seen:
    """The characters of mrkdwn."""
    if match := _PRE.search(text):
        before, behind = read_text(text[: match.start()], looks), read_text(text[match.end() :], looks)
        return before + seen(html.unescape(match[1]), looks | {"pre"}) + behind
    found: Seen = []
    for line in text.split("\n"):
        quoted = _QUOTE.match(line)
        found += _line(quoted[1], looks | {"quote"}) if quoted else _line(line, looks)
    return found


def _line(line: str, looks: frozenset[str]) -> Seen:
    found: Seen = []
    at = 0
    while at < len(line):
        if (match := _CODE.match(line, at)) and _apart(line, match):
            found += seen(html.unescape(match[1]), looks | {"code"})
        elif match := _ANGLE.match(line, at):
            target, _, words = match[1].partition("|")
            shown = words or target
            link = target.startswith(("http://", "https://", "mailto:"))
            found += seen(html.unescape(shown), looks | {"link"}) if link else seen(f"⟦{target}⟧")
        elif match := _EMOJI.match(line, at):
            found += seen(f"⟦{match[0]}⟧")
        elif (match := _marked(line, at)) and _apart(line, match):
            found += _line(match[1], looks | {_MARKS[line[at]]})
        else:
            match = re.compile(r"&(?:amp|lt|gt);|[\s\S]").match(line, at)
            assert match is not None
            found += seen(html.unescape(match[0]), looks)
        at = match.end()
    return found


def _marked(line: str, at: int) -> "re.Match[str] | None":
    mark = re.escape(line[at])
    return (
        re.compile(rf"{mark}(?=\S)((?:<[^<>]*>|[^{mark}])+?)(?<=\S){mark}").match(line, at)
        if line[at] in _MARKS
        else None
    )


def _apart(line: str, match: "re.Match[str]") -> bool:
    before, behind = line[: match.start()][-1:], line[match.end() :][:1]
    return all(not char or re.match(_NO_LETTER, char) for char in (before, behind))
