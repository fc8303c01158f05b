"""What is shown of an answer while it is written: joined blocks, previews, and nothing twice."""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from pathlib import Path
from typing import Any

import pytest

from agent.events import MessageUpdate
from channels.base import Capabilities
from channels.message import Place
from channels.outgoing import Action, Delivery, Refused, SendResult, Sent
from tests.asking import SendingTool
from tests.service import Hark, RecordingChannel, running
from tests.standins.script import Break, Call, Gate, Say
from tests.stored import Like

PARAGRAPH = "Every word of this paragraph is counted, and it is long enough. "
TEXT = "\n\n".join(f"{n}. {PARAGRAPH * 8}".strip() for n in range(1, 19))


class Previewing(RecordingChannel):
    """Remembers frames; `pause` is what the platform asks for between them."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.frames: list[tuple[str, str]] = []
        self.pause = 0.0

    async def frame(self, place: Place, target: str, body: str) -> float:
        self.frames.append((target, body))
        self.watch.changed()
        return self.pause


def streaming(**fields: Any) -> dict[str, Any]:
    return {"channels": {"telegram": {"streaming": fields}}}


def shown(channel: RecordingChannel) -> list[str]:
    """What stands in the chat in the end: edits in the place of what they edit."""
    messages: dict[str, str] = {}
    for number, delivery in enumerate(channel.sent, 1):
        if delivery.action is Action.EDIT:
            messages[delivery.target] = delivery.body
        elif delivery.action is Action.DELETE:
            del messages[delivery.target]
        else:
            messages[str(number)] = delivery.body
    return list(messages.values())


def told(hark: Hark) -> int:
    """How many pieces of answers have come."""
    return sum(isinstance(event, MessageUpdate) for event in hark.events)


async def previewed(hark: Hark, gate: Gate, deltas: int, frames: int = 0) -> Previewing:
    """Lets so many deltas pass, and returns once what they say has been shown."""
    assert isinstance(hark.channel, Previewing)
    channel = hark.channel
    gate.let(deltas)
    await hark.until(lambda: len(channel.sent) == 1 and len(channel.frames) >= frames, "the preview")
    return channel


async def test_a_fast_model_fills_messages(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        texts = (await hark.say("a long one", answers=[Say(TEXT)])).texts
    assert "".join("".join(texts).split()) == "".join(TEXT.split())
    assert len(TEXT) > 9000
    assert len(texts) <= 4
    assert len(texts[0]) <= 1200


async def test_explicit_sizes_hold(tmp_path: Path) -> None:
    async with running(tmp_path, config=streaming(min_chars=100, max_chars=700)) as hark:
        texts = (await hark.say("a long one", answers=[Say(TEXT)])).texts
    assert max(map(len, texts)) <= 700


async def test_what_is_whole_goes_out_when_the_model_pauses(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, config=streaming(idle_ms=700)) as hark:
        hark.model.add(Say(TEXT, chunks=[TEXT[:1100], TEXT[1100:3400], TEXT[3400:]], gate=gate))
        await hark.write("a long one")
        gate.let(2)
        await hark.until(lambda: told(hark) == 2)
        for _ in range(2):  # at the first end of a pause it has written more
            await hark.time.until_pause(0.7)
            hark.time.advance(0.7)
        texts = await hark.until_texts(2)
        assert 800 < len(texts[1]) < 2400
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert "".join("".join(hark.channel.texts()).split()) == "".join(TEXT.split())


@pytest.mark.parametrize("fields", [{"mode": "off"}, {"break": "message_end"}])
async def test_nothing_is_said_before_the_whole(tmp_path: Path, fields: dict[str, str]) -> None:
    gate = Gate()
    async with running(tmp_path, config=streaming(**fields)) as hark:
        await hark.write("a long one", answers=[Say(TEXT, chunks=[TEXT[:-1], TEXT[-1]], gate=gate)])
        gate.let(1)
        await hark.until(lambda: any(getattr(event, "delta", "") == TEXT[:-1] for event in hark.events))
        assert not hark.channel.sent
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert len(hark.channel.texts()) == 3


async def test_a_preview_grows_and_its_last_edit_is_the_answer(tmp_path: Path) -> None:
    gate = Gate()
    text = "The answer begins here and is long enough. It goes on. And on. The end."
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        await hark.write("a question", answers=[Say(text, chunks=[text[:42], text[42:54], text[54:]], gate=gate)])
        channel = await previewed(hark, gate, 1)
        assert [sent.action for sent in channel.sent] == [Action.SEND]
        await hark.time.until_pause(1.0, 2)  # one is of the outbox
        hark.time.advance(1.0)
        await previewed(hark, gate, 1, frames=1)
        assert channel.frames == [("1", text[:54].strip())]
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert [(sent.action, sent.target, sent.body) for sent in channel.sent][1:] == [(Action.EDIT, "1", text)]
        assert hark.stored.deliveries("said", "step") == [(text, 1)]


async def test_an_answer_has_few_frames(tmp_path: Path) -> None:
    gate = Gate()
    pauses = [1.0, *accumulate([1.0] + [1.3] * 11, mul)]
    words = [f"word {n} of an answer that grows. " for n in range(40)]
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        await hark.write("a question", answers=[Say("".join(words), chunks=words, gate=gate)])
        channel = await previewed(hark, gate, 2)
        await hark.time.until_pause(1.0, 2)
        for count in range(1, 30):
            wanted = pauses[min(count, 12) - 1]
            await hark.until(lambda wanted=wanted: wanted in hark.time.asked)  # type: ignore[misc]
            hark.time.advance(60)
            gate.let(1)
            await hark.until(lambda count=count: len(channel.frames) >= min(count, 11))  # type: ignore[misc]
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert len(channel.frames) == 11
        assert shown(channel) == ["".join(words).strip()]


async def test_a_preview_that_is_refused_costs_nothing(tmp_path: Path) -> None:
    gate = Gate()
    text = "The answer begins here and is long enough. The end."

    async def refuses(delivery: Delivery) -> SendResult:
        return Refused("no") if delivery.body != text else Sent("9")

    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        hark.channel.on_send = refuses
        await hark.write("a question", answers=[Say(text, chunks=[text[:42], text[42:]], gate=gate)])
        gate.let(1)
        await hark.until(lambda: hark.stored.deliveries("state") == [("failed",)])
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert hark.channel.texts() == [text]
        assert hark.channel.sent[0].action is Action.SEND


async def test_a_preview_that_somebody_has_deleted_is_a_message_again(tmp_path: Path) -> None:
    gate = Gate()
    text = "The answer begins here and is long enough. The end."

    async def refuses(delivery: Delivery) -> SendResult:
        return Refused("gone") if delivery.action is Action.EDIT else Sent("9")

    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        hark.channel.on_send = refuses
        await hark.write("a question", answers=[Say(text, chunks=[text[:42], text[42:]], gate=gate)])
        await previewed(hark, gate, 1)
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert [sent.body for sent in hark.channel.sent][1:] == [text]
        assert hark.stored.deliveries("state") == [("sent",)]


async def test_a_preview_of_what_is_never_said_goes_away(tmp_path: Path) -> None:
    gate = Gate()
    text = "The answer begins here and is long enough."
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        await hark.write("a question", answers=[Say(f"{text} more", chunks=[text, " more"], gate=gate)])
        await previewed(hark, gate, 1)
        await hark.write("/stop")
        await hark.until(lambda: hark.stored.turns(state="stopped"))
        await hark.delivered()
        assert shown(hark.channel) == ["Stopped."]


async def test_a_stream_that_breaks_goes_on_in_the_same_message(tmp_path: Path) -> None:
    gate = Gate()
    text = "The answer begins here and is long enough. The end."
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        await hark.write("a question", answers=[(Say(text[:42], chunks=[text[:42]], gate=gate), Break()), text])
        await previewed(hark, gate, 1)
        gate.open()
        await hark.model.until_requests(1)
        await hark.until(lambda: hark.model.active == 0)
        hark.time.advance(30)
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert shown(hark.channel) == [text]
        assert [sent.action for sent in hark.channel.sent] == [Action.SEND, Action.EDIT]


async def test_a_draft_is_no_message(tmp_path: Path) -> None:
    gate = Gate()
    text = "The answer begins here and is long enough. The end."

    class Drafting(Previewing):
        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(*args, **fields)
            self.capabilities = Capabilities(
                block_chars=4000, typing_seconds=0, rules="", actions=frozenset(Action), drafts=True
            )

    async with running(tmp_path, config=streaming(mode="preview", preview="draft"), made=Drafting) as hark:
        channel = hark.channel
        assert isinstance(channel, Drafting)
        await hark.write("a question", answers=[Say(text, chunks=[text[:42], text[42:]], gate=gate)])
        gate.let(1)
        await hark.until(lambda: channel.frames)
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert channel.frames == [("", text[:42])]
        assert [(sent.action, sent.body) for sent in channel.sent] == [(Action.SEND, text)]


async def test_silence_sends_nothing(hark: Hark) -> None:
    for text in ("NO_REPLY", "**no_reply**", '{"action": "NO_REPLY"}'):
        assert (await hark.say("?", answers=[Say(text, chunks=list(text))])).texts == []
    hark.model.add(Say("NO_REPLY\n\nOn second thoughts: yes.", chunks=5))
    assert (await hark.say("?")).texts == ["On second thoughts: yes."]


async def test_a_tag_chooses_the_message_and_a_line_sends_a_file(tmp_path: Path, hark: Hark) -> None:
    (tmp_path / "workspace" / "plot.png").write_bytes(b"x")
    texts = (await hark.say("?", answers=["[[reply_to:77]]Here it is.\nMEDIA: plot.png\nMEDIA: ../secret"])).texts
    assert texts[:2] == ["Here it is.", ""]
    assert "could not be sent" in texts[2]
    first, file = hark.channel.sent[:2]
    assert first.reply_to == "77"
    assert file.file is not None
    assert file.file.name == "plot.png"


async def nothing() -> None:
    pass


SENT = "The report is ready: 4 pages, 2 tables, and one picture of the new house by the sea."


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (SENT, []),
        (f"Hello!\n\n**{SENT}**\n\nHave a nice day!", []),
        (f"{SENT} 🎉", [f"{SENT} 🎉"]),
        (SENT.replace("ready", "done"), [SENT.replace("ready", "done")]),
        (SENT.replace("4 pages", "5 pages"), [SENT.replace("4 pages", "5 pages")]),
        (f"{SENT} Anything else?", [f"{SENT} Anything else?"]),
        ("Something else.", ["Something else."]),
    ],
)
async def test_what_a_tool_has_said_is_not_said_again(tmp_path: Path, answer: str, texts: Sequence[str]) -> None:
    async with running(tmp_path, tools=lambda watch: [SendingTool(lambda: hark.service, whole=True)]) as hark:
        assert (await hark.say("?", answers=[Call("send", {"label": SENT}), Say(answer)])).texts == [SENT, *texts]
        said = hark.stored.deliveries("cause", "unless", state="expired")
        assert len(said) == (not texts)
        assert all(cause == "said already" and unless.startswith("tool:") for cause, unless in said)


async def test_what_a_tool_failed_to_say_is_said(tmp_path: Path) -> None:
    async def refuses(delivery: Delivery) -> SendResult:
        return Refused("no") if delivery.source.key.startswith("tool:") else Sent("7")

    async with running(tmp_path, tools=lambda watch: [SendingTool(lambda: hark.service, whole=True)]) as hark:
        hark.channel.on_send = refuses
        hark.model.add(Call("send", {"label": SENT}))
        hark.model.add(SENT)
        assert SENT in (await hark.say("?")).texts


async def test_an_answer_that_is_repeated_whole_is_said_once(hark: Hark) -> None:
    hark.model.add(SENT, Call("read", {"path": "none"}))
    hark.model.add(Say(f"**{SENT}**"), Call("read", {"path": "none"}))
    hark.model.add(f"{SENT} And more.")
    assert (await hark.say("?")).texts == [SENT, f"{SENT} And more."]
    assert hark.stored.deliveries("cause", source=Like("turn:%:s2:b0")) == [("said already",)]


async def test_a_restart_remembers_what_a_tool_said(tmp_path: Path) -> None:
    gate = Gate()
    tool = SendingTool(lambda: hark.service, whole=True)
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("?", answers=[Call("send", {"label": SENT}), Say("x", gate=gate)])
        await hark.model.until_requests(2)
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        hark.model.add(SENT)
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert hark.channel.texts() == []
