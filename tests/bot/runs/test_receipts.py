"""The line under an answer that says what its turn has done."""

from pathlib import Path

import pytest

from channels.message import ChatKind, Place
from channels.outgoing import Delivery, NotSent, SendResult
from tests.scripted_model import Call
from tests.service import running

ON = {"agent": {"receipts": "auto"}}
WRITE = Call("write", {"path": "report.md", "content": "x"})


async def test_what_was_written_and_planned_stands_under_the_answer(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        hark.model.add(WRITE, Call("schedule", {"cron": "0 8 * * *", "zone": "UTC", "prompt": "the news"}))
        hark.model.add("It is done.")
        reply = await hark.say("go")
        answer, receipt = reply.texts
        assert answer == "It is done."
        assert receipt == "wrote report.md · planned every day at 08:00, UTC"
        assert (await hark.say("thanks", answers=["You are welcome."])).texts == ["You are welcome."]
        assert "wrote report.md" not in str(hark.model.requests[-1].messages)


async def test_what_failed_is_no_act(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        hark.model.add(WRITE)
        hark.model.add(WRITE)  # such a file exists by then
        hark.model.add(Call("read", {"path": "report.md"}))
        hark.model.add("done")
        texts = (await hark.say("go")).texts
        assert [text for text in texts if text.startswith("wrote")] == ["wrote report.md"]
        hark.model.add(WRITE)
        hark.model.add("It exists already.")
        assert not [text for text in (await hark.say("again")).texts if text.startswith("wrote")]


async def test_many_acts_are_counted(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        hark.model.add(*(Call("write", {"path": f"{number}.md", "content": "x"}) for number in range(7)))
        (_, receipt) = (await hark.say("go", answers=["done"])).texts
        assert receipt == "wrote 0.md · wrote 1.md · wrote 2.md · wrote 3.md · wrote 4.md · and 2 more"


async def test_a_message_elsewhere_names_its_target_only_if_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.service.OUTBOX_GRACE", 0.0)
    async with running(tmp_path, config=ON) as hark:
        await hark.say("hi", sender="2", answers=["hello"])
        hark.model.add(Call("message", {"action": "send", "to": "2", "text": "news"}))
        hark.model.add("told them")
        assert (await hark.say("tell 2")).texts == ["told them", "sent to 2"]

        async def refuse(delivery: Delivery) -> SendResult:
            return NotSent(3600.0, "busy") if delivery.place.chat == "2" else await accepted(delivery)

        async def accepted(delivery: Delivery) -> SendResult:
            hark.channel.on_send = None
            result = await hark.channel.send(delivery)
            hark.channel.sent.pop()
            hark.channel.on_send = refuse
            return result

        hark.channel.on_send = refuse
        hark.model.add(Call("message", {"action": "send", "to": "2", "text": "more"}))
        hark.model.add("on its way")
        await hark.write("tell 2 more")
        await hark.until(lambda: hark.time.pauses(20) >= 1, "the tool's patience")
        hark.time.advance(20)
        assert (await hark.until_texts(4))[-1] == "sending to 2"


@pytest.mark.parametrize(("mode", "shown"), [("auto", False), ("on", True)])
async def test_groups_have_none_unless_it_is_written(tmp_path: Path, mode: str, shown: bool) -> None:
    config = {
        "agent": {"receipts": mode},
        "channels": {"telegram": {"groups": {"policy": "open", "require_mention": False}}},
    }
    async with running(tmp_path, config=config) as hark:
        hark.model.add(WRITE)
        hark.model.add("done")
        place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
        message = hark.message("go")
        origin = type(message.origin)(place=place, sender="1", message_id="1")
        await hark.write("go", origin=origin)
        await hark.until_texts(1, "-5")
        await hark.delivered()
        assert hark.channel.texts("-5") == (["done", "wrote report.md"] if shown else ["done"])
