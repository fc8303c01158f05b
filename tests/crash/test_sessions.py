"""The service is killed while it forgets somebody, and while it fills the search index; the next start goes on."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bot.sessions.test_forgetting import PERSON, WHO, Canaries
from tests.forked import ENVIRON, ROOT
from tests.service import running

# Talks, and is killed at a commit of the forgetting, before or after it; or behind so many lines that the index reads.
PROGRAM = """
import asyncio, itertools, os, signal, sys
from pathlib import Path
from bot.store import search
from tests.service import running
from tests.standins.script import Call

home, what, at, when, person = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *sys.argv[4:]
armed, commits, lines = [], itertools.count(1), itertools.count(1)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def probe(now):
    if armed and now == when and next(commits) == at:
        die()

read = search.indexed
def indexed(text):
    if next(lines) == at:
        die()
    return read(text)

async def main():
    async with running(home, probe=probe) as hark:
        for n in range(3):
            hark.model.add(f"answer canary-{n}-zqx")
            await hark.say(f"question canary-{n}-zqx", person)
        hark.model.add(Call("write", {"path": "memory/notes.md", "content": "canary-3-zqx"}), "noted")
        if what == "forget":
            await hark.say("remember it", person)
        if what == "index":
            search.indexed = indexed
            await hark.service.parts.sessions.search("canary")
        armed.append(True)
        await hark.service.parts.forget.forget_person(f"telegram:{person}")
    raise SystemExit("it was to be killed")

asyncio.run(main())
"""


def killed(home: Path, *arguments: object) -> None:
    """Run the program until it is killed; the person who talks in it is PERSON."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home), *map(str, arguments), PERSON],
        env={**ENVIRON, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", [1, 2, 3])
async def test_forgetting_goes_on_after_a_kill(tmp_path: Path, commit: int, when: str) -> None:
    canary = Canaries()
    canary.planted += [f"canary-{n}-zqx" for n in range(4)]
    killed(tmp_path, "forget", commit, when)
    async with running(tmp_path) as hark:
        if (commit, when) == (1, "before"):  # it never began
            assert len(hark.stored.turns(state="done")) == 4
            assert any("notes.md" in file for file in canary.left(tmp_path))
            await hark.service.parts.forget.forget_person(WHO)
        assert canary.left(tmp_path) == {}
        assert PERSON not in json.dumps(hark.stored.everything(), default=str)


async def test_the_index_goes_on_after_a_kill(tmp_path: Path) -> None:
    killed(tmp_path, "index", 4, "never")
    async with running(tmp_path) as hark:
        found = await hark.service.parts.sessions.search("canary")
        assert sorted(hit.text.split("] ")[-1] for hit in found) == sorted(
            f"{said} canary-{n}-zqx" for n in range(3) for said in ("answer", "question")
        )
