"""Markdown of a block to formatted text, for platforms that take entities. Parsed once; nothing can be rejected.

What has no form of its own there becomes text: headings are bold, lists get bullets and numbers, tables become
aligned preformatted text, HTML stays as it is written. Channels' renderers call it.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, image, link
from markdown_it.token import Token

from channels.markdown.entities import EntityType, Formatted
from channels.markdown.table import Table
from channels.markdown.writer import Style, TextWriter
from channels.utf16 import whole

RULE = "———"
_SCHEMES = ("http://", "https://", "tg://", "mailto:")
_MAIL = "mailto:"
_LONGEST_LANGUAGE = 32
_NEST = "   "
_BULLETS = "•◦▪"
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_STYLES = {"strong": EntityType.BOLD, "em": EntityType.ITALIC, "s": EntityType.STRIKETHROUGH}


def render(markdown: str, is_link: Callable[[str], bool]) -> Formatted:
    """Text and entities of some Markdown. The text is empty when there is nothing to see.

    is_link: whether the platform takes an address as the target of words; one that it does not take stands behind them.
    """
    return _Renderer(is_link).render(markdown)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    # What looks like a link definition or <an:address> and has no scheme of a link stays as it is written.
    parser.validateLink = _is_address  # type: ignore[method-assign]
    for name, rule in (("link", link), ("image", image)):
        parser.inline.ruler.at(name, partial(_with_any_target, rule))
    return parser


def _is_address(url: str) -> bool:
    return url.lower().startswith(_SCHEMES)


def _with_any_target(rule: Callable[[StateInline, bool], bool], state: StateInline, silent: bool) -> bool:
    """Words with a target are a link whatever the target is: its brackets are not for people."""
    before = state.md.validateLink  # this may be a look ahead, inside of another such rule
    state.md.validateLink = lambda url: True  # type: ignore[method-assign]
    try:
        return rule(state, silent)
    finally:
        state.md.validateLink = before  # type: ignore[method-assign]


class _Renderer:
    """One walk over the tokens of one text."""

    def __init__(self, is_link: Callable[[str], bool]) -> None:
        self._is_link = is_link
        self._out = TextWriter()
        self._styles: list[Style] = []
        self._numbers: list[int | None] = []  # of the next item of each open list, None where it has bullets
        self._quotes = 0
        self._tight = False
        self._marks = count(1)
        self._urls: list[str] = []

    def render(self, markdown: str) -> Formatted:
        tokens = iter(_parser().parse(whole(markdown)))
        for token in tokens:
            if token.type == "table_open":
                table = Table()
                for inner in tokens:
                    if inner.type == "table_close":
                        break
                    table.take(inner, _cell)
                self._preformatted(table.text())
            else:
                self._block(token)
        return self._out.finish()

    def _block(self, token: Token) -> None:
        match token.type:
            case "inline":
                self._inline(token.children or [])
            case "paragraph_open":
                self._tight = token.hidden
                self._out.need(1 if token.hidden else 2)
            case "heading_open":
                self._out.need(2)
                self._open_style(EntityType.BOLD)
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
                    self._out.quote = Style(EntityType.BLOCKQUOTE, mark=next(self._marks))
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
                self._numbers.pop()
                self._out.indent = self._out.indent[len(_NEST) :]
                self._out.need(1 if self._numbers else 2)
            case "list_item_open":
                self._open_item()
            case "list_item_close":
                if self._out.marker:
                    self._out.write("")

    def _open_list(self, number: int | None) -> None:
        self._out.need(1 if self._numbers else 2)
        self._numbers.append(number)
        self._out.indent += _NEST

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
        text = text.rstrip()
        if text:
            language = info.split(maxsplit=1)[0][:_LONGEST_LANGUAGE] if info.strip() else ""
            self._out.write_block(text, Style(EntityType.PRE, language=language, mark=next(self._marks)))
        self._out.need(1 if self._numbers and self._tight else 2)

    def _inline(self, tokens: Sequence[Token]) -> None:
        task = self._task(tokens)
        for number, token in enumerate(tokens):
            match token.type:
                case "text":
                    text = token.content[len(task) :] if number == 0 else token.content
                    if text or task:  # before emphasis the parser puts an empty one, which begins no line
                        self._out.write(text, self._active())
                case "code_inline":
                    self._out.write(token.content, self._code())
                case "softbreak" | "hardbreak":
                    self._out.line(self._active())
                case "link_open":
                    begins = number + 1
                    self._open_link(str(token.attrs["href"]))
                case "link_close":
                    self._close_link(_words(tokens[begins:number]))
                case "image":
                    self._image(token)
                case other:
                    self._switch(other)

    def _task(self, tokens: Sequence[Token]) -> str:
        """The box that an item begins with, as written; it takes the place of the bullet."""
        if not self._out.marker or not tokens or tokens[0].type != "text":
            return ""
        box = tokens[0].content[:4]
        if box not in _TASKS:
            return ""
        marker = self._out.marker
        self._out.marker = (marker if self._numbers[-1] is not None else marker[:-2]) + _TASKS[box]
        return box

    def _switch(self, kind: str) -> None:
        name, _, turn = kind.rpartition("_")
        if name in _STYLES:
            if turn == "open":
                self._open_style(_STYLES[name])
            else:
                self._styles.pop()

    def _open_style(self, kind: EntityType) -> None:
        """Each use is an entity of its own, else two that touch would overlap with what lies around them."""
        active = next((style for style in self._styles if style.type is kind), None)
        self._styles.append(active or Style(kind, mark=next(self._marks)))

    def _open_link(self, url: str) -> None:
        self._urls.append(url)
        if self._is_link(url):
            self._styles.append(Style(EntityType.TEXT_LINK, url=url, mark=next(self._marks)))

    def _close_link(self, words: str) -> None:
        url = self._urls.pop()
        if self._is_link(url):
            self._styles.pop()
        else:
            self._out.write(_behind(words, url), self._active())

    def _image(self, token: Token) -> None:
        words = _words(token.children or []) or "image"
        if any(style.type is EntityType.TEXT_LINK for style in self._styles):
            self._out.write(words, self._active())
            return
        self._open_link(str(token.attrs["src"]))
        self._out.write(words, self._active())
        self._close_link(words)

    def _active(self) -> Sequence[Style]:
        return tuple(dict.fromkeys(self._styles))

    def _code(self) -> Sequence[Style]:
        """Code shares its text with nothing; within a link the link is worth more."""
        inside_link = any(style.type is EntityType.TEXT_LINK for style in self._styles)
        return self._active() if inside_link else (Style(EntityType.CODE, mark=next(self._marks)),)


def _behind(words: str, url: str) -> str:
    """What stands behind the words of a link that is shown as text: its target, unless the words are that."""
    shown = _parser().normalizeLinkText(url).removeprefix(_MAIL)
    return "" if words in (url, shown) or not shown else f" ({shown})"


def _words(tokens: Sequence[Token]) -> str:
    """Inline tokens as text alone."""
    found = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            found.append(" ")
        elif token.type == "image":
            found.append(_words(token.children or []))
        else:
            found.append(token.content)
    return "".join(found)


def _cell(tokens: Sequence[Token]) -> str:
    """A cell of a table as text; links keep their target, because nothing there can be a link."""
    found = []
    url = words = ""
    for token in tokens:
        if token.type == "link_open":
            url, words = str(token.attrs["href"]), ""
        elif token.type == "link_close":
            found.append(_behind(words, url))
        else:
            text = _words([token])
            words += text
            found.append(text)
    return "".join(found)
