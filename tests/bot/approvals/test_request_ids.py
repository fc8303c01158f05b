"""Which request an id means, and for whom: nobody learns of one by guessing."""

import asyncio
import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.tools.base import Ask
from agent.tools.conversation import AskPersonTool
from bot.approvals import words
from bot.approvals.decisions import NotDecided, meant
from bot.people.access import FOR_GUESTS
from bot.persistence.approvals import Approval, Choice
from channels.message import ChatKind, InboundKind, Origin, Place
from tests.bot.approvals.test_approvals import (
    GROUP,
    IN_GROUPS,
    OPEN,
    OTHER,
    Commanding,
    at,
    begin,
    carried_out,
    labels,
    order,
    press,
    shows,
)
from tests.bot.approvals.test_parking import over, results
from tests.service import Hark, running
from tests.standins.script import Call

SECRET = "print the secret plan"
HOME = Place(channel="telegram", account="bot", chat="9", kind=ChatKind.DIRECT)


async def forged(hark: Hark, sends: str, sender: str, **fields: Any) -> str:
    """Somebody presses a button that the service never made; what they are told."""
    before = len(hark.channel.sent)
    more = at(fields.pop("place", GROUP), sender) | {"kind": InboundKind.BUTTON, "reply_to": "1", "respond": "handle"}
    await hark.accept(hark.message(sends, sender, **more | {"event_key": f"i:{before}:{sends}:{sender}"}))
    await carried_out(hark)
    return "\n".join(one.body for one in hark.channel.sent[before:])


@pytest.mark.parametrize("size", [1, 2, 7, 9, 12, 31, 33])
async def test_an_id_counts_whole_or_as_it_is_shown(tmp_path: Path, size: int) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding(SECRET)]) as hark:
        ident = await begin(hark)
        part = (ident + "0")[:size]
        answer = await order(hark, f"/approve {part} once")
        assert answer.startswith(f"There is no request {part}.")
        found = hark.service.parts.store.approvals
        assert list(await found.find(part)) == list(await found.find("")) == list(await found.find("%")) == []
        assert [one.approval_id for one in await found.find(ident[:8].upper())] == [ident]
        assert hark.stored.approvals("state") == [("open",)]
        assert (await order(hark, f"/approve {ident[:8]} once")).startswith("✓ Allowed once")
        await over(hark)


async def test_strangers_learn_nothing_of_a_request(tmp_path: Path) -> None:
    """For an id that there is they are told what they are told of one that there is not, however they come by it."""
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [Commanding(SECRET)]) as hark:
        ident = await begin(hark, then="", **at(GROUP, "1"))
        unknown = "0" * 32 if not ident.startswith("0" * 8) else "f" * 32
        for sends in ("/approve {} once", "/approve {} deny", "/approve {} again", "/answer {} #1"):
            for digits in (32, 8, 1):
                for one in (ident[:digits], unknown[:digits]):
                    denied = f"There is no request {one}. `/approvals` lists those that wait."
                    for place in ({"place": OTHER}, {"place": HOME}):
                        assert await forged(hark, sends.format(one), "9", **place) == denied
                    if sends.startswith("/answer"):  # /approve does not exist for who types it there
                        assert await order(hark, sends.format(one), "9", **at(OTHER, "9")) == denied
        assert hark.stored.approvals("state") == [("open",)]
        assert not [one for one in hark.channel.sent if "secret" in one.body and one.place.chat != "-100"]


async def test_where_it_is_shown_others_are_told_who_may_decide(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [Commanding(SECRET)]) as hark:
        ident = await begin(hark, then="", **at(GROUP, "2"))
        assert "An owner decides" in await forged(hark, f"/approve {ident} once", "9")
        assert "There is no request" in await forged(hark, f"/approve {ident[:3]} once", "9")
        assert hark.stored.approvals("state") == [("open",)]
        hark.model.add("done")
        (shown,) = shows(hark, "-100")
        await press(hark, "Allow once", shown, "1")
        assert hark.stored.approvals("state") == [("once",)]
        await hark.until(lambda: "done" in hark.channel.texts("-100"), "the answer")


def test_of_two_with_the_same_shown_digits_the_one_that_is_open_is_meant() -> None:
    """Such ids may be in a store that is older than the rule that they differ."""
    first, second = (approval_named("1a2b3c4d" + digit * 24) for digit in "01")
    with pytest.raises(NotDecided, match="write the whole id"):
        meant([first, second], "1a2b3c4d")
    assert meant([replace(first, state="denied"), second], "1a2b3c4d") == second


def approval_named(ident: str) -> Approval:
    """A request of that id."""
    ask = Ask(digest="", subject=SECRET)
    return Approval(
        approval_id=ident,
        turn_id="t",
        call_id="c",
        session_key="s",
        by_itself=False,
        place=GROUP,
        asker="telegram:2",
        tool="exec",
        ask=ask,
        approvers=("telegram:1",),
        asked_at=0,
        expires_at=1,
        state="open",
    )


