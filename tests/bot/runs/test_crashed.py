"""Turns that a crash left running: a person's goes on, a beat's is over; and what steered a run that failed."""

from pathlib import Path

from bot.people.access import OWNER
from channels.message import InboundKind
from tests.bot.store.opened import KEY, accept, answering, claim, opened
from tests.service import running, session_of
from tests.standins.script import Fail, Hang
from tests.watch import lanes_idle


async def test_a_turn_of_a_person_goes_on_after_a_crash(tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as store:
        await accept(store, "hello")
        await claim(store)
    async with running(tmp_path) as hark:
        hark.model.add("Here I am.")
        assert await hark.until_texts(1) == ["Here I am."]
        await lanes_idle()
        assert hark.stored.turns("state", "epoch", "crashes") == [("done", 2, 1)]


async def test_a_beat_is_not_repeated_after_a_crash(tmp_path: Path) -> None:
    """It is about the moment, and the next one comes by itself."""
    async with opened(tmp_path / "state") as store:
        await accept(store, "look around", InboundKind.WAKE)
        assert await store.turns.claim(KEY, "worker", answering, background=True) is not None
    async with running(tmp_path) as hark:
        await lanes_idle()
        assert hark.stored.turns("state", "outcome", "error_kind") == [("stopped", "aborted", "restart")]
        hark.model.add("At your service.")
        assert (await hark.say("hello")).texts == ["At your service."]
        assert len(hark.model.requests) == 1


async def test_what_steered_a_run_that_failed_before_reading_it_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hang = Hang()
        hark.model.add(hang, Fail(400, message="no such thing"))
        hark.model.add("Blue it is.")
        await hark.write("paint it red")
        await hang.entered()
        (turn,) = hark.stored.turns("turn_id", state="running")[0]
        assert await hark.service.parts.api.steer(turn, "no, blue", OWNER)
        hang.release()
        await hark.until(lambda: len(hark.ends(session_of("1"))) == 2, "the end of both turns")
        assert hark.model.requests[-1].messages[-1].text.endswith("no, blue")
        assert {state for (state,) in hark.stored.messages("state")} <= {"done", "dropped"}
