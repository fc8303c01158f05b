"""What somebody's words are where they are asked something: a plain yes or no, or the answer to a question. Pure.

The words that decide are a closed list, and each counts only as all that was written. A word that means the opposite,
or something else that one may well say then, in another of these languages is not among those that allow.
"""

import unicodedata
from typing import Literal

from agent.tools.base import Ask

_YES = (
    *(
        "y",
        "yes",
        "yeah",
        "yep",
        "ok",
        "okay",
        "allow",
        "approve",
        "👍",
        "✅",
        "👌",
        "ja",
        "oui",
        "si",
        "sí",
        "sim",
        "да",
    ),
    *("はい", "是", "是的", "네", "예", "evet", "نعم", "כן", "हाँ"),
)
_NO = (
    *(
        "n",
        "no",
        "nope",
        "deny",
        "reject",
        "👎",
        "❌",
        "⛔",
        "nein",
        "nej",
        "nei",
        "nee",
        "non",
        "não",
        "nao",
        "ne",
        "nie",
    ),
    *("нет", "ні", "いいえ", "不", "不要", "不行", "아니요", "아니오", "hayır", "hayir", "لا", "לא", "नहीं", "όχι"),
)
# What only a terminal takes, where nothing can be pressed.
_ALWAYS = ("a", "always")
# A word is the same with these: the forms of an emoji and its tones of skin; and the end of a sentence.
_TONES = str.maketrans("", "", "\ufe0f🏻🏼🏽🏾🏿")
_ENDS = " .!。！"
_ASKS, _BEHIND = "?？؟\u037e", " !！.…)\"'”’»"


def decision(text: str, *, typed: bool = False) -> Literal["once", "always", "deny"] | None:
    """What a plain word decides about a request. typed: in a terminal."""
    word = unicodedata.normalize("NFC", text).translate(_TONES).strip().rstrip(_ENDS).casefold()
    if typed and word in _ALWAYS:
        return "always"
    return "once" if word in _YES else "deny" if word in _NO else None


def option(ask: Ask, text: str) -> str | None:
    """Which option of a question is meant: as it is written, or by its number where none of them is a number; None for
    no option."""
    given = " ".join(text.split())
    same = [one for one in ask.options if one.casefold() == given.casefold()]
    if same:
        return given if given in same else same[0]
    if given.isdecimal() and 0 < int(given) <= len(ask.options) and not any(map(_is_number, ask.options)):
        return ask.options[int(given) - 1]
    return None


def answers(ask: Ask, text: str) -> bool:
    """Whether words that are no reply to a question answer it."""
    return option(ask, text) is not None if ask.options else text.rstrip(_BEHIND)[-1:] not in tuple(_ASKS)


def _is_number(option: str) -> bool:
    return option.replace(".", "").replace(",", "").lstrip("+-").isdecimal()
