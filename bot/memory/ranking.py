"""Ranks what may answer a question, by its words, by its vector where there is one, and a little by its age."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

from agent.memory.base import Hit
from bot.memory import terms
from bot.memory.index import Found

# A piece that holds so many rare words of a long question answers it as well as one that holds them all.
_ENOUGH = 3.0
# How much a word counts that stands in a heading above the piece or in the file's name.
_ABOVE = 0.6
# As in BM25: how fast further places of a word cease to count, and how much the length of a piece counts.
_REPEATED, _LENGTH = 0.5, 0.3
# How much what was written today is worth more, and after how many days half as much of that is left.
_NEW, _HALF_LIFE = 0.1, 30.0
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")


def ranked(found: Found, like: Mapping[int, float], today: date, most: int) -> Sequence[Hit]:
    """Return the best of what was found, the best first. like: by piece how near its meaning is, from 0 to 1."""
    weights = {form: terms.weight(found.counts.get(form, 0), found.total) for forms in found.asked for form in forms}
    enough = min(sum(weights[word] for word, _ in found.asked), _ENOUGH)
    held = {key: (Counter(row.words), row.context) for key, row in found.rows.items()}
    average = sum(held[key][0].total() for key in held) / max(len(held), 1)
    scored = []
    for key, row in found.rows.items():
        inside, above = held[key]
        longer = 1 - _LENGTH + _LENGTH * inside.total() / max(average, 1)
        got = sum(_of_word(forms, weights, inside, above, longer) for forms in found.asked)
        score = (got / enough if enough else 0.0) + like.get(key, 0.0)
        if score > 0:
            scored.append((score * (1 + _newness(row.path, today)), score, row))
    scored.sort(key=lambda one: -one[0])
    return [
        Hit(row.path, row.first, row.last, round(min(score, 1.0), 2), row.text, row.above)
        for _, score, row in scored[:most]
    ]


def _of_word(
    forms: tuple[str, str], weights: Mapping[str, float], inside: Counter[str], above: Sequence[str], longer: float
) -> float:
    """Return what a piece gets for one word of the question: for the word itself, or else for its beginning."""
    for form, worth in zip(forms, (1.0, terms.BEGIN), strict=True):
        if times := inside[form]:
            return worth * weights[form] * times * (1 + _REPEATED) / (times + _REPEATED * longer)
        if form in above:
            return worth * weights[form] * _ABOVE
    return 0.0


def _newness(path: str, today: date) -> float:
    try:
        day = date(*map(int, found.groups())) if (found := _DAY.search(path)) else None
    except ValueError:
        day = None
    return 0.0 if day is None else _NEW * 0.5 ** (max((today - day).days, 0) / _HALF_LIFE)
