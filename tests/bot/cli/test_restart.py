"""/restart as its owner sees it: the same process, what was asked before is answered, and "back" is said once.

That the process replaces itself is looked at once, with a program; elsewhere a forked service ends where it would, and
the next one is started in its place.
"""

import asyncio
import signal
from pathlib import Path

import pytest

from bot.restart import BACK
from tests.bot.cli.running import READY, forked, program, settings
from tests.forked import ENVIRON, REPLACED, hark
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Gate, Say
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import BOB, private

pytestmark = pytest.mark.xdist_group("programs")


async def test_the_process_is_replaced_and_says_once_that_it_is_back(tmp_path: Path) -> None:
    """With the secrets that the first one has wiped from its environment, which the second one needs as well."""
    async with TelegramServer() as telegram:
        config = settings(telegram)
        config["channels"]["telegram"]["token"] = "${BOT_TOKEN}"
        for text in ("I restart as soon as nothing runs, in 5 seconds at the latest.", BACK):
            telegram.allow_repeat(text)  # it is asked twice
        environ = {**ENVIRON, "BOT_TOKEN": telegram.token}
        async with program(tmp_path, config, environ) as service:
            telegram.write("/restart")
            await telegram.wait_text(BACK, 30)
            await service.until(READY, 2)
            files = service.files()
            telegram.write("/restart")
            await service.until(READY, 3)
            telegram.write("/status")
            await telegram.wait_sent(5, seconds=30)
            assert service.files() == files  # nothing is passed on from process to process
            assert [text for text in telegram.texts() if "back" in text] == [BACK, BACK]
            service.process.send_signal(signal.SIGTERM)
            assert await service.ended() == 0
        assert len(service.said("restarting")) == 2


@pytest.mark.soak
async def test_who_is_answered_at_that_moment_is_waited_for_and_who_writes_meanwhile_is_answered(
    tmp_path: Path,
) -> None:
    gate = Gate()
    async with TelegramServer() as telegram, OpenAIServer(keys=("sk-test-key",), models=("gpt-test",)) as model:
        provider = {"api": "openai-chat", "base_url": model.base_url, "api_keys": ["sk-test-key"]}
        agent = {"model": "test/gpt-test", "drain_seconds": 20, "receipts": "off"}
        config = settings(telegram, agent=agent, providers={"test": provider})
        config["channels"]["telegram"]["dm"] = {"policy": "open"}
        async with forked(tmp_path, config) as service:
            model.add(Say("This takes "), Say("its time.", gate=gate))
            telegram.write("first", chat=private(BOB), user=BOB)
            await model.wait_for(1, 30)
            telegram.write("/restart")
            await telegram.wait_text("I restart as soon as nothing runs", 30)
            model.add("and this is the second")
            await telegram.wait_confirmed(telegram.write("second", chat=private(BOB), user=BOB), 30)
            assert not service.said("restarting")
            gate.open()
            assert await service.ended() == REPLACED
        assert "This takes its time." in telegram.texts(BOB.id)
        async with forked(tmp_path):
            await telegram.wait_text(BACK, 30)
            await telegram.wait_text("and this is the second", 30)
            assert telegram.texts(BOB.id) == ["This takes its time.", "and this is the second"]
            assert telegram.texts()[-1] == BACK  # both were answered before
            assert len(model.requests) == 2


async def test_a_crash_between_the_command_and_the_restart_is_answered_by_the_next_start(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        held = telegram.hold_next("sendMessage")  # which may have been sent
        telegram.allow_repeat("I restart as soon as nothing runs, in 60 seconds at the latest.")
        async with forked(tmp_path, settings(telegram, agent={"drain_seconds": 60})) as service:
            telegram.write("/restart")
            await telegram.wait_for(lambda: bool(held.fired), "the answer", 30)
            service.process.kill()
            await service.ended()
            assert not service.said("restarting")
        held.release()
        async with forked(tmp_path) as service:
            await telegram.wait_text(BACK, 30)
            telegram.write("/status")
            await telegram.wait_text("This conversation", 30)
            assert telegram.texts().count(BACK) == 1
            assert not service.said("restarting")


async def test_the_command_line_asks_for_a_restart_and_is_told_why_there_is_none(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        config = settings(telegram)
        async with forked(tmp_path, config) as service:
            service.write({**config, "nothing": 1})
            done = await asyncio.to_thread(hark, tmp_path, "restart")
            assert done.code == 1
            assert "nothing" in done.error
            service.write(config)
            assert (await asyncio.to_thread(hark, tmp_path, "restart")).code == 0
            assert await service.ended() == REPLACED
            assert len(service.said("restarting")) == 1
        assert telegram.texts() == []


@pytest.mark.soak
async def test_a_service_takes_over_what_changed_and_keeps_the_rest(tmp_path: Path) -> None:
    async with TelegramServer() as telegram:
        config = settings(telegram)
        async with forked(tmp_path, config) as service:
            service.write(
                {**config, "queue": {"debounce_ms": 5}, "gateway": {"port": 0, "token": "a-token-of-the-test"}}
            )
            await service.until("queue.debounce_ms took effect")
            await service.until("gateway.token needs a restart")
            telegram.write("/restart")
            assert await service.ended() == REPLACED
        async with forked(tmp_path) as after:
            await telegram.wait_text(BACK, 30)
            assert len(service.said("gateway.token")) == 1
            assert not after.said("gateway.token")
            assert "a-token-of-the-test" not in "".join(service.lines + after.lines)
