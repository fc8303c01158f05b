"""Puts what the web says between two lines that it cannot imitate, and finds the addresses in it."""

import re

from agent.fences import harmless

_IN_QUOTES = str.maketrans({'"': "%22", "<": "%3C", ">": "%3E", "\n": "%0A"})
# With parentheses only in pairs, so that a link of Markdown ends where its address does.
_ADDRESS = re.compile(r"https?://(?:[^\s<>\"`()\[\]{}‹›]|\([^\s<>\"`()\[\]]*\))+", re.IGNORECASE)


def fenced(tag: str, text: str, about: str = "") -> str:
    """Return a text of the web in its fence. about: an address that the first line names."""
    attribute = f' address="{about.translate(_IN_QUOTES)}"' if about else ""
    inside = harmless(text).strip() or "(no text)"
    return f"<{tag}{attribute}>\n{inside}\n</{tag}>"


def addresses(text: str) -> frozenset[str]:
    """Return the addresses in a result of `web_fetch` or `web_search`, as a call that follows one would write it."""
    return frozenset(found.rstrip(".,;:!?'*") for found in _ADDRESS.findall(text))
