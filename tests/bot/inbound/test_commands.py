"""Commands from the chat and from programs, in the real service: what they do, say, and leave readable."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agent.events import AgentEnd, Outcome, ToolExecutionStart
from bot import wording
from bot.persistence.turns import TurnState, TurnView
from bot.store.retries import ASKED_AGAIN
from channels.message import Attachment, ChatKind, Place
from channels.outgoing import Delivery, SendResult, Sent
from channels.session_key import http_key
from tests.bot.inbound.test_groups import CHAT, said, settings
from tests.scripted_model import texts
from tests.service import Hark, ScriptedTool, running, session_of
from tests.standins.script import Call, Gate, Hang, Say

ANSWERS = "`test/scripted` answers."
BEGINS = "Begin a new conversation; the old one is kept."
NEW = f"New conversation. {ANSWERS}"
OWNERS = (
    "\n- /pairing \\<action> [code] – Who asks to write to me, and the codes that they were given.",
    "\n- /people [action] [who] – Who may write to me and who may not, and what is to change: revoke, block or owner,"
    " and who.",
    "\n- /approve [id] [decision] [reason] – Decide about what I ask for.",
    "\n- /approvals – What waits for a decision.",
    "\n- /why – What I asked and did last, and because of what.",
    "\n- /schedule [action] [details] – Reminders and jobs: list; at TIME, every 2h or cron “0 9 * * 1-5”, and what to"
    " do; pause, resume, … ID.",
    "\n- /heartbeat [action] – Whether and when I look by myself what needs attention.",
    "\n- /restart – Start anew, as soon as nothing runs.",
    "\n- /config [action] [key] [value] – What is configured, and its change.",
    "\n- /allowlist [action] [who] – Who may write to me directly without being an owner: list, add or remove, and"
    " who.",
    "\n- /sessions [action] [what] – The transcripts of this place; search all for words, or resume an older one.",
    "\n- /export [format] – This conversation as a file.",
    "\n- /skills [order] [name] – What skills there are; accept NAME: you have looked at it.",
    "\n- /skill \\<name> [words] – Have me use a skill.",
    "\n- /subagents [action] [which] – Which sub-agents are at work; stop ID ends one.",
    "- /budget [choice] [turn] – What waits for a budget: more, cheaper or tomorrow.\n",
    "- /freeze [what] – Stop everything, or only tools, the network or beats, until /thaw.\n",
    "- /thaw – Let go on what was frozen.\n",
    "- /send [mode] – Whether what I say in this conversation is sent.\n",
)


def without(listed: str) -> str:
    """A list of commands as others get it."""
    for line in OWNERS:
        assert line in listed
        listed = listed.replace(line, "")
    return listed


async def command(hark: Hark, text: str, sender: str = "1") -> str:
    """What a command is answered."""
    sent = len(hark.channel.texts(sender))
    await hark.write(text, sender=sender)
    return (await hark.until_texts(sent + 1, sender))[sent]


async def ask(hark: Hark, text: str, name: str = "x") -> TurnView:
    """The same over the interface for programs."""
    place = Place(channel="http", account="", chat=name, kind=ChatKind.API)
    turn = await hark.service.parts.api.submit(text, http_key(name), place, "program")
    view = await hark.service.parts.api.wait(turn.turn_id, 10)
    assert view is not None
    return view


async def test_help(hark: Hark) -> None:
    listed = await command(hark, "/help")
    for name in ("/help [command]", "/start", "/status", "/stop", "/new [model] [words]", "/retry"):
        assert f"- {name} – " in listed
    assert await command(hark, "/commands") == listed
    assert await command(hark, " /HELP ") == await command(hark, "!help") == listed
    assert await command(hark, "/help stop") == "`/stop` Stop the run, and drop what waits. Also: /abort."
    assert await command(hark, "/help /new") == "`/new [model] [words]` " + BEGINS
    assert await command(hark, "/help dance") == "There is no command 'dance'. /help lists all."
    assert await command(hark, "/help", sender="2") == without(listed)
    assert await command(hark, "/help pairing", sender="2") == "There is no command 'pairing'. /help lists all."
    assert hark.model.requests == []
    assert (await ask(hark, "/help")).text == without(listed)
    assert hark.stored.entries() == []


async def test_wrong_arguments_are_explained(hark: Hark) -> None:
    answer = await command(hark, "/models here")
    assert answer == "/models takes nothing behind it, and 'here' was there. Usage: /models"
    assert hark.model.requests == []


async def test_stop_stops_whatever_is_written_behind_it(hark: Hark) -> None:
    assert await command(hark, "/stop it now") == "Nothing was running."


@pytest.mark.parametrize(
    "text",
    [
        "/dance",
        "!dance",
        "/usr/bin/python is missing",
        "/ stop",
        "say /stop",
        "/stopping",
        "//stop",
    ],
)
async def test_what_is_no_command_goes_to_the_model(text: str, hark: Hark) -> None:
    assert (await hark.say(text, answers=["I see."])).texts == ["I see."]
    assert texts(hark.model.requests[0], "user")[0].endswith(f"\n{text}")


async def test_status_is_answered_during_a_run(hark: Hark) -> None:
    hang = await hark.hanging("hello")
    await hark.write("and more")
    shown = await command(hark, "/status")
    assert "test/scripted" in shown
    assert "**This conversation** answering, 1 waiting" in shown
    assert "**Runs** 1 running, 1 waiting" in shown
    assert "- **Telegram** ready" in shown
    assert "Console" not in shown  # not enabled
    for_others = await command(hark, "/status", sender="2")
    assert "idle, 0 waiting" in for_others
    assert "Service" not in for_others
    assert "Telegram" not in for_others
    hang.release()


async def test_stop_ends_a_tool_that_would_run_for_ever_and_drops_what_waits(tmp_path: Path) -> None:
    stopped = asyncio.Event()

    async def forever(label: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", forever, watch)]) as hark:
        await hark.write("do it", answers=[("I begin.", Call("act"))])
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
        assert await hark.until_texts(1) == ["I begin."]
        await hark.write("first", "second", "third")
        await hark.write("somebody else", sender="2")
        assert await command(hark, "/stop") == "Stopped. 3 waiting messages dropped."
        await asyncio.wait_for(stopped.wait(), 5)
        (end,) = hark.ends(session_of("1"))
        assert end.outcome is Outcome.ABORTED
        assert await command(hark, "/stop") == "Nothing was running."
        await hark.until_texts(1, "2")
        assert hark.stored.texts(state="dropped", reason="stop") == ["first", "second", "third"]
        assert (await hark.say("hello", answers=["Hello again."])).texts == ["Hello again."]


async def test_stop_takes_back_what_was_not_sent_yet(tmp_path: Path) -> None:
    """What is under way arrives, what waits behind it does not, and the answer to /stop is the last word."""
    config = {"channels": {"telegram": {"streaming": {"min_chars": 1, "max_chars": 64}}}}
    async with running(tmp_path, config=config) as hark:
        gate, may_send = Gate(), asyncio.Event()

        async def slow(delivery: Delivery) -> SendResult:
            await may_send.wait()
            return Sent()

        hark.channel.on_send = slow
        hark.model.add(Say("One paragraph.\n\nTwo paragraphs.\n\nThree paragraphs.\n\n"), Say("Four.", gate=gate))
        await hark.write("talk")
        await gate.reached()
        await hark.until(lambda: len(hark.stored.deliveries()) == 2)
        await hark.write("/stop")
        await hark.until(lambda: hark.ends(session_of("1")))
        may_send.set()
        assert await hark.until_texts(2) == ["One paragraph.", "Stopped."]
        await hark.delivered()
        hark.channel.on_send = None
        await hark.say("go on")
        assert texts(hark.model.requests[1], "assistant") == ["One paragraph.\n\n"]


async def test_two_stops_at_once_stop_once(hark: Hark) -> None:
    await hark.hanging("hello")
    await hark.write("/stop", "/stop")
    assert sorted(await hark.until_texts(2)) == ["Nothing was running.", "Stopped."]
    assert len(hark.ends(session_of("1"))) == 1


async def test_a_command_that_comes_twice_is_carried_out_once(hark: Hark) -> None:
    message = hark.message("/new")
    await hark.accept(message, message)
    await hark.accept(message)
    await hark.write("/status")
    assert (await hark.until_texts(2))[0] == NEW
    assert "scripted" in hark.channel.texts()[1]


@pytest.mark.parametrize("name", ["/new", "/reset"])
async def test_a_new_conversation_keeps_the_old_one_readable(name: str, hark: Hark) -> None:
    await hark.say("remember the blue door")
    await hark.hanging("what was it?")
    await hark.write("please")
    hark.time.advance(1)
    stopped = "New conversation. What was running is stopped. 1 waiting message dropped."
    assert await command(hark, name) == f"{stopped} {ANSWERS}"
    await hark.say("hello")
    request = hark.model.requests[-1]
    assert [message.text.rpartition("\n")[2] for message in request.messages] == ["hello"]
    ((new,),) = hark.stored.sessions("transcript_id", session_key=session_of("1"))
    assert [kind for (kind,) in hark.stored.entries("kind", transcript_id=new)] == ["user", "assistant"]
    old = [line for line in hark.stored.entries("kind", "body", "transcript_id") if line[2] != new]
    assert [kind for kind, _, _ in old] == ["user", "assistant", "user", "note"]
    assert "blue door" in old[0][1]


async def test_commands_of_programs(hark: Hark) -> None:
    hang = Hang()
    hark.model.add(hang)
    running_turn = asyncio.create_task(ask(hark, "hello"))
    await hang.entered()
    stop = await ask(hark, "/stop")
    assert (stop.state, stop.text, stop.outcome) == (TurnState.DONE, "Stopped.", "completed")
    view = await running_turn
    assert (view.state, view.outcome) == (TurnState.STOPPED, "aborted")
    assert (await ask(hark, "/new")).text == NEW
    assert (await ask(hark, "what is this?")).state is TurnState.DONE


async def test_a_command_that_fails_inside_is_answered(monkeypatch: pytest.MonkeyPatch, hark: Hark) -> None:

    async def fail(session_key: str) -> int:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(hark.service.parts.store.inbox, "count_waiting", fail)
    assert await command(hark, "/status") == wording.INTERNAL_ERROR
    assert hark.stored.messages("state") == [("done",)]


async def test_a_command_that_was_accepted_before_the_end_is_carried_out_after_the_start(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("remember the blue door")
        hark.service.parts.commands.begin = lambda *_: None  # type: ignore[method-assign]  # the process ends first
        await hark.write("/new")
    async with running(tmp_path) as hark:
        assert await hark.until_texts(1) == [NEW]
        await hark.say("hello")
        assert len(hark.model.requests[0].messages) == 1


async def test_stop_of_one_session_leaves_the_others(hark: Hark) -> None:
    first, second = Hang(), Hang()
    hark.model.on("first", first, "done one")
    hark.model.on("second", second, "done two")
    await hark.write("first", sender="1")
    await hark.write("second", sender="2")
    await first.entered()
    await second.entered()
    assert await command(hark, "/stop", sender="1") == "Stopped."
    second.release()
    assert await hark.until_texts(1, "2") == ["done two"]
    assert [event.outcome for event in hark.events if isinstance(event, AgentEnd)] == [
        Outcome.ABORTED,
        Outcome.COMPLETED,
    ]


async def test_a_command_for_another_bot_is_nobodys_business(hark: Hark) -> None:
    await hark.write("/stop@another_bot")
    assert (await hark.say("hello")).texts == ["echo: [Tue 2026-07-14 03:33 UTC]\nhello"]
    assert len(hark.model.requests) == 1


# /retry: the last message is answered again, once for each command, with its files and in the name of its sender.


async def test_the_last_message_is_answered_again_with_its_files(hark: Hark) -> None:
    hark.channel.files["r1"] = b"the numbers"
    file = Attachment(kind="file", ref="r1", name="a.txt", mime="text/plain", size=11)
    hark.model.add("One.")
    await hark.accept(replace(hark.message("what is this?"), attachments=(file,)))
    await hark.until_texts(1)
    hark.model.add("Two.")
    retry = hark.message("/retry")
    await hark.accept(retry, retry)
    await hark.accept(retry)
    assert await hark.until_texts(2) == ["One.", "Two."]
    asked = texts(hark.model.requests[1], "user")
    assert sum("what is this?" in one for one in asked) == 2, "the earlier answer stays"
    assert sum("a.txt" in one for one in asked) >= 2
    assert ASKED_AGAIN in asked[-1] or ASKED_AGAIN in asked[-2]
    await hark.write("/retry", answers=["Three."])
    assert (await hark.until_texts(3))[2] == "Three."
    assert "/retry" not in "".join(texts(hark.model.requests[2], "user"))


async def test_not_while_it_is_being_answered_and_not_without_a_message(hark: Hark) -> None:
    assert await command(hark, "/retry") == "There is no message here to answer again."
    await hark.hanging("hello")
    assert (await command(hark, "/retry")).startswith("I am not done with that message yet")
    assert await command(hark, "/stop") == "Stopped."
    hark.model.add("Now.")
    assert await command(hark, "/retry") == "Now."


async def test_guests_of_a_group_repeat_their_own_message_with_their_own_rights(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings({"require_mention": False})) as hark:
        for sender in ("2", "3"):
            await hark.accept(said(hark, f"from {sender}", sender))
            await hark.until(lambda: not hark.stored.unfinished())
        for sender, whose in (("2", "2"), ("1", "2")):
            count = len(hark.channel.texts(CHAT))
            await hark.accept(said(hark, "/retry", sender))
            answer = (await hark.until_texts(count + 1, CHAT))[count]
            assert f"(id {whose})" in answer
            assert f"from {whose}" in answer
            await hark.until(lambda: not hark.stored.unfinished())
            assert hark.stored.messages("sender", "kind")[-1] == (whose, "message")
