"""A message that waits may be read by the run of its session instead of becoming a turn of its own."""

from pathlib import Path

import pytest

from tests.service import Hark, running, session_of
from tests.standins.script import Fail, Hang
from tests.watch import lanes_idle


async def write_behind(hark: Hark, first: str, then: str, hang: Hang) -> bool:
    """Write a message, and another one while the first is being answered, which steers; whether it did."""
    await hark.write(first)
    await hang.entered()
    await hark.write(then)
    handle = hark.service.parts.lanes.handle(session_of("1"))
    assert handle is not None
    ((seq,),) = hark.stored.messages("seq", state="waiting")
    return await hark.service.parts.store.inbox.steer(handle.turn_id, seq)


async def test_a_run_reads_a_message_that_waited(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
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


async def test_what_a_run_did_not_come_to_read_is_answered_by_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hang = Hang()
        hark.model.add(hang, Fail(400, message="no such thing"))
        hark.model.add("Blue it is.")
        assert await write_behind(hark, "paint it", "in blue", hang)
        hang.release()
        assert (await hark.until_texts(2))[1] == "Blue it is."
        assert sorted(hark.stored.turns("state")) == [("done",), ("failed",)]


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_a_stop_drops_what_steered_and_counts_it(tmp_path: Path, command: str) -> None:
    async with running(tmp_path) as hark:
        hang = Hang()
        hark.model.add(hang)
        assert await write_behind(hark, "paint it", "in blue", hang)
        await hark.write(command)
        (told,) = await hark.until_texts(1)
        assert "1 waiting message" in told
        assert hark.stored.messages("state", kind="message") == [("done",), ("dropped",)]
