"""Numbers and days as memory is found by them, however they are written.

"1,000" is 1000, a telephone number is found with and without the code of its country, and "4 March", "04.03." and
"2026-03-04" are one day.
"""

import re
from collections.abc import Iterator

# Names of months without accents: English, German, French, Spanish, Italian, Russian, and what is written short.
_NAMES = (
    "january february march april may june july august september october november december",
    "januar februar marz april mai juni juli august september oktober november dezember",
    "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "jan feb mrz apr mai jun jul aug sept okt nov dez",
)
_MONTHS = {name: month for names in _NAMES for month, name in enumerate(names.split(), 1)}
_MONTH = f"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
_DAY, _YEAR = r"(?P<day>\d{1,2})", r"(?P<year>\d{4})"
_DATES = [
    re.compile(rf"(?<![a-z\d]){written}(?![a-z\d])")
    for written in (
        rf"{_YEAR}([-/.])(?P<month>\d{{1,2}})\2{_DAY}",
        rf"{_DAY}([/.])(?P<month>\d{{1,2}})\2{_YEAR}",
        rf"(?:{_YEAR}[年년] ?)?(?P<month>\d{{1,2}})[月월] ?{_DAY}[日일]",
        rf"{_DAY}(?:st|nd|rd|th|\.)? (?:of |de )?{_MONTH}\.?(?:,? (?:de |del )?{_YEAR})?",
        rf"{_MONTH}\.? {_DAY}(?:st|nd|rd|th)?(?:,? {_YEAR})?",
    )
]
# A telephone number, thousands with spaces, or digits with what stands between them: 1.000,50 or 2.11.3 or 9:30.
_NUMBER = re.compile(
    r"(?<![a-z\d])v?((?:\+|0)\d[\d ()/-]{4,20}\d|\d{2,4}(?: \d{2,4}){2,4}|[1-9]\d{0,2}(?: \d{3})+(?! ?\d)"
    r"|\d+(?:[.,:/'’-]\d+)*)(?![a-z\d])"
)
# The digits by which a long number is found as well: a telephone number without what may be left out.
_LONG = 7
# The least digits of what is a number by itself between hyphens.
_PART = 3


def numbers(plain: str) -> tuple[list[tuple[str, str]], str]:
    """Return numbers and days, each as it is and by what others may leave out, and what is left of the text.

    plain: a text in small letters, without accents.
    """
    found: list[tuple[str, str]] = []
    if not re.search(r"\d", plain):
        return found, plain

    def day(date: re.Match[str]) -> str:
        month, number = date["month"], int(date["day"])
        which = _MONTHS.get(month) or int(month)
        if which > 12 >= number:  # the month stands first
            which, number = number, which
        if not (1 <= which <= 12 and 1 <= number <= 31):
            return date[0]
        short = f"d{which:02}{number:02}"
        found.append((f"d{date['year']}{short[1:]}" if date["year"] else short, short))
        return " "

    def number(written: re.Match[str]) -> str:
        found.extend(_forms(written[1]))
        return " "

    for written in _DATES:
        plain = written.sub(day, plain)
    return found, _NUMBER.sub(number, plain)


def _forms(written: str) -> Iterator[tuple[str, str]]:
    digits = "".join(filter(str.isdigit, written))
    yield digits, digits[-_LONG:]
    if "-" in written:
        parts = ("".join(filter(str.isdigit, part)) for part in written.split("-"))
        yield from ((part, part) for part in parts if len(part) >= _PART)
