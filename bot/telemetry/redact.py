"""Keeps secrets out of what is written down and shown: known ones wherever they stand, what has the look of one, and
what URLs may hold.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from bot.telemetry import shapes

MASK = "[secret]"
STARS = "**********"
# Shorter strings are no secrets worth the name, and would blank out ordinary words.
_SHORTEST = 6
_LONG = re.compile(r"(?<![\w:+=-])(?=[\w:+=-]*\d)[\w:+=-]{24,}")
_USER_INFO = re.compile(r"//[^/@\s]+@")
_NAMED = re.compile(
    r"(?i)((?:token|secret|passw\w{0,64}|pwd|key|authorization)[\s\"':=]{1,4}(?:bearer |basic )?|bearer )[^\s\"']+"
)
_LOOKS_SECRET = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w:.~+=%-]{16,}")


# Names of variables whose values are secrets.
SECRET_NAME = re.compile(r"(?:KEYS?|TOKENS?|SECRETS?|PASSWORD|PASSWD|CREDENTIALS)$", re.IGNORECASE)


# Variables that programs of the service's own get, and no others.
_FEW = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")


def few(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program of the service's own that needs none: where it finds itself and its language."""
    return {name: environ[name] for name in _FEW if name in environ}


def keyless(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what has the name or the look of a secret, or holds one in a URL."""
    return {
        name: value
        for name, value in environ.items()
        if not SECRET_NAME.search(name) and mask_url(shapes.replaced(value, MASK))[0] == value
    }


class Redactor:
    """Replaces secrets in texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets: Sequence[str] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Replace these secrets as well from now on."""
        known = [secret for secret in secrets if len(secret) >= _SHORTEST]
        in_json = [
            json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for secret in known for ascii_only in (True, False)
        ]
        # longest first: one secret may be a part of another
        self._secrets = sorted({*self._secrets, *known, *in_json}, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """The text without any secret in it."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return shapes.replaced(text, MASK)

    def withheld(self, text: str) -> int:
        """How many characters at the end of a piece of a text may be the beginning of a secret that goes on."""
        begun = 0
        for secret in self._secrets:
            for n in range(min(len(secret) - 1, len(text)), begun, -1):
                if text.endswith(secret[:n]):
                    begun = n
                    break
        if begun and self._parts(text, len(text) - begun):
            begun = 0  # it ends as it begins, or as another does
        begun = max(begun, shapes.unfinished(text))
        return len(text) if begun and self._parts(text, len(text) - begun) else begun

    def _parts(self, text: str, at: int) -> bool:
        """Whether to cut a text there would cut a secret in two."""
        return self.clean(text) != self.clean(text[:at]) + self.clean(text[at:])


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
    text = shapes.replaced(text, "...")
    return _LONG.sub("...", _NAMED.sub(r"\1...", _USER_INFO.sub("//...@", text)))
