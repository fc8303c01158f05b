"""Keys and tokens that are known by their look: those of well-known services and platforms, JSON web tokens, and
private keys in PEM. `docs/security.md` names them for people.
"""

import re

_PEM = "-----BEGIN "
_LABEL = r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
# What may stand between the lines of a private key: ends of lines, also escaped as in JSON, and numbers of lines.
_BETWEEN = r"(?:\\[nrt]|[\s\d|+>:]){0,24}"
_NAMES = "SecretAccessKey, secret_access_key, SECRET_ACCESS_KEY"
# Nothing here takes longer for a text than its length and a small factor: others choose what is looked at.
# How they begin, of which a text without any is passed over quickly, and how they go on; a group is the secret part.
_TABLE = {
    "ghp_, gho_, ghu_, ghs_, ghr_": r"[A-Za-z0-9]{20,}",
    "github_pat_": r"[A-Za-z0-9_]{20,}",
    "xoxa-, xoxb-, xoxc-, xoxd-, xoxe-, xoxo-, xoxp-, xoxr-, xoxs-": r"[A-Za-z0-9-]{10,}",
    "xapp-": r"\d-[A-Za-z0-9-]{10,}",
    "AKIA, ASIA": r"[A-Z0-9]{16}(?![A-Z0-9])",
    _NAMES: r"[\"'\\]{0,4}\s{0,4}[=:]\s{0,4}[\"'\\]{0,4}([A-Za-z0-9/+]{40})",  # of AWS
    # not within a word, but behind an escaped end of line; never without a digit
    "sk-": r"(?:(?<![A-Za-z0-9]sk-)|(?<=\\[nrt]sk-))(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{16,}",
    "AIza": r"[A-Za-z0-9_-]{30,}",
    "ya29., GOCSPX-": r"[A-Za-z0-9_-]{20,}",
    "sk_live_, sk_test_, rk_live_, rk_test_": r"[A-Za-z0-9]{10,}",
    "whsec_": r"[A-Za-z0-9+/=]{20,}",
    "eyJ": r"[A-Za-z0-9_-]{10,1000}\.[A-Za-z0-9_-]{4,8000}\.[A-Za-z0-9_.-]*",
    ":AA": r"[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
    _PEM: rf"{_LABEL}(?:[^\"-]*(?:-(?!----)[^\"-]*)*-----END {_LABEL}|(?:{_BETWEEN}[A-Za-z0-9+/=]{{16,}})*)",
}
_SHAPES = [
    (words, re.compile(f"(?:{'|'.join(map(re.escape, words))}){rest}", re.DOTALL))
    for words, rest in ((tuple(words.split(", ")), rest) for words, rest in _TABLE.items())
]
_WORDS = [word for words, _ in _SHAPES for word in words]
# One that may go on where the text ends; and words that may be the beginning of one.
_GOES_ON = re.compile(
    rf"(?:{'|'.join(map(re.escape, _WORDS))})[\w.+/=-]*\Z"
    rf"|(?:{_NAMES.replace(', ', '|')})[\"'\\\s=:]{{0,14}}[\w+/]{{0,40}}\Z|{_PEM}[A-Z0-9 ]{{0,40}}-{{0,5}}\Z"
)
# All that a token may be made of at the end of a text; what goes on begins in it, or a little before.
_RUN, _BEFORE = re.compile(r"(?<![\w.+/=-])[\w.+/=-]*+\Z"), 120
# Behind a letter only a whole word counts, so that few words of people wait for what follows.
_STARTS = re.compile(
    r"(?:(?<![A-Za-z])|(?<=\\[nrt]))(?:"
    + "|".join(sorted({re.escape(word[:n]) for word in _WORDS for n in range(1, len(word))}, key=len, reverse=True))
    + r")\Z"
)
_END = re.compile(f"-----END {_LABEL}")
# Characters at the end of a text in which a token, and in which a private key, may have begun.
_TOKEN, _KEY = 4096, 20_000
_LONGEST = max(map(len, _WORDS)) + 2


def replaced(text: str, mask: str) -> str:
    """The text with `mask` in the place of everything that has the look of a key or token."""
    for words, shape in _SHAPES:
        for word in words:
            if word in text:
                text = shape.sub(
                    lambda found: found[0][: found.start(found.lastindex or 0) - found.start()] + mask, text
                )
                break
    return text


def unfinished(text: str) -> int:
    """How many characters at the end of a piece of a text may be a key or token that goes on."""
    tail = text[-_KEY:]
    begun = tail.rfind(_PEM)
    if begun >= 0 and "PRIVATE KEY" in tail[begun:] and not _END.search(tail, begun):
        return len(tail) - begun
    tail = text[-_TOKEN:]
    run = _RUN.search(tail)
    start = min(run.start() if run else len(tail), len(tail) - _BEFORE) - _LONGEST
    found = _GOES_ON.search(tail, max(0, start)) or _STARTS.search(tail[-_LONGEST:])
    return found.end() - found.start() if found else 0
