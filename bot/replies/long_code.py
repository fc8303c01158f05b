"""Code that needs too many messages: people see its first lines, and the whole of it comes as a file."""

import re
from collections.abc import Callable

from channels.outgoing import Code

# The most lines and characters that are shown, and the fewest characters, below which it is not tried to be shorter.
_LINES, _CHARS, _FEWEST = 15, 1500, 40
# A file that is named behind the language, as in ```` ```py title="src/app.py" ````.
_NAMED = re.compile(r"(?<![\w.-])\w[\w.-]{0,60}\.[A-Za-z]\w{0,7}(?![\w./-])", re.ASCII)
_LANGUAGE = re.compile(r"[A-Za-z0-9+#]+")
_ENDINGS = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "bash": "sh",
    "shell": "sh",
    "zsh": "sh",
    "rust": "rs",
    "ruby": "rb",
    "kotlin": "kt",
    "csharp": "cs",
    "c#": "cs",
    "c++": "cpp",
    "markdown": "md",
    "yaml": "yml",
    "perl": "pl",
    "haskell": "hs",
    "powershell": "ps1",
    "text": "txt",
    "plaintext": "txt",
    "golang": "go",
}
# Languages of longer names whose files end like the language.
_SAME = ("swift", "scala", "proto", "svelte")


def name_of(code: Code, number: int) -> str:
    """Return the name that people see of the file. number: of the files of code of one answer, from 1."""
    if named := _NAMED.search(code.info):
        return named[0]
    found = _LANGUAGE.match(code.info)
    language = found[0].lower() if found else "txt"
    same = language in _SAME or (len(language) <= 4 and language.isalnum())
    return f"code-{number}.{_ENDINGS.get(language, language if same else 'txt')}"


def first_lines(code: Code, name: str, messages: Callable[[str], int]) -> str:
    """Return the Markdown of one message with the first lines. messages: how many a text needs on the platform."""
    lines = code.content.removesuffix("\n").split("\n")
    said = f"(The whole code, {len(lines):,} lines, is in `{name}`.)" if len(lines) > 1 else f"(It is in `{name}`.)"
    shown, most = "\n".join(lines[:_LINES]), _CHARS
    while True:
        part = shown if len(shown) <= most else f"{shown[:most]}…"
        text = f"{code.showing(part)}\n{said}"
        if most <= _FEWEST or messages(text) <= 1:
            return text
        most = most * 3 // 4
