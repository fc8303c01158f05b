"""`hark` on a disk without room: it waits red and goes on by itself, or says in a sentence why it cannot.

No file of the process can grow beyond a limit, as on a full disk; the limit is raised from outside when there is room.
"""

import asyncio
import contextlib
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bot.gateway.unix_socket import SOCKET
from tests import forked
from tests.bot.cli.terminal_emulator import PATIENCE, Program
from tests.bot.cli.test_commands import NO_OLLAMA, hark
from tests.forked import ENVIRON, Begun, Done

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits cannot be raised from outside")

FULL = [0, 32]
"""Blocks of 512 bytes: room for nothing, and for files but not for the store."""
WAITS = "the service waits with its start"


def give_room(pid: int) -> None:
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


async def begin(folder: Path, blocks: int, *arguments: str) -> Begun:
    (folder / "config.yaml").write_text(NO_OLLAMA + "gateway: {port: 0}\n")
    return await forked.begin(folder, *arguments, piped=True, blocks=blocks)


@contextlib.asynccontextmanager
async def waiting(folder: Path, blocks: int) -> AsyncIterator[tuple[Begun, httpx2.AsyncClient]]:
    """`hark run` that waits with its start, and a client of its socket."""
    command = await begin(folder, blocks, "run")
    try:
        await said(command, WAITS)
        transport = httpx2.AsyncHTTPTransport(uds=str(folder / "state" / SOCKET))
        async with httpx2.AsyncClient(base_url="http://hark", transport=transport, timeout=PATIENCE) as client:
            yield command, client
    finally:
        if command.running:
            command.send_signal(signal.SIGKILL)
            await command.finish()


async def said(command: Begun, words: str) -> str:
    """The next line of the log with these words in it."""
    async with asyncio.timeout(PATIENCE):
        while line := (await command.stderr.readline()).decode():
            if words in line:
                return line
    raise AssertionError(f"it ended without a word of {words!r}: {await command.finish()}")


async def get(client: httpx2.AsyncClient, path: str) -> tuple[int, dict[str, Any]]:
    response = await client.get(path)
    return response.status_code, response.json()


@pytest.mark.parametrize("blocks", FULL)
async def test_the_service_waits_red_and_goes_on_by_itself(tmp_path: Path, blocks: int) -> None:
    async with waiting(tmp_path, blocks) as (command, client):
        assert (await get(client, "/healthz"))[0] == 200
        status, health = await get(client, "/readyz")
        assert (status, health["ready"]) == (503, False)
        store = health["channels"]["store"]
        assert store["state"] == "down"
        assert ("hark.db cannot be opened: " if blocks else "no room is left on its disk") in store["detail"]
        response = await client.post("/v1/agent", json={"message": "hello"})
        assert (response.status_code, response.json()["error"]["code"]) == (503, "starting")
        done = await hark(tmp_path, "status")
        assert (done.code, done.error) == (1, "")
        assert done.out.startswith("Hark is running, but not ready.")
        assert store["detail"].partition("(")[0] in done.out  # the free room may differ by now
        give_room(command.pid)
        await said(command, "the service goes on with its start")
        async with asyncio.timeout(PATIENCE):
            while (await get(client, "/readyz"))[0] != 200:
                pass
        assert (await hark(tmp_path, "agent", "-m", "say hello")).out.endswith("hello\n")
        command.send_signal(signal.SIGTERM)
        assert (await command.finish()).code == 0


async def test_a_start_that_waits_can_be_ended(tmp_path: Path) -> None:
    async with waiting(tmp_path, 32) as (command, _):
        command.send_signal(signal.SIGTERM)
        done = await command.finish()
        assert done.code == 0
        assert "Traceback" not in done.error


async def test_the_terminal_says_it_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(NO_OLLAMA + "gateway: {port: 0}\n")
    async with Program(["run"], tmp_path, ENVIRON, columns=300, blocks=32) as terminal:
        await terminal.until("Hark waits with its start, and goes on by itself: the store ")
        give_room(terminal.pid)
        shown = await terminal.until("/help shows")
        assert shown.count("Hark waits") == 1


async def test_a_command_does_not_wait(tmp_path: Path) -> None:
    done = await (await begin(tmp_path, 32, "agent", "-m", "hi")).finish()
    assert (done.code, done.out) == (1, "")
    assert done.error.startswith("Hark cannot start: the store ")
    assert done.error.count("\n") == 1


@pytest.mark.parametrize("command", [("run",), ("agent", "-m", "hi")])
@pytest.mark.parametrize("where", ["taken", "taken/below"])
async def test_a_workspace_that_cannot_be_one_is_said_in_a_sentence(
    tmp_path: Path, where: str, command: tuple[str, ...]
) -> None:
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{port: 0}}\nworkspace: {where}\n")
    done = await hark(tmp_path, *command)
    assert done.code == 1
    assert done.error == (
        f"Hark cannot start: the workspace {tmp_path / where} cannot be used: it is not a folder. "
        "Name a folder that Hark may write in (`workspace:` in the configuration).\n"
    )


async def test_a_file_that_is_no_store_is_kept_beside_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "hark.db").write_bytes(b"SQLite")
    (tmp_path / "config.yaml").write_text(NO_OLLAMA)
    done = await hark(tmp_path, "agent", "-m", "say hello")
    assert (done.code, done.error) == (0, "")
    assert done == Done(0, done.out, "")
    assert [kept.read_bytes() for kept in (tmp_path / "state").glob("hark.db.damaged-*")] == [b"SQLite"]
