"""An answer that breaks off ends with an event, so that whoever shows it live knows what of it counts."""

from pathlib import Path

from agent.events import MessageEnd, MessageStart, Notice
from tests.service import running
from tests.standins.script import Break, Say

FIRST = "A sentence that stands. " * 60


async def test_a_broken_answer_ends_with_what_was_planned_of_it(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.model.add(Say(f"{FIRST}\n\nand a rest that"), Break())
        hark.model.add("The end.")
        reply = await hark.say("write")
        kinds = (MessageStart, MessageEnd, Notice)
        assert [type(event) for event in reply.events if isinstance(event, kinds)] == [
            *(MessageStart, MessageEnd, Notice),
            *(MessageStart, MessageEnd),
        ]
        cut, whole = reply.of(MessageEnd)
        assert (cut.cut, cut.step, whole.cut, whole.step) == (True, 1, False, 2)
        assert cut.text.strip() == "\n".join(reply.texts[:-1]).strip()
        kept = [event["id"] for event in hark.stored.events() if event["type"] == "message_end"]
        assert kept == [cut.id, whole.id]


async def test_a_broken_answer_of_which_nothing_was_planned_never_existed(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.model.add(Say("a rest that"), Break())
        hark.model.add("The end.")
        reply = await hark.say("write")
        assert [end.cut for end in reply.of(MessageEnd)] == [False]
