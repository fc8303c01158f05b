"""`hark run` in a terminal, as a person sees it, and how it ends."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from tests.bot.cli.terminal_emulator import Program
from tests.forked import ENVIRON, PATIENCE, begin
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Gate, Say
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import BOT_NAME

OFFLINE = "agent: {model: offline/offline}\ngateway: {port: 0}\n"


def run(folder: Path, config: str = OFFLINE, **seconds: float) -> Program:
    (folder / "config.yaml").write_text(config)
    return Program(["run"], folder, ENVIRON, seconds=seconds)


async def greeted(terminal: Program) -> None:
    await terminal.until(lambda shown: "answers." in shown and shown.endswith("\n>"))


@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGHUP, signal.SIGHUP)])
async def test_a_signal_lets_an_answer_finish_before_your_eyes(tmp_path: Path, signals: list[signal.Signals]) -> None:
    gate = Gate()
    async with OpenAIServer(keys=("k-1",)) as model:
        model.add(Say("I am\n\n"), Say("here, and these are the last of all my words", gate=gate))
        provider = {"api": "openai-chat", "base_url": model.base_url, "api_keys": ["k-1"], "models": {"m": {}}}
        config = {"providers": {"mine": provider}, "agent": {"model": "mine/m"}, "gateway": {"port": 0}}
        async with run(tmp_path, json.dumps(config)) as terminal:
            await greeted(terminal)
            terminal.type("who are you?\r")
            await terminal.until("I am")
            for number in signals:
                terminal.send_signal(number)
                await terminal.until("finishing …")
            gate.open()
            assert await terminal.exit_code() == 0
            assert terminal.screen.lines[-1].endswith("the last of all my words")
            assert "The service is not there" not in terminal.screen.text


async def test_sigterm_leaves_on_the_screen_what_could_not_be_finished(tmp_path: Path) -> None:
    async with run(tmp_path, OFFLINE.replace("offline}", "offline, drain_seconds: 0}")) as terminal:
        await greeted(terminal)
        terminal.type("be slow, write 3000 words of markdown\r")
        await terminal.until("I am")
        terminal.send_signal(signal.SIGTERM)
        assert await terminal.exit_code() == 0
        assert "\nI am" in terminal.screen.text


async def test_a_second_signal_leaves_at_once_and_the_terminal_usable(tmp_path: Path) -> None:
    async with run(tmp_path) as terminal:
        await greeted(terminal)
        before = terminal.modes()
        terminal.type("be slow, write 3000 words of markdown\r")
        await terminal.until("I am")
        terminal.send_signal(signal.SIGTERM)
        await terminal.until("finishing …")
        terminal.send_signal(signal.SIGTERM)
        assert await terminal.exit_code() == 1
        assert terminal.modes() != before  # line editing and echo are back


def ignores(pid: int, number: signal.Signals) -> bool:
    """Whether a process has asked the system to throw away a signal."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["SigIgn"], 16) & 1 << (number - 1))


async def test_what_was_started_to_outlive_its_terminal_minds_no_hangup(tmp_path: Path) -> None:
    """As `nohup` starts it."""
    (tmp_path / "config.yaml").write_text(OFFLINE)
    service = await begin(tmp_path, "run", nohup=True)
    try:
        async with asyncio.timeout(PATIENCE):
            while b"Sandbox for commands" not in (line := await service.stderr.readline()):
                assert line, "it has ended"
            if sys.platform == "linux":
                assert ignores(service.pid, signal.SIGHUP)
            service.send_signal(signal.SIGHUP)
            service.send_signal(signal.SIGTERM)
            said = await service.stderr.read()
            assert await service.wait() == 0
        assert said.count(b"stopping") == 1
    finally:
        service.kill()


async def test_quit_stops_hark(tmp_path: Path) -> None:
    async with run(tmp_path) as terminal:
        await greeted(terminal)
        terminal.type("/quit\r")
        assert await terminal.exit_code() == 0
        assert "finishing …" in terminal.screen.text


@pytest.mark.parametrize("found", [True, False])
async def test_where_the_shell_does_not_find_hark_the_line_to_copy_is_said(tmp_path: Path, found: bool) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hark").symlink_to(Path(sys.prefix, "bin", "hark") if found else tmp_path / "another")
    (tmp_path / "config.yaml").write_text(OFFLINE)
    environ = {**ENVIRON, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    async with Program(["run"], tmp_path, environ) as terminal:
        await greeted(terminal)
        assert ("alias hark=" in terminal.screen.text) is not found


async def test_the_terminal_says_how_telegram_is(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        settings = f"dm: {{policy: allowlist}}, token: '{telegram.token}', base_url: '{telegram.base_url}'"
        config = f"{OFFLINE}channels: {{telegram: {{{settings}}}}}\n"
        async with run(tmp_path, config, **{"bot.cli.terminal.conversation._LOOK": 0.1}) as terminal:
            await terminal.until("Warning: channels.telegram.dm.allow_from is empty")
            await terminal.until(f"Telegram: receiving as @{BOT_NAME}")
            await telegram.stop()
            await terminal.until("Telegram cannot be reached")
