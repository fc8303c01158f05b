"""Who is known and may what, as owners see and change it, in the real service: at once, also for what runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot import wording
from bot.commands import registry
from bot.inbound.pairing import NotChanged, Pairing
from bot.persistence.errors import StoreUnavailable
from bot.persistence.people import Settled
from channels.message import ChatKind, InboundKind, Origin, Place
from tests.bot.background.test_background_commands import EXEC
from tests.bot.inbound.test_groups import CHAT, hear, said
from tests.bot.inbound.test_pairing import CODE, PAIRING, code_of, command
from tests.scripted_model import texts
from tests.service import Hark, Json, ScriptedTool, running, session_of
from tests.standins.script import Call, Hang
from tests.watch import lanes_idle

GROUP: Json = {"channels": {"telegram": {"dm": {"policy": "pairing"}, "groups": {"allow": {CHAT: {}}}}}}


def pairing(hark: Hark) -> Pairing:
    return hark.service.parts.pairing


async def let_in(hark: Hark, sender: str, *, owner: bool = False) -> None:
    """By a code; returns when what they had written is answered."""
    code = await code_of(hark, sender)
    assert await pairing(hark).settle(code, "owner" if owner else "allowed", "telegram:1")
    await hark.until_texts(3, sender)
    await lanes_idle()


async def test_everybody_is_listed_with_since_when_and_by_whom(tmp_path: Path) -> None:
    config = {"channels": {"telegram": {"dm": {"policy": "pairing", "allow_from": ["9"]}}}}
    async with running(tmp_path, config=config) as hark:
        await let_in(hark, "6", owner=True)
        origin = replace(hark.message("", "7").origin, sender_name="Ada L.")
        await hark.write("hello", sender="7", origin=origin)
        code = CODE.search((await hark.until_texts(1, "7"))[0])
        assert code
        await command(hark, f"/pairing approve {code[1]}")
        await hark.until_texts(3, "7")
        await lanes_idle()
        await code_of(hark, "8")
        assert await command(hark, "/people block telegram:5") == "telegram 5: is shut out now."
        shown = (await command(hark, "/people")).splitlines()
        assert sorted(shown) == [
            "- let in: telegram 7 Ada L., since Tue 2026-07-14 03:33 UTC, by telegram:1",
            "- let in: telegram 9, by the configuration",
            "- owner: telegram 1, by the configuration",
            "- owner: telegram 6, since Tue 2026-07-14 03:33 UTC, by telegram:1",
            "- shut out: telegram 5, since Tue 2026-07-14 03:33 UTC, by telegram:1",
            "- waits: telegram 8, since Tue 2026-07-14 03:33 UTC",
        ], shown
        hark.model.add("What is that?")
        assert (await hark.say("/people", sender="7")).texts == ["What is that?"], "only owners have it"


async def test_that_nobody_is_let_in_is_said(tmp_path: Path) -> None:
    async with running(tmp_path, config={"owners": []}) as hark:
        call = registry.Call(1, session_of("1"), hark.message("/people"), registry.Asker(is_owner=True))
        assert await hark.service.parts.pipeline.registry.effect(call) == registry.Say(wording.NOBODY_LET_IN)


async def test_what_somebody_asked_for_ends_when_they_are_revoked(tmp_path: Path) -> None:
    """The run that is under way does nothing more, what waits is not answered, and they are a stranger again."""
    hang = Hang()

    def tools(watch: Any) -> list[ScriptedTool]:
        return [ScriptedTool("act", done, watch)]

    async def done(label: str) -> str:
        ran.append(label)
        return label

    ran: list[str] = []
    async with running(tmp_path, config=PAIRING, tools=tools) as hark:
        await let_in(hark, "6", owner=True)
        await hark.write("act", sender="6", answers=[(hang, Call("act", {"label": "late"}))])
        await hang.entered()
        await hark.write("and again", "/status", sender="6")
        sent = len(await hark.until_texts(4, "6"))  # a command is answered at once
        assert await command(hark, "/people revoke telegram:6") == (
            "telegram 6: is a stranger again. 1 running stopped. 1 waiting message dropped."
        )
        hang.release()
        await lanes_idle()
        assert ran == []
        assert len(hark.stored.turns("state", session_key=session_of("6"), state="stopped")) == 1
        assert hark.stored.messages("state", sender="6", reason="access") == [("dropped",)]
        requests = len(hark.model.requests)
        assert CODE.search(await code_of(hark, "6") and hark.channel.texts("6")[sent])
        assert len(hark.model.requests) == requests
    async with running(tmp_path, config=PAIRING) as hark:
        await hark.write("and now?", sender="6")
        await hark.until_texts(1, "6")
        assert hark.model.requests == []
        assert hark.service.parts.people.owners == [("telegram", "1")]


async def test_commands_that_an_owner_began_end_with_their_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []
    async with running(tmp_path, config=PAIRING | EXEC) as hark:
        monkeypatch.setattr(pairing(hark).background, "stop", lambda key: stopped.append(key) or True)
        await let_in(hark, "6", owner=True)
        await let_in(hark, "7")
        await pairing(hark).stand("telegram:7", "revoke")
        assert stopped == []
        await pairing(hark).stand("telegram:6", "revoke")
        assert stopped == [session_of("6")]


async def test_in_a_group_what_is_under_way_goes_on_without_the_rights_of_an_owner(tmp_path: Path) -> None:
    hang = Hang()
    async with running(tmp_path, config=GROUP) as hark:
        await let_in(hark, "6", owner=True)
        hark.model.add(hang, Call("write", {"path": "TOOLS.md", "content": "mine"}))
        hark.model.default = "done"
        await hark.accept(said(hark, "write it", "6", mentioned=True))
        await hang.entered()
        await pairing(hark).stand("telegram:6", "revoke")
        hang.release()
        await hark.until_texts(1, CHAT)
        await lanes_idle()
        turns = hark.stored.turns("state", "epoch", session_key=f"agent:main:telegram:group:{CHAT}")
        assert turns == [("done", 2)], "claimed anew"


async def test_who_is_blocked_gets_in_nowhere_whatever_lets_them_in(tmp_path: Path) -> None:
    config: Json = {
        "channels": {"telegram": {"dm": {"policy": "open", "allow_from": ["6"]}, "groups": {"allow": {CHAT: {}}}}}
    }
    hang = Hang()
    async with running(tmp_path, config=config) as hark:
        hark.model.add(hang)
        await hark.accept(said(hark, "hello", "6", mentioned=True))
        await hang.entered()
        assert "1 running stopped" in await command(hark, "/people block telegram:6")
        hang.release()
        await hark.write("and me?", sender="6")
        words = said(hark, "blocked words", "6")
        assert await hear(hark, words, said(hark, "hello", "6", mentioned=True)) == []
        assert hark.channel.texts("6") == []
        await hear(hark, said(hark, "what was that?", "7", mentioned=True))
        assert not any("blocked words" in text for request in hark.model.requests for text in texts(request, "user"))
    async with running(tmp_path, config=config) as hark:
        assert await hear(hark, said(hark, "hello", "6", mentioned=True)) == []
        assert await command(hark, "/people revoke telegram:6") == "telegram 6: is a stranger again."
        assert len(await hear(hark, said(hark, "hello", "6", mentioned=True))) == 1


async def test_what_comes_while_it_is_being_stored_is_decided_by_it(
    monkeypatch: pytest.MonkeyPatch, hark: Hark
) -> None:
    people = hark.service.parts.store.people
    stand = people.stand

    async def meanwhile(*order: Any) -> Settled | None:
        found = await stand(*order)
        await hark.write("quick", sender="6")
        return found

    monkeypatch.setattr(people, "stand", meanwhile)
    await pairing(hark).stand("telegram:6", "block")
    await hark.say("hello")
    assert hark.channel.texts("6") == []
    assert hark.stored.messages("state", sender="6") == [("dropped",)]


async def test_nothing_changes_where_it_cannot_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*order: Any) -> Settled | None:
        raise StoreUnavailable("the disk is full")

    async with running(tmp_path, config=PAIRING) as hark:
        await let_in(hark, "6", owner=True)
        with monkeypatch.context() as change:
            change.setattr(hark.service.parts.store.people, "stand", full)
            with pytest.raises(StoreUnavailable):
                await pairing(hark).stand("telegram:6", "block")
        assert "**Runs**" in await command(hark, "/status", "6")


async def test_a_stranger_who_is_made_an_owner_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        await code_of(hark, "6", "what is for lunch?")
        assert await command(hark, "/people owner telegram:6") == "telegram 6: is an owner now."
        assert (await hark.until_texts(3, "6"))[1] == "You are an owner of this bot now."
        assert "what is for lunch?" in texts(hark.model.requests[0], "user")[0]
        assert "**Runs**" in await command(hark, "/status", "6")


@pytest.mark.parametrize(
    ("who", "order", "reason"),
    [
        ("telegram:1", "revoke", "`owners` in the configuration"),
        ("telegram:1", "block", "`owners` in the configuration"),
        ("telegram:6", "revoke", "Nothing is stored of telegram:6"),
        ("telegram:ada", "block", "a Telegram user id, which is a whole number"),
        ("ada", "owner", "<platform>:<id>"),
    ],
)
async def test_what_cannot_be_changed_says_why(tmp_path: Path, who: str, order: Any, reason: str) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        with pytest.raises(NotChanged, match=reason):
            await pairing(hark).stand(who, order)
        assert reason in await command(hark, f"/people {order} {who}")
        assert hark.stored.everything()["person"] == []


async def test_an_owner_of_the_configuration_is_one_whatever_was_said_before(tmp_path: Path) -> None:
    async with running(tmp_path, config={"owners": ["telegram:2"]}) as hark:
        await pairing(hark).stand("telegram:1", "block")
    async with running(tmp_path) as hark:
        assert "**Runs**" in await command(hark, "/status")


async def test_a_code_opens_the_account_that_it_was_given_for(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        await let_in(hark, "6")
        here = Place(channel="telegram", account="bot", chat="6", kind=ChatKind.DIRECT)
        people = hark.service.parts.people
        assert people.let_in_by(Origin(place=here, sender="6"))
        for other in (replace(here, account="another"), replace(here, channel="slack")):
            assert not people.let_in_by(Origin(place=other, sender="6"))
    async with running(tmp_path, config=PAIRING) as hark:
        people = hark.service.parts.people
        assert people.let_in_by(Origin(place=here, sender="6"))
        assert not people.let_in_by(Origin(place=replace(here, account="another"), sender="6"))


async def test_an_edit_of_what_waited_for_who_was_shut_out_brings_nothing_back(tmp_path: Path) -> None:
    async with running(tmp_path, config=PAIRING) as hark:
        message = hark.message("hello", "6")
        await hark.accept(message)
        await hark.until_texts(1, "6")
        await pairing(hark).stand("telegram:6", "block")
        await hark.write("hello!", sender="6", kind=InboundKind.EDIT, origin=message.origin)
        await hark.say("hello")
        assert {state for (state,) in hark.stored.messages("state", sender="6")} == {"dropped"}
