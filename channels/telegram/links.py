"""Which addresses Telegram takes as the target of words: one that it does not take refuses the whole message.

The rules are those of tdlib, on which the Bot API server is built (`LinkManager`, `HttpUrl`), and a little stricter:
what is doubtful is written out behind its words instead.
"""

import re
from urllib.parse import urlsplit

_LONGEST = 2048
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
# A link to a person would call that person.
_OWN = re.compile(r"tg://(?!user(?:[/?#]|$))[a-z0-9_-]+(?:[/?#].*)?", re.IGNORECASE | re.ASCII)


def is_link(url: str) -> bool:
    """Whether it may stand in a `text_link`: http, https or tg, a host with a dot, and a port that there is."""
    if len(url) > _LONGEST or any(letter.isspace() for letter in url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme == "tg":
        return _OWN.fullmatch(url) is not None
    plain = parts.scheme in ("http", "https") and port != 0 and "@" not in parts.netloc
    return plain and _HOST.fullmatch(parts.hostname or "") is not None
