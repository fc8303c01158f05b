"""A service that is killed while it forgets somebody, or while the index reads; it runs in a process of its own."""

import asyncio
import itertools
import os
import signal
from pathlib import Path

from bot.store import search
from tests.service import running
from tests.standins.script import Call


def main(home: str, what: str, at: int, when: str, person: str) -> None:
    """Talk, and be killed at commit `at` of the forgetting, before or after it; or once the index has read `at` lines.

    what: "forget" or "index".
    """
    asyncio.run(_live(Path(home), what, at, when, person))
    raise SystemExit("it was to be killed")


async def _live(home: Path, what: str, at: int, when: str, person: str) -> None:
    armed, commits, lines = list[bool](), itertools.count(1), itertools.count(1)
    read = search.indexed

    def probe(now: object) -> None:
        if armed and now == when and next(commits) == at:
            _die()

    def indexed(text: str) -> str:
        if next(lines) == at:
            _die()
        return read(text)

    async with running(home, probe=probe) as hark:
        for number in range(3):
            hark.model.add(f"answer canary-{number}-zqx")
            await hark.say(f"question canary-{number}-zqx", person)
        hark.model.add(Call("write", {"path": "memory/notes.md", "content": "canary-3-zqx"}), "noted")
        if what == "forget":
            await hark.say("remember it", person)
        if what == "index":
            search.indexed = indexed
            await hark.service.parts.sessions.search("canary")
        armed.append(True)
        await hark.service.parts.forget.forget_person(f"telegram:{person}")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
