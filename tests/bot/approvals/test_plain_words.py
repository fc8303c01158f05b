"""What people write to a request: a plain word decides what it certainly is about, anything else nothing."""

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from bot.gateway.agent_api import Wishes
from bot.plain_words import decision
from channels.console.adapter import PLACE as CONSOLE
from channels.message import Attachment, ChatKind, Origin, Place, Quoted, ReplyDecision
from channels.sources import sentence
from tests.bot.approvals.test_approvals import (
    GROUP,
    IN_GROUPS,
    OPEN,
    Commanding,
    at,
    begin,
    labels,
    order,
    press,
    shows,
)
from tests.bot.approvals.test_parking import over, results
from tests.bot.approvals.test_questions import OPEN as ASKING
from tests.bot.approvals.test_questions import asked
from tests.service import Hark, running
from tests.standins.script import Call

MINE = Quoted(author="Hark", text="May I run this?", by_me=True)
DIRECT = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)


def test_the_words_that_decide_are_few_and_stand_alone() -> None:
    for word in ("yes", "Yes!", " OK. ", "y", "👍", "👍🏽", "Allow", "ja", "Sí", "да", "はい", "OUI"):
        assert decision(word) == "once", word
    for word in ("no", "N", "No.", "👎", "deny", "nein", "HAYIR", "нет", "いいえ"):
        assert decision(word) == "denied", word
    others = (
        "yes go ahead",
        "no, use /tmp instead",
        "yes\nbut later",
        "yes?",
        "a",
        "always",
        "",
        "👍👎",
        "tak",
        "not ok",
    )
    for word in (*others, "ok?", "y/n", "yes no", "`yes`", "> yes"):
        assert decision(word) is None, word
    assert (decision("a", typed=True), decision("A.", typed=True), decision("y", typed=True)) == (
        "always",
        "always",
        "once",
    )


async def state(hark: Hark, count: int = 1) -> list[Any]:
    """What has become of the requests, once so many commands and messages are seen to."""
    await hark.until(lambda: not hark.stored.messages(state="waiting", kind={"command", "button"}), "commands")
    await hark.delivered()
    return [one for (one,) in hark.stored.approvals("state")]


