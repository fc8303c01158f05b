"""Messages during a run, in the real service: one turn of all, into the run, a turn each, or instead of the run."""

import asyncio
from dataclasses import replace
from pathlib import Path

from agent.events import Outcome
from bot.persistence.approvals import Choice
from channels.message import ChatKind, InboundMessage, Place
from tests.asking import AskingTool, approval
from tests.bot.inbound.test_debounce import asked
from tests.service import Hark, Json, running, session_of
from tests.service import ScriptedTool as Scripted
from tests.standins.script import Call, Hang
from tests.watch import Watch, lanes_idle

CHAT = "-5"


def under(mode: str, **queue: object) -> Json:
    """Everybody may write in a group, which answers all, under a mode."""
    groups = {"policy": "open", "require_mention": False}
    return {"queue": {"mode": mode, **queue}, "channels": {"telegram": {"groups": groups}}}


def in_group(hark: Hark, text: str, sender: str) -> InboundMessage:
    message = hark.message(text, sender)
    place = Place(channel="telegram", account="bot", chat=CHAT, kind=ChatKind.GROUP)
    origin = replace(message.origin, place=place, sender_name={"1": "Ada", "2": "Bob", "3": "Eve"}[sender])
    return replace(message, origin=origin, event_key=f"m:{CHAT}:{origin.message_id}")


async def busy(hark: Hark, text: str = "one") -> Hang:
    """Write a message, and return while the model answers it."""
    hang = await hark.hanging(text, then="first")
    return hang


async def test_what_several_people_write_meanwhile_is_one_turn_that_says_who_speaks(tmp_path: Path) -> None:
    async with running(tmp_path, config=under("collect")) as hark:
        hang = Hang()
        hark.model.add(hang, "first")
        await hark.accept(in_group(hark, "one", "1"))
        await hang.entered()
        hark.model.add("there")
        hark.model.add("to all")
        await hark.accept(in_group(hark, "two", "2"))
        await hark.accept(in_group(hark, "three", "3"))
        await hark.write("elsewhere")
        await hark.until_texts(1)
        hang.release()
        assert await hark.until_texts(2, CHAT) == ["first", "to all"]
        last = hark.model.requests[-1].messages
        assert [one.text.split("] ")[1] for one in last[-2:]] == [
            f'"Bob" (id 2) in chat {CHAT}:\ntwo',
            f'"Eve" (id 3) in chat {CHAT}:\nthree',
        ]


async def test_in_a_mode_of_the_channel_each_is_a_turn(tmp_path: Path) -> None:
    config = {"queue": {"mode": "interrupt"}, "channels": {"telegram": {"queue": {"mode": "followup"}}}}
    async with running(tmp_path, config=config) as hark:
        hang = await busy(hark)
        await hark.write("two")
        await hark.write("three")
        hang.release()
        await hark.until_texts(3)
        assert asked(hark) == [["one"], ["two"], ["three"]]


async def test_what_steers_is_read_behind_the_running_call_and_the_rest_is_skipped(tmp_path: Path) -> None:
    block, begun = asyncio.Event(), list[Scripted]()

    async def wait(label: str) -> str:
        await block.wait()
        return f"did {label}"

    def tools(watch: Watch) -> list[Scripted]:
        begun.append(Scripted("act", wait, watch))
        return begun

    async with running(tmp_path, config=under("steer"), tools=tools) as hark:
        hark.model.add(Call("act", {"label": "a"}), Call("act", {"label": "b"}), Call("ask_person", {"question": "?"}))
        hark.model.add("Blue it is.")
        await hark.write("paint it red")
        await hark.until(lambda: begun[0].begun, "the call")
        await hark.write("no, blue")
        block.set()
        assert await hark.until_texts(1) == ["Blue it is."]
        await lanes_idle()
        assert begun[0].begun == ["a"]
        assert hark.stored.calls("name", "state") == [("act", "done"), ("act", "denied"), ("ask_person", "denied")]
        last = hark.model.requests[-1].messages
        assert [message.role for message in last] == ["user", "assistant", "tool", "user"]
        assert [result.text.partition(":")[0] for result in last[2].tool_results] == ["did a", *["Not executed"] * 2]
        assert last[-1].text.endswith("no, blue")
        assert hark.stored.turns("state") == [("done",)]


async def test_what_steers_while_a_model_answers_keeps_its_calls_from_beginning(tmp_path: Path) -> None:
    tool = AskingTool()
    async with running(tmp_path, config=under("steer"), tools=lambda watch: [tool]) as hark:
        hang = Hang()
        await hark.write("do it", answers=[(hang, Call("ask", {"label": "it"})), "As you like."])
        await hang.entered()
        await hark.write("rather not")
        hang.release()
        assert await hark.until_texts(1) == ["As you like."], "nobody is asked about it"
        assert hark.stored.approvals() == []


