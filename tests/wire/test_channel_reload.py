"""A channel whose section has changed gets another adapter while people write; nothing is lost or doubled."""

import asyncio
import json
from pathlib import Path

import pytest

from bot.config.file import ConfigFile
from tests.bot.reload.house import reload_of
from tests.service import RecordingChannel
from tests.serving import serving
from tests.standins.openai_server import OpenAIServer
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE
from tests.watch import PATIENCE, Watch

pytestmark = pytest.mark.xdist_group("wire-service")


class Other(RecordingChannel):
    """A channel that has nothing to do with it."""

    name = "discord"

    def __init__(self) -> None:
        super().__init__(Watch())
        self.stopped = 0

    async def stop_intake(self) -> None:
        self.stopped += 1


async def test_an_adapter_is_replaced_in_the_middle_of_a_conversation(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, OpenAIServer(keys=("sk-test-key",), models=("gpt-test",)) as model:
        section = {"token": telegram.token, "base_url": telegram.base_url, "base_file_url": telegram.base_file_url}
        document = {
            "agent": {"model": "test/gpt-test", "drain_seconds": 0, "receipts": "off"},
            "owners": [f"telegram:{ALICE.id}"],
            "queue": {"debounce_ms": 0},
            "heartbeat": {"every": 0},
            "providers": {"test": {"api": "openai-chat", "base_url": model.base_url, "api_keys": ["sk-test-key"]}},
            "channels": {"console": {"enabled": False}, "telegram": section},
        }
        (tmp_path / "config.yaml").write_text(json.dumps(document))
        file, other = ConfigFile(None, {}, tmp_path), Other()
        async with serving(file.load(), file=file, channels=(other,)) as service:
            for answer in ("first", "second", "third"):
                model.add(answer)
            telegram.write("one")
            await telegram.wait_text("first")
            held = telegram.hold_next("sendMessage")
            telegram.write("two")
            await telegram.wait_for(lambda: bool(held.fired), "the second answer")
            section["prompt"] = "Say please."
            (tmp_path / "config.yaml").write_text(json.dumps(document))
            accounts, released = [*service.parts.accounts], asyncio.Event()
            former = next(one.channel for one in accounts if one.label == "telegram")
            close, closed = former.close, []

            async def noted() -> None:
                closed.append(released.is_set())
                await close()

            former.close = noted  # type: ignore[method-assign]
            reloading = asyncio.create_task(reload_of(service).again())
            async with asyncio.timeout(PATIENCE):
                while [*service.parts.accounts] == accounts:  # noqa: ASYNC110 until the former one has ceased to receive
                    await asyncio.sleep(0)
            telegram.write("three")
            for _ in range(3):  # time enough to close it, if nothing waited
                await service.parts.store.reads.totals()
            assert not reloading.done()
            released.set()
            held.release()
            assert (await reloading).applied == ("channels.telegram.prompt",)
            await telegram.wait_text("third")
            assert telegram.texts() == ["first", "second", "third"]
            systems = [request.body["messages"][0]["content"] for request in model.requests]
            assert [("Say please." in one) for one in systems] == [False, False, True]
            del model.requests[:2]  # the prompt is another one on purpose
            assert closed == [True]  # not in the middle of a call
            assert not other.stopped
        assert other.stopped
