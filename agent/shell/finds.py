"""`find`: which of its expressions only look, and which commands it runs."""

from collections.abc import Sequence

from agent.shell.names import a_set
from agent.shell.table import names
from agent.shell.words import Word

_FLAGS = names("find_flags")
_VALUES = names("find_values")
_LINKS = a_set("-L -H -follow -o -or ! -not ,")  # with these `-type f` may find links as well


def find(words: Sequence[Word]) -> list[tuple[Word, ...]] | None:
    """The commands that `find` with these words runs; None when something of it is not understood."""
    starts = list[Word]()
    inner, at = list[list[Word]](), 0
    while at < len(words) and not words[at].may_be_option() and words[at].text not in ("!", "(", ")", ","):
        if not words[at].text or not (words[at].exact or words[at].kind == "pattern"):
            return None
        starts.append(words[at])
        at += 1
    while at < len(words):
        word = words[at]
        if not word.exact:
            return None
        at += 1
        if word.text in _VALUES:
            if at >= len(words) or not (words[at].exact or (words[at].one and words[at].kind == "unknown")):
                return None
            at += 1
        elif word.text == "-exec":
            ends = [i for i in range(at, len(words)) if words[i].exact and words[i].text in (";", "+")]
            end = next((i for i in ends if words[i].text == ";" or words[i - 1].text == "{}"), None)
            if end is None or end == at:
                return None
            inner.append(list(words[at:end]))
            at = end + 1
        elif word.text not in _FLAGS:
            return None
    plain = "-type f" in " ".join(word.text for word in words) and not _LINKS.intersection(word.text for word in words)
    return [
        tuple(_found(word, start, plain) for word in command)
        for command in inner
        for start in (starts or [Word(".", shown=".")])
    ]


def _found(word: Word, start: Word, plain: bool) -> Word:
    """A word with `{}` replaced by what is found. plain: files which are no links."""
    if word.exact and word.text == "{}":
        return Word(
            f"{start.text}/", "pattern" if start.exact else "unknown", True, word.shown, "" if plain else "*/" * 40
        )
    return word if word.exact and "{}" not in word.text else Word("", "unknown", word.exact, word.shown)
