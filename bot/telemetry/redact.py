"""Keeps secrets out of what is written down and shown: known ones wherever they stand, and what URLs may hold."""

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

MASK = "[secret]"
STARS = "**********"
# Shorter strings are no secrets worth the name, and would blank out ordinary words.
_SHORTEST = 6
_LONG = re.compile(r"(?=[\w:+=-]*\d)[\w:+=-]{24,}")
_USER_INFO = re.compile(r"//[^/@\s]+@")
_NAMED = re.compile(
    r"(?i)((?:token|secret|passw\w*|pwd|key|authorization)[\s\"':=]{1,4}(?:bearer |basic )?|bearer )[^\s\"']+"
)
_LOOKS_SECRET = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w:.~+=%-]{16,}")


class Redactor:
    """Replaces secrets in texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # longest first: one secret may be a part of another
        self._secrets = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """The text without any secret in it."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def withheld(self, text: str) -> int:
        """How many characters at the end of a piece of a text may be the beginning of a secret that goes on."""
        starts = (n for secret in self._secrets for n in range(1, len(secret)) if text.endswith(secret[:n]))
        whole = len(text) - max(starts, default=0)
        parts_one = self.clean(text) != self.clean(text[:whole]) + text[whole:]  # which ends as it begins, or another
        return 0 if parts_one else len(text) - whole


def mask_url(url: str) -> tuple[str, list[str]]:
    """A URL with stars for what may be a secret, and what that was; a text that is none comes back as it is.

    That is: user and password, the values of the query, the fragment, and pieces of the path that look like keys.
    """
    found: list[str] = []

    def hide(text: str) -> str:
        found.extend({text, unquote(text)} - {""})
        return STARS if text else ""

    if "://" not in url:
        return url, found
    try:
        parts = urlsplit(url)
    except ValueError:
        return hide(url), found
    user_info, at, host = parts.netloc.rpartition("@")
    user, colon, password = user_info.partition(":")
    shown = parts._replace(
        netloc=(hide(password if colon else user) + at if at else "") + host,
        path="/".join(hide(piece) if _LOOKS_SECRET.fullmatch(piece) else piece for piece in parts.path.split("/")),
        query="&".join(
            f"{name}={hide(value)}" if is_pair else hide(name)
            for name, is_pair, value in (piece.partition("=") for piece in parts.query.split("&"))
        ),
        fragment=hide(parts.fragment),
    )
    return shown.geturl(), found


def mask_text(text: str) -> str:
    """A text that is to be shown, with dots for what may be a secret by its look, its name or its place in a URL."""
    return _LONG.sub("...", _NAMED.sub(r"\1...", _USER_INFO.sub("//...@", text)))
