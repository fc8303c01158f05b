"""Commands in the background of a real service: told of, ended with it, by /stop and after a crash, never forgotten."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.tools.background import Running
from tests.agent.tools.calls import soon
from tests.agent.tools.test_exec import Sight
from tests.service import Hark, running, session_of
from tests.standins.script import Call
from tests.stored import Stored

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by descriptor")

EXEC: dict[str, Any] = {"tools": {"exec": {"security": "full"}}}
WAITS = "read -r line < pipe"


@pytest.fixture(autouse=True)
def _no_early_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)


async def begin(
    hark: Hark, command: str = f"setsid sh -c 'read -r line < silent' & {WAITS}; echo got $line; exit 3"
) -> Sight:
    """Let the model begin a command in the background, and end its turn."""
    for name in ("pipe", "silent"):
        os.mkfifo(workspace(hark) / name)
    hark.model.add(Call("exec", {"command": command, "background": True}))
    hark.model.add("It runs.")
    assert (await hark.say("go")).texts == ["It runs."]
    return Sight(running_one(hark).process.pid)


def workspace(hark: Hark) -> Path:
    return hark.state.parent / "workspace"


def running_one(hark: Hark, session: str = session_of("1")) -> Running:
    (one,) = hark.service.parts.background.of(session)
    return one


async def let_go(hark: Hark) -> None:
    await asyncio.to_thread((workspace(hark) / "pipe").write_text, "on\n")


async def asked(hark: Hark, text: str = "and?") -> str:
    """What the model is told with the next message."""
    await hark.say(text, answers=["I see."])
    return hark.model.requests[-1].messages[-1].text


async def test_its_end_is_told_with_the_next_message_and_its_process_forgotten(tmp_path: Path) -> None:
    async with running(tmp_path, config=EXEC) as hark:
        await begin(hark)
        one = running_one(hark)
        assert hark.stored.calls("state", "pid", "pid_started") == [("done", one.process.pid, one.started)]
        assert hark.model.requests[-1].messages[-1].tool_results[0].text.startswith("[running]\nIn the background as ")
        await let_go(hark)
        await hark.until(lambda: hark.stored.calls("pid") == [(None,)], "the end")
        told = await asked(hark)
        assert f"Background command {one.name} `" in told
        assert "is over: exit code 3. Last output: got on" in told
        assert "is over" not in await asked(hark), "it was told before"


async def test_its_end_is_looked_at_by_a_beat_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=EXEC | {"heartbeat": {"every": "30m"}}) as hark:
        (workspace(hark) / "HEARTBEAT.md").write_text("look around\n")
        await begin(hark)
        hark.model.add("The build has failed.")
        await let_go(hark)
        assert (await hark.until_texts(2))[-1] == "The build has failed."
        assert "is over: exit code 3" in hark.model.requests[-1].messages[-1].text
        assert hark.stored.firings("cause", "outcome") == [("wake", "said")]


async def test_what_was_polled_to_its_end_is_not_told(tmp_path: Path) -> None:
    async with running(tmp_path, config=EXEC) as hark:
        await begin(hark, f"{WAITS}; exit 3")
        one = running_one(hark)
        hark.model.add(Call("process", {"action": "poll", "id": one.name, "wait_seconds": 60}))
        hark.model.add("It is over.")
        await hark.write("wait for it")
        await soon(lambda: one.readers)
        await let_go(hark)
        await hark.until_texts(2)
        assert hark.model.requests[-1].messages[-1].tool_results[0].text == "[exit code 3]\n[no new output]"
        await hark.until(lambda: hark.stored.calls("pid") == [(None,), (None,)], "the end")
        assert "is over" not in await asked(hark)


@pytest.mark.parametrize(("command", "answer"), [("/stop", "Stopped."), ("/new", "New conversation. What was running")])
async def test_who_says_stop_ends_them_too(tmp_path: Path, command: str, answer: str) -> None:
    async with running(tmp_path, config=EXEC | {"heartbeat": {"every": "30m"}}) as hark:
        (workspace(hark) / "HEARTBEAT.md").write_text("look around\n")
        process = await begin(hark)
        await hark.write(command)
        assert (await hark.until_texts(2))[-1].startswith(answer)
        await hark.until(lambda: hark.stored.calls("pid") == [(None,)], "the end")
        assert process.ended(0)
        assert "ended because a person said stop" in await asked(hark)
        assert hark.stored.firings("cause") == [], "who says stop wants no beat"
        assert not hark.service.parts.dispatcher.beats._wanted


async def test_they_end_with_the_service_which_says_so_when_it_is_back(tmp_path: Path) -> None:
    async with running(tmp_path, config=EXEC) as hark:
        process = await begin(hark)
        assert not process.ended(0)
    assert process.ended(0)
    assert hark.stored.calls("pid") == [(None,)]
    async with running(tmp_path, config=EXEC) as hark:
        assert "ended because the service was stopped" in await asked(hark)


async def test_what_a_crash_left_is_ended_at_the_next_start_and_told(tmp_path: Path) -> None:
    home, after = tmp_path / "before", tmp_path / "after"
    async with running(home, config=EXEC) as hark:
        process = await begin(hark)
        shutil.copytree(hark.state, after / "state", ignore=shutil.ignore_patterns("lock"))
        assert not process.ended(0)
        async with running(after, config=EXEC) as next_start:
            assert process.ended()
            assert next_start.stored.calls("state", "pid") == [("done", None)]
            told = await asked(next_start)
            assert "Background command `setsid sh -c" in told
            assert "was ended, because the service broke off" in told
            assert "was ended" not in await asked(next_start)


async def test_a_strangers_process_is_left_alone(tmp_path: Path) -> None:
    """The pid is somebody else's meanwhile: its start time is another."""
    home, after = tmp_path / "before", tmp_path / "after"
    async with running(home, config=EXEC) as hark:
        process = await begin(hark)
        shutil.copytree(hark.state, after / "state", ignore=shutil.ignore_patterns("lock"))
        Stored(after / "state").spoil("UPDATE tool_call SET pid_started='0@elsewhere'")
        async with running(after, config=EXEC) as next_start:
            assert next_start.stored.calls("pid") == [(None,)]
            assert not process.ended(0)
