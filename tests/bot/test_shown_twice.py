"""Previews and suppressed words where something goes wrong: nothing is lost, nothing stands there twice."""

import asyncio
from pathlib import Path

from channels.message import ChatMoved
from channels.outgoing import Action, Delivery, NotSent, SendResult, Sent
from tests.asking import SendingTool
from tests.bot.gateway.test_agent_api import finished, submit
from tests.bot.replies.test_showing import SENT, Previewing, previewed, shown, streaming
from tests.service import Hark, ScriptedTool, running
from tests.standins.script import Break, Call, Gate, Say
from tests.stored import Like

BEGINNING = "The answer begins here and is long enough."
WHOLE = f"{BEGINNING} The end."
PARAGRAPHS = [f"Paragraph {n} of an answer that is cut into several messages, each of which is seen." for n in range(9)]


async def tried_again(hark: Hark, requests: int = 1) -> None:
    """The stream has broken, and the model is asked again."""
    await hark.model.until_requests(requests)
    await hark.until(lambda: hark.model.active == 0)
    hark.time.advance(30)


async def ended(hark: Hark, state: str = "done") -> None:
    await hark.until(lambda: hark.stored.turns(state=state))
    await hark.delivered()


async def test_previews_of_two_broken_answers_do_not_meet(tmp_path: Path) -> None:
    gate, then = Gate(), Gate()
    config = streaming(mode="preview", min_chars=50, max_chars=100)
    async with running(tmp_path, config=config, made=Previewing) as hark:
        hark.model.add(Say(BEGINNING, chunks=1, gate=gate), Break())
        hark.model.add(Call("read", {"path": "none"}))
        text = "\n\n".join(PARAGRAPHS[:4])
        hark.model.add(Say(text[:244], chunks=[text[:240], text[240:244]], gate=then), Break())
        hark.model.add("And that is all.")
        await hark.write("a question")
        await previewed(hark, gate, 1)
        gate.open()
        await tried_again(hark)
        then.let(1)
        await hark.until(
            lambda: hark.stored.deliveries("source", source=Like("%:s2:b2"), state="sent"), "the second preview"
        )
        then.open()
        await hark.until(lambda: hark.model.active == 0)
        hark.time.advance(30)
        await ended(hark)
        assert BEGINNING not in shown(hark.channel)
        assert shown(hark.channel) == [*PARAGRAPHS[:2], "And that is all."]


async def test_an_edit_under_way_does_not_take_the_place_of_the_last(tmp_path: Path) -> None:
    gate, again, held, editing = Gate(), Gate(), asyncio.Event(), []
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        channel = hark.channel

        async def slow(delivery: Delivery) -> SendResult:
            if delivery.action is Action.EDIT and delivery.body != WHOLE:
                editing.append(delivery.body)
                hark.watch.changed()
                await held.wait()
            return Sent("1")

        channel.on_send = slow
        hark.model.add(Say(BEGINNING, chunks=1, gate=gate), Break())
        hark.model.add(Say(WHOLE, chunks=[WHOLE[:-4], WHOLE[-4:]], gate=again))
        await hark.write("a question")
        await previewed(hark, gate, 1)
        gate.open()
        await tried_again(hark)
        again.let(1)
        await hark.until(lambda: editing or hark.time.pauses(1.0) > 1)  # one is of the outbox
        again.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        held.set()
        await hark.delivered()
        assert shown(channel) == [WHOLE]


async def test_a_preview_that_waits_is_sent_as_the_whole_answer(tmp_path: Path) -> None:
    gate = Gate()
    held, tries = asyncio.Event(), 0

    async def busy(delivery: Delivery) -> SendResult:
        nonlocal tries
        tries += 1
        hark.watch.changed()
        if tries > 1:
            return Sent("1")
        await held.wait()
        return NotSent(5.0, "429")

    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        hark.channel.on_send = busy
        await hark.write("a question", answers=[Say(WHOLE, chunks=[BEGINNING, WHOLE[42:]], gate=gate)])
        gate.let(1)
        await hark.until(lambda: tries)
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        held.set()
        await hark.until(lambda: hark.stored.deliveries("state") != [("sending",)])
        hark.time.advance(60)
        await hark.delivered()
        assert [(sent.action, sent.body) for sent in hark.channel.sent] == [(Action.SEND, WHOLE)]


async def test_a_preview_of_what_a_tool_has_said_goes_away(tmp_path: Path) -> None:
    gate = Gate()
    config = streaming(mode="preview", min_chars=50, max_chars=100)
    answer = f"{PARAGRAPHS[0]}\n\n**{SENT}**"
    async with running(
        tmp_path, config=config, made=Previewing, tools=lambda watch: [SendingTool(lambda: hark.service, whole=True)]
    ) as hark:
        hark.model.add(Call("send", {"label": SENT}))
        hark.model.add(Say(answer, chunks=[answer[:-12], answer[-12:]], gate=gate))
        await hark.write("?")
        gate.let(1)
        await hark.until_texts(3)
        gate.open()
        await ended(hark)
        assert shown(hark.channel) == [SENT, PARAGRAPHS[0]]
        assert hark.channel.sent[-1].action is Action.DELETE
        assert hark.stored.deliveries("unless", source=Like("turn:%:b1"))[0][0].startswith("tool:")


