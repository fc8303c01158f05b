"""Markdown to tokens: CommonMark with tables and strikethrough, and what models write besides.

Emphasis works beside Chinese, Japanese and Korean text, bare addresses are taken before emphasis, spoilers and
mathematics are known, of HTML only what has a counterpart in a chat, and footnotes stay as they are written. Each rule
says which tokens it makes; those of markdown-it-py are used wherever one fits.
"""

import importlib
import re
import unicodedata
from collections.abc import Callable, Sequence, Set
from functools import cache, lru_cache, partial

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline, image, link
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

from channels.utf16 import whole

# Cells that a table may have beyond those that are written: its library adds them to short rows, each at a cost.
importlib.import_module("markdown_it.rules_block.table").__dict__["MAX_AUTOCOMPLETED_CELLS"] = 1_000
_SCHEMES = ("http://", "https://", "tg://", "mailto:")
_BARE = re.compile(
    r"""https?://(?:(?!\*\*|~~)[^\s<>\[\]`|\\"“”„«»，。、；：！？（）「」『』【】《》〈〉])+""", re.IGNORECASE
)
_OPENED = re.compile(r"(?<!\w)_+(?=\S|\Z)")
_WORDS_END = re.compile(r"[\n!#$%&*+\-:<=>@\[\\\]^_`{}~|]|(?<![a-z0-9_])https?://", re.IGNORECASE)
# One dollar is mathematics only where it cannot be money: tight, no word behind, and a sign or one letter in it.
_MATH = re.compile(
    r"\$\$(?=\S)(.+?)\$\$|\\\(((?:(?!\\[()]).)+)\\\)|\\\[((?:(?!\\[\[\]]).)+)\\\]"
    r"|(?<![\w$\\])\$(?=\S)([A-Za-z]|(?=[^$`\n]*?[\\^_=+<>{}])[^$`\n]*+)(?<=[^\s\\])\$(?!\w)",
    re.DOTALL,
)
_FORMULA = re.compile(r"\s*\w\s*\Z|(?=.*\w).*[\\^_=+<>{}*/]", re.DOTALL)  # else they are brackets that were escaped
# Lines that begin with a letter and have no sign that a rule looks for, and at most one empty line between them.
_PLAIN_LINE = r"[^\W\d_](?:[^\x00-\x1f\x7f\ud800-\udfff#$&*+:<=>@\[\\\]^_`{|}~]++|:(?!//))*+(?<!\s)"
_PLAIN = re.compile(rf"{_PLAIN_LINE}(?:\n\n?{_PLAIN_LINE})*+")
_LINES = {"<!--": "-->", "$$": "$$", "\\[": "\\]"}
_TAG = re.compile(r"<(br) */?>|</?(?:details|summary)(?: [^<>]*)?>|<(su[bp])>([^<\n]*)</\2>", re.I | re.S)
_OPENS = re.compile(r"<details(?: [^<>]*)?>", re.IGNORECASE)
_CLOSES = re.compile("</details", re.IGNORECASE)
_SUMMARY = re.compile(rf"{_OPENS.pattern}\s*(?:<summary>(.*?)</summary>)?", re.I | re.S)
_CLOSER = re.compile("</details>|$", re.IGNORECASE)
_MOST_DETAILS = 8
_MOST_LINES = 10_000  # that are looked at for the ends of sections, the same ones again for each that may begin
_LOWERED = dict(zip("0123456789+-=()aehijklmnoprstuvxβγφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵩᵪ", strict=True))
_RAISED = dict(zip("0123456789+-=()abcdefghijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))


@lru_cache(8)  # what is looked at before it is rendered is parsed once
def parse(markdown: str) -> tuple[Sequence[Token], Set[tuple[str, str]]]:
    """The tokens of some Markdown, and label and address of the link definitions that its links use. Never fails.

    Whoever asks for the same again is given the same tokens: nobody may change them.

    Beyond those of markdown-it-py: `definition` (a link definition; meta as its parser makes it), `u_open`,
    `spoiler_open` and their ends, links with the markup "linkify" for bare addresses, block quotes with the markup
    "details", `comment` (one of whole lines; one that is empty takes the marker from the item that it begins).
    """
    tokens = parser().parse(whole(markdown), {})
    inline = [child for token in tokens for child in token.children or [] if "label" in child.meta]
    cited = ((child.meta["label"], str(child.attrs.get("href") or child.attrs.get("src"))) for child in inline)
    return tokens, set(cited)


def is_plain(markdown: str) -> bool:
    """Whether a text is paragraphs of words alone, so that it shows exactly its own characters.

    Said without parsing it: a text for which this is False may show its own characters too.
    """
    return _PLAIN.fullmatch(markdown) is not None


@cache
def parser() -> MarkdownIt:
    """The parser itself, for its ways to normalise addresses."""
    made = MarkdownIt("zero")
    made.inline = _Inline()
    made.configure("commonmark", {"html": False, "store_labels": True, "inline_definitions": True})
    made.enable(["strikethrough", "table"])
    # What looks like a link definition or <an:address> and has no scheme of a link stays as it is written.
    made.validateLink = lambda url: url.lower().startswith(_SCHEMES)  # type: ignore[method-assign]
    inline, block = made.inline.ruler, made.block.ruler
    for name, rule in (("link", link), ("image", image)):
        inline.at(name, partial(_with_any_target, rule))
    inline.after("text", "bare", _bare)
    inline.before("escape", "math", _math)
    inline.before("autolink", "tag", _tag)
    inline.after("tag", "underline", partial(_pair, "u", "<u>", "</u>"))
    inline.after("tag", "spoiler", partial(_pair, "spoiler", "||", "||"))
    block.at("reference", _definition)
    may_end: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    block.before("reference", "lines", _lines, may_end)
    block.before("reference", "details", _details, may_end)
    return made


def inline_state(text: str) -> StateInline:
    """Where the rules of the text within a block begin to read it, for who wants to know what they read where."""
    return _State(text, parser(), {}, [])


class _Inline(ParserInline):
    def __init__(self) -> None:
        super().__init__()
        self.terminator_re = _WORDS_END

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _State(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """Which emphasis a run of markers may open or close.

        The rule is the CJK-friendly amendment of CommonMark (github.com/tats-u/markdown-cjk-friendly): punctuation of
        those scripts is like their letters, and they are like white space to other punctuation. Besides, `**` closes
        between "Note:" and a word, and nothing opens at a product such as 5*6 or x**2.
        """
        marker, end = self.src[start], start
        while end < self.posMax and self.src[end] == marker:
            end += 1
        before = self.src[start - 1] if start else " "
        after = self.src[end] if end < self.posMax else " "
        left = not after.isspace() and (not _is_mark(after) or before.isspace() or _is_mark(before) or _is_cjk(before))
        right = not before.isspace() and (not _is_mark(before) or after.isspace() or _is_mark(after) or _is_cjk(after))
        if marker == "*" and end - start > 1 and unicodedata.category(before) in ("Po", "Pe", "Pf") and after.isalnum():
            right = True
        if marker == "*" and before.isalnum() and after.isalnum() and (before.isdigit() or after.isdigit()):
            left, right = False, right and end - start > 1
        opens = left and (canSplitWord or not right or _is_punctuation(before))
        closes = right and (canSplitWord or not left or _is_punctuation(after))
        return Scanned(opens, closes, end - start)


def _is_cjk(char: str) -> bool:
    wide = unicodedata.east_asian_width(char) in ("W", "F", "H")
    return wide and not "\U0001f000" <= char < "\U00020000"  # those are emoji


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def _is_mark(char: str) -> bool:
    return _is_punctuation(char) and not _is_cjk(char)


def _with_any_target(rule: Callable[[StateInline, bool], bool], state: StateInline, silent: bool) -> bool:
    """Words with a target are a link whatever the target is: its brackets are not for people."""
    before = state.md.validateLink  # this may be a look ahead, inside of another such rule
    state.md.validateLink = lambda url: True  # type: ignore[method-assign]
    try:
        return rule(state, silent)
    finally:
        state.md.validateLink = before  # type: ignore[method-assign]


def _bare(state: StateInline, silent: bool) -> bool:
    """An address without brackets, before emphasis can take characters from it. Within the words of a link, text."""
    found = _BARE.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    url = _trimmed(found[0], state.src[: state.pos])
    if not silent and state.linkLevel:
        state.append_pending(url)
    elif not silent:
        opening = state.push("link_open", "a", 1)
        opening.attrs, opening.markup = {"href": url}, "linkify"
        state.push("text", "", 0).content = url
        state.push("link_close", "a", -1).markup = "linkify"
    state.pos += len(url)
    return True


def _trimmed(url: str, before: str) -> str:
    """Without the punctuation of the sentence around it; `_` is that where emphasis may be open."""
    ends = "?!.,:;*~'" + ("_" if url[-1] == "_" and _OPENED.search(before) else "")
    while url[-1] in ends or (url[-1] == ")" and url.count(")") > url.count("(")):
        url = url[:-1]
    return url


def _math(state: StateInline, silent: bool) -> bool:
    """Mathematics as code, so that nothing in it is taken for emphasis."""
    found = _MATH.match(state.src, state.pos, state.posMax)
    if not found or not _FORMULA.match(found[found.lastindex or 0]):
        return False
    if not silent:
        state.push("code_inline", "code", 0).content = " ".join(found[found.lastindex or 0].split())
    state.pos = found.end()
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    """A line break, lowered or raised text; comments and stray parts of a collapsible section are dropped."""
    if state.src.startswith("<!--", state.pos):
        end = state.src.find("-->", state.pos + 4, state.posMax)
        state.pos = end + 3 if end >= 0 else state.pos
        return end >= 0
    found = _TAG.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent and found[1]:
        state.push("hardbreak", "br", 0)
    elif not silent and found[2]:
        state.append_pending(_moved(found[3], _LOWERED if found[2].lower() == "sub" else _RAISED))
    state.pos = found.end()
    return True


def _moved(text: str, to: dict[str, str]) -> str:
    if all(char in to for char in text):
        return "".join(to[char] for char in text)
    return f"{'_' if to is _LOWERED else '^'}({text})"


def _pair(name: str, opening: str, closing: str, state: StateInline, silent: bool) -> bool:
    """What stands between two signs that are tight around it, as `<name>_open`, its tokens, `<name>_close`."""
    start = state.pos + len(opening)
    if not state.src.startswith(opening, state.pos) or state.src[start : start + 1].isspace():
        return False
    end = state.src.find(closing, start + 1, state.posMax)
    if end < 0 or state.src[end - 1].isspace():
        return False
    if not silent:
        most = state.posMax
        state.push(f"{name}_open", name, 1)
        state.pos, state.posMax = start, end
        state.md.inline.tokenize(state)
        state.push(f"{name}_close", name, -1)
        state.posMax = most
    state.pos = end + len(closing)
    return True


def _definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A link definition; that of a footnote is text, because nothing shows what it says elsewhere."""
    footnote = state.src.startswith("[^", state.bMarks[start] + state.tShift[start])
    return not footnote and reference(state, start, end, silent)


def _section(state: StateBlock, start: int, end: int, is_whole: Callable[[Sequence[str]], bool]) -> tuple[str, int]:
    """The fewest lines from here that are whole, within what they stand in, and the line behind; nothing without."""
    lines: list[str] = []
    left = _MOST_LINES - state.env.get("lines", 0)
    for line in range(start, min(end, start + left)):
        state.env["lines"] = _MOST_LINES - left + len(lines) + 1
        if state.is_code_block(start) or (state.sCount[line] < state.blkIndent and not state.isEmpty(line)):
            break
        lines.append(state.getLines(line, line + 1, state.blkIndent, False).rstrip())
        if is_whole(lines):
            return "\n".join(lines).strip(), line + 1
    return "", start


def _lines(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A comment of whole lines, which is dropped, or lines of mathematics, which become code."""
    at = state.bMarks[start] + state.tShift[start]
    opening = next((sign for sign in _LINES if state.src.startswith(sign, at)), "")
    closing = _LINES.get(opening, "")
    if not opening or state.src.find(closing, at + len(opening)) < 0:
        return False
    text, behind = _section(
        state, start, end, lambda lines: lines[-1].endswith(closing) and (len(lines) > 1 or lines[0].strip() != opening)
    )
    content = text[len(opening) : -len(closing)]
    if not text or closing in content or (opening != "<!--" and not _FORMULA.match(content)):
        return False
    if not silent:
        token = state.push("comment" if opening == "<!--" else "fence", "", 0)
        token.content, token.info, token.map = content.strip(), "latex", [start, behind]
        state.line = behind
    return True


def _details(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A collapsible section as a block quote that begins with its summary; what it holds is a text of its own."""
    depth = 0

    def is_whole(lines: Sequence[str]) -> bool:
        nonlocal depth
        depth += len(_OPENS.findall(lines[-1])) - len(_CLOSES.findall(lines[-1]))
        return depth <= 0

    at = state.bMarks[start] + state.tShift[start]
    if not (_OPENS.match(state.src, at) and _CLOSES.search(state.src, at)) or state.env.get("details") == _MOST_DETAILS:
        return False
    text, behind = _section(state, start, end, is_whole)
    found = _SUMMARY.match(text)
    if found and not silent:
        closer = _CLOSER.search(text, max(found.end(), text.rfind("\n") + 1))
        assert closer is not None  # at the latest at the end
        first = len(state.tokens)
        state.push("blockquote_open", "blockquote", 1).markup = "details"
        if found[1] and found[1].strip():
            state.push("heading_open", "h6", 1)
            token = state.push("inline", "", 0)
            token.content, token.children = found[1].strip(), []
            state.push("heading_close", "h6", -1)
        state.env["details"] = state.env.get("details", 0) + 1
        state.md.block.parse(text[found.end() : closer.start()], state.md, state.env, state.tokens)
        state.env["details"] -= 1
        state.push("blockquote_close", "blockquote", -1)
        state.md.block.parse(text[closer.end() :], state.md, state.env, state.tokens)
        for token in state.tokens[first:]:
            token.map = None  # those count the lines of the section
        state.tokens[first].map = [start, behind]
        state.line = behind
    return found is not None
