"""What is promised of every platform to people: who is heard where, what they may press, change and send."""

from pathlib import Path
from typing import Any

import pytest

from channels.actions import COMMON
from tests.bot.test_choices import Bar
from tests.offering import offer
from tests.standins.script import Call, Gate, Say
from tests.wire.platforms import ROOMS, SIDES
from tests.wire.stage import Stage, staged

pytestmark = pytest.mark.xdist_group("wire-platforms")
rooms = pytest.mark.parametrize("name", list(ROOMS))
every = pytest.mark.parametrize("name", list(SIDES))


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What every platform can do is offered."""
    offer(monkeypatch, COMMON)


@rooms
async def test_in_a_group_it_answers_what_is_for_it_where_it_was_said(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side, room = stage.side, stage.side.room
        side.say("between us", "bob", room)
        side.say(f"{side.somebody_else()} what do you think?", "alice", room)
        side.say("in a room that is not its own", "alice", side.other, mention=True)
        side.say("from nobody it knows", "carol")
        side.bot_says("beep", room)
        asked = side.say("are you there?", "alice", room, mention=True)
        below = side.answers_below(asked)
        await stage.until(lambda: side.posts(room, below) == ["re: are you there?"], "an answer")
        if below is None:
            side.reply("and you, my answer?", side.posted_ids(room)[-1], "bob", room)
        else:
            side.say("and you, my answer?", "bob", room, thread=below)
        side.say("privately", "alice")
        side.repeat(asked)
        await stage.settled()
        assert side.posts(room, below) == ["re: are you there?", "re: and you, my answer?"]
        assert side.posts() == ["re: privately"]
        assert side.posts(side.other) == []
        assert len(stage.model.requests) == 4, "with the mark"
        (seen,) = (text for text in words_to(stage) if text.endswith("are you there?"))
        assert "between us" in seen, "what was overheard is context"
        assert "not its own" not in told(stage)


@rooms
async def test_in_a_thread_it_goes_on_without_being_named_also_after_a_restart(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side, room = stage.side, stage.side.room
        async with stage.serving():
            ours = side.thread(side.say("a topic", "bob", room))
            theirs = side.thread(side.say("another topic", "bob", room))
            side.say("question", "alice", room, thread=ours, mention=True)
            await stage.until(lambda: side.posts(room, ours) == ["re: question"], "an answer")
            side.say("more", "bob", room, thread=ours)
            side.say("nothing for it", "bob", room, thread=theirs)
            await stage.settled()
        async with stage.serving():
            side.say(f"{side.somebody_else()} you, too?", "alice", room, thread=ours)
            side.say("still there?", "bob", room, thread=ours)
            side.say("nothing for it still", "bob", room, thread=theirs)
            await stage.settled()
        assert side.posts(room, ours) == ["re: question", "re: more", "re: still there?"]
        assert side.posts(room, theirs) == []
        assert side.posts() == []


@every
async def test_a_stranger_is_let_in_by_a_code_and_then_answered(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        side.say("let me in", "carol")
        side.say("please", "carol")
        await stage.until(lambda: side.posts(who="carol"), "a code")
        await stage.settled()
        told, kept = side.posts(who="carol")
        assert kept.startswith("I have kept that as well.")
        assert len(stage.model.requests) == 1, "the mark alone"
        code = next(word for word in told.replace("`", " ").split() if len(word) == 8 and word.isupper())
        side.say(f"!pairing approve {code}", "bob")
        await stage.settled()
        assert side.posts(who="carol") == [told, kept], "only owners let people in"
        side.say(f"!pairing approve {code}", "alice")
        await stage.passing(lambda: "re: please" in side.posts(who="carol"), "one answer to both")
        assert any(text.endswith("let me in") for text in words_to(stage))
        side.say("thank you", "carol")
        await stage.settled()
        assert side.posts(who="carol")[-1] == "re: thank you"


@every
async def test_commands_and_buttons_are_answered_once_also_after_a_restart(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage:
        side, bar = stage.side, Bar()
        stage.given["commands"] = bar.commands()
        async with stage.serving():
            side.command("/status")
            await stage.until(lambda: any("test/scripted" in text for text in side.shown()), "the status")
            side.say("!offer")
            await stage.until(lambda: any(bar.words in text for text in side.shown()), "a choice")
            await stage.settled()
        async with stage.serving():
            side.click(1)
            side.click(0)
            await stage.passing(lambda: any("Here is your" in text for text in side.shown()), "a drink")
            await stage.settled()
        assert len([text for text in side.shown() if "Here is your" in text]) == 1
        assert any("✓" in text for text in side.shown())


@every
async def test_signs_of_work_go_when_the_answer_is_there(name: str, tmp_path: Path) -> None:
    ack = {"ack": {"emoji": "👀", "scope": "direct"}}
    async with staged(name, tmp_path, section=ack) as stage, stage.serving():
        side, room, gate = stage.side, stage.side.room, Gate()
        stage.model.on("directly", Say("here", gate=gate))
        stage.model.on("in the room", Say("there", gate=gate))
        directly, asked = side.say("directly"), side.say("in the room", "alice", room, mention=True)
        below = side.answers_below(asked)
        await stage.until(lambda: side.marks(directly) and side.signs(), "a reaction and a sign")
        await stage.until(lambda: len(stage.model.requests) == 2, "both runs")
        assert (side.posts(), side.marks(asked)) == ([], [])
        gate.open()
        await stage.until(lambda: side.posts() == ["here"] and not side.marks(directly), "the answer in its place")
        await stage.until(lambda: side.posts(room, below) == ["there"], "the other answer")
        side.over()
        await stage.settled()


@every
async def test_the_reaction_says_what_it_does(name: str, tmp_path: Path) -> None:
    ack = {"ack": {"emoji": "👀", "states": {"done": "👌"}}}
    async with staged(name, tmp_path, section=ack) as stage, stage.serving():
        side, gate = stage.side, Gate()
        stage.model.on("directly", Say("here", gate=gate))
        directly = side.say("directly")
        thinks, done = ("thinking_face", "ok_hand") if name.startswith("slack") else ("🤔", "👌")
        await stage.until(lambda: side.marks(directly) == [thinks], "the sign of thinking in the place of the first")
        gate.open()
        await stage.until(lambda: side.posts() == ["here"] and side.marks(directly) == [done], "the end")


@every
async def test_what_the_model_writes_pings_nobody_and_shows_no_preview(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        words = f"@everyone @here <!channel> <!here> <@{side.bob}> @bob see https://evil.example/?secret=1"
        stage.model.on("direct", words)
        stage.model.on("room", words)
        side.say("direct")
        asked = side.say("room", "alice", side.room, mention=True)
        await stage.until(lambda: side.posts() and side.posts(side.room, side.answers_below(asked)), "both answers")
        assert side.loud() == []


@every
async def test_what_the_model_does_in_a_conversation_and_in_another_one(name: str, tmp_path: Path) -> None:
    """Its own messages are there when it is told so; a click on its button is what that person says."""
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        side.say("hello", "bob")
        await stage.until(lambda: side.posts(who="bob") == ["re: hello"], "an answer")
        ((chat, *_),) = {row[:1] for row in stage.stored.conversations("chat")}
        asked: tuple[dict[str, object], ...] = (
            {"action": "send", "text": "Lunch is ready.", "to": chat},
            {"action": "send", "text": "a typo"},
            {"action": "send", "text": "Tea or coffee?", "buttons": ["Tea", "Coffee"]},
        )
        stage.model.on("go", Call("message", asked[0]))
        for arguments in asked[1:]:
            stage.model.add(Call("message", arguments))
        stage.model.add("That is all.")
        side.say("go")
        await stage.passing(lambda: side.posts() == ["a typo", "Tea or coffee?", "That is all."], "the messages")
        assert side.posts(who="bob") == ["re: hello", "Lunch is ready."]
        typo = side.posted_ids()[0]
        results = [texts[0] for texts in stage.stored.results().values()]
        assert len(results) == 3
        assert f"Sent, id {typo}." in results
        stage.model.on("mend", Call("message", {"action": "edit", "message_id": typo, "text": "no typo"}))
        stage.model.add(Call("message", {"action": "react", "emoji": "👍"}))
        stage.model.add("Mended.")
        mend = side.say("mend")
        await stage.passing(lambda: side.posts()[-1:] == ["Mended."] and stage.at_rest(), "the edit")
        made = stage.stored.deliveries("action", "body", "state", action={"edit", "react"})
        assert [(action, state) for action, _, state in made] == [("edit", "sent"), ("react", "sent")]
        assert ("no typo" in made[0][1], len(side.marks(mend))) == (True, 1)
        side.click(1)
        await stage.passing(lambda: side.posts()[-1:] == ["re: Coffee"] and stage.at_rest(), "the answer to the click")
        side.say("what was that?", "bob")
        await stage.passing(lambda: side.posts(who="bob")[-1:] == ["re: what was that?"], "another answer")
        assert "from another conversation:)\n<sent>\nLunch is ready.\n</sent>\n" in told(stage)


@every
async def test_files_come_in_and_go_out(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        stage.model.add("I have read it.")
        side.attach("notes.txt", b"the number is 4711", "what is in it?")
        await stage.passing(lambda: side.posts() == ["I have read it."], "an answer")
        assert "the number is 4711" in told(stage)
        stage.model.on("send it", Call("write", {"path": "out.txt", "content": "words of mine"}))
        stage.model.add(Call("message", {"action": "upload", "path": "out.txt"}))
        stage.model.add("That is it.")
        side.say("send it")
        await stage.passing(lambda: side.posts()[-1:] == ["That is it."] and stage.at_rest(), "the file")
        assert side.files() == [("out.txt", 13)]


@every
async def test_an_edit_and_a_deletion_do_what_the_state_of_the_message_allows(name: str, tmp_path: Path) -> None:
    """Waiting: replaced, withdrawn. Being answered: said to the next turn. Answered: noted, and nothing runs."""
    async with staged(name, tmp_path) as stage, stage.serving():
        side, gate = stage.side, Gate()
        answered = side.say("old")
        await stage.until(lambda: side.posts() == ["re: old"], "an answer")
        stage.model.on("running", Say("done", gate=gate))
        running = side.say("running")
        await gate.reached()
        waiting = side.say("waiting")
        gone = side.say("never mind")
        side.edit(answered, "old, but different")
        side.edit(waiting, "waited")
        side.edit(running, "run")
        if side.deletes:
            side.delete(gone)
        await stage.until(lambda: not side.open, "acknowledgements")
        await stage.until(lambda: len(stage.stored.messages("seq")) == 7 + side.deletes, "everything")
        gate.open()
        await stage.settled()
        posts = side.posts()
        assert "done" in posts
        assert "re: waited" in posts
        assert not any("re: waiting" in text for text in posts)
        assert ("re: never mind" in posts) != side.deletes
        assert not any("re: old, but different" in text for text in posts), "what was answered runs no more"
        everything = told(stage)
        assert "edited: run" in everything
        assert "old, but different" in everything


def words_to(stage: Stage) -> set[str]:
    """What people's messages have become for the model."""
    requests: list[Any] = stage.model.requests
    return {message.text for request in requests for message in request.messages if message.role == "user"}


