"""Processes that outlive the service are ended at its next start, whatever became of their turns."""

import os
import select
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.events import ToolExecutionUpdate
from tests.scripted_model import Call
from tests.service import Hark, running, session_of
from tests.watch import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by descriptor")

# On the host, since a sandbox ends what it holds with its own processes.
EXEC: dict[str, Any] = {"tools": {"exec": {"allowlist": ["/**"]}}}


async def begin(hark: Hark) -> int:
    """Let the model call a command that does not end; returns a descriptor of what that started in its own session."""
    os.mkfifo(hark.state.parent / "workspace" / "pipe")
    hark.model.add(
        Call("exec", {"command": "setsid -f sh -c 'echo $$; read -r line < pipe'; sh -c 'read -r line < pipe'"})
    )
    await hark.write("go")
    await hark.until(lambda: told(hark), "the command")
    return os.pidfd_open(int(told(hark)))


def told(hark: Hark) -> str:
    return "".join(event.text for event in hark.events if isinstance(event, ToolExecutionUpdate))


def ended(process: int, seconds: float = PATIENCE) -> bool:
    return bool(select.select([process], [], [], seconds)[0])


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped, not cancelled yet"])
async def test_what_a_crash_left_is_ended_at_the_next_start(tmp_path: Path, stopped: bool) -> None:
    home, after = tmp_path / "before", tmp_path / "after"
    async with running(home, config=EXEC) as hark:
        process = await begin(hark)
        if stopped:  # the transaction of /stop, and the service dies before it has cancelled the run
            ((turn_id,),) = hark.stored.turns("turn_id")
            assert await hark.service.parts.store.stops.abort(turn_id)
        shutil.copytree(hark.state, after / "state", ignore=shutil.ignore_patterns("lock"))
        assert not ended(process, 0)
        async with running(after, config=EXEC) as next_start:
            assert ended(process)
            if not stopped:
                next_start.model.add("done")
                await next_start.until(lambda: next_start.ends(session_of("1")), "the end")
            assert next_start.stored.calls("state", "pid") == [("cut", None)]
        hark.model.add("done")  # the first service lives on, and may yet ask
        hark.model.tolerate("unused")
    os.close(process)


async def test_a_call_that_has_ended_leaves_no_process_to_look_for(tmp_path: Path) -> None:
    async with running(tmp_path, config=EXEC) as hark:
        hark.model.add(Call("exec", {"command": "true"}), "done")
        await hark.say("go")
        assert hark.stored.calls("state", "pid") == [("done", None)]
