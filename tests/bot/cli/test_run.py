"""`hark run` in a terminal, as a person sees it, and how it ends."""

import signal
from pathlib import Path

from tests.bot.cli.terminal_emulator import Program
from tests.forked import ENVIRON
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import BOT_NAME

OFFLINE = "agent: {model: offline/offline}\ngateway: {port: 0}\n"


def run(folder: Path, config: str = OFFLINE) -> Program:
    (folder / "config.yaml").write_text(config)
    return Program(["run"], folder, ENVIRON)


async def greeted(terminal: Program) -> None:
    await terminal.until(lambda shown: "answers." in shown and shown.endswith("\n>"))


async def test_sigterm_lets_an_answer_finish_before_your_eyes(tmp_path: Path) -> None:
    async with run(tmp_path) as terminal:
        await greeted(terminal)
        terminal.type("be slow, say these are the last of all my words\r")
        await terminal.until("I am")
        terminal.send_signal(signal.SIGTERM)
        await terminal.until("finishing …")
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


async def test_quit_stops_hark(tmp_path: Path) -> None:
    async with run(tmp_path) as terminal:
        await greeted(terminal)
        terminal.type("/quit\r")
        assert await terminal.exit_code() == 0
        assert "finishing …" in terminal.screen.text


async def test_the_terminal_says_how_telegram_is(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        settings = f"dm: {{policy: allowlist}}, token: '{telegram.token}', base_url: '{telegram.base_url}'"
        async with run(tmp_path, f"{OFFLINE}channels: {{telegram: {{{settings}}}}}\n") as terminal:
            await terminal.until("Warning: channels.telegram.dm.allow_from is empty")
            await terminal.until(f"Telegram: receiving as @{BOT_NAME}")
            await telegram.stop()
            await terminal.until("Telegram cannot be reached")