# Each request is looked at by itself: one whose look fails holds up no other, and is tried again by and by.


def change(home: Path, statement: str, *values: object) -> None:
    """Something beside the service changes its store."""
    with contextlib.closing(sqlite3.connect(home / "state" / "hark.db")) as db, db:
        db.execute(statement, values)


async def told(hark: Hark, chat: str, words: str) -> None:
    """Return when a message shows what became of the request in a chat."""
    await hark.until(lambda: any(words in one.body for one in shows(hark, chat)), f"{words!r} in {chat}")


# What the log says of a request that could not be looked at.
FAILED = "a request could not be looked after"


async def test_one_that_cannot_be_read_does_not_keep_the_others_from_being_shown(tmp_path: Path) -> None:
    async with running(tmp_path, config=OPEN, tools=lambda watch: [Commanding()]) as hark:
        broken, other = await begin(hark, "2", then=""), await begin(hark, "3", count=2, then="")
        change(tmp_path, "UPDATE approval SET approvers='[' WHERE approval_id=?", broken)
        hark.model.default = "done"
        decide = hark.service.parts.requests.decide
        with capture_logs() as lines:
            assert await decide(broken, Choice(verdict="once"), "telegram:1")
            await hark.until(lambda: any(line["event"] == FAILED for line in lines), "the first try")
            await hark.time.until_pause(1)
            assert await decide(other, Choice(verdict="once"), "telegram:1")
            await told(hark, "3", "Allowed once")
            for pause in (1, 2, 4):
                await hark.time.until_pause(pause)
                hark.time.advance(pause)
            await hark.time.until_pause(8)
        logged = [line for line in lines if line["event"] == FAILED]
        assert [line["request"] for line in logged] == [broken], "once"
        assert not any("Allowed" in one.body for one in shows(hark, "2"))
        change(tmp_path, "UPDATE approval SET approvers='[]' WHERE approval_id=?", broken)
        hark.time.advance(8)
        await told(hark, "2", "Allowed once")


async def test_one_that_cannot_expire_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    config = OPEN | {"approvals": {"timeout_seconds": 90}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        broken = await begin(hark, "2", then="")
        await begin(hark, "3", count=2, then="")
        refuse = f"NEW.approval_id='{broken}' BEGIN SELECT raise(ABORT, 'a fault'); END"
        change(tmp_path, f"CREATE TRIGGER faulty BEFORE UPDATE ON approval WHEN {refuse}")
        hark.model.default = "done"
        await hark.time.until_pause(90)
        hark.time.advance(90)
        await told(hark, "3", "Nobody decided in time")
        assert hark.stored.approvals("state", approval_id=broken) == [("open",)]
        await hark.time.until_pause(1)
        change(tmp_path, "DROP TRIGGER faulty")
        for _ in range(64):  # whoever looks after it, and however often it was tried before
            hark.time.advance(1)
            await asyncio.sleep(0)
        await told(hark, "2", "Nobody decided in time")


# Who is asked, and how they learn of it where they may not read along.


async def greet(hark: Hark) -> None:
    """The owner writes directly."""
    await hark.say("hi", answers=["hello"])


def by_bo() -> dict[str, Any]:
    """Somebody who is no owner writes in the group."""
    fields = at(GROUP, "2", "Bo")
    return fields | {"origin": replace(fields["origin"], chat_name="Ops | *night*")}


async def test_an_owner_who_is_not_in_the_group_is_told_where_it_waits(tmp_path: Path) -> None:
    tool = Commanding()
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [tool]) as hark:
        await greet(hark)
        await begin(hark, **by_bo())
        (there,), (owner,) = shows(hark, "-100"), shows(hark, "1")
        assert labels(there) == labels(owner) == ["Allow once", "Always allow", "Deny"], "they may read along there"
        assert "Asked on Telegram in “Ops night” by Bo (telegram:2)." in owner.body
        await press(hark, "Allow once", owner)
        await hark.until(lambda: "done" in hark.channel.texts("-100"), "the answer")
        assert tool.begun == ["it"]
        await hark.until(lambda: shows(hark, "-100")[-1].body.endswith("✓ **Allowed once** by telegram:1"), "the edit")


async def test_an_owner_who_has_written_there_is_not_told_twice(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [Commanding()]) as hark:
        await greet(hark)
        await hark.write("morning", **at(GROUP, "1"), answers=["hello all"])
        await hark.until_texts(1, "-100")
        await begin(hark, then="", **by_bo())
        assert (len(shows(hark, "-100")), shows(hark, "1")) == (1, [])


