"""Quiet replies: which texts of a model mean that there is nothing to say, and how their tokens are removed.

A text that is only a token (`NO_REPLY`, `HEARTBEAT_OK`) says nothing: in any case, with Markdown or HTML around it,
with punctuation, or as JSON. At the beginning or end of a text a token in capitals is removed, with the marks around
it. In the middle, in code or quotation marks, and as part of a word it is text. Only a beat may have its token in code
on a line of its own, because the beat asked for that token.
"""

import string

import regex  # type: ignore[import-untyped]

NO_REPLY, HEARTBEAT_OK = "NO_REPLY", "HEARTBEAT_OK"
# How many characters at the beginning and at the end of a text are searched for a token.
LONGEST_HEAD, LONGEST_TAIL = 256, 64

# Some models escape what they take for Markdown.
_TOKEN = r"(?P<token>NO\\?_REPLY|HEARTBEAT\\?_OK)"
_TAG = r"</?(?P<name>[A-Za-z][A-Za-z0-9]{0,9})(?:\s[^<>]{0,40})?/?>"
_SPACE = r"(?:\s|&nbsp;|<br ?/?>)"
# Marks that are opened before a token and closed after it; three backticks may stand on lines of their own.
_MARK = rf"(?:\n?`{{3}}(?:[a-z]{{0,12}}\n)?|`{{1,2}}|\*{{1,3}}|_{{1,2}}|~~|[\"'“”‘’()\[\]]|{_TAG})"
_POINT = r"(?:(?!&)\p{P}|[\p{So}\uFE0F])"
_BEFORE = rf"(?:{_SPACE}|{_MARK}|[~#>+–—-])"
_AFTER = rf"(?:{_SPACE}|{_MARK}|{_POINT}|~)"
_ACTION = rf"\s*(?:```(?:json)?\s*)?\{{\s*\"action\"\s*:\s*\"{_TOKEN}\"\s*\}}\s*(?:```\s*)?"
_SILENT = regex.compile(rf"{_BEFORE}*+(?:{_TOKEN}{_AFTER}*+)+|{_ACTION}", regex.IGNORECASE)
_LEADING = regex.compile(
    rf"{_SPACE}*+(?P<item>[#>*+-]+[ \t]+)?(?P<open>{_MARK}*+){_TOKEN}(?P<after>(?:{_MARK}|{_POINT})*+)"
)
_GAP = regex.compile(rf"[ \t]*[–—:-]+[ \t]+|{_SPACE}*(?:\n|<br ?/?>)|(?:[^\S\n]|&nbsp;)+")
_TRAILING = regex.compile(
    rf"(?:{_SPACE}++|(?=<))(?:[#>*+–—-]+[ \t]+)?(?P<open>{_MARK}*+){_TOKEN}(?P<after>{_AFTER}*+)\Z"
)
_MAY_TRAIL = regex.compile(rf"(?:{_SPACE}|{_TAG}){_BEFORE}*+{_TOKEN}{_AFTER}*+\Z")
_PIECE = regex.compile(rf"(?P<mark>{_MARK})|.", regex.DOTALL)
_LETTERS = string.ascii_lowercase
_QUOTING = "`\"'“‘"
_CLOSING = str.maketrans("([“‘", ")]”’")


def is_silent(text: str) -> bool:
    """Whether a text is only a token, in whatever form."""
    return _SILENT.fullmatch(text) is not None


def may_be_silent(begun: str) -> bool:
    """Whether a text with this beginning may become silent, or begin with a token, so that nothing may be sent yet."""
    return len(begun) < LONGEST_HEAD and _SILENT.fullmatch(begun, partial=True) is not None


def may_trail(text: str) -> int:
    """Return the index from which the end of a text may become a token; its length: nothing may."""
    found = _MAY_TRAIL.search(text, max(0, len(text) - LONGEST_TAIL), partial=True)
    return int(found.start()) if found else len(text)


def leading(text: str, *, beat: bool = False) -> tuple[int, int]:
    """Return start and end of a token at the beginning of a text, with its marks; (0, 0): there is none.

    beat: whether the token may be quoted on a line of its own.
    """
    found = _LEADING.match(text, 0, LONGEST_HEAD)
    alone = found is not None and "\n" in (found[0][-1], text[found.end() :].lstrip(" \t")[:1])
    wrapped = _wrapped(found, quoted=beat and alone) if found else None
    if found is None or wrapped is None:
        return 0, 0
    start, end = wrapped
    gap = _GAP.match(text, end, LONGEST_HEAD)
    if gap is None and text[end - 1] not in ">\n":
        return 0, 0
    if start == found.start("open") and not (found["item"] and gap and "\n" not in gap[0]):
        start = 0
    return start, gap.end() if gap else end


def trailing(text: str, *, beat: bool = False) -> tuple[int, int]:
    """Return start and end of a token at the end of a text, with its marks; both are its length if there is none."""
    found = _TRAILING.search(text, max(0, len(text) - LONGEST_TAIL))
    wrapped = _wrapped(found, quoted=beat and "\n" in text[found.start() : found.start("open")]) if found else None
    if found is None or wrapped is None or "`" in text[wrapped[1] :]:
        return len(text), len(text)
    start, end = wrapped
    return (found.start() if start == found.start("open") else start), end


def alert(text: str, most: int) -> str:
    """Return the part of a beat's reply that people are sent; empty for a quiet reply.

    most: how many characters a quiet reply may have besides HEARTBEAT_OK.
    """
    if is_silent(text):
        return ""
    quiet = False
    for edge in (leading, trailing):
        start, end = edge(text, beat=True)
        quiet = quiet or "HEARTBEAT" in text[start:end]
        text = text[:start] + text[end:]
    return "" if len(text.strip()) <= (most if quiet else 0) else text


def _wrapped(found: "regex.Match[str]", *, quoted: bool) -> tuple[int, int] | None:
    """Return start and end of a token with punctuation and the marks around it; None: it stands in code or quotes.

    Marks that are not opened and closed belong to the words beside the token and stay. quoted: whether the token may
    stand in code or quotation marks.
    """
    opened = list(_PIECE.finditer(found["open"]))
    if not quoted and any(mark[0].strip()[:1] in _QUOTING for mark in opened):
        return None
    end: int = found.end("token")
    for piece in _PIECE.finditer(found["after"]):
        if opened and piece[0].strip().lower() == _closing(opened[-1]):
            opened.pop()
        elif piece["mark"]:
            break
        end = found.start("after") + piece.end()
    if any("`" in mark[0] for mark in opened):
        return None
    return found.start("open") + (opened[-1].end() if opened else 0), end


def _closing(mark: "regex.Match[str]") -> str:
    name: str | None = mark["name"]
    return f"</{name.lower()}>" if name else str(mark[0].strip().rstrip(_LETTERS).translate(_CLOSING))
