"""Sessions in a service that runs: the commands, the files, what guests have of it, and pruning."""

import json
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.persistence.sessions import NoSuchTranscript
from bot.sessions.service import Sessions
from channels.outgoing import Action
from tests.asking import AskingTool, approval
from tests.service import Hark, running, session_of
from tests.standins.script import Call, Hang

KEY = session_of("1")
DAY = 24 * 3600 * 1000


def of(hark: Hark) -> Sessions:
    return hark.service.parts.sessions


async def told(hark: Hark, text: str, sender: str = "1") -> str:
    """What a command is answered."""
    seen = len(hark.channel.texts(sender))
    await hark.write(text, sender=sender)
    return (await hark.until_texts(seen + 1, sender))[seen]


async def talk(hark: Hark, question: str, answer: str, sender: str = "1") -> str:
    """Ask and be answered; returns the transcript."""
    await hark.say(question, sender, answers=[answer])
    ((transcript,),) = hark.stored.sessions("transcript_id", session_key=session_of(sender))
    return str(transcript)


def exports(hark: Hark) -> int:
    """The number of files that were made to be sent."""
    return len(list((hark.state / "exports").glob("*/*")))


def asked(hark: Hark) -> list[str]:
    """The words of the messages of the last request."""
    return [message.text for message in hark.model.requests[-1].messages]


async def test_transcripts_of_the_place_are_listed_and_resumed(hark: Hark) -> None:
    first = await talk(hark, "about apples", "yes")
    hark.time.advance(1)  # ids of one moment begin alike
    await talk(hark, "a guest", "yes", sender="2")
    await told(hark, "/new")
    second = await talk(hark, "about pears", "yes")
    rows = (await told(hark, "/sessions")).splitlines()
    assert len(rows) == 2
    assert f"now: `{second[:14]}`" in rows[0] and "2 messages" in rows[0] and "about pears" in rows[0]  # noqa: PT018
    assert f"`{first[:14]}`" in rows[1] and "about apples" in rows[1]  # noqa: PT018
    assert first[:14] in await told(hark, f"/sessions resume {first[:14]}")
    assert await talk(hark, "and on?", "on") == first
    assert ["about apples" in "".join(asked(hark)), "about pears" in "".join(asked(hark))] == [True, False]
    assert "There is no session" in await told(hark, "/sessions resume ffffffff")
    assert "More than one" in await told(hark, f"/sessions resume {first[:2]}")
    assert "/sessions resume TRANSCRIPT" in await told(hark, "/sessions resume")


async def test_resuming_stops_what_runs(hark: Hark) -> None:
    first = await talk(hark, "one", "1")
    await told(hark, "/new")
    await hark.write("two", answers=[Hang()])
    await hark.until(lambda: len(hark.model.requests) == 2, "the second request")
    answer = await told(hark, f"/sessions resume {first}")
    assert "was running was stopped" in answer
    assert sorted(hark.stored.turns("state")) == [("done",), ("stopped",)]
    assert await talk(hark, "three", "3") == first


async def test_what_was_said_elsewhere_is_copied_and_bears_who_said_it(hark: Hark) -> None:
    theirs = await talk(hark, "words of a guest", "an answer to a guest", sender="2")
    await talk(hark, "words of the owner", "yes")
    assert "words of a guest" not in await told(hark, "/sessions")
    await told(hark, f"/sessions resume {theirs}")
    mine = await talk(hark, "go on", "on")
    assert mine != theirs
    assert "words of a guest" in "".join(asked(hark))
    bodies = [json.loads(body) for (body,) in hark.stored.entries("body", transcript_id=mine)]
    assert [one["kind"] for one in bodies[0]["origins"]] == ["person"]
    assert not any(one["origins"] for one in bodies[2:3])
    assert [len(hark.stored.entries(transcript_id=one)) for one in (theirs, mine)] == [2, 4]


async def test_words_are_searched_by_owners_alone(hark: Hark) -> None:
    await talk(hark, "我们去北京", "好的", sender="2")
    found = await told(hark, "/sessions search 北京")
    assert "我们去北京" in found and KEY[:-1] in found  # noqa: PT018
    assert await told(hark, "/sessions search 上海") == "Nothing was found."
    reply = await hark.say("/sessions search 北京", "2", answers=["what a guest types is for the model"])
    assert reply.texts == ["what a guest types is for the model"]


@pytest.mark.parametrize(
    ("form", "inside"), [("markdown", "## User"), ("html", "<h2>User"), ("jsonl", '"type": "hark"')]
)
async def test_a_conversation_is_sent_as_a_file(tmp_path: Path, form: str, inside: str) -> None:
    async with running(tmp_path, channel={"file_bytes": 100_000}) as hark:
        await talk(hark, "keep <this>", "kept")
        await hark.write(f"/export {form}")
        await hark.until(lambda: hark.channel.sent[-1].action is Action.FILE, "the file")
        file = hark.channel.sent[-1].file
        assert file is not None
        with file.open() as opened:
            text = opened.read().decode()
        assert inside in text
        assert ("keep <this>" in text) is (form != "html")
        assert Path(file.path).is_relative_to(hark.state)
        await of(hark).tidy()
        assert exports(hark) == 1
        os.utime(file.path, (0, 0))
        await of(hark).tidy()
        assert exports(hark) == 0