async def test_what_steers_a_run_that_asks_waits_for_the_decision(tmp_path: Path) -> None:
    tool = AskingTool()
    async with running(tmp_path, config=under("steer"), tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "done"])
        ident = await approval(hark)
        await hark.write("and be quick")
        await lanes_idle()
        assert hark.stored.messages("state") == [("taken",), ("steering",)]
        hark.time.advance(1)
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        await hark.until(lambda: "done" in hark.channel.texts())
        assert tool.begun == ["it"], "what was allowed after it is done"
        assert hark.model.requests[-1].messages[-1].text.endswith("and be quick")


async def test_a_guest_does_not_join_the_run_of_an_owner(tmp_path: Path) -> None:
    async with running(tmp_path, config=under("steer")) as hark:
        hang = Hang()
        hark.model.add(hang, "for you")
        hark.model.add("for all")
        await hark.accept(in_group(hark, "one", "1"))
        await hang.entered()
        await hark.accept(in_group(hark, "and read me the keys", "2"))
        hang.release()
        assert await hark.until_texts(2, CHAT) == ["for you", "for all"]
        assert hark.stored.turns("state") == [("done",)] * 2


async def test_the_newest_is_answered_instead(tmp_path: Path) -> None:
    async with running(tmp_path, config=under("interrupt")) as hark:
        hang = await busy(hark)
        await hark.write("two", answers=["second"])
        assert await hark.until_texts(1) == ["second"]
        await hark.until(lambda: len(hark.ends(session_of("1"))) == 2)
        assert [end.outcome for end in hark.ends(session_of("1"))] == [Outcome.ABORTED, Outcome.COMPLETED]
        assert hark.model.active == 0
        hang.release()


async def test_the_newest_ends_what_waits_for_a_decision_and_its_request(tmp_path: Path) -> None:
    tool = AskingTool()
    async with running(tmp_path, config=under("interrupt"), tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "second"])
        await approval(hark)
        await hark.write("something else")
        await hark.until(lambda: "second" in hark.channel.texts())
        await hark.until(lambda: not hark.stored.approvals(told=0), "the end of the request shown")
        assert (tool.begun, hark.stored.approvals("state")) == ([], [("expired",)])


async def test_what_is_beyond_the_cap_stands_in_short_before_the_next_message(tmp_path: Path) -> None:
    async with running(tmp_path, config=under("followup", cap=2)) as hark:
        hang = await busy(hark)
        for text in ("a" * 200, "<dropped> two", "three", "four"):
            await hark.write(text)
        told = (await hark.until_texts(1))[0]
        assert "More than 2 messages would wait here" in told
        hang.release()
        await hark.until_texts(4)
        assert len(hark.channel.texts()) == 4, "it is said once"
        (next_one,), (last,) = asked(hark)[1:]
        begun = hark.model.requests[1].messages[-1].text
        assert begun.startswith("(Too much came at once, so that this was dropped; here is how each message began.)")
        lines = begun.split("\n")
        assert lines[1] == "<dropped>"
        assert lines[2].endswith(f"(id 1): {'a' * 140}…")
        assert lines[3].endswith("(id 1): ‹dropped> two")
        assert lines[4:] == ["</dropped>", lines[5], "three"]
        assert (next_one.endswith("three"), last) == (True, "four")


async def test_the_command_says_and_changes_the_mode(tmp_path: Path) -> None:
    async with running(tmp_path, config=under("collect")) as hark:
        hang = await busy(hark)
        await hark.write("two")
        await hark.write("/queue")
        said = (await hark.until_texts(1))[0]
        assert "I answer all of it together (`collect`, as configured). 1 message waits." in said
        (shown,) = [delivery for delivery in hark.channel.sent if delivery.buttons]
        assert [button.sends for button in shown.buttons] == ["/queue steer", "/queue followup", "/queue interrupt"]
        await hark.write("/queue interrupt")
        assert "I stop and answer the newest (`interrupt`, chosen here)" in (await hark.until_texts(2))[1]
        await hark.write("three")
        await hark.until_texts(4)
        assert asked(hark)[1][-1] == "three"
        await hark.write("/queue default")
        assert "(`collect`, as configured)" in (await hark.until_texts(5))[4]
        hang.release()


async def test_guests_have_the_command_in_their_own_chat_alone(tmp_path: Path) -> None:
    async with running(tmp_path, config=under("collect")) as hark:
        await hark.write("/queue steer", sender="2")
        assert "`steer`, chosen here" in (await hark.until_texts(1, "2"))[0]
        hark.model.add("no idea")
        await hark.accept(in_group(hark, "/queue steer", "2"))
        assert await hark.until_texts(1, CHAT) == ["no idea"]
        await hark.accept(in_group(hark, "/queue steer", "1"))
        assert "`steer`, chosen here" in (await hark.until_texts(2, CHAT))[1]
