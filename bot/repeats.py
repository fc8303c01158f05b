"""Whether words say again what has been said: equal but for case, white space, emoji and Markdown, or nearly so.

Never because one contains the other: "done" in an answer does not make the answer superfluous.
"""

import re
import unicodedata
from difflib import SequenceMatcher

_MARKUP = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)|(?m:^[ \t]*(?:#{1,6}|>|[-*+](?=\s)))|[*_~`|\\]+|\ufe0f|\u200d")
_VALUES = re.compile(r"\d+|\b(?:no|not|never|without|cannot|\w+n[’']t)\b")
_WORD = re.compile(r"\w+")
# How alike words must be, and lengths; texts of more words than that must be equal.
_LIKENESS, _LENGTHS, _LONG = 0.92, 0.9, 2000


def is_repeat(text: str, earlier: str, *, near: bool = True) -> bool:
    """Whether a text says what another one says. near: also when few of its words differ, but no number."""
    one, other = _plain(text), _plain(earlier)
    if one == other:
        return bool(one)
    if not near or min(len(one), len(other)) < _LENGTHS * max(len(one), len(other)):
        return False
    words, others = _WORD.findall(one), _WORD.findall(other)
    if not words or max(len(words), len(others)) > _LONG or _VALUES.findall(one) != _VALUES.findall(other):
        return False
    return SequenceMatcher(None, words, others, autojunk=False).ratio() >= _LIKENESS


def may_become(beginning: str, earlier: str) -> bool:
    """Whether an answer that begins so could still say the same as an earlier text; may be too hopeful."""
    return _letters(earlier).startswith(_letters(beginning))


def _plain(text: str) -> str:
    """Without what does not count."""
    words = _MARKUP.sub(lambda found: found[1] or "", unicodedata.normalize("NFKC", text))
    kept = "".join(char for char in words if unicodedata.category(char) not in ("So", "Sk", "Cf"))
    return " ".join(kept.casefold().split())


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
