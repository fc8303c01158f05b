"""Markdown of a block to formatted text, for every platform. Parsed once; nothing can be rejected.

What has no form of its own becomes text: lists get bullets and numbers, a table becomes aligned preformatted text, or a
list of "header: value" where it is too wide for a phone, a link definition that nothing in the block cites is shown,
HTML without a counterpart stays as it is written. What a platform does not show is a parameter. Channels' renderers
call it.
"""

import re
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import count, takewhile

from markdown_it.token import Token

from channels.markdown.formatted import EntityType, Formatted, Style, TextWriter
from channels.markdown.parse import is_plain, parse, parser
from channels.markdown.table import Table

RULE = "———"
_MAIL = "mailto:"
_LONGEST_LANGUAGE = 32
_TAB = 4
_NEST = "   "
_BULLETS = "•◦▪"
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_STYLES = {
    "strong": EntityType.BOLD,
    "em": EntityType.ITALIC,
    "s": EntityType.STRIKETHROUGH,
    "u": EntityType.UNDERLINE,
    "spoiler": EntityType.SPOILER,
}
_ALERT = re.compile(r"\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\] *", re.IGNORECASE)
_ALL = frozenset(EntityType) - {EntityType.HEADING, EntityType.URL}


def render(markdown: str, is_link: Callable[[str, str], bool], shows: Set[EntityType] = _ALL) -> Formatted:
    """Text and entities of some Markdown. The text is empty when there is nothing to see.

    is_link: whether the platform takes an address as the target of these words; one that it does not take stands behind
    them, and so does one whose words are another address. shows: the types of entities it has; headings become bold, a
    spoiler keeps its bars, a collapsible section becomes a quote, and what is underlined looks as the rest.
    """
    return Formatted(markdown, ()) if is_plain(markdown) else _Renderer(is_link, shows).render(markdown)


