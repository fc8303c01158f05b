"""Text of others made safe for a terminal: it moves no cursor, changes no title and does not read backwards."""

import re

# Everything of C0 and C1 but tab and line feed, and the marks that change the direction of what follows.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """Text without control characters; what no encoding can carry becomes the replacement character."""
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))
