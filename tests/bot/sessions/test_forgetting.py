"""Forgetting a person: nothing of what they said is left in any byte that Hark keeps, and others keep theirs."""

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.persistence.errors import StoreUnavailable
from bot.sessions.forgetting import Forget, NotForgotten
from channels.message import Attachment, InboundMessage, Origin, Quoted
from channels.session_key import escaped
from tests.asking import ASKED, AskingTool
from tests.bot.inbound.test_groups import CHAT, said, settings
from tests.service import Hark, running, session_of
from tests.standins.script import Call, Hang
from tests.watch import lanes_idle

PERSON, OWNER = "20020000077", "1"
WHO = f"telegram:{PERSON}"
GROUP = f"agent:main:telegram:group:{escaped(CHAT)}"
CONFIG: dict[str, Any] = settings() | {
    "telemetry": {"payloads": True},
    "tools": {"by_sender": {f"telegram:{PERSON}": {"profile": "full"}}},
    "compaction": {"keep_recent_tokens": 10, "threshold": 0.95},
}


class Canaries:
    """Words that are said once each, so that one that is left says where it was planted."""

    def __init__(self) -> None:
        self.planted: list[str] = []

    def __call__(self, where: str) -> str:
        self.planted.append(f"canary-{where}-zq{len(self.planted)}x")
        return self.planted[-1]

    def left(self, *folders: Path) -> dict[str, list[str]]:
        """Which of them stand in which files."""
        found: dict[str, list[str]] = {}
        for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
            content = path.read_bytes()
            if words := [word for word in self.planted if word.encode() in content]:
                found[str(path)] = words
        return found


