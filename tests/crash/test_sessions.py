"""The service is killed while it forgets somebody, and while it fills the search index; the next start goes on."""

import json
import signal
from pathlib import Path

import pytest

from tests.bot.sessions.test_forgetting import PERSON, WHO, Canaries
from tests.crash import forgetting
from tests.forked import CONTEXT
from tests.service import running
from tests.watch import PATIENCE


def killed(home: Path, what: str, at: int, when: str) -> None:
    """Run the service until it is killed; the person who talks to it is PERSON."""
    process = CONTEXT.Process(target=forgetting.main, args=(str(home), what, at, when, PERSON))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL


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
