"""Decides whether a text repeats an earlier one: both are equal but for white space, Markdown, greeting and closing.

Any other difference counts, be it one word, digit, sign or emoji; a text that only contains the other is no repetition.
Losing a sentence is worse than reading it twice, so marks that may have a meaning stay: `- 5 °C`, `*.txt`, `~5`.
"""

import re

_GREETINGS = (
    "hi|hello|hey|hi there|hello there|good (?:morning|afternoon|evening)|hallo|guten (?:morgen|tag|abend)|bonjour"
    "|bonsoir|hola|buenos días|buenas tardes|ciao|buongiorno|olá|bom dia|cześć|dzień dobry|привет|здравствуйте|merhaba"
    "|مرحبا|नमस्ते|你好|您好|こんにちは|안녕하세요"
)
_CLOSINGS = (
    "let me know if you (?:need anything else|have any questions)|have a (?:nice|great) day|(?:best|kind) regards|bye"
    "|sag bescheid, wenn du noch etwas brauchst|schönen tag noch|(?:viele|liebe) grüße|bonne journée|cordialement"
    "|saludos|que tengas un buen día|saluti|buona giornata|abraços|pozdrawiam|с уважением|хорошего дня|祝好"
)
_GREETING = re.compile(rf"\A(?:{_GREETINGS})(?:[!.,…]*\n|[!.,…]+ |[！。，、]+)", re.IGNORECASE)
_CLOSING = re.compile(rf"(?:(?<=[.!?…] )|(?<=[。！？\n]))(?:{_CLOSINGS})[!.,…！。]*\Z", re.IGNORECASE)
# Code and emphasis with their marks, and the marks at the beginning of headings, items and quotations; items and
# quotations only where a letter follows.
_MARKS = re.compile(
    r"(?<!`)(`{1,3})(?P<code>[^`]++)\1(?!`)"
    r"|(?<![\w*_\\])(\*{1,3}(?![\s*])|_{1,3}(?![\s_]))(?P<words>(?:`[^`\n]++`|(?!\3)[^`\n])++)(?<=\S)\3(?![\w*_])"
    r"|^(?:#{1,6} |(?:[-*>] )+(?=[*_`]*[^\W\d_]))",
    re.MULTILINE,
)
# The most letters of a greeting or closing.
_LONGEST = 60


def is_repeat(text: str, earlier: str) -> bool:
    """Return whether a text says the same as an earlier one; an empty text repeats nothing."""
    return _plain(text) == _plain(earlier) != ""


def may_become(beginning: str, earlier: str) -> bool:
    """Return whether an answer with this beginning could still repeat an earlier text; when unsure, True."""
    words, said = _letters(_GREETING.sub("", beginning.lstrip())), _letters(_plain(earlier))
    begins = len(words) <= len(said) + _LONGEST and said.startswith(words[: len(said)])
    return begins or len(beginning) < _LONGEST


def _plain(text: str) -> str:
    """Return a text without what does not count: white space, Markdown, greeting and closing."""
    lines = filter(None, (" ".join(line.split()) for line in text.splitlines()))
    return " ".join(_CLOSING.sub("", _GREETING.sub("", _unmarked("\n".join(lines)))).split())


def _unmarked(text: str) -> str:
    return _MARKS.sub(lambda found: found["code"] or _unmarked(found["words"] or ""), text)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