async def test_somebody_who_never_wrote_there_is_not_asked(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS) as hark:
        hark.model.add(Call(AskPersonTool.name, {"question": "Which?", "who": "telegram:77", "default": "red"}))
        hark.model.add("so be it")
        await hark.write("paint it", **at(GROUP, "2"))
        await hark.until(lambda: "so be it" in hark.channel.texts("-100"), "the answer")
        told = "They do not read this conversation, so they were not asked. Go on with: red"
        assert results(hark) == [told]


@pytest.mark.parametrize(("sender", "put"), [("1", FOR_GUESTS + 1), ("2", FOR_GUESTS)])
async def test_only_guests_have_others_asked_so_often_and_no_more(tmp_path: Path, sender: str, put: int) -> None:
    async with running(tmp_path, config=OPEN) as hark:
        for number in range(FOR_GUESTS + 1):
            hark.model.add(Call(AskPersonTool.name, {"question": f"Question {number}?", "who": "anyone"}))
        await hark.write("ask around", sender=sender, answers=["so be it"])
        for number in range(put):
            await hark.until(lambda: hark.stored.approvals(state="open"), f"question {number}")
            ((ident,),) = hark.stored.approvals("approval_id", state="open")
            choice = Choice(verdict="answered", reason=f"answer {number}")
            assert await hark.service.parts.requests.decide(ident, choice, f"telegram:{sender}")
        await hark.until(lambda: "so be it" in hark.channel.texts(sender), "the answer")
        assert len(hark.stored.approvals("state", state="answered")) == put
        assert (words.ENOUGH in results(hark)[0]) == (put == FOR_GUESTS)


@pytest.mark.parametrize("who", ["user", "me", "owners", "Bob", "telegram:", ":2", ""])
async def test_words_that_name_nobody_are_refused(who: str, hark: Hark) -> None:
    await hark.write("paint it", answers=[Call(AskPersonTool.name, {"question": "Which?", "who": who}), "so be it"])
    await over(hark)
    assert "asker, owner, anyone, or `channel:id` of somebody who writes in this conversation" in results(hark)[0]
    assert hark.stored.approvals("state") == []


async def test_somebody_who_reads_along_is_asked_by_their_id(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS) as hark:
        hark.model.add("hi Cy")
        await hark.write("morning", origin=Origin(place=GROUP, sender="3", message_id="60"), event_key="m:-100:60")
        await hark.until_texts(1, "-100")
        hark.model.add(Call(AskPersonTool.name, {"question": "Which?", "who": "telegram:3"}))
        await hark.write("ask Cy", **at(GROUP, "2"))
        await hark.until(lambda: hark.stored.approvals("state") == [("open",)], "the question")


# Commands of the model in a real service, with the defaults: what has a rule runs, the rest is asked about.


async def answered(hark: Hark, command: str, **more: Any) -> str | None:
    """Let the model call exec; what it is answered of that, None when a person must decide first."""
    before = len(hark.stored.approvals("approval_id"))
    hark.model.add(Call("exec", {"command": command, "needs": "host", **more}))
    hark.model.tolerate("unused")
    hark.model.add("done")
    events = len(hark.events)
    await hark.write("go")
    await hark.until(lambda: hark.ends("agent:main:telegram:direct:1", events), "an end of the run")
    if len(hark.stored.approvals("approval_id")) > before:
        return None
    return hark.model.requests[-1].messages[-1].tool_results[0].text


async def decide(hark: Hark, verdict: Any) -> str:
    """Of the open request; what the model is answered then."""
    ((approval_id,),) = hark.stored.approvals("approval_id", state="open")
    events = len(hark.events)
    assert await hark.service.parts.requests.decide(approval_id, Choice(verdict=verdict), "telegram:1")
    await hark.until(lambda: hark.ends("agent:main:telegram:direct:1", events), "the end")
    return hark.model.requests[-1].messages[-1].tool_results[0].text


async def test_what_is_allowed_once_runs_once_and_what_is_allowed_for_always_does_without_asking(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as hark:
        workspace = hark.state.parent / "workspace"
        assert await answered(hark, "echo the plan", needs="look") == "[exit code 0]\nthe plan\n"
        await hark.delivered()
        assert (await order(hark, "/why")).endswith("Made from: your own words alone")
        assert await answered(hark, "echo x >> log.txt; touch made") is None
        assert not (workspace / "made").exists()
        assert await decide(hark, "once") == "[exit code 0]\n[no output]"
        assert (workspace / "made").exists()
        assert (workspace / "log.txt").read_text() == "x\n"
        assert await answered(hark, "touch made") is None
        assert await decide(hark, "always") == "[exit code 0]\n[no output]"
        assert await answered(hark, "touch made") == "[exit code 0]\n[no output]"
        assert await answered(hark, "touch other") is None
        assert "A person denied this call" in await decide(hark, "denied")
        assert not (workspace / "other").exists()
    async with running(tmp_path) as hark:
        assert await answered(hark, "touch made") == "[exit code 0]\n[no output]", "also behind a restart"
