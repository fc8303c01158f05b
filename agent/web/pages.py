"""Makes text of what servers answer, in a process of its own, and keeps texts for some minutes."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agent import programs
from agent.web.fetch import Answer
from agent.web.reach import WebError

KEPT_SECONDS = 15 * 60.0
KEPT_CHARS = 4_000_000
READING_SECONDS = 30.0
MOST_BYTES = 8_000_000
_PROGRAM = Path(__file__).with_name("reader.py")


class Kept:
    """Texts of the last minutes, by what was asked for; the oldest make room."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._texts: dict[str, tuple[float, str]] = {}

    def get(self, asked: str) -> str:
        """Return a text that is not too old, or an empty one."""
        at, text = self._texts.get(asked, (0.0, ""))
        return text if self._now() - at < KEPT_SECONDS else ""

    def put(self, asked: str, text: str) -> None:
        """Keep a text."""
        self._texts.pop(asked, None)
        self._texts[asked] = (self._now(), text)
        while len(self._texts) > 1 and sum(len(kept) + 1000 for _, kept in self._texts.values()) > KEPT_CHARS:
            del self._texts[next(iter(self._texts))]


async def readable(answer: Answer, seconds: float = READING_SECONDS) -> str:
    """Make text of an answer, in a process that has no secrets and ends in any case. Raises WebError."""
    about = {"media": answer.media, "charset": answer.charset, "address": answer.address}
    command, body = (sys.executable, "-I", str(_PROGRAM)), json.dumps(about).encode() + b"\n" + answer.body
    try:
        code, text, _ = await programs.run(command, body, {}, "/", MOST_BYTES, seconds)
    except TimeoutError:
        raise WebError(f"What is there could not be read within {seconds:g} seconds.") from None
    except programs.TooMuch as error:
        raise WebError(f"What is there cannot be shown: {error}.") from None
    if code:
        raise WebError(f"What is there cannot be read as {answer.media or 'text'}.")
    return text.decode(errors="replace")
