"""Messages that a run takes only later: neither forgotten nor in anybody's way, whatever the clock does.

Their delays are shorter than the time between two sweeps, which would find them as well."""

from pathlib import Path

import pytest

from bot.persistence.inbox import AcceptedMessage
from bot.runs import queues
from bot.service import SWEEP_EVERY
from channels.message import InboundKind
from tests.service import Hark, running, session_of
from tests.standins.script import Fail, Hang
from tests.watch import lanes_idle


async def delay(
    hark: Hark, text: str, seconds: int, sender: str = "1", kind: InboundKind = InboundKind.MESSAGE
) -> None:
    """Accept a message that is ready after so many seconds."""
    message = hark.message(text, sender, kind=kind)
    item = AcceptedMessage(message=message, session_key=session_of(sender), delay=seconds * 1000)
    await hark.service.parts.pipeline.accept_one(item)


def asked(hark: Hark) -> list[str]:
    """What the model was asked, in order."""
    return [request.messages[-1].text.rpartition("\n")[2] for request in hark.model.requests]


@pytest.mark.parametrize("kind", [InboundKind.MESSAGE, InboundKind.JOB])
async def test_it_is_answered_when_it_is_ready_and_holds_up_nobody(kind: InboundKind, hark: Hark) -> None:
    await delay(hark, "later", 20, kind=kind)
    await hark.say("now")
    hark.time.advance(19)
    await hark.say("in between")
    await lanes_idle()
    assert asked(hark) == ["now", "in between"]
    hark.time.advance(1)
    await hark.until_texts(3)
    assert asked(hark) == ["now", "in between", "later"]


async def test_each_of_several_has_its_own_moment(hark: Hark) -> None:
    for seconds in (25, 20, 20):
        await delay(hark, f"after {seconds}", seconds)
    hark.time.advance(20)
    await hark.until_texts(2)
    hark.time.advance(5)
    await hark.until_texts(3)
    assert asked(hark) == ["after 20", "after 20", "after 25"]


@pytest.mark.parametrize("ahead", [-5, 0, 3600])
async def test_a_restart_ends_the_wait(tmp_path: Path, ahead: int) -> None:
    """ahead: by how much the clock was before the one of the next start, in seconds."""
    async with running(tmp_path) as hark:
        hark.time.skew = ahead * 1000
        await delay(hark, "later", 20)
    async with running(tmp_path) as hark:
        await hark.until_texts(1)
        assert asked(hark) == ["later"]


@pytest.mark.parametrize("back", [10, 3600])
async def test_a_clock_that_is_set_back_makes_nobody_wait_longer(back: int, hark: Hark) -> None:
    await delay(hark, "one", 20)
    await delay(hark, "two", 20)
    hark.time.advance(19)
    hark.time.skew = -back * 1000
    await hark.say("now", "2")
    hark.time.advance(1)
    await hark.until_texts(2)
    assert asked(hark) == ["now", "one", "two"]


async def test_more_than_memory_holds_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "READY", 2)
    async with running(tmp_path) as hark:
        await hark.time.until_pause(SWEEP_EVERY)
        for n in range(5):
            await delay(hark, f"{n}", 60, f"p{n}")
        hark.time.advance(60)
        await hark.until(lambda: len(hark.model.requests) == 5)
        assert sorted(asked(hark)) == ["0", "1", "2", "3", "4"]


# A message that waits may be read by the run of its session instead of becoming a turn of its own.


async def write_behind(hark: Hark, first: str, then: str, hang: Hang) -> bool:
    """Write a message, and another one while the first is being answered, which steers; whether it did."""
    await hark.write(first)
    await hang.entered()
    await hark.write(then)
    handle = hark.service.parts.lanes.handle(session_of("1"))
    assert handle is not None
    ((seq,),) = hark.stored.messages("seq", state="waiting")
    return await hark.service.parts.store.inbox.steer(handle.turn_id, seq)


async def test_a_run_reads_a_message_that_waited(hark: Hark) -> None:
    hang = Hang()
    hark.model.add(hang, "Red it is.")
    hark.model.add("Blue, then.")
    assert await write_behind(hark, "paint it", "in blue", hang)
    hang.release()
    assert await hark.until_texts(2) == ["Red it is.", "Blue, then."]
    await lanes_idle()
    assert hark.model.requests[1].messages[-1].text.endswith("in blue")
    assert hark.stored.turns("state", "step") == [("done", 2)]
    assert hark.stored.messages("state") == [("done",), ("done",)]


async def test_what_a_run_did_not_come_to_read_is_answered_by_itself(hark: Hark) -> None:
    hang = Hang()
    hark.model.add(hang, Fail(400, message="no such thing"))
    hark.model.add("Blue it is.")
    assert await write_behind(hark, "paint it", "in blue", hang)
    hang.release()
    assert (await hark.until_texts(2))[1] == "Blue it is."
    assert sorted(hark.stored.turns("state")) == [("done",), ("failed",)]


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_a_stop_drops_what_steered_and_counts_it(command: str, hark: Hark) -> None:
    hang = Hang()
    hark.model.add(hang)
    assert await write_behind(hark, "paint it", "in blue", hang)
    await hark.write(command)
    (told,) = await hark.until_texts(1)
    assert "1 waiting message" in told
    assert hark.stored.messages("state", kind="message") == [("done",), ("dropped",)]
