"""The words by which memory is found: without case and accents, each with its beginning, so that endings matter less.

What is written without spaces becomes overlapping pairs of characters, as in the index of transcripts.
"""

import unicodedata
from collections.abc import Iterator

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
)
_EMPTY = frozenset(unicodedata.normalize("NFKC", word) for word in _EMPTY_WORDS.split())
# Characters of Chinese and Japanese that only join words; a pair with one of them says nothing.
_JOINING = frozenset(
    "的了吗呢是我你他她们這这那哪什么麼怎在有就也都很吧啊呀和与與谁誰何时時候はがをにでともかのへよねすまたい"
)
# Letters of a word's beginning.
_BEGINNING = 5


def indexed(text: str) -> list[str]:
    """Return all that a text is found by, repeated as often as it stands there."""
    alone = (one for run, chunk in chunks(_plain(text)) if run and len(chunk) > 1 for one in chunk)
    return [*(form for forms in _words(text) for form in dict.fromkeys(forms)), *alone]


def asked(question: str) -> list[tuple[str, str]]:
    """Return each word of a question once, with its beginning, but those that say nothing; all if none says anything.

    Of a pair of characters the beginning is the pair.
    """
    words = list(dict.fromkeys(_words(question)))
    return [one for one in words if not _says_nothing(one[0])] or words


def _says_nothing(word: str) -> bool:
    return word in _EMPTY or (len(word) <= 2 and not _JOINING.isdisjoint(word))


def _words(text: str) -> Iterator[tuple[str, str]]:
    for run, chunk in chunks(_plain(text)):
        if run:
            for pair in pairs(chunk) or [chunk]:
                yield pair, pair
            continue
        for word in "".join(one if _is_letter(one) else " " for one in chunk).split():
            yield word, _beginning(word)


def _plain(text: str) -> str:
    """Return a text without accents and case."""
    if text.isascii():
        return text.casefold()
    taken_apart = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join([one for one in taken_apart if not unicodedata.combining(one) or one in _VOICED])
    return unicodedata.normalize("NFC", kept)


# The marks by which Japanese syllables differ.
_VOICED = "\u3099\u309a"


def _is_letter(one: str) -> bool:
    return one.isalnum() or unicodedata.category(one)[0] == "M"


def _beginning(word: str) -> str:
    if len(word) < 4 or not word.isalpha():
        return word
    return (word[:-1] if word.endswith("s") else word)[:_BEGINNING]