async def test_a_file_that_cannot_be_sent_is_named(tmp_path: Path) -> None:
    async with running(tmp_path, channel={"file_bytes": 10}) as hark:
        await talk(hark, "hello", "hi")
        assert "too large" in await told(hark, "/export")
    async with running(tmp_path, channel={"actions": frozenset({Action.SEND})}) as hark:
        assert "on the machine of the service" in await told(hark, "/export")


async def test_secrets_stay_masked(tmp_path: Path) -> None:
    key = f"sk-ant-api03-{'a1B2' * 20}AA"
    async with running(tmp_path) as hark:
        await talk(hark, "hello", "hi")
        hark.stored.spoil("UPDATE entry SET body=replace(body, 'hi', ?) WHERE kind='assistant'", key)
        for form in ("jsonl", "markdown", "html"):
            exported = await of(hark).export(KEY, form)  # type: ignore[arg-type]
            assert key not in exported.text
            assert "[secret]" in exported.text
        taken = await of(hark).take_in(json.dumps({"role": "user", "content": f"the key {key}"}), "x", KEY)
        assert "[secret]" in hark.stored.entries("body", transcript_id=taken.transcript)[0][0]


async def test_an_export_is_imported_once_and_is_not_current(tmp_path: Path) -> None:
    async with running(tmp_path / "a") as hark:
        for number in range(150):  # more than a batch
            await talk(hark, f"question {number}", f"answer {number}")
        exported = await of(hark).export(KEY, "jsonl")
        _, _, before = await of(hark).show(KEY)
    async with running(tmp_path / "b") as hark:
        mine = await talk(hark, "here", "there")
        taken = await of(hark).take_in(exported.text, exported.name)
        assert (taken.session, taken.added, taken.skipped) == (KEY, len(before), 0)
        again = await of(hark).take_in(exported.text, exported.name)
        assert (again.transcript, again.added) == (taken.transcript, 0)
        _, _, after = await of(hark).show(taken.transcript)
        assert [(one.kind, one.message.text) for one in after] == [(one.kind, one.message.text) for one in before]
        assert [one.current for one in await of(hark).listed(KEY)] == [True, False]
        assert hark.stored.sessions("transcript_id") == [(mine,)]
        await told(hark, f"/sessions resume {taken.transcript[:14]}")
        assert await talk(hark, "go on", "on") == taken.transcript
        assert "answer 149" in "".join(asked(hark))


PRUNING: Mapping[str, Any] = {"sessions": {"prune": {"max_age": "30d", "max_transcripts": 3}}}


async def test_old_transcripts_are_pruned_as_configured(tmp_path: Path) -> None:
    async with running(tmp_path, config=PRUNING) as hark:
        old = await talk(hark, "old", "1")
        await told(hark, "/new")
        hark.time.advance(31 * DAY / 1000)
        kept = []
        for number in range(4):
            kept.append(await talk(hark, f"new {number}", "2"))
            await told(hark, "/new")
            hark.time.advance(1)
        await of(hark).tidy()
        assert [one.transcript for one in await of(hark).listed(KEY)][1:] == kept[:1:-1]
        assert {transcript for (transcript,) in hark.stored.entries("transcript_id")} == set(kept[2:])
        with pytest.raises(NoSuchTranscript):
            await of(hark).show(old)
        assert await of(hark).search("old") == []


async def test_what_is_used_is_not_pruned(hark: Hark) -> None:
    first = await talk(hark, "current, though it is old", "1")
    await told(hark, "/new")
    second = await talk(hark, "used yesterday", "2")
    await told(hark, f"/sessions resume {first}")
    hark.time.advance(90 * DAY / 1000)
    assert await of(hark).prune(timedelta(days=91), None) == 0
    assert await of(hark).prune(timedelta(days=80), 5) == 1
    assert [one.transcript for one in await of(hark).listed()] == [first]
    assert hark.stored.entries(transcript_id=second) == []
    assert await talk(hark, "go on", "3") == first


async def test_what_was_pruned_in_part_is_not_shown_and_goes(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        gone = await talk(hark, "gone", "1")
        await told(hark, "/new")
        assert await of(hark).store.sessions.mark_old(None, 1) == 1
        assert gone not in [one.transcript for one in await of(hark).listed()]
        with pytest.raises(NoSuchTranscript):
            await of(hark).store.sessions.named(gone)
    async with running(tmp_path) as hark:  # the process has died in between
        await of(hark).tidy()
        assert hark.stored.entries(transcript_id=gone) == []
        assert hark.stored.values("pruned transcript") == {}


async def test_the_book_balances_without_the_requests_of_what_was_pruned(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        await hark.write("do that", sender="1", answers=[Call("ask", {"label": "that"}), "I did it"])
        await hark.write(f"/approve {await approval(hark)} once", sender="1")
        await hark.until(lambda: not hark.stored.unfinished(), "the end of everything")
        await told(hark, "/new")
        assert await of(hark).prune(None, 1) == 1
        assert hark.stored.approvals() == []
        assert hark.stored.balance().unexplained == ()
