"""/stop and the plain words for it: what they end, for whom, how soon, and what they say of what was done."""

import asyncio
from pathlib import Path

import pytest

from agent.events import Outcome, ToolExecutionStart
from tests.bot.inbound.test_commands import command
from tests.bot.inbound.test_groups import CHAT, said, settings
from tests.scripted_model import texts
from tests.service import Hark, ScriptedTool, Watch, running, session_of
from tests.standins.script import Call, Hang

OPEN = settings({"require_mention": False})


async def idle(hark: Hark) -> None:
    await hark.until(lambda: not hark.stored.unfinished(), "the end of everything")


@pytest.mark.parametrize("word", ["stop", "STOP!!", " Abort. ", "cancel", "Arrête !", "停止。", "стоп"])
async def test_a_word_alone_stops_in_any_case_and_language(word: str, hark: Hark) -> None:
    await hark.hanging("hello")
    await hark.write("and more")
    assert await command(hark, word) == "Stopped. 1 waiting message dropped."
    assert [end.outcome for end in hark.ends(session_of("1"))] == [Outcome.ABORTED]


async def test_where_nothing_runs_that_is_said(hark: Hark) -> None:
    assert await command(hark, "stop") == "Nothing was running."
    assert not hark.model.requests


@pytest.mark.parametrize("text", ["stop it now", "don't stop", "stop\nstop"])
async def test_with_other_words_it_is_a_message(text: str, hark: Hark) -> None:
    assert (await hark.say(text, answers=["What should I stop?"])).texts == ["What should I stop?"]
    assert texts(hark.model.requests[0], "user")[0].endswith(f"\n{text}")
    assert hark.stored.messages("kind", "state") == [("message", "done")]


async def test_words_that_are_not_configured_stop_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, config={"queue": {"stop_words": ["Basta"]}}) as hark:
        await hark.hanging("hello")
        await hark.write("stop")
        assert await command(hark, "basta!") == "Stopped. 1 waiting message dropped."
        assert hark.stored.texts(state="dropped") == ["stop"]


async def test_in_a_group_a_word_counts_for_who_has_a_run_there_or_names_the_bot(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        hang = Hang()
        hark.model.add(hang)
        await hark.accept(said(hark, "hello", "2", mentioned=True))
        await hang.entered()
        await hark.accept(said(hark, "stop", "3"))
        assert hark.stored.messages("kind", "state") == [("message", "taken")], "it is overheard"
        await hark.accept(said(hark, "stop", "2"))
        assert await hark.until_texts(1, CHAT) == ["Stopped."]
        again = Hang()
        hark.model.add(again)
        await hark.accept(said(hark, "hello", "2", mentioned=True))
        await again.entered()
        await hark.accept(said(hark, "stop", "1", mentioned=True))
        assert await hark.until_texts(2, CHAT) == ["Stopped.", "Stopped."]


@pytest.mark.parametrize("text", ["/stop", "stop"])
async def test_guests_of_a_group_end_what_is_theirs_and_owners_everything(tmp_path: Path, text: str) -> None:
    async with running(tmp_path, config=OPEN) as hark:
        hang = Hang()
        hark.model.add(hang)
        await hark.accept(said(hark, "hello", "2"))
        await hang.entered()
        await hark.accept(said(hark, "me too", "3"), said(hark, "and me", "2"))
        await hark.accept(said(hark, text, "3"))
        assert await hark.until_texts(1, CHAT) == ["Nothing of yours was running. 1 waiting message dropped."]
        assert hark.stored.texts(state="dropped") == ["me too"]
        assert hark.stored.turns("state") == [("running",)]
        await hark.accept(said(hark, text, "1"))
        assert (await hark.until_texts(2, CHAT))[1] == "Stopped. 1 waiting message dropped."
        assert sorted(hark.stored.texts(state="dropped")) == ["and me", "me too"]


async def test_it_is_answered_while_a_tool_goes_on_that_cannot_be_stopped(tmp_path: Path) -> None:
    """The tool holds out until the test lets it go: the answer is there before, and the next message waits."""
    let_go = asyncio.Event()

    async def stubborn(label: str) -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", stubborn, watch)]) as hark:
        await hark.write("do it", answers=[Call("act", {"label": "x"})])
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
        assert await command(hark, "stop") == "Stopped."
        assert not let_go.is_set()
        assert hark.stored.turns("state") == [("stopped",)]
        await hark.write("go on", answers=["Next."])
        let_go.set()
        assert (await hark.until_texts(2))[1] == "Next."


async def test_it_names_what_was_done_before(tmp_path: Path) -> None:
    async def act(label: str) -> str:
        return label

    def tools(watch: Watch) -> list[ScriptedTool]:
        return [ScriptedTool("act", act, watch), ScriptedTool("look", act, watch)]

    config = {"tools": {"by_sender": {"telegram:*": {"profile": "full"}}}}
    async with running(tmp_path, config=config, tools=tools) as hark:
        for sender, done in (("1", "`act: one`, `look: two`"), ("2", "`act`, `look`")):
            hang = Hang()
            hark.model.add(Call("act", {"label": "one"}), Call("look", {"label": "two"}), Call("act", {"label": "one"}))
            hark.model.add(hang)
            await hark.write("do it", sender=sender)
            await hang.entered()
            assert await command(hark, "/stop", sender) == f"Stopped. Done before: {done}."
        await idle(hark)
