"""Marks what a run in the background writes into memory files, so that it never passes for a person's word.

`agent/prompt/system.md` says what the mark means. Called by `write`.
"""

import re
from collections import Counter

MARK = "<!-- background -->"

_FENCE = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})(.*)")
_DRAWN = re.compile(r"[\s\-=*_|:`~]*")  # blank lines, rules, and fences without a word


def is_memory(path: tuple[str, ...]) -> bool:
    """Whether a path of the workspace, by its parts, is a memory file: MEMORY.md, or Markdown in the folder memory.

    The case of letters does not count, as on some file systems.
    """
    names = [part.casefold() for part in path]
    return names == ["memory.md"] or (names[:1] == ["memory"] and names[-1].endswith(".md"))


def marked(old: bytes, new: bytes) -> bytes:
    """The file `new` with the mark behind each line that `old` does not have; in a code block, behind its first line.

    Lines that moved are not new. One with a mark keeps it; one that lost it is new.
    """
    known = Counter(line.strip() for line in _lines(old))
    lines = _lines(new)
    fence, first = "", 0
    for number, line in enumerate(lines):
        found = _FENCE.fullmatch(line.rstrip())
        marks = first if fence else number
        if found and not fence:
            fence, first = found[1], number
        elif found and found[1].startswith(fence) and not found[2]:
            fence = ""
        if known[line.strip()]:
            known[line.strip()] -= 1
        elif not _DRAWN.fullmatch(line):
            words = lines[marks].rstrip()
            if not words.endswith(MARK):
                lines[marks] = f"{words} {MARK}{lines[marks][len(words) :]}"
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _lines(text: bytes) -> list[str]:
    return text.decode("utf-8", "surrogateescape").split("\n")
