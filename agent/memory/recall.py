"""What is remembered about a message, as it stands at the end of the requests of its turn.

It is not stored: the next turn has what is remembered about its own message. All before it stays as it was, so that
the provider finds that in its cache.
"""

from agent.fences import harmless
from agent.memory.base import Hit, Recollection
from agent.message import Mark, Message, Text

# The least score of what is shown, the most hits, and the most characters of all of them and of one.
LEAST, MOST, CHARACTERS, SHOWN = 0.3, 6, 3000, 600
_HEAD = "(from your memory, about the newest message; it may be old or beside the point:)"


def beside(found: Recollection) -> Message | None:
    """Return the block that rides beside a message; None: nothing that is remembered has to do with it."""
    lines: list[str] = []
    left = CHARACTERS
    for line in (_shown(hit) for hit in found.hits[:MOST] if hit.score >= LEAST):
        left -= len(line)
        if left < 0:
            break
        lines.append(line)
    if not lines:
        return None
    block = "\n".join((_HEAD, "<memory>", *lines, "</memory>"))
    return Message("user", (Text(block),), mark=Mark.RECALLED, origins=found.origins)


def _shown(hit: Hit) -> str:
    return harmless(hit.line(SHOWN))
