"""The words by which memory is found: without case and accents, each with its beginning, so that endings matter less.

What is written without spaces becomes overlapping pairs of characters, as in the index of transcripts. Names such as
`maxRetryCount` are found by their parts as well, and numbers and days however they are written.
"""

import math
import re
import unicodedata
from collections.abc import Iterator

from bot.memory.numbers import numbers
from bot.store.search import chunks, pairs

# Words of questions and of small talk, which say nothing about what is looked for.
_EMPTY_WORDS = (
    "a about again all also am an and any are as at be because been but by can could did do does find for from get "
    "had has have he her here him his how i if in into is it its just know let like me my no not of on one or our out "
    "please remember remind she should show so some tell than that the their them then there these they this those to "
    "too up us was we were what when where which who why will with would yes you your hey hi hello aber als am an "
    "auch auf aus bei bin bist bitte da das dass dem den der des die doch du ein eine einem einen einer er es fur hab "
    "habe haben hast hat weisst finde erinnerst ich ihr im in ist ja kann kein keine man mein meine mich mir mit nach "
    "nicht noch nur ob oder sein seine sich sie sind so und uns unser vom von wann war was weil wenn wer wie wir wird "
    "wo zu zum zur uber au aux avec ce ces cette dans de des du elle en est et il je la le les leur lui ma mais me "
    "mes moi mon ne nos notre nous on ou par pas pour qu que quel quelle quand qui sa se ses son sont sur ta te tu un "
    "une vous y al como con cual cuando cuantos del donde el ella era es esta este fue ha hay lo los las mi muy "
    "nuestra nuestro o para pero por que quien se si sin su sus te tiene tu una unos ya che chi ci come cosa di e gli "
    "il io la mi nel nella non per piu quale quando sono ti un una uno и в во не на я что он она с со как а то все "
    "это по к у же вы за бы мне меня мы от о из ему ли или когда где кто какой какая где наш наша"
    " 记得 記得 还记 還記 知道 告诉 告訴 现在 現在 覚え 教え くだ ださ"
)
# Characters of Chinese and Japanese that only join words; a pair with one of them says nothing.
_JOINING = frozenset(
    "的了吗呢是我你他她们這这那哪什么麼怎在有就也都很吧啊呀和与與把被给給对對跟从從让讓请請谁誰何时時候はがをにでともかのへよねすまたい"
)
# Letters of a word's beginning, and what is taken from its end to leave what is common to its forms: "Anna" and "Anne",
# "Pilz" and "Pilze", "run" and "running".
_BEGINNING, _LEAST = 5, 3
_ENDING_LETTERS = "aeiouyаеиоуыэюяь"
# How much the beginning of a word counts beside the word itself.
BEGIN = 0.85
# In a small memory the number of pieces says little about which words are rare.
_FEW = 20
# Letters that are not put together from a letter and an accent; two letters that are written for one.
_SINGLE = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "a", "œ": "o"})
_UMLAUT = re.compile("(?<=[aou])e")
# Where a part of a name begins, and names that have parts.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PARTS = re.compile(r"(?<![^\W_])[^\W_]++(?:[_\-][^\W_]+)+")
# Letters with a number: "LH 1234".
_CODE = re.compile(r"(?<![a-z\d])([a-z]{1,8})( ?)(\d+)(?![a-z\d])")

# A character with the first one of an ending.
_INFLECTED = re.compile("[\u4e00-\u9fff][\u3041-\u309f]")
# The marks by which Japanese syllables differ.
_VOICED = "\u3099\u309a"


def _plain(text: str) -> str:
    """Return a text without accents and case."""
    if not text.isascii():
        taken_apart = unicodedata.normalize("NFKD", text.casefold())
        kept = "".join([one for one in taken_apart if not unicodedata.combining(one) or one in _VOICED])
        text = unicodedata.normalize("NFC", kept).translate(_SINGLE)
    return _UMLAUT.sub("", text.casefold())


_EMPTY = frozenset(map(_plain, _EMPTY_WORDS.split()))


def indexed(text: str) -> list[str]:
    """Return all that a text is found by, repeated as often as it stands there."""
    parted = _HUMP.sub("_", text)
    plain = _plain(parted)
    alone = (one for run, chunk in chunks(plain) if run and len(chunk) > 1 for one in chunk)
    whole = (re.sub(r"[_\-]", "", name) for name in _PARTS.findall(plain))
    coded = (one for letters, space, digits in _CODE.findall(plain) for one in _of_code(letters, space, digits))
    forms = (*_words(plain), *numbers(plain)[0])
    return [*(one for form in forms for one in dict.fromkeys(form)), *alone, *whole, *coded]


def asked(question: str) -> list[tuple[str, str]]:
    """Return each word of a question once, with its beginning, but those that say nothing; all if none says anything.

    Of a pair of characters the beginning is the pair, or the one that is no ending.
    """
    numbered, rest = numbers(_plain(_HUMP.sub("_", question)))
    words = list(dict.fromkeys((*numbered, *_words(rest))))
    return [one for one in words if not _says_nothing(one[0])] or words


def weight(count: int, total: int) -> float:
    """Return how much a word says that stands in so many of all pieces, at most 1.

    As in a comparison of vectors of words, its rarity counts twice: once for the question and once for the piece.
    """
    total += _FEW

    def rarity(count: int) -> float:
        return math.log(1 + (total - count + 0.5) / (count + 0.5))

    return min(1.0, (rarity(count) / rarity(1)) ** 2)


def _of_code(letters: str, space: str, digits: str) -> tuple[str, ...]:
    return (letters + digits,) if space else (letters, digits)


def _says_nothing(word: str) -> bool:
    return word in _EMPTY or (len(word) <= 2 and not _JOINING.isdisjoint(word))


def _words(plain: str) -> Iterator[tuple[str, str]]:
    if not plain.isascii():
        yield from ((one, one) for one in plain if unicodedata.category(one) == "So")  # 🚗
    for run, chunk in chunks(plain):
        if run:
            for pair in pairs(chunk) or [chunk]:
                yield pair, pair[0] if _INFLECTED.fullmatch(pair) else pair
            continue
        for word in "".join(one if _is_letter(one) else " " for one in chunk).split():
            yield word, _beginning(word)


def _is_letter(one: str) -> bool:
    return one.isalnum() or unicodedata.category(one)[0] == "M"


def _beginning(word: str) -> str:
    if len(word) < 4 or not word.isalpha():
        return word
    begin = (word[:-1] if word.endswith("s") else word)[:_BEGINNING]
    while len(begin) > _LEAST and begin[-1] in _ENDING_LETTERS:
        begin = begin[:-1]
    return begin[:-1] if len(begin) > _LEAST and begin[-1] == begin[-2] else begin
