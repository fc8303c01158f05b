"""A command that outlives the service: a real process, a real SIGKILL, seen from outside alone.

The command tells its process id through a pipe, so that nothing is polled and nothing is slept.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.context import INTERRUPTED
from tests.crash import child
from tests.forked import CONTEXT
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Call
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE
from tests.watch import PATIENCE

Fresh = Callable[[], Path]


class Services:
    """Starts a service on one directory again and again, and kills it."""

    def __init__(self, home: Path, telegram: TelegramServer, model: OpenAIServer) -> None:
        self._arguments = (
            *(str(home), telegram.token, telegram.base_url, telegram.base_file_url, model.base_url),
            (str(ALICE.id),),
        )
        self._process: Any = None

    def start(self) -> None:
        self._process = CONTEXT.Process(target=child.main, args=self._arguments)
        self._process.start()

    async def end(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)
        await asyncio.to_thread(self._process.join, PATIENCE)
        assert self._process.exitcode == (0 if number == signal.SIGTERM else -number)


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and was not asked for does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(shown.strip()) and not shown.startswith("Z")


@contextlib.contextmanager
def pipe(path: Path) -> Iterator[Callable[[], int]]:
    """A named pipe, and how to wait for the process id that comes through it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    pids: list[int] = []

    def read() -> int:
        pids.append(int(path.read_text()))
        return pids[-1]

    try:
        yield read
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


@pytest.mark.parametrize("more_kills", [0, 1])
async def test_a_command_that_a_crash_leaves_behind_is_ended(fresh: Fresh, more_kills: int) -> None:
    """more_kills: of services that had just begun to repair."""
    home = fresh()
    with pipe(home / "workspace" / "pid") as began:
        async with TelegramServer() as telegram, OpenAIServer(keys=("sk-test-key",), models=("gpt-test",)) as model:
            services = Services(home, telegram, model)
            model.add(Call("exec", {"command": "sh -c 'echo $$ > pid; exec sleep 600'"}))
            services.start()
            try:
                telegram.write("run it")
                async with asyncio.timeout(PATIENCE):
                    pid = await asyncio.to_thread(began)
                await services.end(signal.SIGKILL)
                assert lives(pid), "nobody was there to end it"
                for _ in range(more_kills):
                    services.start()
                    await services.end(signal.SIGKILL)
                model.add("Nobody knows.")
                services.start()
                told = await model.wait_for(2, PATIENCE)
                assert not lives(pid), "it ends before anything else is done"
                await telegram.wait_text("Nobody knows.", PATIENCE)
                await services.end(signal.SIGTERM)
            finally:
                for left in multiprocessing.active_children():
                    left.kill()
            results = [message["content"] for message in told.messages if message["role"] == "tool"]
            assert results == [f"Error: {INTERRUPTED}"]
