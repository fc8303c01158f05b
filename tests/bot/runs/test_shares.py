"""Who gets a place for a run: owners before guests, and no guest so many that others wait for them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.message import ToolOutput
from agent.shares import BACKGROUND, OWNER, Shares, helper_place
from agent.tools.base import CallContext, Tool
from bot.people.access import PERSON
from bot.persistence.inbox import AcceptedMessage
from bot.runs import queues
from channels.message import ChatKind, InboundKind, Origin, Place
from channels.session_key import http_key
from tests.bot.inbound.test_commands import command
from tests.bot.runs.test_lanes import Crowd, questions
from tests.scripted_model import ScriptedModel, texts
from tests.service import Hark, NoParameters, running
from tests.standins.script import Call
from tests.watch import Watch

# The ids of one person, each with a session of its own.
MALLORY = [str(n) for n in range(100, 120)]
LINKED: dict[str, Any] = {"sessions": {"identity_links": {"mallory": [f"telegram:{one}" for one in MALLORY]}}}
GROUP = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
IN_GROUP: dict[str, Any] = {"channels": {"telegram": {"groups": {"allow": {"-5": {"require_mention": False}}}}}}


def filled(shares: Shares, who: str, names: Sequence[str] = ()) -> int:
    """Take as many places as are free, of one or each of several in turn, and return how many these were."""
    taken = 0
    for one in names or [who] * 100:
        if one in shares.free((one,)):
            shares.take(one)
            taken += 1
    return taken


@pytest.mark.parametrize(
    ("places", "guests", "background", "both"),
    [(1, 1, 1, 1), (2, 1, 1, 1), (3, 1, 1, 2), (4, 2, 2, 3), (7, 3, 3, 5), (16, 8, 8, 12)],
)
def test_shares_are_rounded_down_and_are_at_least_one_place(
    places: int, guests: int, background: int, both: int
) -> None:
    crowd = [f"telegram:{n}" for n in range(100)]
    assert filled(Shares(places), "", crowd) == guests
    assert filled(Shares(places), BACKGROUND) == background
    assert filled(Shares(places), OWNER) == places
    assert filled(Shares(places), "telegram:1") == min(2, guests)
    assert filled(Shares(places), f"{BACKGROUND}telegram:1") == min(2, background)
    shared = Shares(places)
    assert filled(shared, "", crowd) + filled(shared, BACKGROUND) == both
    assert filled(shared, OWNER) == places - both


def test_a_place_that_was_left_is_free_again() -> None:
    shares = Shares(16)
    for _ in range(3):
        assert filled(shares, "telegram:1") == 2
        shares.leave("telegram:1")
        shares.leave("telegram:1")
    shares.places = 2
    assert filled(shares, "telegram:1") == 1


def test_sub_agents_of_all_guests_have_half_of_their_places() -> None:
    shares = Shares(8, each=None)
    assert filled(shares, "telegram:2") == 4
    assert not [*shares.free(("telegram:3",))]
    assert filled(shares, OWNER) == 4


async def test_a_guest_in_twenty_sessions_holds_two_places(tmp_path: Path) -> None:
    async with running(tmp_path, config=LINKED) as hark:
        crowd = Crowd(hark.model)
        await hark.accept(*(hark.message(f"from {one}", one) for one in MALLORY))
        await hark.write("another guest", sender="7")
        await hark.write("the owner")
        await hark.until(lambda: hark.model.active == 4)
        assert questions(hark) == ["from 100", "from 101", "another guest", "the owner"]
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 22)


async def test_programs_without_the_token_are_one_guest(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        Crowd(hark.model)
        for n in range(6):
            await by_program(hark, f"program {n}", f"s{n}")
        await hark.write("the owner")
        await hark.until(lambda: hark.model.active == 3)
        assert questions(hark) == ["program 0", "program 1", "the owner"]


async def by_program(hark: Hark, text: str, name: str) -> None:
    """Write over HTTP, as a program of this machine that has no token."""
    place = Place(channel="http", account="", chat=name, kind=ChatKind.API)
    message = hark.message(text, origin=Origin(place=place, sender=PERSON), kind=InboundKind.API)
    turn_id = hark.service.parts.clock.new_id()
    item = AcceptedMessage(message=message, session_key=http_key(name), turn_id=turn_id)
    await hark.service.parts.pipeline.accept_one(item)


async def test_guests_and_the_background_leave_a_quarter_to_owners(tmp_path: Path) -> None:
    owners = [f"telegram:{n}" for n in range(1, 4)]
    async with running(tmp_path, config={"agent": {"max_concurrent": 8}, "owners": owners}) as hark:
        Crowd(hark.model)
        await hark.accept(*(hark.message(f"guest {n}", f"g{n}") for n in range(9)))
        await hark.until(lambda: hark.model.active == 4)
        await hark.accept(*(hark.message(f"beat {n}", f"b{n}", kind=InboundKind.WAKE) for n in range(9)))
        await hark.until(lambda: hark.model.active == 6)
        await hark.accept(*(hark.message(f"owner {n}", f"{n}") for n in range(1, 4)))
        await hark.until(lambda: hark.model.active == 8)
        kinds = [text.split()[0] for text in questions(hark)]
        assert [kinds.count(kind) for kind in ("guest", "beat", "owner")] == [4, 2, 2]


async def test_jobs_of_one_guest_do_not_fill_the_background(tmp_path: Path) -> None:
    async with running(tmp_path, config=LINKED) as hark:
        crowd = Crowd(hark.model)
        jobs = [hark.message(f"from {one}", one, kind=InboundKind.JOB) for one in MALLORY[:6]]
        await hark.accept(*jobs, hark.message("another guest", "7", kind=InboundKind.JOB))
        await hark.accept(hark.message("a beat", "8", kind=InboundKind.WAKE))
        await hark.until(lambda: hark.model.active == 4)
        assert sorted(questions(hark)) == ["a beat", "another guest", "from 100", "from 101"]
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 8)


async def test_owners_come_before_guests_who_wrote_earlier_and_guests_take_turns(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_concurrent": 1}} | LINKED) as hark:
        crowd = Crowd(hark.model)
        await hark.accept(*(hark.message(f"from {one}", one) for one in MALLORY[:4]))
        await hark.write("another guest", sender="7")
        await hark.write("the owner")
        await hark.until(lambda: hark.model.active == 1)
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 6)
        assert questions(hark) == ["from 100", "the owner", "from 101", "another guest", "from 102", "from 103"]


async def test_shares_hold_after_a_restart_and_owners_are_found_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More sessions wait in the store than are read at once, and those of one guest are the oldest."""
    async with running(tmp_path) as hark:
        Crowd(hark.model)
        for n in range(12):
            await by_program(hark, f"program {n}", f"s{n}")
        await hark.until(lambda: hark.model.active == 2)
        await command(hark, "/freeze")  # so that the owner's message waits behind all others
        await hark.write("another guest", sender="7")
        await hark.write("the owner")
    monkeypatch.setattr(queues, "READY", 4)
    monkeypatch.setattr(queues, "READY_EACH", 3)
    crowd = Crowd(model := ScriptedModel())
    async with running(tmp_path, model=model) as hark:
        await command(hark, "/thaw")
        await hark.until(lambda: model.active == 4)
        asked = sorted(texts(request, "user")[-1].rpartition("\n")[2] for request in model.requests)
        assert asked[0] == "another guest"
        assert asked[3] == "the owner", "and two of the programs"
        crowd.gate.open()
        await hark.until(lambda: len(model.requests) == 14)
        assert crowd.most <= 4


