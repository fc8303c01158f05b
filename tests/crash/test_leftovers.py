"""A command that the death of the service leaves running is ended at the next start, before the model goes on."""

import asyncio
import contextlib
import multiprocessing
import os
import select
import signal
from collections.abc import Callable
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

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by descriptor")


async def test_a_command_does_not_outlive_a_crash_and_the_next_start(fresh: Callable[[], Path]) -> None:
    home = fresh()
    says, silent = home / "workspace" / "says", home / "workspace" / "silent"
    says.parent.mkdir()
    os.mkfifo(says)
    os.mkfifo(silent)

    def start() -> Any:
        urls = (telegram.base_url, telegram.base_file_url, model.base_url)
        process = CONTEXT.Process(target=child.main, args=(str(home), telegram.token, *urls, (str(ALICE.id),)))
        process.start()
        return process

    async with TelegramServer() as telegram, OpenAIServer(keys=("sk-test-key",), models=("gpt-test",)) as model:
        try:
            first = start()
            model.add(Call("exec", {"command": "sh -c 'echo $$ > says; read -r line < silent'"}))
            telegram.write("wait for ever")
            command = os.pidfd_open(int(await line_of(says)))
            first.kill()
            await ended(first)
            assert not over(command), "a crash ends nothing by itself"
            model.add("It was cut.")
            second = start()
            await telegram.wait_text("It was cut.", seconds=20)
            assert over(command, 5)
            second.terminate()
            await ended(second)
            assert (first.exitcode, second.exitcode) == (-signal.SIGKILL, 0)
        finally:
            for left in multiprocessing.active_children():
                left.kill()
            with contextlib.suppress(OSError):  # whoever reads there is let go
                os.close(os.open(silent, os.O_WRONLY | os.O_NONBLOCK))
        assert INTERRUPTED in str(model.requests[-1].messages)
        model.check()
    os.close(command)


def over(process: int, seconds: float = 0) -> bool:
    """Whether a process has ended, or does within so many seconds, by its descriptor."""
    return bool(select.select([process], [], [], seconds)[0])


async def line_of(pipe: Path) -> str:
    """What somebody writes into a named pipe, once it is there."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        await readable(descriptor)
        return os.read(descriptor, 100).decode()
    finally:
        os.close(descriptor)


async def ended(process: Any) -> None:
    """Wait for a process without blocking the loop."""
    await readable(process.sentinel)
    process.join()


async def readable(descriptor: int) -> None:
    """Return when there is something to read."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, event.set)
    try:
        async with asyncio.timeout(20):
            await event.wait()
    finally:
        loop.remove_reader(descriptor)