def free(hark: Hark, words: str) -> None:
    """Leave words in free pages of the store, as a SQLite does that is not built to overwrite what it deletes."""
    with contextlib.closing(sqlite3.connect(hark.state / "hark.db", isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete=OFF")
        db.execute("INSERT INTO kv (scope, key, value) VALUES ('old', 'words', ?)", (words * 500,))
        db.execute("PRAGMA wal_checkpoint(FULL)")
        db.execute("DELETE FROM kv WHERE scope='old'")


def forget(hark: Hark) -> Forget:
    return hark.service.parts.forget


async def in_group(hark: Hark, text: str, sender: str = PERSON, **fields: Any) -> InboundMessage:
    """Say something in the group, and wait until it was answered or heard."""
    message = said(hark, text, sender, **fields)
    message = replace(message, origin=replace(message.origin, sender_name="Ann" if sender == PERSON else "Bob"))
    await hark.accept(message)
    await lanes_idle()
    await hark.until(lambda: not hark.stored.unfinished(), "the end of everything")
    return message


async def directly(hark: Hark, canary: Canaries) -> None:
    """What somebody does in their own chat."""
    await hark.say(f"hello {canary('message')}", PERSON, answers=[f"you said {canary('answer')}"])
    hark.model.add(Call("write", {"path": "memory/notes.md", "content": f"they like {canary('memory')}\n"}))
    hark.model.add("noted")
    await hark.say("remember it", PERSON)
    content = canary("media")
    hark.channel.files["ref"] = content.encode()
    file = Attachment(kind="file", ref="ref", name=f"{canary('file-name')}.txt", size=len(content))
    await hark.write("look", sender=PERSON, attachments=(file,), answers=["I see"])
    await lanes_idle()
    hang = Hang()
    await hark.write("wait", sender=PERSON, answers=[(hang, "first"), "then"])
    await hang.entered()
    await hark.write(f"and {canary('steering')}", sender=PERSON)
    handle = hark.service.parts.lanes.handle(session_of(PERSON))
    assert handle is not None
    ((seq,),) = hark.stored.messages("seq", state="waiting")
    assert await hark.service.parts.store.inbox.steer(handle.turn_id, seq)
    hang.release()
    await lanes_idle()
    hark.model.whenever("Write a summary", f"a summary with {canary('summary')}")
    await hark.write("/compact", sender=PERSON)
    await hark.until(lambda: hark.stored.entries(kind="summary"), "the summary")
    await hark.write("/new", sender=PERSON)
    await hark.write(f"do {canary('parked')}", sender=PERSON, answers=[Call("ask", {"label": canary("approval")})])
    await hark.until(lambda: hark.stored.approvals(state="open"), "the request")
    await hark.delivered()


async def among_others(hark: Hark, canary: Canaries) -> None:
    """What somebody does in a group, and what others do with it there."""
    await in_group(hark, f"overheard {canary('overheard')}")
    hark.model.add("to Bob: fine")
    await in_group(hark, "the words of Bob", "3", mentioned=True)
    hark.model.add(Call("read", {"path": canary("group-call")}))
    hark.model.add(f"to Ann: {canary('group-answer')}")
    mine = await in_group(hark, f"group {canary('group')}", mentioned=True)
    quoted = Quoted(author="Ann", text=mine.text)
    hark.model.add("to Bob: yes")
    by = Origin(place=mine.origin.place, sender=PERSON, sender_name="Ann")
    await in_group(
        hark, "what Bob thinks of it", "3", mentioned=True, replied=quoted, replied_by=by, reply_to="unknown"
    )
    await in_group(hark, f"not taken yet {canary('ring')}")


async def test_no_byte_of_somebody_is_left(tmp_path: Path) -> None:
    canary = Canaries()
    async with running(
        tmp_path, config=CONFIG, tools=lambda watch: [AskingTool(words=f"{ASKED} {canary('asked')}")]
    ) as hark:
        await hark.say("the words of the owner", OWNER, answers=["hello owner"])
        await among_others(hark, canary)
        await directly(hark, canary)
        free(hark, canary("free"))
        for copy in ("hark.db.v3", "hark.db.damaged-20260101T000000"):
            (hark.state / copy).write_text(canary("copy"))
        assert await hark.service.parts.sessions.search("canary")
        await hark.service.parts.sessions.export_file(session_of(PERSON), "html")
        assert {word for words in canary.left(tmp_path).values() for word in words} == set(canary.planted)

        accepted = sum(account.accepted for account in hark.stored.balance().accounts)
        assert "is forgotten" in await forget(hark).forget_person(WHO)
        assert canary.left(tmp_path) == {}, "while it runs"
        book = hark.stored.balance()
        assert book.unexplained == ()
        assert sum(account.accepted for account in book.accounts) == accepted, "what is gone stays counted"
        kept = json.dumps(hark.stored.everything(), default=str)
        assert PERSON not in kept
        assert [words in kept for words in ("the words of the owner", "the words of Bob", "what Bob thinks")] == [
            True
        ] * 3
        assert not (tmp_path / "workspace" / "people" / f"telegram-{PERSON}").exists()

        hark.model.add("the group goes on")
        await in_group(hark, "and now?", "3", mentioned=True)
        sent = "".join(message.text for message in hark.model.requests[-1].messages)
        assert "the words of Bob" in sent and "(deleted)" in sent and "canary" not in sent  # noqa: PT018
        assert (await hark.say("hello again", PERSON, answers=["who are you?"])).texts == ["who are you?"]
        assert len(hark.model.requests[-1].messages) == 1
    assert canary.left(tmp_path) == {}, "after the end"


async def test_a_summary_of_a_group_goes(tmp_path: Path) -> None:
    canary = Canaries()
    async with running(tmp_path, config=CONFIG) as hark:
        hark.model.add("fine")
        await in_group(hark, canary("group"), mentioned=True)
        hark.model.add("fine")
        await in_group(hark, "the words of Bob", "3", mentioned=True)
        hark.model.whenever("Write a summary", f"a summary with {canary('summary')}")
        await in_group(hark, "/compact", OWNER, mentioned=True)
        assert len(hark.stored.entries(kind="summary")) == 1
        await forget(hark).forget_person(WHO)
        assert canary.left(tmp_path) == {}
        hark.model.add("and on")
        await in_group(hark, "and now?", "3", mentioned=True)
        assert hark.model.requests[-1].messages[0].text == "(deleted)"


async def test_what_is_quoted_by_a_name_goes(tmp_path: Path) -> None:
    canary = Canaries()
    async with running(tmp_path, config=CONFIG) as hark:
        await in_group(hark, "first " + canary("overheard"))
        hark.model.add("fine")
        await in_group(hark, "the words of Bob", "3", mentioned=True)
        # what was accepted is deleted after a month, and the lines are known by what stands in them alone
        hark.stored.spoil("DELETE FROM inbox")
        quoted = Quoted(author="Ann", text=canary("quoted"))
        hark.model.add("fine")
        await in_group(hark, "more words of Bob", "3", mentioned=True, replied=quoted, reply_to="unknown")
        hark.stored.spoil("DELETE FROM inbox")
        hark.model.add("fine")
        await in_group(hark, "of Ann herself", mentioned=True)
        await forget(hark).forget_person(WHO)
        assert canary.left(tmp_path) == {}
        kept = "".join(body for (body,) in hark.stored.entries("body"))
        assert "more words of Bob" in kept


async def test_who_is_unknown_is_not_forgotten(hark: Hark) -> None:
    await hark.say("hello", PERSON)
    for who in ("telegram:77", "telegram:ann", "nobody", "discord:2002"):
        with pytest.raises(NotForgotten):
            await forget(hark).forget_person(who)
    await forget(hark).forget_person(WHO)
    with pytest.raises(NotForgotten):
        await forget(hark).forget_person(WHO)


async def test_what_runs_is_stopped_first(hark: Hark) -> None:
    await hark.write("a long task", sender=PERSON, answers=[Hang()])
    await hark.until(lambda: hark.model.active, "the request")
    await forget(hark).forget_person(WHO)
    assert (hark.model.active, hark.stored.turns(), hark.stored.messages()) == (0, [], [])
    assert (await hark.say("hello", PERSON, answers=["anew"])).texts == ["anew"]


STEPS: dict[str, Callable[[Hark], tuple[object, str]]] = {
    "rows": lambda hark: (hark.service.parts.store.forgetting, "rows"),
    "files": lambda hark: (hark.service.parts.forget, "drop_context"),
    "index": lambda hark: (hark.service.parts.store.search, "clear"),
    "free pages": lambda hark: (hark.service.parts.store.forgetting, "wipe"),
    "end": lambda hark: (hark.service.parts.store.forgetting, "end"),
}


@pytest.mark.parametrize("step", STEPS)
async def test_what_a_crash_has_cut_is_done_by_the_next_start(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = Canaries()

    async def dies(*_: object) -> None:
        raise StoreUnavailable("as if the process had died here")

    def dies_at_once(*_: object) -> None:
        raise StoreUnavailable("as if the process had died here")

    async with running(tmp_path, config=CONFIG) as hark:
        await in_group(hark, canary("overheard"))
        hark.model.add("fine")
        await in_group(hark, "the words of Bob", "3", mentioned=True)
        hark.model.add(Call("write", {"path": "memory/notes.md", "content": canary("memory")}))
        hark.model.add("noted")
        await hark.say(canary("message"), PERSON)
        await hark.service.parts.sessions.search("canary")
        with monkeypatch.context() as patched:
            patched.setattr(*STEPS[step](hark), dies_at_once if step == "files" else dies)
            with pytest.raises(StoreUnavailable):
                await forget(hark).forget_person(WHO)
        assert [*hark.stored.values("forget")] == [WHO]
    async with running(tmp_path, config=CONFIG) as hark:
        assert hark.stored.values("forget") == {}
        assert canary.left(tmp_path) == {}
        assert PERSON not in json.dumps(hark.stored.everything(), default=str)


async def test_copies_in_the_sessions_of_others_are_forgotten(tmp_path: Path) -> None:
    canary = Canaries()
    async with running(tmp_path) as hark:
        await hark.say(canary("message"), PERSON, answers=[canary("answer")])
        ((theirs,),) = hark.stored.sessions("transcript_id", session_key=session_of(PERSON))
        await hark.write(f"/sessions resume {theirs}", sender=OWNER)
        await hark.until_texts(1, OWNER)
        await hark.say("what did they say?", OWNER, answers=["fine"])
        await forget(hark).forget_person(WHO)
        assert canary.left(tmp_path) == {}
        assert "what did they say?" in json.dumps(hark.stored.everything(), default=str)


async def test_what_they_could_do_and_who_decided_by_them_is_gone(tmp_path: Path) -> None:
    async with running(tmp_path, config={"channels": {"telegram": {"dm": {"policy": "pairing"}}}}) as hark:
        pairing = hark.service.parts.pairing
        await pairing.stand(WHO, "owner")
        await hark.say("hello", PERSON)
        assert hark.service.parts.people.owns(WHO)
        told = await forget(hark).forget_person(WHO)
        assert "shared the workspace" in told
        assert not hark.service.parts.people.owns(WHO)
        assert (tmp_path / "workspace" / "AGENTS.md").exists()


async def test_a_reader_in_the_way_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.database.BUSY_SECONDS", 0.01)
    canary = Canaries()
    async with running(tmp_path) as hark:
        await hark.say(canary("message"), PERSON)
        reader = sqlite3.connect(hark.state / "hark.db", isolation_level=None)
        reader.execute("PRAGMA busy_timeout=0")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entry").fetchone()
        forgetting = asyncio.create_task(forget(hark).forget_person(WHO))
        await hark.time.until_pause(0.05)
        reader.close()
        hark.time.advance(0.05)
        await forgetting
        assert canary.left(tmp_path) == {}