async def test_an_owner_who_writes_behind_a_guest_in_a_group_does_not_wait_for_the_guests_places(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, config=LINKED | IN_GROUP) as hark:
        crowd = Crowd(hark.model)
        await hark.accept(*(hark.message(f"from {one}", one) for one in MALLORY[:2]))
        await hark.until(lambda: hark.model.active == 2)
        await hark.write("in the group", sender="102", origin=Origin(place=GROUP, sender="102", message_id="g1"))
        await hark.write("my turn", origin=Origin(place=GROUP, sender="1", message_id="g2"))
        await hark.until(lambda: hark.model.active == 3)
        assert "in the group" in questions(hark)[-1]
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 4)


async def test_whose_a_session_is_was_guessed_and_the_claim_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is woken without a word of who wrote in it counts as an owner's until the claim looks."""
    monkeypatch.setattr(queues, "READY_EACH", 1)  # the fourth is only in the store
    async with running(tmp_path, config=LINKED) as hark:
        crowd = Crowd(hark.model)
        await hark.accept(*(hark.message(f"from {one}", one) for one in MALLORY[:4]))
        await hark.until(lambda: hark.model.active == 2)
        for one in MALLORY[:4]:
            hark.service.parts.lanes.wake(f"agent:main:telegram:direct:{one}")
        await hark.write("the owner")
        await hark.until(lambda: hark.model.active == 3)
        assert len(questions(hark)) == 3
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 5)


class Helped(Tool[NoParameters]):
    """A tool that needs a helper program, which runs until it is let."""

    name = "helped"
    description = "Needs a helper program."
    parameters = NoParameters
    parallel_safe = True

    def __init__(self, watch: Watch) -> None:
        self.gate, self.active, self._watch = asyncio.Event(), 0, watch

    async def run(self, parameters: NoParameters, context: CallContext) -> ToolOutput:
        async with helper_place():
            self.active += 1
            self._watch.changed()
            await self.gate.wait()
            return ToolOutput(text="done")


async def test_helper_programs_of_a_run_count_for_whom_it_serves(tmp_path: Path) -> None:
    made: list[Helped] = []

    def tools(watch: Watch) -> Sequence[Tool[Any]]:
        made.append(Helped(watch))
        return made

    config = {"tools": {"by_sender": {"telegram:7": {"allow": ["*"]}}}}
    async with running(tmp_path, config=config, tools=tools) as hark:
        for who in ("guest", "owner"):
            hark.model.on(who, lambda _: [Call("helped", {}), Call("helped", {}), Call("helped", {})])
        hark.model.default = lambda _: "done"
        await hark.write("guest", sender="7")
        await hark.until(lambda: made[0].active == 2)
        await hark.write("owner")
        await hark.until(lambda: made[0].active == 5)
        made[0].gate.set()
        assert await hark.until_texts(1) == ["done"]
        assert made[0].active == 6
