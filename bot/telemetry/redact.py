"""Keeps secrets out of what is written down: every known secret is replaced wherever it stands in a log line."""

from collections.abc import Iterable

MASK = "[secret]"
_SHORTEST = 6
"""Shorter strings are no secrets worth the name, and would blank out ordinary words."""


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
