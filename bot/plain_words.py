"""Recognises what somebody's words mean where they were asked something: yes, no, or the answer to a question.

The words that decide are a closed list, and each counts only if nothing else was written. A word that allows means
neither the opposite nor anything else that one may well say then in another of these languages. Nothing here has
effects.
"""

import re
import unicodedata
from typing import Literal

from agent.tools.base import Ask

_YES = (
    *("y", "yes", "yeah", "yep", "ok", "okay", "allow", "approve", "👍", "✅", "👌", "ja", "oui", "si", "sí", "sim"),
    *("да", "はい", "是", "是的", "네", "예", "evet", "نعم", "כן", "हाँ"),
)
_NO = (
    *("n", "no", "nope", "deny", "reject", "👎", "❌", "⛔", "nein", "nej", "nei", "nee", "non", "não", "nao", "ne"),
    *("nie", "нет", "ні", "いいえ", "不", "不要", "不行", "아니요", "아니오"),
    *("hayır", "hayir", "لا", "לא", "नहीं", "όχι"),
)
# What only a terminal takes, where nothing can be pressed.
_ALWAYS = ("a", "always")
# Characters that do not change what a word means: variants and tones of skin of an emoji, and the end of a sentence.
_TONES = str.maketrans("", "", "\ufe0f🏻🏼🏽🏾🏿")
_ENDS = " .!。！"
# What stands between numbers, and the most digits of one; the id of a request has more.
_BETWEEN, _DIGITS = re.compile(r"[\s,;+&]+"), 3
_ASKS, _BEHIND = "?？؟\u037e", " !！.…)\"'”’»"


def decision(text: str, *, typed: bool = False) -> Literal["once", "always", "denied"] | None:
    """Return what a text decides about a request, None if it is no plain word. typed: it was typed in a terminal."""
    word = unicodedata.normalize("NFC", text).translate(_TONES).strip().rstrip(_ENDS).casefold()
    if typed and word in _ALWAYS:
        return "always"
    return "once" if word in _YES else "denied" if word in _NO else None


def picked(text: str) -> tuple[int, ...]:
    """Return the numbers of calls that a text names and nothing else (`1 3`, `1, 3`, `only 2`); empty: none."""
    numbers = [one for one in _BETWEEN.split(text.strip().casefold().removeprefix("only ")) if one]
    if not all(one.isascii() and one.isdigit() and len(one) <= _DIGITS for one in numbers):
        return ()
    return tuple(dict.fromkeys(map(int, numbers)))


def option(ask: Ask, text: str) -> str | None:
    """Return the option of a question that a text means, None if it means none.

    An option is meant by its own words, or by its number if none of the options is itself a number.
    """
    given = " ".join(text.split())
    same = [one for one in ask.options if one.casefold() == given.casefold()]
    if same:
        return given if given in same else same[0]
    if given.isdecimal() and 0 < int(given) <= len(ask.options) and not any(map(_is_number, ask.options)):
        return ask.options[int(given) - 1]
    return None


def answers(ask: Ask, text: str) -> bool:
    """Whether a message that is no reply to a question answers it: by an option, or by anything but a question."""
    return option(ask, text) is not None if ask.options else text.rstrip(_BEHIND)[-1:] not in tuple(_ASKS)


def _is_number(option: str) -> bool:
    return option.replace(".", "").replace(",", "").lstrip("+-").isdecimal()
