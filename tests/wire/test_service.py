"""The whole service between two strict servers: Telegram on one side, a model provider on the other.

Everything is real but the servers: wiring, store, lanes, adapter, model client. Each test ends with both servers'
own checks, unasked.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.clock import Clock
from bot.config.model import Config
from bot.persistence.deliveries import LostDelivery
from bot.service import Service
from channels.failures import Rates
from channels.telegram.adapter import TelegramChannel
from channels.telegram.poll import Times
from channels.telegram.settings import TelegramAccount
from tests.channels.sections import account
from tests.serving import assemble
from tests.standins.openai_server import OpenAIServer
from tests.standins.proxy import FaultProxy
from tests.standins.script import Call, Continuer, Fail, Hang, Say, Stop
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOB, private
from tests.watch import lanes_idle

pytestmark = pytest.mark.xdist_group("wire-service")


class Bot:
    """A service that can be started again on the same state."""

    def __init__(
        self,
        folder: Path,
        telegram: TelegramServer,
        model: OpenAIServer,
        owners: Sequence[str] = (),
        **agent: object,
    ) -> None:
        self.config = Config.model_validate(
            {
                "agent": {"model": "test/gpt-test", "drain_seconds": 0, "receipts": "off", **agent},
                "queue": {"debounce_ms": 0, "mode": "followup"},
                "providers": {"test": {"api": "openai-chat", "base_url": model.base_url, "api_keys": ["sk-test-key"]}},
                "channels": {
                    "console": {"enabled": False},
                    "telegram": {"enabled": False, "dm": {"policy": "allowlist", "allow_from": [str(ALICE.id)]}},
                },
                "owners": list(owners),
                "workspace": folder / "workspace",
                "state": folder / "state",
            }
        )
        self.settings = account(
            TelegramAccount,
            token=telegram.token,
            base_url=telegram.base_url,
            base_file_url=telegram.base_file_url,
            poll_timeout=1,
            retry_first=0.01,
            retry_most=0.05,
            slow_retry=0.05,
            rates=Rates(chat_interval=0.0, group_per_minute=10_000, per_second=10_000),
        )
        self.service: Service | None = None

    async def start(self) -> None:
        clock = Clock()
        times = Times(now=clock.now, monotonic=time.monotonic, sleep=clock.sleep)
        channel = TelegramChannel(self.settings, times)
        self.service = await assemble(self.config, clock=clock, channels=(channel,))
        await self.service.start()

    async def lost(self) -> tuple[LostDelivery, ...]:
        """What the store shows as not delivered, or perhaps not."""
        assert self.service is not None
        return await self.service.parts.store.reads.lost_deliveries(9)

    async def stop(self) -> None:
        if self.service is not None:
            service, self.service = self.service, None
            await service.close()


@asynccontextmanager
async def talking(
    folder: Path, owners: Sequence[str] = (), **agent: object
) -> AsyncIterator[tuple[TelegramServer, OpenAIServer, Bot]]:
    """Both servers and a running bot; on leaving the bot is stopped."""
    async with TelegramServer() as telegram, OpenAIServer(keys=("sk-test-key",), models=("gpt-test",)) as model:
        bot = Bot(folder, telegram, model, owners, **agent)
        await bot.start()
        try:
            yield telegram, model, bot
        finally:
            await bot.stop()


async def test_a_question_is_answered_with_what_a_tool_found(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, _):
        model.add(Say("I look."), Call("write", {"path": "a.txt", "content": "seven"}))
        model.add(Call("read", {"path": "a.txt"}))
        model.add("It says **seven**.")
        telegram.write("What is in a.txt?")
        await telegram.wait_text("It says seven.")
        assert telegram.texts() == ["I look.", "It says seven."]
        assert (tmp_path / "workspace" / "people" / f"telegram-{ALICE.id}" / "a.txt").read_text() == "seven"


async def test_an_answer_at_the_limit_of_output_goes_on(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, _):
        model.add(Say("The first half, "), Call("write", '{"path": "a'), Stop("length"))
        model.add("and the rest.")
        telegram.write("tell me")
        await telegram.wait_text("and the rest.")
        assert telegram.texts() == ["The first half,", "and the rest."]
        assert not (tmp_path / "workspace" / "a").exists()
        assert model.prefix_violations() == []


async def test_a_redelivered_update_and_a_restart_answer_nothing_twice(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, bot):
        update = telegram.write("first")
        await telegram.wait_sent(1)
        telegram.repeat(update)
        await bot.stop()
        await bot.start()
        telegram.write("second")
        await telegram.wait_sent(2)
        assert model.count == 2


async def test_a_stranger_is_told_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, _):
        telegram.write("let me in", chat=private(BOB), user=BOB)
        telegram.write("hello", user=ALICE)
        await telegram.wait_sent(1)
        assert model.count == 1
        assert telegram.texts(private(BOB)) == []


async def test_a_rate_limit_of_the_platform_is_waited_out(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, _):
        telegram.fail_next("sendMessage", status=500)
        telegram.allow_repeat("Here.")
        model.add("Here.")
        telegram.write("are you there?")
        await telegram.wait_text("Here.")


@pytest.mark.parametrize("fault", [{"drop": True}, {"status": 500}, {"status": 502}, {"status": 504}])
@pytest.mark.parametrize("applied", [True, False])
async def test_a_send_without_an_answer_is_made_four_times_at_most_and_its_chat_is_told(
    tmp_path: Path, fault: dict[str, Any], applied: bool
) -> None:
    async with talking(tmp_path) as (telegram, model, bot):
        telegram.fail_next("sendMessage", after_apply=applied, times=4, **fault)
        if applied:
            telegram.allow_repeat("Perhaps.")
        model.add("Perhaps.")
        model.add("Certainly.")
        telegram.write("say it")
        telegram.write("and this?")
        await telegram.wait_text("Certainly.")
        assert telegram.texts().count("Perhaps.") == (4 if applied else 0)
        told = await telegram.wait_sent(1 + 1 + 4 * applied)
        assert "may not have arrived" in told[-1]
        (lost,) = await bot.lost()
        assert (lost.state.value, lost.channel, lost.chat) == ("uncertain", "telegram", str(ALICE.id))


@pytest.mark.parametrize("applied", [True, False])
async def test_an_unanswered_send_is_made_again_when_telegram_lives(tmp_path: Path, applied: bool) -> None:
    async with talking(tmp_path) as (telegram, model, bot):
        telegram.fail_next("sendMessage", drop=True, after_apply=applied)
        if applied:
            telegram.allow_repeat("Words.")
        model.add("Words.")
        telegram.write("say it")
        await telegram.wait_sent(1 + applied)
        assert telegram.texts() == ["Words."] * (1 + applied)
        assert await bot.lost() == ()


async def test_a_form_that_telegram_refuses_is_sent_plain_in_its_place(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, bot):
        telegram.fail_next("sendMessage", status=400, description="Bad Request: can't parse entities")
        model.add("**First** of [two](https://example.org/x).")
        model.add("Second.")
        telegram.write("one")
        telegram.write("two")
        await telegram.wait_text("Second.")
        assert telegram.texts() == ["First of two (https://example.org/x).", "Second."]
        assert telegram.sent[0].entities == []
        assert await bot.lost() == ()


async def test_what_is_refused_for_good_is_told_to_the_owner_once(tmp_path: Path) -> None:
    async with talking(tmp_path, owners=(f"telegram:{BOB.id}",)) as (telegram, model, _):
        telegram.meet(private(BOB))
        model.add("Hello, Bob.")
        model.add("First.\n\n" + "Second. " * 300)
        model.add("Still here.")
        telegram.write("hi", user=BOB, chat=private(BOB))
        await telegram.wait_text("Hello, Bob.")
        telegram.fail_next(
            "sendMessage", status=403, description="Forbidden: bot was kicked", times=2, chat_id=ALICE.id
        )
        telegram.write("tell me")
        await telegram.wait_text("refused a message to chat")
        telegram.write("and now?")
        await telegram.wait_text("Still here.")
        notices = [text for text in telegram.texts(private(BOB)) if "refused" in text]
        assert notices == [
            f"Telegram refused a message to chat {ALICE.id}, so it was not delivered: Forbidden: bot was kicked."
            " /status lists such messages; I tell of each reason at most once an hour."
        ]
        telegram.write("/status", user=BOB, chat=private(BOB))
        await telegram.wait_text("refused: Forbidden: bot was kicked")


async def test_a_stream_that_breaks_after_text_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = " ".join(f"word{number}." for number in range(400))
    async with talking(tmp_path) as (telegram, model, _):
        continuer = Continuer(whole, "tell me a story", cuts=[250], chunks=400)
        model.default = continuer
        telegram.write("tell me a story")
        await telegram.wait_text("word399.")
        assert " ".join(" ".join(telegram.texts()).split()) == whole
        assert model.count == 2


async def test_a_model_that_refuses_the_key_is_said_once_and_the_message_is_kept(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, _):
        model.add(Fail(401, "authentication_error"))
        telegram.write("hello?")
        await telegram.wait_text("I have kept your message and answer by myself")
        assert len(telegram.texts()) == 1


async def test_a_busy_model_is_waited_for_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.runner._LEAST_WAIT", 0.01)
    async with talking(tmp_path) as (telegram, model, _):
        model.add(Fail(429, retry_after=0))
        model.add("Now.")
        telegram.write("hello?")
        await telegram.wait_text("Now.")
        assert model.count == 2


async def test_stop_ends_a_run_that_hangs_and_says_what_was_dropped(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, _):
        hang = Hang()
        model.add(hang)
        telegram.write("think for ever")
        await hang.entered()
        waiting = [telegram.write("and this"), telegram.write("and that")]
        await telegram.wait_confirmed(waiting[-1])
        telegram.write("/stop")
        await telegram.wait_text("Stopped. 2 waiting messages dropped.")
        model.add("Fresh.")
        telegram.write("are you free?")
        await telegram.wait_text("Fresh.")
        assert model.count == 2


async def test_a_run_cut_by_a_restart_goes_on(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, bot):
        hang = Hang()
        model.add(hang)
        telegram.write("a question")
        await hang.entered()
        await bot.stop()
        model.add("An answer.")
        await bot.start()
        await telegram.wait_text("An answer.")
        assert len(telegram.texts()) == 1


async def test_a_request_cut_on_its_way_is_not_lost(tmp_path: Path) -> None:
    async with (
        TelegramServer() as telegram,
        OpenAIServer(keys=("sk-test-key",), models=("gpt-test",)) as model,
        FaultProxy(telegram.port) as proxy,
    ):
        bot = Bot(tmp_path, telegram, model)
        root = f"http://127.0.0.1:{proxy.port}"
        bot.settings = bot.settings.model_copy(update={"base_url": f"{root}/bot", "base_file_url": f"{root}/file/bot"})
        proxy.cut_request(b"sendMessage", after=20)
        model.add("Hello.")
        await bot.start()
        try:
            telegram.write("hi")
            await telegram.wait_text("Hello.")
        finally:
            await bot.stop()
        assert telegram.texts() == ["Hello."]
        assert len([line for line in proxy.requests if b"sendMessage" in line]) == 2
        assert model.count == 1
        model.check()


async def test_many_people_are_answered_each_in_order(tmp_path: Path) -> None:
    async with talking(tmp_path) as (telegram, model, bot):
        telegram.ledger.typing_may_stay.clear()
        model.default = lambda request: f"answer to {request.last_user_text.splitlines()[-1]}"
        for number in range(30):
            telegram.write(f"question {number}")
        await telegram.wait_sent(30)
        assert telegram.texts() == [f"answer to question {number}" for number in range(30)]
        assert bot.service is not None
        await asyncio.wait_for(lanes_idle(), 5)