def told(stage: Stage) -> str:
    """All of it."""
    return "\n".join(words_to(stage))


async def test_a_stranger_who_uses_a_command_on_discord_is_given_the_code_as_its_answer(tmp_path: Path) -> None:
    async with staged("discord", tmp_path) as stage, stage.serving():
        side = stage.side
        carol = side.people["carol"]
        used = side.server.slash(carol, side.server.open_dm(carol), "status", {})
        await stage.until(lambda: used.original is not None and "code" in used.original["content"], "a code")
        await stage.settled()
        assert len(side.posts(who="carol")) <= 1, "in the place of the words that show that it is worked on"
        assert not side.server.unanswered()
        assert [one for one in stage.side.server.calls("POST /channels/*/messages") if "code" in str(one)] == []


async def test_deletions_on_discord_are_carried_out_also_of_messages_from_before_the_start(tmp_path: Path) -> None:
    """Whose they were is not told then."""
    async with staged("discord", tmp_path) as stage:
        side, room = stage.side, stage.side.room
        async with stage.serving():
            directly = side.say("the code is 4711")
            asked = side.say("it is red", "bob", room, mention=True)
            await stage.until(lambda: side.posts(room) == ["re: it is red"], "an answer")
            await stage.settled()
        async with stage.serving():
            side.delete(directly)
            side.delete(asked)
            side.say("what was it?")
            side.say("which colour?", "bob", room, mention=True)
            await stage.settled()
            seen = [text for text in words_to(stage) if text.endswith(("what was it?", "which colour?"))]
            assert ["was deleted" in text for text in seen] == [True, True]