async def test_a_preview_follows_a_chat_that_moved(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        await hark.write("a question", answers=[Say(WHOLE, chunks=[BEGINNING, WHOLE[42:]], gate=gate)])
        await previewed(hark, gate, 1)
        await hark.delivered()
        moved = ChatMoved(channel="telegram", account="bot", old_chat="1", new_chat="-100")
        await hark.service.parts.pipeline.accept([moved], None)
        gate.open()
        await ended(hark)
        assert [sent.place.chat for sent in hark.channel.sent] == ["1", "-100"]


async def test_a_stop_lets_what_was_said_end_its_preview(tmp_path: Path) -> None:
    gate, held = Gate(), asyncio.Event()

    async def wait() -> None:
        await held.wait()

    async def busy(delivery: Delivery) -> SendResult:
        if delivery.action is Action.EDIT and not hark.stored.turns(state="stopped"):
            return NotSent(5.0, "429")
        return Sent(str(len(hark.channel.sent) + 1))

    tool = SendingTool(lambda: hark.service, wait)
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing, tools=lambda watch: [tool]) as hark:
        hark.channel.on_send = busy
        hark.model.add(Say(WHOLE, chunks=[BEGINNING, WHOLE[42:]], gate=gate), Call("send", {"label": ""}))
        await hark.write("a question")
        await previewed(hark, gate, 1)
        gate.open()
        await hark.until(lambda: hark.stored.calls(state="running"))
        await hark.write("/stop")
        await hark.until(lambda: hark.stored.turns(state="stopped"))
        hark.time.advance(60)
        await hark.delivered()
        assert shown(hark.channel) == [WHOLE, "Stopped."]


async def test_a_file_named_before_a_break_is_sent_once(tmp_path: Path) -> None:
    config = streaming(min_chars=50, max_chars=100)
    first = f"MEDIA: plot.png\n{PARAGRAPHS[0]}\n\n{PARAGRAPHS[1]}"
    async with running(tmp_path, config=config) as hark:
        (tmp_path / "workspace" / "plot.png").write_bytes(b"x")
        hark.model.add(Say(first), Break())
        hark.model.add(PARAGRAPHS[1], Call("read", {"path": "none"}))
        hark.model.add("MEDIA: plot.png\nThat is it.")
        await hark.write("?")
        await tried_again(hark)
        await ended(hark)
        assert [sent.file.name if sent.file else sent.body for sent in hark.channel.sent] == [
            *PARAGRAPHS[:2],
            "plot.png",
            "That is it.",
        ]


async def test_a_file_that_was_sent_before_a_restart_is_not_sent_again(tmp_path: Path) -> None:
    async def hang(label: str) -> str:
        await asyncio.Event().wait()
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", hang, watch)]) as hark:
        (tmp_path / "workspace" / "plot.png").write_bytes(b"x")
        await hark.write("?", answers=[("MEDIA: plot.png\nHere it is.", Call("act", {"label": "a"}))])
        await hark.until(lambda: hark.stored.calls(state="running"))
        await hark.delivered()
        assert [sent.file is not None for sent in hark.channel.sent] == [False, True]
    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", hang, watch)]) as hark:
        hark.model.add("MEDIA: plot.png\nThat was all.")
        await ended(hark)
        assert [sent.file.name if sent.file else sent.body for sent in hark.channel.sent] == ["That was all."]


async def test_the_rest_of_a_cut_answer_is_no_repetition(tmp_path: Path) -> None:
    config = streaming(min_chars=50, max_chars=100)
    async with running(tmp_path, config=config) as hark:
        hark.model.add(PARAGRAPHS[2], Call("read", {"path": "none"}))
        hark.model.add(Say("\n\n".join(PARAGRAPHS[:2])), Break())
        hark.model.add(PARAGRAPHS[2])
        await hark.write("?")
        await tried_again(hark, 2)
        await ended(hark)
        assert hark.channel.texts() == [PARAGRAPHS[2], PARAGRAPHS[0], PARAGRAPHS[2]]


async def test_what_is_left_out_of_a_cut_answer_is_part_of_it(tmp_path: Path) -> None:
    """The tool has said it, so people have seen it: the model is told that it said so."""
    config = streaming(min_chars=50, max_chars=100)
    tool = SendingTool(lambda: hark.service, whole=True)
    async with running(tmp_path, config=config, tools=lambda watch: [tool]) as hark:
        hark.model.add(Call("send", {"label": PARAGRAPHS[1]}))
        gate = Gate()
        text = "\n\n".join(PARAGRAPHS[:4])
        await hark.write("?", answers=[(Say(text, chunks=[text[:-20], text[-20:]], gate=gate), Break()), "The end."])
        gate.let(1)
        await hark.until_texts(3)
        await hark.delivered()
        gate.open()
        await tried_again(hark, 2)
        await ended(hark)
        assert hark.channel.texts() == [PARAGRAPHS[1], PARAGRAPHS[0], PARAGRAPHS[2], "The end."]
        (cut,) = hark.stored.entries("body", kind="assistant_cut")
        assert PARAGRAPHS[1] in cut[0]


async def test_programs_read_no_directives_and_nothing_twice(hark: Hark) -> None:
    hark.model.add("[[reply_to_current]]Here it is.", Call("read", {"path": "none"}))
    hark.model.add("**Here it is.**", Call("read", {"path": "none"}))
    hark.model.add("NO_REPLY\n\nAnd more.\nMEDIA: plot.png")
    turn = await finished(hark, (await submit(hark, "?")).turn_id)
    assert turn.text.startswith("Here it is.\n\nAnd more.")
    assert "MEDIA" not in turn.text
