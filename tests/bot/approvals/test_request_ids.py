"""Which request an id means, and for whom: nobody learns of one by guessing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.tools.base import Ask
from bot.approvals.decisions import NotDecided, meant
from bot.persistence.approvals import Approval
from channels.message import ChatKind, InboundKind, Place
from tests.bot.approvals.test_approvals import (
    GROUP,
    IN_GROUPS,
    OTHER,
    Commanding,
    at,
    begin,
    carried_out,
    order,
    press,
    shows,
)
from tests.bot.approvals.test_parking import over
from tests.service import Hark, running

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