class _Renderer:
    """One walk over the tokens of one text."""

    def __init__(self, is_link: Callable[[str, str], bool], shows: Set[EntityType]) -> None:
        self._is_link = is_link
        self._shows = shows
        self._out = TextWriter()
        self._styles: list[Style | None] = []  # None: one that is not shown
        self._numbers: list[int | None] = []  # of the next item of each open list, None where it has bullets
        self._quotes = 0
        self._tight = False
        self._marks = count(1)

    def render(self, markdown: str) -> Formatted:
        found, cited = parse(markdown)
        tokens, before = iter(found), ""
        for token in tokens:
            if token.type == "definition" and (token.meta["id"], token.meta["url"]) in cited:
                continue
            match token.type:
                case "table_open":
                    self._table(tokens)
                case "inline":
                    self._inline(token.children or [], begins_quote=before == "blockquote_open")
                case "definition":
                    self._definition(token, before == "definition")
                case _:
                    self._block(token)
            before = before if token.type == "paragraph_open" else token.type
        return self._out.finish()

    def _block(self, token: Token) -> None:
        match token.type:
            case "paragraph_open":
                self._tight = token.hidden
                self._out.need(1 if token.hidden else 2)
            case "heading_open":
                self._out.need(2)
                self._open_style(EntityType.HEADING, int(token.tag[1:]))
            case "heading_close":
                self._styles.pop()
                self._out.need(2)
            case "fence" | "code_block":
                self._preformatted(token.content, token.info)
            case "hr":
                self._out.need(2)
                self._out.write(RULE)
                self._out.need(2)
            case "blockquote_open":
                self._out.need(2)
                self._quotes += 1
                if self._quotes == 1:
                    folded = token.markup == "details" and EntityType.EXPANDABLE_BLOCKQUOTE in self._shows
                    kind = EntityType.EXPANDABLE_BLOCKQUOTE if folded else EntityType.BLOCKQUOTE
                    self._out.quote = Style(kind, mark=next(self._marks))
            case "blockquote_close":
                self._quotes -= 1
                if self._quotes == 0:
                    self._out.quote = None
                self._out.need(2)
            case "bullet_list_open":
                self._open_list(None)
            case "ordered_list_open":
                self._open_list(int(token.attrGet("start") or 0) if "start" in token.attrs else 1)
            case "bullet_list_close" | "ordered_list_close":
                self._close_list()
            case "list_item_open":
                self._open_item()
            case "comment" if not token.content:  # the item goes on, and has its marker in the message before
                self._out.marker = ""
            case "list_item_close":
                if self._out.marker:
                    self._out.write("")

    def _open_list(self, number: int | None) -> None:
        self._out.need(1 if self._numbers else 2)
        self._numbers.append(number)
        self._out.indent += _NEST

    def _close_list(self) -> None:
        self._numbers.pop()
        self._out.indent = self._out.indent[len(_NEST) :]
        self._out.need(1 if self._numbers else 2)

    def _open_item(self) -> None:
        self._out.need(1)
        if self._out.marker:
            # A list that begins its item: the outer marker has a line of its own.
            self._out.write("")
            self._out.need(1)
        number = self._numbers[-1]
        nest = self._out.indent[len(_NEST) :]
        if number is None:
            self._out.marker = f"{nest}{_BULLETS[(len(self._numbers) - 1) % len(_BULLETS)]} "
        else:
            self._out.marker = f"{nest}{number}. "
            self._numbers[-1] = number + 1

    def _preformatted(self, text: str, info: str = "") -> None:
        self._out.need(1 if self._numbers and self._tight else 2)
        text = text.expandtabs(_TAB).rstrip()
        if text:
            language = info.split(maxsplit=1)[0][:_LONGEST_LANGUAGE] if info.strip() else ""
            self._out.write_block(text, Style(EntityType.PRE, language=language, mark=next(self._marks)))
        self._out.need(1 if self._numbers and self._tight else 2)

    def _table(self, tokens: Iterable[Token]) -> None:
        table = Table(takewhile(lambda token: token.type != "table_close", tokens))
        text = table.text(_cell)
        if text:
            self._preformatted(text)
            return
        self._open_list(None)
        for row in table.rows[1:] or table.rows:
            self._open_item()
            for header, cell in zip(table.rows[0], row, strict=True):
                name = _words(header) if row is not table.rows[0] else ""
                if _words(cell):
                    self._out.need(1)
                    if name:
                        self._open_style(EntityType.BOLD)
                        self._out.write(f"{name}:", self._active())
                        self._styles.pop()
                        self._out.write(" ")
                    self._inline(cell)
            self._block(Token("list_item_close", "li", -1))
        self._close_list()

    def _definition(self, token: Token, follows: bool) -> None:
        """A link definition that no link in this text uses, as it is written: they may be a list of sources."""
        self._out.need(1 if follows else 2)
        self._out.write(f"[{token.meta['label']}]: ")
        self._link(token.meta["url"], token.meta["url"], bare=True)
        if token.meta["title"]:
            self._out.write(f' "{token.meta["title"]}"')

    def _inline(self, tokens: Sequence[Token], begins_quote: bool = False) -> None:
        skip = self._task(tokens) or (self._alert(tokens) if begins_quote else 0)
        for number, token in enumerate(tokens):
            match token.type:
                case "text":
                    text = token.content[skip:] if number == 0 else token.content
                    if text:  # before emphasis the parser puts an empty one, which begins no line
                        self._out.write(text, self._active())
                case "code_inline":
                    self._out.write(token.content.expandtabs(_TAB), self._code())
                case "softbreak" | "hardbreak":
                    self._out.line(self._active())
                case "link_open":
                    words = _words(list(takewhile(lambda one: one.type != "link_close", tokens[number:])))
                    behind = self._open_link(str(token.attrs["href"]), words, token.markup == "linkify")
                case "link_close":
                    self._styles.pop()
                    self._out.write(behind, self._active())
                case "image":
                    self._image(token)
                case other:
                    self._switch(other)

    def _task(self, tokens: Sequence[Token]) -> int:
        """The length of the box that an item begins with; it takes the place of the bullet."""
        if not self._out.marker or not tokens or tokens[0].type != "text":
            return 0
        box = tokens[0].content[:4]
        if box not in _TASKS:
            return 0
        marker = self._out.marker
        self._out.marker = (marker if self._numbers[-1] is not None else marker[:-2]) + _TASKS[box]
        return len(box)

    def _alert(self, tokens: Sequence[Token]) -> int:
        """The length of a mark such as [!NOTE], which becomes a bold word in a line of its own."""
        found = _ALERT.fullmatch(tokens[0].content) if tokens and tokens[0].type == "text" else None
        if found is None:
            return 0
        self._out.write(found[1].capitalize(), (Style(EntityType.BOLD, mark=next(self._marks)),))
        return found.end()

    def _switch(self, kind: str) -> None:
        name, _, turn = kind.rpartition("_")
        if name not in _STYLES:
            return
        if turn == "close":
            self._styles.pop()
        if _STYLES[name] is EntityType.SPOILER and EntityType.SPOILER not in self._shows:
            self._out.write("||", self._active())
        if turn == "open":
            self._open_style(_STYLES[name])

    def _open_style(self, kind: EntityType, level: int = 0) -> None:
        """Each use is an entity of its own, else two that touch would overlap with what lies around them."""
        if kind is EntityType.HEADING and kind not in self._shows:
            kind, level = EntityType.BOLD, 0
        active = next((style for style in self._styles if style and style.type is kind), None)
        style = active or Style(kind, level=level, mark=next(self._marks))
        self._styles.append(style if kind in self._shows else None)

    def _open_link(self, url: str, words: str, bare: bool = False) -> str:
        """Begin a link; what is to be written behind its words when it cannot be one."""
        behind = "" if bare else _behind(words, url)
        honest = EntityType.URL in self._shows if bare else not behind or "://" not in words
        taken = honest and self._is_link(url, words)
        self._styles.append(Style(EntityType.TEXT_LINK, url=url, mark=next(self._marks)) if taken else None)
        return "" if taken else behind

    def _link(self, url: str, words: str, bare: bool = False) -> None:
        behind = self._open_link(url, words, bare)
        self._out.write(words, self._active())
        self._styles.pop()
        self._out.write(behind, self._active())

    def _image(self, token: Token) -> None:
        words = _words(token.children or []) or "image"
        if self._within(EntityType.TEXT_LINK):
            self._out.write(words, self._active())
        else:
            self._link(str(token.attrs["src"]), words)

    def _within(self, *kinds: EntityType) -> bool:
        return any(style is not None and style.type in kinds for style in self._styles)

    def _active(self) -> Sequence[Style]:
        return tuple(dict.fromkeys(style for style in self._styles if style))

    def _code(self) -> Sequence[Style]:
        """Code shares its text with nothing; a link or a spoiler around it is worth more."""
        inside = self._within(EntityType.TEXT_LINK, EntityType.SPOILER)
        return self._active() if inside else (Style(EntityType.CODE, mark=next(self._marks)),)


def _behind(words: str, url: str) -> str:
    """What stands behind the words of a link that is shown as text: its target, unless the words are that."""
    shown = parser().normalizeLinkText(url).removeprefix(_MAIL)
    return "" if words in (url, shown) or not shown else f" ({shown})"


def _words(tokens: Sequence[Token]) -> str:
    """Inline tokens as text alone; an image is its description."""
    shown = {"softbreak": " ", "hardbreak": " "}
    return "".join(
        _words(one.children or ()) if one.type == "image" else shown.get(one.type, one.content) for one in tokens
    )


def _cell(tokens: Sequence[Token]) -> str:
    """A cell of a table as text; links keep their target, because nothing there can be a link."""
    said = url = ""
    start = 0
    for token in tokens:
        if token.type == "link_open":
            url, start = str(token.attrs["href"]), len(said)
        said += _behind(said[start:], url) if token.type == "link_close" else _words([token])
    return said