async def test_a_plain_word_decides_what_was_shown_last_in_a_direct_chat(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        for number, (word, verdict) in enumerate((("Yes.", "once"), ("👎", "denied"), ("ok", "once")), 1):
            ident = await begin(hark, count=number, **at(DIRECT, "1"))
            await hark.write(word, **at(DIRECT, "1", "Ann"))
            await hark.until(lambda: not hark.stored.approvals(state="open"), "the decision")
            found = hark.stored.approvals("state", "decided_by", "reason", approval_id=ident)
            assert found == [(verdict, "telegram:1 Ann", "")]
            await hark.until(lambda ends=number: hark.channel.texts().count("done") == ends)  # type: ignore[misc]
            await hark.delivered()


LATER = ["told", "answered", "two", "older", "reply", "forwarded", "file", "guest"]


@pytest.mark.parametrize("why", LATER)
async def test_a_plain_word_that_may_be_about_something_else_decides_nothing(tmp_path: Path, why: str) -> None:
    async with running(tmp_path, config=OPEN, tools=lambda watch: [Commanding()]) as hark:
        await hark.say("hi", answers=["hello"])
        fields: dict[str, Any] = {}
        sender = "1"
        await begin(hark, then="", **at(DIRECT, "1"))
        match why:
            case "told":
                await hark.service.parts.outbox.tell(
                    DIRECT, sentence("news"), "The backup has failed. Shall I try again?"
                )
            case "answered":
                await order(hark, "/status")
            case "two":
                await begin(hark, "2", count=2, then="")
                await hark.until(lambda: len(shows(hark)) == 2, "both")
            case "older":
                fields = {"origin": Origin(place=DIRECT, sender="1", message_id="1"), "event_key": "m:1:old"}
            case "reply":
                fields = {"reply_to": "1"}
            case "forwarded":
                fields = {"forwarded": Quoted(author="Bo", text="yes")}
            case "guest":
                sender = "2"
                hark.model.add("hm")
        await hark.delivered()
        before = hark.stored.approvals("state")
        if why == "file":
            fields = {"attachments": (Attachment(kind="file", ref="f", name="f"),)}
        await hark.write(
            "yes", sender=sender, **({} if fields.get("origin") or why == "guest" else at(DIRECT, "1")) | fields
        )
        await hark.until(lambda: hark.stored.messages("kind")[-1] == ("message",), "it is a message")
        await hark.delivered()
        if why == "guest":
            await hark.until_texts(1, "2")
        assert hark.stored.approvals("state") == before == [("open",)] * len(before)


async def test_in_a_group_only_a_reply_decides(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [Commanding()]) as hark:
        await begin(hark, **at(GROUP, "2"))
        await hark.write("yes", **at(GROUP, "1"))
        await hark.write("yes", **at(GROUP, "2"), reply_to="1", replied=MINE)
        assert await state(hark) == ["open"], "nor does that of somebody who may not"
        hark.model.add("and the rest")
        hark.model.tolerate("unused")
        await hark.write("yes", **at(GROUP, "1"), reply_to="1", replied=MINE, answers=["and the rest, too"])
        assert await state(hark) == ["once"]
        await hark.until(lambda: "and the rest" in hark.channel.texts("-100"), "what was no decision is read")


async def test_a_reply_in_other_words_is_asked_back(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        ident = await begin(hark, **at(DIRECT, "1"))
        await hark.write("yes go ahead\nbut not in build", **at(DIRECT, "1"), reply_to="1")
        assert await state(hark) == ["open"]
        asked = shows(hark)[-1]
        said = "⏳ I am still waiting for a decision about `rm -rf build`"
        said += f" (`/approve {ident[:8]} once`); “yes go ahead” decides nothing."
        assert (asked.body, labels(asked)) == (said, ["Allow once", "Deny and pass on these words"])
        assert all(len(one.sends.encode()) <= 64 for one in asked.buttons)
        await press(hark, "Deny and pass on these words", asked, "2")
        assert await state(hark) == ["open"], "who may not decide"
        await press(hark, "Deny and pass on these words", asked, name="Ann")
        await over(hark)
        assert hark.stored.approvals("state", "reason") == [("denied", "yes go ahead\nbut not in build")]
        assert "yes go ahead\nbut not in build" in results(hark)[0]
        text = "🔐 **May I run this?** `rm -rf build`\n\n✗ **Denied** by Ann: yes go ahead but not in build"
        await hark.until(
            lambda: shows(hark)[-1].body == text or shows(hark)[-2].body == text, "the edit of what asked back"
        )
        assert len(hark.model.requests) == 2, "they are told once"


async def test_words_behind_a_request_are_passed_on_or_read_afterwards(tmp_path: Path) -> None:
    for verdict, label in (("once", "Allow once"), ("denied", "Deny and pass on these words")):
        async with running(tmp_path / verdict, tools=lambda watch: [Commanding()]) as hark:
            await begin(hark, **at(DIRECT, "1"))
            await hark.write("no, use /tmp instead", **at(DIRECT, "1"))
            await hark.until(lambda: len(shows(hark)) == 2, "what is waited for")
            await hark.delivered()
            if verdict == "once":
                hark.model.add("In /tmp, then.")
            await press(hark, label, shows(hark)[1])
            await over(hark)
            if verdict == "once":
                await hark.until(lambda: "In /tmp, then." in hark.channel.texts(), "the next answer")
            else:
                assert "no, use /tmp instead" in results(hark)[0]
                assert hark.stored.messages("reason", state="dropped") == [("passed on",)]
                assert len(hark.model.requests) == 2, "it is not said twice"
            assert hark.stored.approvals("state") == [(verdict,)]


async def test_the_last_word_is_shown_to_be_about_the_request(tmp_path: Path) -> None:
    """A plain word behind what was asked back decides as well: it is what was shown last."""
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        await begin(hark, **at(DIRECT, "1"))
        await hark.write("what does it do", **at(DIRECT, "1"))
        await hark.until(lambda: len(shows(hark)) == 2, "what is waited for")
        await hark.delivered()
        await hark.write("no", **at(DIRECT, "1"), answers=["It deletes."])
        await hark.until(lambda: "It deletes." in hark.channel.texts(), "the answer to the first")
        assert hark.stored.approvals("state") == [("denied",)]


async def test_words_of_another_chat_are_not_passed_on(tmp_path: Path) -> None:
    """A button of that kind may be made up by the program of whoever presses."""
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [Commanding()]) as hark:
        await hark.say("my secret", "4", answers=["fine"])
        ((seq,),) = hark.stored.messages("seq", sender="4")
        ident = await begin(hark, then="", **at(GROUP, "2"))
        answer = await order(hark, f"/approve {ident} deny-with {seq}", **at(GROUP, "1"))
        assert answer.startswith("Those words are gone.")
        assert hark.stored.approvals("state") == [("open",)]


async def test_an_owner_replies_to_what_somebody_else_asks_for(tmp_path: Path) -> None:
    """In the owner's own chat: their model reads none of it."""
    async with running(tmp_path, config=OPEN, tools=lambda watch: [Commanding()]) as hark:
        await hark.say("hi", answers=["hello"])
        await begin(hark, "2")
        (shown,) = shows(hark)
        below = str(hark.channel.sent.index(shown) + 1)
        await hark.write("not today", **at(DIRECT, "1"), reply_to=below)
        await state(hark)
        requests = len(hark.model.requests)
        await press(hark, "Deny and pass on these words", shows(hark)[-1])
        await hark.until(lambda: "done" in hark.channel.texts("2"), "the answer")
        assert hark.stored.approvals("state", "reason") == [("denied", "not today")]
        assert len(hark.model.requests) == requests + 1


async def test_approve_without_an_id(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [Commanding()]) as hark:
        assert (await order(hark, "/approve once")).startswith("Nothing waits here.")
        await begin(hark, **at(DIRECT, "1"))
        early = await order(hark, "/approve once", sent_at=hark.time.now() - 1_000)
        assert early.startswith("Write the id of what you mean"), "written before it was shown"
        assert (await order(hark, "/approve once")).startswith("✓ Allowed once")
        await over(hark)
        await begin(hark, "2", count=2, then="")
        assert len(shows(hark)) >= 3, "shown to the owner"
        await begin(hark, count=3, then="", **at(GROUP, "1"))
        told = await order(hark, "/approve once", **at(GROUP, "1"))
        assert (told.startswith("Write the id of what you mean"), told.count("for telegram:")) == (True, 1)
        await begin(hark, "3", count=4, then="")
        assert (await order(hark, "/approve once")).count("for telegram:") == 2
        assert sorted(hark.stored.approvals("state")) == [("once",), *[("open",)] * 3]


async def test_y_a_and_n_in_the_terminal(tmp_path: Path) -> None:
    config = {"channels": {"console": {"enabled": True}}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        key, api = "agent:main:console:direct:local", hark.service.parts.api

        async def submit(text: str) -> None:
            await api.submit(text, key, CONSOLE, "owner", wishes=Wishes(typed=True))

        for word, verdict in (("y", "once"), ("n", "denied"), ("a", "always")):
            hark.model.add(Call("ask", {"label": "it"}))
            hark.model.add("done")
            ends = len(hark.ends(key))
            await submit("do it")
            await hark.until(lambda: hark.stored.approvals(state="open"), "the request")
            ((ident,),) = hark.stored.approvals("approval_id", state="open")
            ((body,),) = hark.stored.deliveries("body", source=f"ask:{ident}")
            assert body.endswith("Or type `y`, `a` (always) or `n`.")
            await submit(word)
            await hark.until(
                lambda ends=ends: [  # type: ignore[misc]
                    one for one in hark.ends(key)[ends:] if one.is_last and one.usage.output
                ],
                "the end",
            )
            assert hark.stored.approvals("state", approval_id=ident) == [(verdict,)]


@pytest.mark.parametrize(
    "text",
    ["y", "yes", "a", "👍", "n", "1", "/approve once", "!approve {} once", "/answer {} y", "/budget more"],
)
async def test_what_a_program_says_in_the_session_of_the_terminal_decides_nothing(tmp_path: Path, text: str) -> None:
    config = {"channels": {"console": {"enabled": True}}}
    async with running(tmp_path, config=config, tools=lambda watch: [Commanding()]) as hark:
        key, api = "agent:main:console:direct:local", hark.service.parts.api
        hark.model.add(Call("ask", {"label": "it"}))
        await api.submit("do it", key, CONSOLE, "owner", wishes=Wishes(typed=True))
        await hark.until(lambda: hark.stored.approvals(state="open"), "the request")
        ((ident,),) = hark.stored.approvals("approval_id", state="open")
        await api.submit(text.format(ident), key, CONSOLE, "owner")
        is_command = text.startswith(("/", "!"))
        state = "done" if is_command else "waiting"
        await hark.until(lambda: hark.stored.messages("seq", state=state), "what becomes of it")
        assert hark.stored.approvals("state", approval_id=ident) == [("open",)]
        said = [body for (body,) in hark.stored.deliveries("body") if "Only a person can give" in str(body)]
        assert bool(said) == is_command


# What people's own words decide, as it is kept: carried out after a start, also in the form of earlier versions.


async def written(hark: Hark, text: str, **fields: Any) -> dict[str, Any]:
    """Somebody writes, and the service ends before it is carried out; the command as it is kept."""
    hark.service.parts.commands.begin = lambda *_: None  # type: ignore[method-assign]
    await hark.write(text, **at(DIRECT, "1"), **fields)
    ((payload,),) = hark.stored.messages("payload", kind="command", state="waiting")
    kept: dict[str, Any] = json.loads(payload)
    return kept


def as_before(home: Path, kept: dict[str, Any], text: str) -> None:
    """Keep a command as earlier versions did: as words to be parsed, and nothing beside them."""
    older = json.dumps({name: value for name, value in kept.items() if name != "decides"} | {"text": text})
    with contextlib.closing(sqlite3.connect(home / "state" / "hark.db")) as db, db:
        db.execute("UPDATE inbox SET payload=? WHERE kind='command' AND state='waiting'", (older,))


@pytest.mark.parametrize(
    ("said", "decision", "become"),
    [("Yes.", "once", "once"), ("no", "denied", "denied"), ("/tmp instead, please", "ask", "open")],
)
@pytest.mark.parametrize("older", [False, True])
async def test_a_reply_is_carried_out_after_a_start(
    tmp_path: Path, said: str, decision: ReplyDecision, become: str, older: bool
) -> None:
    async with running(tmp_path, tools=lambda watch: [Commanding()]) as hark:
        ident = await begin(hark, then="", **at(DIRECT, "1"))
        kept = await written(hark, said, reply_to="1")
        assert (kept["text"], kept["decides"]) == (said, {"request_id": ident, "decision": decision, "picked": []})
    if older:
        order = {"once": "once", "denied": "deny", "ask": f"ask {said}"}[decision]
        as_before(tmp_path, kept, f"/approve {ident} {order}")
    async with running(tmp_path, tools=lambda watch: [Commanding()], time=hark.time) as hark:
        hark.model.add("done")
        hark.model.tolerate("unused")
        assert await state(hark) == [become]
        if become == "open":
            await press(hark, "Deny and pass on these words", shows(hark)[-1])
            assert hark.stored.approvals("state", "reason") == [("denied", said)]


@pytest.mark.parametrize("older", [False, True])
async def test_an_answer_is_carried_out_after_a_start(tmp_path: Path, older: bool) -> None:
    said = "/green, rather\nor none"  # no command, though it looks like one
    async with running(tmp_path) as hark:
        ident = await asked(hark, ASKING)
        kept = await written(hark, said)
        assert (kept["text"], kept["decides"]) == (said, {"request_id": ident, "decision": "answered", "picked": []})
        hark.model.tolerate("unused")
    if older:
        as_before(tmp_path, kept, f"/answer {ident} {said}")
    async with running(tmp_path, time=hark.time) as hark:
        hark.model.add("As you like.")
        hark.model.tolerate("unused")
        assert await state(hark) == ["answered"]
        assert hark.stored.approvals("reason") == [(said,)]
