"""`hark chat`, `hark agent`, `hark status` and the terminal of `hark run`, called as people call them."""

import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.errors import ErrorKind, ModelError
from bot import wording
from tests.bot.cli.terminal_emulator import PATIENCE, Program
from tests.bot.gateway.house import house

ROOT = Path(__file__).parents[3]
ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT)}
OFFLINE = "I am Hark's built-in offline model"
NO_OLLAMA = "agent: {model: offline/offline}\n"
"""So that no test depends on what else this machine runs."""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    error: str


async def begin(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", *arguments), cwd=folder, env=ENVIRON, stdin=pipe, stdout=pipe, stderr=pipe
    )


async def finish(process: asyncio.subprocess.Process, typed: str = "") -> Done:
    async with asyncio.timeout(PATIENCE):
        out, error = await process.communicate(typed.encode())
    return Done(process.returncode or 0, out.decode(), error.decode())


async def hark(folder: Path, *arguments: str, typed: str = "") -> Done:
    return await finish(await begin(folder, *arguments), typed)


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A folder without a service."""
    (tmp_path / "config.yaml").write_text(NO_OLLAMA)
    return tmp_path


async def test_chat_starts_a_service_of_its_own_and_answers_every_line(alone: Path) -> None:
    done = await hark(alone, "chat", typed="say one\nsay two\n/help new\n")
    assert (done.code, done.error) == (0, "")
    assert done.out.startswith(OFFLINE)
    assert done.out.index("one\n") < done.out.index("two\n") < done.out.index("`/new` ")
    assert "\x1b" not in done.out
    assert not (alone / "state" / "hark.sock").exists()


async def test_chat_uses_the_service_that_runs(tmp_path: Path) -> None:
    async with house(tmp_path, reply="From the service.") as at:
        done = await hark(tmp_path, "chat", typed="hello")
        assert done == Done(0, "From the service.\n", "")
        assert at.rows("delivery WHERE state='sent'") == 1


async def test_an_interrupt_ends_the_run_of_a_line_and_the_next_one_follows(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        process = await begin(tmp_path, "chat")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one\n")
        (await at.model.called()).say("One. " * 200 + "\n\nAnd more.")
        assert await process.stdout.readuntil(b"One.")
        process.send_signal(signal.SIGINT)
        process.stdin.write(b"two\n")
        (await at.model.called()).answer("Two.")
        done = await finish(process)
        assert (done.code, done.error) == (0, "")
        assert done.out.endswith("One.\nTwo.\n")
        assert at.rows("turn WHERE outcome='aborted'") == 1


async def test_a_turn_prints_its_answer(alone: Path) -> None:
    done = await hark(alone, "agent", "-m", "say hello")
    assert (done.code, done.error) == (0, "")
    assert done.out.endswith("\nhello\n")
    again = await hark(alone, "agent", "-m", "say hello")  # the same session: it has introduced itself
    assert again == Done(0, "hello\n", "")


async def test_a_turn_as_json_is_the_object_of_the_gateway(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Hello.") as at:
        done = await hark(tmp_path, "agent", "-m", "hi", "--session", "work", "--json")
        assert done.code == 0
        shown = json.loads(done.out)
        assert (shown["session"], shown["status"], shown["text"]) == ("agent:main:http:direct:work", "ok", "Hello.")
        assert shown == await at.show(shown["run_id"])


async def test_a_turn_that_failed(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        process = await begin(tmp_path, "agent", "-m", "hi")
        (await at.model.called()).fail(ModelError(ErrorKind.AUTH, "401"))
        done = await finish(process)
        assert done == Done(1, f"{wording.failure('auth')}\n", "test/puppet: 401\n")


async def test_a_turn_that_takes_too_long_goes_on(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        done = await hark(tmp_path, "agent", "-m", "hi", "--timeout", "0", "--json")
        run_id = json.loads(done.out)["run_id"]
        assert (done.code, done.error) == (3, f"Not finished in time; run {run_id} goes on.\n")
        (await at.model.called()).answer("Late.")
        assert (await at.show(run_id, wait="20"))["text"] == "Late."


async def test_an_interrupt_ends_the_turn(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        process = await begin(tmp_path, "agent", "-m", "hi")
        await at.model.called()
        process.send_signal(signal.SIGINT)
        done = await finish(process)
        assert done == Done(130, "", "")
        await at.service.parts.lanes.wait_idle()
        assert at.rows("turn WHERE outcome='aborted'") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(("-m", " "), "There is nothing to say"), (("-m", "x", "--session", "agent:nobody"), "is not a session key")],
)
async def test_what_cannot_be_meant_is_usage(alone: Path, arguments: tuple[str, ...], complaint: str) -> None:
    done = await hark(alone, "agent", *arguments)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.error
    assert done.error.count("\n") == 1


async def test_status_of_a_service(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        await at.submit("hi")
        await at.model.called()
        done = await hark(tmp_path, "status")
        assert (done.code, done.error) == (0, "")
        first, model, channels, runs, deliveries = done.out.splitlines()
        assert first == "Hark is running and ready."
        assert model.startswith("model       test/puppet (")
        assert channels.startswith("channels    console  ready since 20")
        assert runs == "runs        1 running, 0 waiting"
        assert deliveries == "deliveries  0 open, 0 refused, 0 uncertain"
        await at.store_fails()
        done = await hark(tmp_path, "status")
        assert done.code == 1
        assert "Hark is running, but not ready." in done.out
        assert "store    down since 20" in done.out


async def test_status_without_a_service(alone: Path) -> None:
    done = await hark(alone, "status")
    assert done == Done(1, f"No service is running in {alone / 'state'}. `hark run` starts one.\n", "")
    assert not (alone / "state").exists()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def test_the_terminal_of_the_service_closes_without_it(alone: Path) -> None:
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{port: {free_port()}}}\n")
    async with Program([sys.executable, "-m", "bot", "run"], alone, ENVIRON) as terminal:
        await terminal.until("offline/offline answers.")
        await terminal.until(lambda shown: shown.endswith("\n>"))
        terminal.type("say hello\r")
        await terminal.until("\nhello")
        terminal.type("\x04")
        await terminal.until("The terminal is closed, Hark goes on; Ctrl-C stops it.")
        done = await hark(alone, "agent", "-m", "say still there")
        assert done.out.endswith("still there\n")
        terminal.type("\x03")
        assert await terminal.exit_code() == 0


async def test_ctrl_c_twice_in_the_terminal_of_the_service_stops_it(alone: Path) -> None:
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{port: {free_port()}}}\n")
    async with Program([sys.executable, "-m", "bot", "run"], alone, ENVIRON) as terminal:
        await terminal.until(lambda shown: "answers." in shown and shown.endswith("\n>"))
        terminal.type("\x03")
        await terminal.until("Ctrl-C again to leave")
        terminal.type("\x03")
        assert await terminal.exit_code() == 0
    assert not (alone / "state" / "hark.sock").exists()


async def test_a_service_that_cannot_start_says_why_in_one_line(alone: Path) -> None:
    (alone / "state").write_text("in the way")
    done = await hark(alone, "chat", typed="hello")
    assert (done.code, done.out) == (1, "")
    assert done.error.startswith("Hark cannot start: ")
    assert done.error.count("\n") == 1
