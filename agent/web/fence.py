"""Puts what the web says between two lines that it cannot imitate, and finds the addresses in it."""

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)
_BREAKS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
# The tags with which the service fences what others wrote, here and in messages.
_NAMES = "web-page web-results replied-to forwarded edited sent event overheard context file"
# Signs that some languages and emoji need, and that cannot be seen elsewhere.
_UNSEEN = "[\u200c\u200d\ufe00-\ufe0f]*"
_TAGS = re.compile(
    rf"<(?=(?:\s|/|\u200c|\u200d|[\ufe00-\ufe0f])*(?:{'|'.join(map(_UNSEEN.join, _NAMES.split()))})\b)", re.IGNORECASE
)
_IN_QUOTES = str.maketrans({'"': "%22", "<": "%3C", ">": "%3E", "\n": "%0A"})
# With parentheses only in pairs, so that a link of Markdown ends where its address does.
_ADDRESS = re.compile(r"https?://(?:[^\s<>\"`()\[\]{}‹›]|\([^\s<>\"`()\[\]]*\))+", re.IGNORECASE)


def fenced(tag: str, text: str, about: str = "") -> str:
    """Return a text of the web in its fence. about: an address that the first line names."""
    attribute = f' address="{about.translate(_IN_QUOTES)}"' if about else ""
    inside = _TAGS.sub("‹", _HIDDEN.sub("", _BREAKS.sub("\n", text))).strip() or "(no text)"
    return f"<{tag}{attribute}>\n{inside}\n</{tag}>"


def addresses(text: str) -> frozenset[str]:
    """Return the addresses in a result of `web_fetch` or `web_search`, as a call that follows one would write it."""
    return frozenset(found.rstrip(".,;:!?'*") for found in _ADDRESS.findall(text))
