"""Variables: those that commands are given, and those that any command may be given."""

import re
from collections.abc import Mapping

# Nobody sits before a terminal: programs show all of their output at once, and git asks for no password.
SAFE_ENVIRONMENT: Mapping[str, str] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
}

# In other encodings than UTF-8 a shell reads other words than this package does.
_HARMLESS = re.compile(
    r"(LANG|LC_[A-Z]+)=(C|POSIX|\w+\.(UTF-8|utf8))?|TZ=(\w[\w/]*)?"
    r"|(COLUMNS|LINES|NO_COLOR|CLICOLOR(_FORCE)?|FORCE_COLOR|CI)=\w*"
)


def is_harmless_variable(name: str, value: str) -> bool:
    """Whether any command may be given this variable: language, time zone, width, colours."""
    return _HARMLESS.fullmatch(f"{name}={value}") is not None


def a_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())
